//! When to flush: the gateway's own tick, and which sims' feeds of a round are in.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use uo_proto::TICK_MS;

use crate::Millis;
use crate::identity::NodeName;
use crate::limits::FLUSH_WAIT_MS;

/// The rhythm of flushes.
#[derive(Debug, Default)]
pub struct Pulse {
    /// Where the gateway's ticks begin: half a tick before the first flush, so that flushes, which follow the ticks of
    /// sims, fall into the middle of ours and not now on one side of an edge and now on the other.
    anchor: Option<Millis>,
    /// When the last flush was.
    flushed_at: Millis,
    /// When the first feed of this round came.
    first: Option<Millis>,
    /// Sims whose feeds of this round have begun and not ended.
    open: BTreeSet<NodeName>,
    /// Sims whose feeds of this round are complete.
    done: BTreeSet<NodeName>,
    /// Sims that sent feeds in the round before: they are waited for.
    usual: BTreeSet<NodeName>,
}

impl Pulse {
    /// A feed came.
    pub fn fed(&mut self, now: Millis, from: &NodeName) {
        self.first.get_or_insert(now);
        if !self.open.contains(from) {
            self.open.insert(from.clone());
        }
    }

    /// A sim has sent everything it had to after a tick.
    pub fn done(&mut self, from: &NodeName) {
        if let Some(name) = self.open.take(from) {
            self.done.insert(name);
        }
    }

    /// A sim is out of reach: nobody waits for it.
    pub fn forget(&mut self, node: &NodeName) {
        self.open.remove(node);
        self.usual.remove(node);
    }

    /// When the round is to be flushed; none: nothing came.
    pub fn due(&self, now: Millis) -> Option<Millis> {
        let first = self.first?;
        let is_complete = self.open.is_empty() && self.usual.is_subset(&self.done);
        Some(if is_complete {
            now
        } else {
            first + FLUSH_WAIT_MS
        })
    }

    /// The round is flushed now.
    pub fn flushed(&mut self, now: Millis) {
        self.flushed_at = now;
        if self.first.take().is_some() {
            self.anchor.get_or_insert(now.saturating_sub(TICK_MS / 2));
            // A sim that sends no mark is not waited for next time: it would always cost the full wait.
            self.usual = std::mem::take(&mut self.done);
            self.open.clear();
        }
    }

    /// The gateway's tick, from 1; 0 before the first flush.
    pub fn tick(&self, now: Millis) -> u64 {
        self.anchor
            .map_or(0, |anchor| now.saturating_sub(anchor) / TICK_MS + 1)
    }

    /// When the tick after that of the last flush begins, or began: from then on, whoever had its delta can have another.
    /// None before the first flush.
    pub fn next_tick(&self) -> Option<Millis> {
        Some(self.anchor? + self.tick(self.flushed_at) * TICK_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_due_when_every_usual_sim_is_done_or_after_the_wait() {
        let (one, two) = (NodeName::from("sim-1"), NodeName::from("sim-2"));
        let mut pulse = Pulse::default();
        assert_eq!(pulse.due(100), None);
        pulse.fed(100, &one);
        assert_eq!(pulse.due(101), Some(110));
        pulse.done(&one);
        assert_eq!(pulse.due(102), Some(102));
        pulse.fed(103, &two);
        assert_eq!(pulse.due(103), Some(110));
        pulse.done(&two);
        pulse.flushed(104);
        assert_eq!(
            (pulse.tick(104), pulse.tick(128), pulse.tick(129)),
            (1, 1, 2)
        );
        assert_eq!(pulse.next_tick(), Some(129));

        pulse.fed(150, &one);
        pulse.done(&one);
        assert_eq!(pulse.due(150), Some(160), "the other one is waited for");
        pulse.forget(&two);
        assert_eq!(pulse.due(150), Some(150));
        pulse.flushed(150);
        assert_eq!(pulse.due(150), None);
        assert_eq!(pulse.next_tick(), Some(179));
    }
}
