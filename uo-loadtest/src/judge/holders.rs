//! One holder a region, at every moment; and nothing ever goes down.
//!
//! A look shows what was true at some moment between asking and answer, so that two looks alone say little about what
//! happened first. What is judged is certain: a region whose ticks grew from one look to the next ticked after the first of
//! them was asked for, and if another had been seen to hold it before that, two nodes simulated it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::RegionId;

use super::Violation;
use crate::node::{Look, Sample};

/// The newest lease that was seen of a region.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Newest {
    epoch: u64,
    boot: String,
    known_ms: u64,
}

/// The look before, of one node.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Before {
    sent_ms: u64,
    look: Look,
}

/// Everything that was seen, as far as it is needed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Holders {
    newest: BTreeMap<RegionId, Newest>,
    before: BTreeMap<usize, Before>,
}

impl Holders {
    /// Takes a look at a node; what it proves to be wrong.
    pub fn judge(&mut self, sample: &Sample) -> Vec<Violation> {
        let Ok(look) = &sample.look else {
            return Vec::new();
        };
        let mut violations = Vec::new();
        let before = self.before.get(&sample.node);
        if let Some(before) = before.filter(|before| before.look.boot == look.boot) {
            violations.extend(went_back(&before.look, look));
        }
        for (&region, held) in &look.regions {
            let Some(newest) = self.newest.get(&region) else {
                continue;
            };
            if held.epoch == newest.epoch && look.boot != newest.boot {
                violations.push(Violation::TwoHolders {
                    region,
                    epoch: held.epoch,
                    one: newest.boot.clone(),
                    other: look.boot.clone(),
                });
            }
            if held.epoch < newest.epoch
                && let Some(before) = before.filter(|before| before.sent_ms > newest.known_ms)
            {
                violations.extend(behind(region, &before.look, look, newest.epoch));
            }
        }
        self.remember(sample, look);
        violations
    }

    /// The newest epoch that was seen of a region.
    pub fn epoch(&self, region: RegionId) -> Option<u64> {
        Some(self.newest.get(&region)?.epoch)
    }

    fn remember(&mut self, sample: &Sample, look: &Look) {
        for (&region, held) in &look.regions {
            if self.epoch(region).is_none_or(|epoch| epoch < held.epoch) {
                let newest = Newest {
                    epoch: held.epoch,
                    boot: look.boot.clone(),
                    known_ms: sample.received_ms,
                };
                self.newest.insert(region, newest);
            }
        }
        let before = Before {
            sent_ms: sample.sent_ms,
            look: look.clone(),
        };
        self.before.insert(sample.node, before);
    }
}

/// A node shows `region` under an old epoch, and did so, or did not, before.
fn behind(region: RegionId, before: &Look, now: &Look, newest: u64) -> Option<Violation> {
    let held = now.regions[&region];
    let (boot, epoch) = (now.boot.clone(), held.epoch);
    let same = before
        .regions
        .get(&region)
        .filter(|old| before.boot == now.boot && old.epoch == epoch);
    match same {
        Some(old) if old.ticks >= held.ticks => None,
        Some(_) => Some(Violation::TicksBehind {
            region,
            boot,
            epoch,
            newest,
        }),
        None => Some(Violation::OpenedBehind {
            region,
            boot,
            epoch,
            newest,
        }),
    }
}

/// What may only grow, of one boot.
fn went_back(before: &Look, now: &Look) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let (Some(from), Some(to)) = (before.life, now.life)
        && to < from
    {
        violations.push(Violation::LifeWentBack {
            boot: now.boot.clone(),
            from,
            to,
        });
    }
    for (&region, held) in &now.regions {
        let old = before.regions.get(&region);
        if let Some(old) = old.filter(|old| old.epoch == held.epoch && old.ticks > held.ticks) {
            violations.push(Violation::TicksWentBack {
                region,
                boot: now.boot.clone(),
                from: old.ticks,
                to: held.ticks,
            });
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::look::Held;

    fn look(boot: &str, regions: &[(u32, u64, u64)]) -> Look {
        let held = |&(id, epoch, ticks)| (RegionId(id), Held { epoch, ticks });
        Look {
            boot: boot.into(),
            regions: regions.iter().map(held).collect(),
            ..Look::default()
        }
    }

    /// Each sample takes 10 ms to answer.
    fn judge(samples: Vec<(usize, u64, Look)>) -> Vec<Violation> {
        let mut holders = Holders::default();
        let sample = |(node, sent_ms, look)| Sample {
            node,
            sent_ms,
            received_ms: sent_ms + 10,
            look: Ok(look),
        };
        samples
            .into_iter()
            .flat_map(|one| holders.judge(&sample(one)))
            .collect()
    }

    #[test]
    fn a_takeover_is_no_violation() {
        // The old holder answers late, and shows what it had: it does not tick.
        let violations = judge(vec![
            (0, 0, look("a", &[(1, 5, 100)])),
            (1, 100, look("b", &[(1, 6, 0)])),
            (0, 200, look("a", &[(1, 5, 130)])),
            (0, 300, look("a", &[(1, 5, 130)])),
            (1, 300, look("b", &[(1, 6, 4)])),
            (0, 400, look("c", &[])),
        ]);
        assert_eq!(violations, []);
    }

    #[test]
    fn a_region_that_ticks_in_two_places_is_seen() {
        let violations = judge(vec![
            (0, 0, look("a", &[(1, 5, 100)])),
            (1, 100, look("b", &[(1, 6, 0)])),
            (0, 120, look("a", &[(1, 5, 102)])),
            (0, 140, look("a", &[(1, 5, 103)])),
        ]);
        let expected = Violation::TicksBehind {
            region: RegionId(1),
            boot: "a".into(),
            epoch: 5,
            newest: 6,
        };
        assert_eq!(violations, [expected]);
    }

    #[test]
    fn ticks_that_may_have_been_before_the_takeover_are_not_held_against_a_node() {
        let violations = judge(vec![
            (0, 95, look("a", &[(1, 5, 100)])),
            (1, 100, look("b", &[(1, 6, 0)])),
            (0, 115, look("a", &[(1, 5, 101)])),
        ]);
        assert_eq!(violations, []);
    }

    #[test]
    fn an_epoch_has_one_boot() {
        let violations = judge(vec![
            (0, 0, look("a", &[(1, 5, 100)])),
            (1, 100, look("b", &[(1, 5, 0)])),
        ]);
        assert!(matches!(violations[..], [Violation::TwoHolders { .. }]));
    }

    #[test]
    fn nothing_goes_down() {
        let opened = judge(vec![
            (0, 0, look("a", &[(1, 5, 1)])),
            (1, 20, look("b", &[])),
            (1, 40, look("b", &[(1, 4, 0)])),
        ]);
        assert!(matches!(opened[..], [Violation::OpenedBehind { .. }]));
        let ticks = judge(vec![
            (0, 0, look("a", &[(1, 5, 9)])),
            (0, 20, look("a", &[(1, 5, 8)])),
        ]);
        assert!(matches!(ticks[..], [Violation::TicksWentBack { .. }]));
        let mut old = look("a", &[]);
        old.life = Some(3);
        let mut new = look("a", &[]);
        new.life = Some(2);
        let lives = judge(vec![(0, 0, old), (0, 20, new)]);
        assert!(matches!(lives[..], [Violation::LifeWentBack { .. }]));
    }
}
