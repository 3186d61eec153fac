//! A walk to anywhere on the map, as the legs that one battle after another can path through.
//!
//! The battle knows only goals inside its arena. A walk gives it one leg after another; when the character changes
//! battles, its goal and order number go with it, and the next region plans on from there.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::Arena;
use uo_proto::{Order, Pos};
use uo_world::World;
use uo_world::walk::plan_leg;

/// How often one leg is planned again after the battle found no way (a crowd, a door just closed).
const RETRIES_MAX: u8 = 3;
/// Ticks before that: the battle remembers for a second that a search from a tile failed.
const RETRY_TICKS: u64 = 21;
/// Legs within one region. A way that needs more goes in circles.
const LEGS_MAX: u8 = 32;

/// A `walk_to` under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Walk {
    /// Where it ends.
    pub goal: Pos,
    /// Its order's number.
    pub seq: u64,
    leg: Option<Pos>,
    legs: u8,
    retries: u8,
    retry_at: Option<u64>,
}

impl Walk {
    /// A walk that has not begun.
    pub fn new(goal: Pos, seq: u64) -> Walk {
        Walk {
            goal,
            seq,
            leg: None,
            legs: 0,
            retries: 0,
            retry_at: None,
        }
    }

    /// Plans the leg that begins at `from`; none if there is no way.
    pub fn plan(&mut self, world: &World, arena: &Arena, from: Pos) -> Option<Pos> {
        self.retry_at = None;
        self.legs += 1;
        if self.legs > LEGS_MAX {
            return None;
        }
        self.leg =
            plan_leg(world, arena, from, self.goal).filter(|&leg| leg != from || from == self.goal);
        self.leg
    }

    /// Whether the whole walk is over when the battle ended a leg at `at`: at the goal, or as near as people let it.
    pub fn ends_at(&self, at: Pos) -> bool {
        at == self.goal || self.leg == Some(self.goal)
    }

    /// A leg was walked to its end; the next is to be planned.
    pub fn leg_is_done(&mut self) {
        self.retries = 0;
    }

    /// The battle found no way to the end of a leg. Says whether it is worth waiting, until [`Walk::is_due`], and planning
    /// again.
    pub fn wait_after_failure(&mut self, tick: u64) -> bool {
        // The last leg is the player's own choice of tile, and the battle's word on it is final.
        if self.leg == Some(self.goal) || self.retries == RETRIES_MAX {
            return false;
        }
        self.retries += 1;
        self.retry_at = Some(tick + RETRY_TICKS);
        true
    }

    /// Whether it is time to plan a failed leg again.
    pub fn is_due(&self, tick: u64) -> bool {
        self.retry_at.is_some_and(|at| at <= tick)
    }
}

/// Whether the battle forgets a walk when it takes this order. What is done in passing (a potion, a spell, a door) does
/// not end a walk.
pub fn ends_walk(order: &Order) -> bool {
    matches!(
        order,
        Order::WalkTo { .. }
            | Order::Move { dir: Some(_) }
            | Order::Step { .. }
            | Order::Stop
            | Order::Guard
            | Order::Attack { .. }
            | Order::Hold
    )
}
