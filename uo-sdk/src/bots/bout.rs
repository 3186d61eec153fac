//! A fight with one foe, pressed until one of the two is dead.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Class, EntityId, Order, Spell, Target};

use crate::bot::Hands;
use crate::{Dice, Entity, LocalWorld};

/// Reach of spells that is counted on, in tiles; the table in `welcome` may allow more.
const SPELL_RADIUS: u16 = 8;
/// A spell or a respawn may break an attack off: it is ordered again after this long.
const AGAIN_MS: u64 = 1_500;

/// How a bout stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// Neither is dead.
    Open,
    /// The foe is dead, or is not seen any more.
    Over,
}

/// One fight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bout {
    /// Against whom.
    pub foe: EntityId,
    /// Since when.
    pub since_ms: u64,
    ordered_ms: u64,
    spell_due_ms: u64,
}

impl Bout {
    /// Attacks `foe`.
    pub fn begin(now_ms: u64, foe: EntityId, hands: &mut Hands) -> Bout {
        let target = Target::Entity(foe);
        hands.order(Order::Attack { target });
        Bout {
            foe,
            since_ms: now_ms,
            ordered_ms: now_ms,
            spell_due_ms: now_ms,
        }
    }

    /// Whether a refusal that comes now may be for a spell, which says nothing about the weapon.
    pub fn may_be_casting(&self, now_ms: u64) -> bool {
        now_ms < self.spell_due_ms
    }

    /// Fights on: mages cast, and an attack that was broken off is ordered again.
    pub fn press(
        &mut self,
        now_ms: u64,
        world: &LocalWorld,
        me: &Entity,
        dice: &mut Dice,
        hands: &mut Hands,
    ) -> Standing {
        let Some(foe) = world.entity(self.foe).filter(|foe| foe.is_alive()) else {
            return Standing::Over;
        };
        let target = Target::Entity(self.foe);
        let distance = foe.state.pos().distance(me.state.pos());
        let casts = me.info.class == Class::Mage && distance <= SPELL_RADIUS;
        if casts && now_ms >= self.spell_due_ms {
            self.spell_due_ms = now_ms + dice.between(2_000, 3_500);
            let spell = if dice.chance(20) {
                Spell::Frost
            } else {
                Spell::Bolt
            };
            hands.order(Order::Cast { spell, target });
        } else if me.state.target != Some(self.foe) && now_ms >= self.ordered_ms + AGAIN_MS {
            self.ordered_ms = now_ms;
            hands.order(Order::Attack { target });
        } else if me.info.class == Class::Warrior && distance <= 1 && dice.chance(3) {
            hands.order(Order::Guard);
        }
        Standing::Open
    }
}
