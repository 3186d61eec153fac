//! Which regions anybody needs: what this node's players need is written to the store, what all need is read from it.
//!
//! In a large world only such regions run. In a small one all do, and demand only says which come first after a death.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::RegionId;

use super::age::Age;
use super::timing::Timing;

/// What is needed, as far as this node knows.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Demand {
    /// By this node.
    own: BTreeSet<RegionId>,
    /// What of that was written with the newest write that was sent.
    said: BTreeSet<RegionId>,
    /// Since then.
    since_said: Age,
    /// By anybody, as read last.
    all: BTreeSet<RegionId>,
    /// Since the newest successful read; none: there was none.
    since_read: Option<Age>,
    /// Regions that this node holds and nobody demanded in the newest read, and for how long that is so.
    idle: BTreeMap<RegionId, Age>,
}

impl Demand {
    /// `ms` pass.
    pub fn elapse(&mut self, ms: u64, timing: &Timing) {
        self.since_said.elapse(ms, calm_refresh_ms(timing));
        if let Some(since) = &mut self.since_read {
            since.elapse(ms, 2 * timing.demand_read_ms);
        }
    }

    /// This node needs these regions, and no others.
    pub fn tell(&mut self, regions: impl IntoIterator<Item = RegionId>) {
        self.own = regions.into_iter().collect();
    }

    /// What is to be written now: everything, when it is time or when something new is in it. Where it is not urgent,
    /// because every region runs anyway, it costs a third of the writes.
    pub fn write_due(&mut self, is_urgent: bool, timing: &Timing) -> Option<Vec<RegionId>> {
        let has_new = !self.own.is_subset(&self.said);
        let wait_ms = match (is_urgent, has_new) {
            (true, true) => 0,
            (true, false) | (false, true) => timing.demand_refresh_ms,
            (false, false) => calm_refresh_ms(timing),
        };
        if self.own.is_empty() || !self.since_said.reached(wait_ms) {
            return None;
        }
        self.said = self.own.clone();
        self.since_said = Age::ZERO;
        Some(self.own.iter().copied().collect())
    }

    /// The write failed: all of it is to be written again.
    pub fn write_failed(&mut self) {
        self.said.clear();
    }

    /// What anybody needs, as read just now. Returns which of `held` nobody has needed for long enough to retire them.
    ///
    /// Only time between two successful reads that are not far apart counts: a node that was frozen does not retire what
    /// was needed all along.
    pub fn read(
        &mut self,
        regions: impl IntoIterator<Item = RegionId>,
        held: impl IntoIterator<Item = RegionId>,
        timing: &Timing,
    ) -> Vec<RegionId> {
        self.all = regions.into_iter().collect();
        let passed = self.since_read.map_or(0, Age::ms);
        self.since_read = Some(Age::ZERO);
        let mut idle = BTreeMap::new();
        for region in held {
            if self.needs(region) {
                continue;
            }
            let mut age = self.idle.get(&region).copied().unwrap_or_default();
            if self.idle.contains_key(&region) {
                age.elapse(passed, timing.retire_ms);
            }
            idle.insert(region, age);
        }
        self.idle = idle;
        let retired = self.idle.iter();
        retired
            .filter(|(_, age)| age.reached(timing.retire_ms))
            .map(|(region, _)| *region)
            .collect()
    }

    /// Whether anybody needs this region.
    pub fn needs(&self, region: RegionId) -> bool {
        self.own.contains(&region) || self.all.contains(&region)
    }

    /// Every region that anybody needs, in order.
    pub fn needed(&self) -> impl Iterator<Item = RegionId> {
        self.own.union(&self.all).copied()
    }
}

/// Often enough that nothing expires, and no more often.
fn calm_refresh_ms(timing: &Timing) -> u64 {
    (u64::from(timing.demand_ttl_s) * 500).max(timing.demand_refresh_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RegionId = RegionId(1);
    const B: RegionId = RegionId(2);

    #[test]
    fn what_is_new_is_written_at_once_and_all_of_it_again_in_time() {
        let timing = Timing::default();
        let mut demand = Demand::default();
        assert_eq!(demand.write_due(true, &timing), None, "nothing is needed");
        demand.tell([A]);
        assert_eq!(demand.write_due(true, &timing), Some(vec![A]));
        assert_eq!(demand.write_due(true, &timing), None);
        demand.tell([A, B]);
        assert_eq!(demand.write_due(true, &timing), Some(vec![A, B]));
        demand.tell([B]);
        assert_eq!(demand.write_due(true, &timing), None, "less is nothing new");
        demand.elapse(3_000, &timing);
        assert_eq!(demand.write_due(true, &timing), Some(vec![B]));
        demand.write_failed();
        assert_eq!(demand.write_due(true, &timing), Some(vec![B]));
    }

    #[test]
    fn where_all_regions_run_less_is_written() {
        let timing = Timing::default();
        let mut demand = Demand::default();
        demand.tell([A]);
        demand.elapse(3_000, &timing);
        assert_eq!(demand.write_due(false, &timing), Some(vec![A]));
        demand.tell([A, B]);
        demand.elapse(2_900, &timing);
        assert_eq!(demand.write_due(false, &timing), None);
        demand.elapse(100, &timing);
        assert_eq!(demand.write_due(false, &timing), Some(vec![A, B]));
        demand.elapse(9_900, &timing);
        assert_eq!(demand.write_due(false, &timing), None);
        demand.elapse(100, &timing);
        assert_eq!(demand.write_due(false, &timing), Some(vec![A, B]));
    }

    #[test]
    fn a_region_is_retired_when_no_read_showed_it_for_long_enough() {
        let timing = Timing::default();
        let mut demand = Demand::default();
        assert!(demand.read([A], [A, B], &timing).is_empty());
        for second in 1..=29 {
            demand.elapse(1_000, &timing);
            let retired = demand.read([A], [A, B], &timing);
            assert!(retired.is_empty(), "after {second} s");
        }
        demand.elapse(1_000, &timing);
        assert_eq!(demand.read([A], [A, B], &timing), vec![B]);
        demand.tell([B]);
        demand.elapse(1_000, &timing);
        assert!(demand.read([A], [A, B], &timing).is_empty());
    }

    /// Counted by the clock alone, an outage of the store would retire every region of a frozen node. (The cap of
    /// `since_read` removed: red.)
    #[test]
    fn time_without_reads_retires_nothing() {
        let timing = Timing::default();
        let mut demand = Demand::default();
        demand.read([], [A], &timing);
        demand.elapse(600_000, &timing);
        assert!(demand.read([], [A], &timing).is_empty());
    }
}
