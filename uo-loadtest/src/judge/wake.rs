//! What a process may do that was paused until others took over: nothing, until it is another boot.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::{Holders, Violation};
use crate::node::Look;

/// Milliseconds of a tick.
const TICK_MS: u64 = 1_000 / uo_proto::TICK_HZ as u64;
/// What a sim counts when it lets somebody in, takes an order, or promises something.
const ACKNOWLEDGING: [&str; 6] = [
    "saved",
    "attaches",
    "entered",
    "arrivals",
    "handoffs_accepted",
    "orders_applied",
];

/// A process that was paused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wake {
    before: Look,
    /// Ticks that it may have made between that look and the pause.
    unseen_ticks: u64,
    /// Answers of the old boot since the wake-up.
    answers: u32,
}

impl Wake {
    /// It showed `before` in an answer to a question that was asked `unseen_ms` before the pause.
    pub fn new(before: Look, unseen_ms: u64) -> Wake {
        Wake {
            before,
            // The first may have been due at once, and a late one may have been caught up.
            unseen_ticks: unseen_ms / TICK_MS + 2,
            answers: 0,
        }
    }

    /// Whether this is another boot than the one that was paused, and acts.
    pub fn is_reborn(&self, look: &Look) -> bool {
        look.boot != self.before.boot && !look.is_fenced
    }

    /// Judges a look at the process after its pause. `holders` has seen everybody else until then.
    pub fn judge(&mut self, look: &Look, holders: &Holders) -> Vec<Violation> {
        if look.boot != self.before.boot {
            return Vec::new();
        }
        let mut violations = self.ticks(look, holders);
        // A question may be answered before the first tick, in which a fence is noticed.
        self.answers += 1;
        if self.answers > 1 && !look.is_fenced && self.has_anothers(look, holders) {
            violations.push(Violation::WokenUnfenced {
                boot: look.boot.clone(),
            });
        }
        for counter in ACKNOWLEDGING {
            let count = |look: &Look| look.counters.get(counter).copied().unwrap_or_default();
            let more = count(look).saturating_sub(count(&self.before));
            if more > 0 {
                violations.push(Violation::WokenActs {
                    boot: look.boot.clone(),
                    counter,
                    more,
                });
            }
        }
        violations
    }

    fn has_anothers(&self, look: &Look, holders: &Holders) -> bool {
        let mut held = look.regions.iter();
        held.any(|(&region, held)| holders.epoch(region) > Some(held.epoch))
    }

    fn ticks(&self, look: &Look, holders: &Holders) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (&region, held) in &look.regions {
            let Some(newest) = holders.epoch(region).filter(|&newest| newest > held.epoch) else {
                continue;
            };
            let before = self.before.regions.get(&region);
            let before = before.filter(|before| before.epoch == held.epoch);
            let ticks = held.ticks - before.map_or(0, |before| before.ticks.min(held.ticks));
            if ticks > self.unseen_ticks {
                violations.push(Violation::WokenTicks {
                    region,
                    boot: look.boot.clone(),
                    epoch: held.epoch,
                    ticks,
                    newest,
                });
            }
        }
        violations
    }
}

#[cfg(test)]
mod tests {
    use uo_proto::RegionId;

    use super::*;
    use crate::node::Sample;
    use crate::node::look::Held;

    fn look(boot: &str, epoch: u64, ticks: u64) -> Look {
        Look {
            boot: boot.into(),
            is_fenced: true,
            regions: [(RegionId(1), Held { epoch, ticks })].into(),
            ..Look::default()
        }
    }

    fn taken_over() -> Holders {
        let mut holders = Holders::default();
        holders.judge(&Sample {
            node: 1,
            sent_ms: 0,
            received_ms: 5,
            look: Ok(look("b", 6, 50)),
        });
        holders
    }

    #[test]
    fn it_may_show_what_it_had_and_be_reborn() {
        let mut wake = Wake::new(look("a", 5, 100), 20);
        let now = look("a", 5, 102);
        assert_eq!(wake.judge(&now, &taken_over()), []);
        assert!(!wake.is_reborn(&now));
        let mut reborn = look("c", 7, 3);
        assert!(!wake.is_reborn(&reborn), "it has not begun its life");
        reborn.is_fenced = false;
        assert!(wake.is_reborn(&reborn));
    }

    #[test]
    fn its_fence_is_down_at_the_second_look() {
        let mut wake = Wake::new(look("a", 5, 100), 20);
        let mut now = look("a", 5, 100);
        now.is_fenced = false;
        assert_eq!(wake.judge(&now, &taken_over()), []);
        let violations = wake.judge(&now, &taken_over());
        assert!(matches!(violations[..], [Violation::WokenUnfenced { .. }]));
    }

    #[test]
    fn ticks_after_the_wake_up_are_seen() {
        let mut wake = Wake::new(look("a", 5, 100), 20);
        let violations = wake.judge(&look("a", 5, 103), &taken_over());
        assert!(matches!(
            violations[..],
            [Violation::WokenTicks { ticks: 3, .. }]
        ));
        // What nobody else holds is its own.
        let alone = wake.judge(&look("a", 5, 103), &Holders::default());
        assert_eq!(alone, []);
    }

    #[test]
    fn promises_after_the_wake_up_are_seen() {
        let mut before = look("a", 5, 100);
        before.counters.insert("saved".into(), 7);
        let mut now = before.clone();
        let mut wake = Wake::new(before, 20);
        assert_eq!(wake.judge(&now, &taken_over()), []);
        now.counters.insert("saved".into(), 8);
        let violations = wake.judge(&now, &taken_over());
        assert!(matches!(
            violations[..],
            [Violation::WokenActs {
                counter: "saved",
                more: 1,
                ..
            }]
        ));
    }
}
