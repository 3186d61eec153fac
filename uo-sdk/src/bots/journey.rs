//! A walk to one place, given up where it gets nowhere.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Order, Pos};

use crate::LocalWorld;
use crate::bot::Hands;

/// A walk that gets nowhere for so long has failed.
const STUCK_MS: u64 = 4_000;

/// How a journey is going.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// Under way.
    Going,
    /// As near as was wanted.
    Arrived,
    /// It gets nowhere.
    Stuck,
}

/// A walk under way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Journey {
    goal: Pos,
    /// Where it was last seen to move, and when.
    at: Pos,
    moved_ms: u64,
}

impl Journey {
    /// Sets out for `goal`.
    pub fn begin(now_ms: u64, goal: Pos, world: &LocalWorld, hands: &mut Hands) -> Journey {
        hands.order(Order::WalkTo {
            x: goal.x,
            y: goal.y,
        });
        Journey {
            goal,
            at: world.pos(),
            moved_ms: now_ms,
        }
    }

    /// Looks how far it is; `near` tiles from the goal is there.
    pub fn look(&mut self, now_ms: u64, near: u16, world: &LocalWorld) -> Progress {
        let here = world.pos();
        if here.distance(self.goal) <= near {
            return Progress::Arrived;
        }
        if here != self.at {
            self.at = here;
            self.moved_ms = now_ms;
        }
        if now_ms >= self.moved_ms + STUCK_MS {
            Progress::Stuck
        } else {
            Progress::Going
        }
    }
}
