//! From keys to orders.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use uo_proto::{Dir, ObjectKind, Order, SAY_BYTES_MAX, Spell, SpellInfo, Target};
use uo_sdk::{Entity, LocalWorld};

/// Steps that may be under way at once: as many as the server queues. A held key repeats faster than anyone walks.
const STEPS_AHEAD_MAX: u64 = 4;

/// What the screen shows and the keys mean.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The map; keys are orders.
    #[default]
    Play,
    /// The map; keys are the text so far.
    Say(String),
    /// What the character has.
    Inventory,
    /// What the keys mean.
    Keys,
}

/// What a key asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// An order to the server.
    Order(Order),
    /// To leave.
    Quit,
}

/// What was typed so far.
#[derive(Debug, Default)]
pub struct Input {
    mode: Mode,
    spells: Vec<SpellInfo>,
    spell_at: usize,
}

impl Input {
    /// What the keys mean now.
    pub fn mode(&self) -> &Mode {
        &self.mode
    }

    /// Takes over the table of spells from a `welcome`.
    pub fn set_spells(&mut self, spells: &[SpellInfo]) {
        self.spells = spells.to_vec();
    }

    /// The spell that `c` casts.
    pub fn spell(&self, world: &LocalWorld) -> Option<Spell> {
        world.me()?;
        self.spells.get(self.spell_at).map(|row| row.spell)
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent, world: &LocalWorld) -> Option<Wish> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL) {
            return Some(Wish::Quit);
        }
        if let Mode::Say(text) = &mut self.mode {
            let said = say(text, key.code)?;
            self.mode = Mode::Play;
            return said.map(Wish::Order);
        }
        match key.code {
            KeyCode::Char('q') => return Some(Wish::Quit),
            KeyCode::Char('?') => self.show(Mode::Keys),
            KeyCode::Char('i') => {
                self.show(Mode::Inventory);
                return Some(Wish::Order(Order::Inventory));
            }
            KeyCode::Enter => self.mode = Mode::Say(String::new()),
            KeyCode::Esc => self.mode = Mode::Play,
            KeyCode::Char(digit @ '1'..='9') => {
                let at = digit as usize - '1' as usize;
                if at < self.spells.len() {
                    self.spell_at = at;
                }
            }
            code => return self.order(code, world).map(Wish::Order),
        }
        None
    }

    /// Shows a page, or the map again if it is shown already.
    fn show(&mut self, page: Mode) {
        self.mode = if self.mode == page { Mode::Play } else { page };
    }

    fn order(&self, code: KeyCode, world: &LocalWorld) -> Option<Order> {
        if let Some(dir) = heading(code) {
            return Some(Order::Step { dir });
        }
        match code {
            KeyCode::Char('a') => nearest_foe(world).map(|foe| Order::Attack {
                target: Target::Entity(foe.state.id),
            }),
            KeyCode::Char('c') => self.cast(world),
            KeyCode::Char('g') => Some(Order::Guard),
            KeyCode::Char('p') => Some(Order::Potion),
            KeyCode::Char('s') => Some(Order::Stop),
            KeyCode::Char('o') => world
                .nearest_object(ObjectKind::Door, 2)
                .map(|door| Order::Open { object: door.key }),
            KeyCode::Char('K') => {
                let ahead = world.pos().step(world.me()?.state.heading)?;
                Some(Order::Plant {
                    x: ahead.x,
                    y: ahead.y,
                })
            }
            _ => None,
        }
    }

    /// The chosen spell: a healing one at oneself, others at the nearest foe or the tile it stands on.
    fn cast(&self, world: &LocalWorld) -> Option<Order> {
        let row = self.spells.get(self.spell_at)?;
        let at = match row.spell {
            Spell::Heal => world.me()?,
            _ => nearest_foe(world)?,
        };
        let target = if row.targets_entity {
            Target::Entity(at.state.id)
        } else {
            Target::Tile(at.state.pos())
        };
        Some(Order::Cast {
            spell: row.spell,
            target,
        })
    }
}

/// Whether `order` is one step too many: `last_step` is the number of the step sent last.
pub fn is_step_too_many(order: &Order, last_step: u64, world: &LocalWorld) -> bool {
    matches!(order, Order::Step { .. }) && last_step.saturating_sub(world.ack()) >= STEPS_AHEAD_MAX
}

/// Takes a key into `text`. None while it goes on; then the order, or nothing if there is nothing to say.
fn say(text: &mut String, code: KeyCode) -> Option<Option<Order>> {
    match code {
        KeyCode::Enter if text.is_empty() => Some(None),
        KeyCode::Enter => Some(Some(Order::Say {
            text: std::mem::take(text),
        })),
        KeyCode::Esc => Some(None),
        KeyCode::Backspace => {
            text.pop();
            None
        }
        KeyCode::Char(char) if text.len() + char.len_utf8() <= SAY_BYTES_MAX => {
            text.extend(Some(char).filter(|char| !char.is_control()));
            None
        }
        _ => None,
    }
}

/// The nearest mob that lives; without one, the nearest player.
fn nearest_foe(world: &LocalWorld) -> Option<&Entity> {
    let here = world.pos();
    world.others().min_by_key(|other| {
        let distance = other.state.pos().distance(here);
        (!other.is_mob(), distance, other.state.id)
    })
}

fn heading(code: KeyCode) -> Option<Dir> {
    Some(match code {
        KeyCode::Char('h') | KeyCode::Left => Dir::W,
        KeyCode::Char('j') | KeyCode::Down => Dir::S,
        KeyCode::Char('k') | KeyCode::Up => Dir::N,
        KeyCode::Char('l') | KeyCode::Right => Dir::E,
        KeyCode::Char('y') => Dir::Nw,
        KeyCode::Char('u') => Dir::Ne,
        KeyCode::Char('b') => Dir::Sw,
        KeyCode::Char('n') => Dir::Se,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_world;
    use uo_proto::Pos;

    fn press(input: &mut Input, char: char, world: &LocalWorld) -> Option<Wish> {
        input.key(KeyCode::Char(char).into(), world)
    }

    fn order(input: &mut Input, char: char, world: &LocalWorld) -> Option<Order> {
        match press(input, char, world) {
            Some(Wish::Order(order)) => Some(order),
            _ => None,
        }
    }

    #[test]
    fn letters_and_arrows_walk_all_eight_ways() {
        let world = test_world::at(Pos::new(500, 400));
        let mut input = Input::default();
        let dirs: Vec<_> = "kulnjbhy"
            .chars()
            .map(|char| order(&mut input, char, &world))
            .collect();
        let want: Vec<_> = Dir::ALL
            .into_iter()
            .map(|dir| Some(Order::Step { dir }))
            .collect();
        assert_eq!(dirs, want);
        let up = input.key(KeyCode::Up.into(), &world);
        assert_eq!(up, Some(Wish::Order(Order::Step { dir: Dir::N })));
    }

    #[test]
    fn attacks_and_spells_go_to_the_nearest_mob() {
        let world = test_world::with_bandit_two_east();
        let bandit = Target::Entity(test_world::BANDIT);
        let mut input = Input::default();
        assert_eq!(order(&mut input, 'c', &world), None, "no spells are known");
        input.set_spells(&test_world::spells());
        assert_eq!(
            order(&mut input, 'a', &world),
            Some(Order::Attack { target: bandit })
        );
        let cast = |input: &mut Input| order(input, 'c', &world);
        let want = |spell, target| Some(Order::Cast { spell, target });
        assert_eq!(cast(&mut input), want(Spell::Bolt, bandit));
        press(&mut input, '2', &world);
        let tile = Target::Tile(Pos::new(502, 400));
        assert_eq!(cast(&mut input), want(Spell::Fireball, tile));
        press(&mut input, '3', &world);
        let myself = Target::Entity(test_world::ANN);
        assert_eq!(cast(&mut input), want(Spell::Heal, myself));
        press(&mut input, '9', &world);
        assert_eq!(cast(&mut input), want(Spell::Heal, myself));
    }

    #[test]
    fn doors_kegs_and_the_rest() {
        let world = test_world::with_bandit_two_east();
        let mut input = Input::default();
        let want = Order::Open {
            object: test_world::DOOR,
        };
        assert_eq!(order(&mut input, 'o', &world), Some(want));
        let want = Order::Plant { x: 501, y: 400 };
        assert_eq!(order(&mut input, 'K', &world), Some(want));
        assert_eq!(order(&mut input, 'g', &world), Some(Order::Guard));
        assert_eq!(order(&mut input, 'p', &world), Some(Order::Potion));
        assert_eq!(press(&mut input, 'q', &world), Some(Wish::Quit));
        let alone = test_world::at(Pos::new(500, 400));
        assert_eq!(order(&mut input, 'a', &alone), None);
        assert_eq!(order(&mut input, 'o', &alone), None);
    }

    #[test]
    fn what_is_said_is_typed_and_sent_with_enter() {
        let world = test_world::at(Pos::new(500, 400));
        let mut input = Input::default();
        input.key(KeyCode::Enter.into(), &world);
        for char in "quo".chars() {
            assert_eq!(press(&mut input, char, &world), None);
        }
        input.key(KeyCode::Backspace.into(), &world);
        assert_eq!(input.mode(), &Mode::Say("qu".into()));
        let said = input.key(KeyCode::Enter.into(), &world);
        let want = Order::Say { text: "qu".into() };
        assert_eq!(said, Some(Wish::Order(want)));
        assert_eq!(input.mode(), &Mode::Play);

        input.key(KeyCode::Enter.into(), &world);
        for _ in 0..300 {
            press(&mut input, 'é', &world);
        }
        assert_eq!(input.mode(), &Mode::Say("é".repeat(128)));
        assert_eq!(input.key(KeyCode::Esc.into(), &world), None);
        assert_eq!(input.mode(), &Mode::Play);
    }

    #[test]
    fn a_held_key_does_not_run_ahead_of_the_server() {
        let world = test_world::at(Pos::new(500, 400));
        let step = Order::Step { dir: Dir::N };
        assert!(!is_step_too_many(&step, world.ack() + 3, &world));
        assert!(is_step_too_many(&step, world.ack() + 4, &world));
        assert!(!is_step_too_many(&Order::Stop, world.ack() + 4, &world));
    }
}
