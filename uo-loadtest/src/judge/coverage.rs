//! Every region is held, and held again in time after its holder was lost.
//!
//! A node holds what it showed last, as long as it answers; one that is known to be lost holds nothing from then on. While
//! nobody holds anything, the world stands still as a whole, as it has to without its store, and there is nobody who could
//! take a region: that time is not counted against it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::RegionId;

use super::Violation;
use crate::node::Sample;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coverage {
    regions: usize,
    /// Longest time that a region may be held by nobody.
    bar_ms: u64,
    held: BTreeMap<usize, BTreeSet<RegionId>>,
    /// Lost nodes; they hold nothing until they answer a question that was asked later.
    lost: BTreeMap<usize, u64>,
    gap: Option<Gap>,
    failover_ms: Vec<u64>,
}

/// Some regions are held by nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gap {
    since_ms: u64,
    /// From when on somebody could have taken them.
    could_ms: u64,
    /// A node was lost, rather than a region seen between two nodes.
    is_failover: bool,
    is_told: bool,
}

impl Coverage {
    /// A world of so many regions, of which none may be held by nobody for longer than `bar_ms`.
    pub fn new(regions: usize, bar_ms: u64) -> Coverage {
        Coverage {
            regions,
            bar_ms,
            held: BTreeMap::new(),
            lost: BTreeMap::new(),
            gap: None,
            failover_ms: Vec::new(),
        }
    }

    /// A node was killed or stands still since `at_ms`.
    pub fn lost(&mut self, node: usize, at_ms: u64) {
        self.lost.insert(node, at_ms);
        let held = self.held.remove(&node).unwrap_or_default();
        if !held.is_empty() {
            let gap = self.gap.get_or_insert(Gap {
                since_ms: at_ms,
                could_ms: at_ms,
                is_failover: true,
                is_told: false,
            });
            gap.is_failover = true;
        }
    }

    /// Takes a look at a node; what it proves to be wrong.
    pub fn judge(&mut self, sample: &Sample) -> Option<Violation> {
        if self
            .lost
            .get(&sample.node)
            .is_some_and(|&lost_ms| sample.sent_ms <= lost_ms)
        {
            return None;
        }
        self.lost.remove(&sample.node);
        let held = match &sample.look {
            Ok(look) if !look.is_fenced => look.regions.keys().copied().collect(),
            _ => BTreeSet::new(),
        };
        self.held.insert(sample.node, held);
        self.look(sample.received_ms)
    }

    /// From the loss of a node until every region was held again, for each time.
    pub fn failover_ms(&self) -> &[u64] {
        &self.failover_ms
    }

    /// Whether some region is held by nobody.
    pub fn has_gap(&self) -> bool {
        self.gap.is_some()
    }

    /// How many regions each node holds, by its number.
    pub fn holders(&self) -> BTreeMap<usize, usize> {
        let counts = self.held.iter().map(|(&node, held)| (node, held.len()));
        counts.collect()
    }

    fn look(&mut self, now_ms: u64) -> Option<Violation> {
        let held: BTreeSet<RegionId> = self.held.values().flatten().copied().collect();
        if held.len() >= self.regions {
            if let Some(gap) = self.gap.take().filter(|gap| gap.is_failover) {
                self.failover_ms.push(now_ms.saturating_sub(gap.since_ms));
            }
            return None;
        }
        let gap = self.gap.get_or_insert(Gap {
            since_ms: now_ms,
            could_ms: now_ms,
            is_failover: false,
            is_told: false,
        });
        if held.is_empty() {
            gap.could_ms = now_ms;
        }
        if gap.is_told || now_ms.saturating_sub(gap.could_ms) <= self.bar_ms {
            return None;
        }
        gap.is_told = true;
        Some(Violation::NotHeld {
            held: held.len(),
            regions: self.regions,
            within_ms: self.bar_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Look;
    use crate::node::look::Held;

    fn sample(node: usize, sent_ms: u64, regions: &[u32]) -> Sample {
        let held = Held { epoch: 1, ticks: 1 };
        Sample {
            node,
            sent_ms,
            received_ms: sent_ms + 10,
            look: Ok(Look {
                regions: regions.iter().map(|&id| (RegionId(id), held)).collect(),
                ..Look::default()
            }),
        }
    }

    fn whole() -> Coverage {
        let mut coverage = Coverage::new(3, 4_000);
        // A world that is only being taken is not judged before its bar.
        assert_eq!(coverage.judge(&sample(0, 0, &[1, 2])), None);
        assert_eq!(coverage.judge(&sample(1, 0, &[3])), None);
        assert!(!coverage.has_gap());
        coverage
    }

    #[test]
    fn a_failover_is_measured_from_the_loss() {
        let mut coverage = whole();
        coverage.lost(0, 1_000);
        // Asked before the loss, answered after it: it proves nothing.
        assert_eq!(coverage.judge(&sample(0, 995, &[1, 2])), None);
        assert!(coverage.has_gap());
        assert_eq!(coverage.judge(&sample(1, 3_000, &[1, 3])), None);
        assert_eq!(coverage.judge(&sample(1, 3_790, &[1, 2, 3])), None);
        assert_eq!(coverage.failover_ms(), [2_800]);
    }

    #[test]
    fn a_region_that_nobody_takes_is_told_once() {
        let mut coverage = whole();
        coverage.lost(0, 1_000);
        assert_eq!(coverage.judge(&sample(1, 4_990, &[1, 3])), None);
        let violation = coverage.judge(&sample(1, 5_000, &[1, 3]));
        assert_eq!(
            violation.expect("it is too late").to_string(),
            "2 of 3 regions are held 4000 ms after the fault"
        );
        assert_eq!(coverage.judge(&sample(1, 5_100, &[1, 3])), None);
    }

    #[test]
    fn a_world_that_stands_still_has_its_time_once_it_goes_on() {
        let mut coverage = whole();
        for at_ms in [1_000, 9_000] {
            for node in [0, 1] {
                assert_eq!(coverage.judge(&sample(node, at_ms, &[])), None);
            }
        }
        assert_eq!(coverage.judge(&sample(0, 12_000, &[1, 2])), None);
        assert!(coverage.judge(&sample(0, 13_010, &[1, 2])).is_some());
    }

    #[test]
    fn a_region_between_two_looks_is_no_failover() {
        let mut coverage = whole();
        assert_eq!(coverage.judge(&sample(0, 1_000, &[1])), None);
        assert!(coverage.has_gap());
        assert_eq!(coverage.judge(&sample(1, 1_100, &[2, 3])), None);
        assert!(!coverage.has_gap());
        assert!(coverage.failover_ms().is_empty());
    }
}
