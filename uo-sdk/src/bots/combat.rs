//! Looks for a fight: walks to bandit camps, attacks what lives there, answers whoever attacks it, casts if it is a mage,
//! drinks when hurt, breaks things on the way, dies and goes on.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::{
    Class, CombatEvent, EntityId, ErrorCode, ItemKind, ObjectKey, ObjectKind, Order, Pos,
    ServerMsg, Spell, Target,
};

use super::wander::walk;
use crate::bot::{Bot, Cause, Hands, begins_life};
use crate::event::Event;
use crate::{Dice, Entity, LocalWorld};

/// Foes farther than this are left alone, in tiles.
const FOE_RADIUS: u16 = 16;
/// Things farther than this are not worth breaking, in tiles.
const BREAK_RADIUS: u16 = 8;
/// Reach of spells that is counted on, in tiles; the table in `welcome` may allow more.
const SPELL_RADIUS: u16 = 8;
/// A foe that cannot be fought is left alone for so long.
const AVOID_MS: u64 = 15_000;
/// Camps farther than the regions within this are not thought of, in tiles.
const CAMP_RADIUS: u16 = 64;
/// Between two potions.
const POTION_MS: u64 = 3_000;
/// A walk that gets nowhere for so long is given up.
const STUCK_MS: u64 = 4_000;
/// How near to a camp is there, in tiles.
const ARRIVED_RADIUS: u16 = 3;

/// What it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    Nothing,
    /// Walking to a goal; where it was last seen to move, and when.
    Travel {
        goal: Pos,
        at: Pos,
        moved_ms: u64,
    },
    /// Fighting somebody, since then.
    Fight {
        foe: EntityId,
        since_ms: u64,
    },
    /// Breaking something, until then.
    Break {
        object: ObjectKey,
        until_ms: u64,
    },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Combat {
    dice: Dice,
    aim: Aim,
    /// Foes that could not be fought, and until when they are left alone.
    avoided: BTreeMap<EntityId, u64>,
    /// Where it was last, so that it goes somewhere else next.
    last_goal: Option<Pos>,
    potion_due_ms: u64,
    spell_due_ms: u64,
    /// When the attack was last ordered.
    ordered_ms: u64,
    out_of_potions: bool,
}

impl Combat {
    /// A fighter that decides as `seed` says.
    pub fn new(seed: u64) -> Combat {
        Combat {
            dice: Dice::new(seed),
            aim: Aim::Nothing,
            avoided: BTreeMap::new(),
            last_goal: None,
            potion_due_ms: 0,
            spell_due_ms: 0,
            ordered_ms: 0,
            out_of_potions: false,
        }
    }

    fn on_event(&mut self, now_ms: u64, world: &LocalWorld, event: &Event, hands: &mut Hands) {
        if begins_life(event) {
            self.aim = Aim::Nothing;
            self.out_of_potions = false;
            self.avoided.clear();
            return hands.wake_at(now_ms + self.dice.between(50, 1_000));
        }
        match event {
            Event::Message(ServerMsg::Event(happened)) => match happened.combat {
                CombatEvent::Hit { target, .. }
                    if Some(target) == world.my_id() && !matches!(self.aim, Aim::Fight { .. }) =>
                {
                    hands.wake_at(now_ms + 100);
                }
                CombatEvent::Broke { object, .. } => {
                    if matches!(self.aim, Aim::Break { object: mine, .. } if mine == object) {
                        self.aim = Aim::Nothing;
                    }
                }
                _ => {}
            },
            Event::Message(ServerMsg::Error(error)) => self.on_refusal(now_ms, error.code),
            Event::Message(ServerMsg::StepRejected(_)) => {
                if let Aim::Travel { .. } = self.aim {
                    self.aim = Aim::Nothing;
                }
            }
            _ => {}
        }
    }

    fn on_refusal(&mut self, now_ms: u64, code: ErrorCode) {
        match code {
            ErrorCode::NothingLeft => self.out_of_potions = true,
            ErrorCode::NoTarget | ErrorCode::OutOfReach | ErrorCode::NoSight => match self.aim {
                // A spell that does not reach says nothing about the weapon.
                Aim::Fight { .. } if self.spell_due_ms > now_ms => {}
                Aim::Fight { foe, .. } => {
                    self.avoided.insert(foe, now_ms + AVOID_MS);
                    self.aim = Aim::Nothing;
                }
                _ => self.aim = Aim::Nothing,
            },
            _ => {}
        }
    }

    fn think(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        hands.wake_at(now_ms + self.dice.between(400, 600));
        let Some(me) = world.me().filter(|me| me.is_alive()) else {
            self.aim = Aim::Nothing;
            return;
        };
        self.avoided.retain(|_, until_ms| *until_ms > now_ms);
        if self.drinks(now_ms, world, me) {
            return hands.order(Order::Potion);
        }
        if !matches!(self.aim, Aim::Fight { .. })
            && let Some(foe) = self.find_foe(world, me)
        {
            self.aim = Aim::Fight {
                foe,
                since_ms: now_ms,
            };
            self.attack(now_ms, Target::Entity(foe), hands);
        }
        match self.aim {
            Aim::Fight { foe, since_ms } => self.fight(now_ms, since_ms, world, me, foe, hands),
            Aim::Break { object, until_ms } => {
                if now_ms >= until_ms || world.object(object).is_none() {
                    self.aim = Aim::Nothing;
                }
            }
            Aim::Nothing => self.set_out(now_ms, world, hands),
            Aim::Travel { goal, at, moved_ms } => {
                self.travel(now_ms, world, (goal, at, moved_ms), hands);
            }
        }
    }

    fn drinks(&mut self, now_ms: u64, world: &LocalWorld, me: &Entity) -> bool {
        let hurt = u32::from(me.state.hits) * 100 < u32::from(me.info.hits_max) * 40;
        let has = world
            .inventory()
            .map_or(!self.out_of_potions, |all| all.count(ItemKind::Potion) > 0);
        let drinks = hurt && has && now_ms >= self.potion_due_ms;
        if drinks {
            self.potion_due_ms = now_ms + POTION_MS;
        }
        drinks
    }

    /// Whoever attacks it, else the nearest mob.
    fn find_foe(&self, world: &LocalWorld, me: &Entity) -> Option<EntityId> {
        let here = me.state.pos();
        world
            .others()
            .filter(|other| !self.avoided.contains_key(&other.state.id))
            .filter_map(|other| {
                let distance = other.state.pos().distance(here);
                let attacks_me = other.state.target == Some(me.state.id);
                let wanted = attacks_me || other.is_mob();
                (wanted && distance <= FOE_RADIUS).then_some((
                    !attacks_me,
                    distance,
                    other.state.id,
                ))
            })
            .min()
            .map(|(_, _, id)| id)
    }

    fn attack(&mut self, now_ms: u64, target: Target, hands: &mut Hands) {
        self.ordered_ms = now_ms;
        hands.order(Order::Attack { target });
    }

    fn fight(
        &mut self,
        now_ms: u64,
        since_ms: u64,
        world: &LocalWorld,
        me: &Entity,
        foe: EntityId,
        hands: &mut Hands,
    ) {
        let Some(target) = world.entity(foe).filter(|foe| foe.is_alive()) else {
            self.aim = Aim::Nothing;
            return;
        };
        let distance = target.state.pos().distance(me.state.pos());
        if distance > FOE_RADIUS || (now_ms > since_ms + 30_000 && self.dice.chance(10)) {
            self.avoided.insert(foe, now_ms + AVOID_MS);
            self.aim = Aim::Nothing;
            return hands.order(Order::Stop);
        }
        if me.info.class == Class::Mage && now_ms >= self.spell_due_ms && distance <= SPELL_RADIUS {
            return self.cast(now_ms, world, me, target, hands);
        }
        // A potion, a spell or a respawn may have broken off the attack.
        let forgotten = me.state.target != Some(foe) && now_ms >= self.ordered_ms + 1_500;
        if forgotten {
            self.attack(now_ms, Target::Entity(foe), hands);
        } else if me.info.class == Class::Warrior && distance <= 1 && self.dice.chance(3) {
            hands.order(Order::Guard);
        }
    }

    fn cast(
        &mut self,
        now_ms: u64,
        world: &LocalWorld,
        me: &Entity,
        foe: &Entity,
        hands: &mut Hands,
    ) {
        let at = foe.state.pos();
        let crowd = world
            .others()
            .filter(|other| other.is_mob() && other.state.pos().distance(at) <= 1)
            .count();
        let hurt = u32::from(me.state.hits) * 100 < u32::from(me.info.hits_max) * 60;
        let (spell, target) = match self.dice.below(6) {
            0 if hurt => (Spell::Heal, Target::Entity(me.state.id)),
            1 => (Spell::Frost, Target::Entity(foe.state.id)),
            2 if at.distance(me.state.pos()) > 2 => (Spell::StoneWall, Target::Tile(at)),
            _ if crowd >= 2 && at.distance(me.state.pos()) > 2 => {
                (Spell::Fireball, Target::Tile(at))
            }
            _ => (Spell::Bolt, Target::Entity(foe.state.id)),
        };
        self.spell_due_ms = now_ms + self.dice.between(2_000, 3_500);
        hands.order(Order::Cast { spell, target });
    }

    /// Nothing to fight: break something near, or go where there is a fight.
    fn set_out(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        if self.dice.chance(20)
            && let Some(object) = self.find_breakable(world)
        {
            self.aim = Aim::Break {
                object,
                until_ms: now_ms + 20_000,
            };
            return self.attack(now_ms, Target::Object(object), hands);
        }
        let Some(goal) = self.find_camp(world).or_else(|| self.find_ground(world)) else {
            return;
        };
        self.last_goal = Some(goal);
        self.aim = Aim::Travel {
            goal,
            at: world.pos(),
            moved_ms: now_ms,
        };
        hands.order(Order::WalkTo {
            x: goal.x,
            y: goal.y,
        });
    }

    fn travel(
        &mut self,
        now_ms: u64,
        world: &LocalWorld,
        (goal, at, moved_ms): (Pos, Pos, u64),
        hands: &mut Hands,
    ) {
        let here = world.pos();
        if here != at {
            self.aim = Aim::Travel {
                goal,
                at: here,
                moved_ms: now_ms,
            };
        } else if now_ms >= moved_ms + STUCK_MS {
            self.aim = Aim::Nothing;
            return;
        }
        let arrived = here.distance(goal) <= ARRIVED_RADIUS;
        // On the way it now and then sees something worth a stop.
        if arrived || self.dice.chance(2) {
            self.aim = Aim::Nothing;
            if arrived {
                // Bandits return to a camp that was cleared: wait for them a little.
                hands.wake_at(now_ms + self.dice.between(1_000, 4_000));
            }
        }
    }

    fn find_breakable(&mut self, world: &LocalWorld) -> Option<ObjectKey> {
        let here = world.pos();
        let trees = self.dice.chance(25);
        world
            .objects_near(here, BREAK_RADIUS)
            .into_iter()
            .filter(|object| match object.kind {
                ObjectKind::Fence | ObjectKind::Wall | ObjectKind::Crate | ObjectKind::Door => true,
                ObjectKind::Tree => trees,
                _ => false,
            })
            .min_by_key(|object| (object.pos().distance(here), object.key))
            .map(|object| object.key)
    }

    fn find_camp(&mut self, world: &LocalWorld) -> Option<Pos> {
        let here = world.pos();
        let mut camps = world.content()?.camp_gates_near(here, CAMP_RADIUS);
        camps.retain(|&camp| camp.distance(here) > ARRIVED_RADIUS && self.last_goal != Some(camp));
        camps.sort_by_key(|&camp| (camp.distance(here), camp));
        // Mostly the nearest, so that fighters meet; not always, so that they spread.
        let choice = if self.dice.chance(70) { 1 } else { 4 };
        camps.truncate(choice);
        self.dice.pick(&camps).copied()
    }

    fn find_ground(&mut self, world: &LocalWorld) -> Option<Pos> {
        (0..8).find_map(|_| {
            let heading = uo_proto::Dir::ALL[self.dice.below(8) as usize];
            let tiles = self.dice.between(10, 40) as i16;
            walk(world.pos(), heading, tiles).filter(|&goal| world.is_open(goal))
        })
    }
}

impl Bot for Combat {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Event(event) => self.on_event(now_ms, world, event, hands),
            Cause::Time => self.think(now_ms, world, hands),
        }
    }
}

#[cfg(test)]
mod tests;
