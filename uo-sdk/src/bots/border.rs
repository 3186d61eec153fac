//! Paces to and fro across the nearest border between two regions: what crossings are measured with.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Dir, Order, Pos, REGION_SIZE};

use super::wander::walk;
use crate::bot::{Bot, Cause, Hands, begins_life};
use crate::{Dice, LocalWorld};

/// How far it goes past the border before it turns: deep enough to be handed over, whatever the border's rule.
const REACH: u16 = 6;
/// How often it looks where it is.
const LOOK_MS: u64 = 150;
/// Looks without a step after which it looks for another place to cross.
const STUCK_LOOKS: u32 = 8;

/// See the module.
#[derive(Clone, Debug)]
pub struct Border {
    dice: Dice,
    /// The column in which the eastern region begins.
    border: Option<u16>,
    heading: Dir,
    last: Pos,
    still: u32,
}

impl Border {
    /// One that crosses where `seed` leads.
    pub fn new(seed: u64) -> Border {
        let mut dice = Dice::new(seed);
        let heading = if dice.below(2) == 0 { Dir::E } else { Dir::W };
        Border {
            dice,
            border: None,
            heading,
            last: Pos::default(),
            still: 0,
        }
    }

    /// The border between two columns of regions that is nearest; none on a map of one.
    fn nearest(world: &LocalWorld) -> Option<u16> {
        let columns = world.map()?.size / REGION_SIZE;
        let borders = (1..columns).map(|column| column * REGION_SIZE);
        borders.min_by_key(|border| border.abs_diff(world.pos().x))
    }

    /// Walks to a tile beside the border from which the way ahead looks open.
    fn go_elsewhere(&mut self, border: u16, world: &LocalWorld, hands: &mut Hands) {
        let reach = REACH as i16;
        for _ in 0..16 {
            let away = self.dice.between(0, 24) as i16 - 12;
            let Some(y) = world.pos().y.checked_add_signed(away) else {
                continue;
            };
            let row = (1 - reach..reach).map(|dx| Pos::new(border.wrapping_add_signed(dx), y));
            if row.clone().all(|pos| world.is_open(pos)) {
                let x = border - 1;
                return hands.order(Order::WalkTo { x, y });
            }
        }
        // Nothing is quite open: any way on is better than none.
        if let Some(pos) = walk(world.pos(), self.heading, reach).filter(|&it| world.is_open(it)) {
            hands.order(Order::WalkTo { x: pos.x, y: pos.y });
        }
    }

    fn look(&mut self, border: u16, world: &LocalWorld, hands: &mut Hands) {
        let pos = world.pos();
        let is_stuck = pos == self.last;
        self.still = if is_stuck { self.still + 1 } else { 0 };
        self.last = pos;
        if self.still >= STUCK_LOOKS {
            self.still = 0;
            return self.go_elsewhere(border, world, hands);
        }
        let turned = match () {
            () if pos.x >= border + REACH - 1 => Dir::W,
            () if pos.x + REACH <= border => Dir::E,
            () => self.heading,
        };
        let is_near = pos.x.abs_diff(border) <= 2 * REACH;
        // Near the border it holds its heading; again after each turn, and after every other order of its own.
        if is_near && (turned != self.heading || self.still == 2) {
            self.heading = turned;
            hands.order(Order::Move { dir: Some(turned) });
        }
    }
}

impl Bot for Border {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Event(event) if begins_life(event) => {
                self.border = Border::nearest(world);
                self.still = STUCK_LOOKS;
                hands.wake_at(now_ms + self.dice.between(50, 500));
            }
            Cause::Event(_) => {}
            Cause::Time => {
                hands.wake_at(now_ms + LOOK_MS);
                let is_alive = world.me().is_some_and(|me| me.is_alive());
                if let (Some(border), true) = (self.border, is_alive) {
                    self.look(border, world, hands);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uo_proto::Class;

    use super::*;
    use crate::bots::scene::{ME, Scene};

    #[test]
    fn it_turns_on_both_sides_of_the_border() {
        let mut scene = Scene::new(Border::new(3), Class::Archer, Pos::new(70, 100));
        scene.bot.heading = Dir::E;
        scene.wake();
        let mut headings = Vec::new();
        for _ in 0..200 {
            let heading = scene.bot.heading;
            let (dx, _) = heading.offset();
            scene.change(ME, |me| me.x = me.x.checked_add_signed(dx).unwrap());
            for order in scene.wake() {
                if let Order::Move { dir: Some(dir) } = order {
                    headings.push(dir);
                }
            }
            let x = scene.world.pos().x;
            assert!((57..=71).contains(&x), "{x}");
        }
        assert!(headings.len() > 10);
        assert!(headings.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn it_looks_for_another_place_when_it_does_not_get_on() {
        let mut scene = Scene::new(Border::new(3), Class::Archer, Pos::new(70, 100));
        let orders: Vec<Order> = (0..20).flat_map(|_| scene.wake()).collect();
        let is_walk = |order: &&Order| matches!(order, Order::WalkTo { .. });
        assert!(orders.iter().filter(is_walk).count() >= 2, "{orders:?}");
    }
}
