//! What is to happen later. Work follows what is due, not what exists.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use uo_proto::{CharId, RegionId};

use super::claims::Who;
use crate::Millis;

/// What is due. A timer is never cancelled: whoever it is for knows when it expects one, and ignores every other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Timer {
    /// A claim's request is to be repeated.
    Claim(Who),
    /// It is to be asked again whether a region may run.
    Health(RegionId),
    /// A region's failed object write is to be repeated.
    Objects(RegionId),
    /// A character may be due for a checkpoint.
    Checkpoint(CharId),
    /// A leaving character's last write is to be repeated.
    LastWrite(CharId),
    /// A character nobody is attached to may have lingered long enough.
    Linger(CharId),
    /// An offer may have gone without an answer for too long.
    Offer(CharId),
    /// An owner without a battle for its character looks for one.
    Seek(CharId),
    /// Orders that waited for the ones before them wait no longer.
    Settle(CharId),
    /// A drain may have gone without an answer for too long.
    Drain(RegionId),
    /// Nobody took what is still here.
    EvacuationOver,
    /// The stop has taken long enough.
    StopOver,
}

/// Timers in the order in which they are due.
#[derive(Debug, Default)]
pub(super) struct Timers {
    set: BTreeSet<(Millis, Timer)>,
}

impl Timers {
    /// `timer` is due at `at`.
    pub(super) fn add(&mut self, at: Millis, timer: Timer) {
        self.set.insert((at, timer));
    }

    /// The next one that is due at `now`, with the time it was set for.
    pub(super) fn pop(&mut self, now: Millis) -> Option<(Millis, Timer)> {
        let first = *self.set.first()?;
        (first.0 <= now).then(|| {
            self.set.pop_first();
            first
        })
    }
}
