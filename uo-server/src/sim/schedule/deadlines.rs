//! When each tick is due and how late it began.
//!
//! Deadlines lie on a grid that is laid once, at the start: a late tick does not move those after it, so that lateness
//! never adds up. Nor is it caught up with: what could not be run in its own interval is skipped and counted, and the
//! next tick waits for the next point of the grid.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::time::Duration;

use crate::limits::TICK_LATE_MS;

/// The grid of ticks. All times are of one monotonic clock, as the time since any fixed moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlines {
    next: Duration,
}

/// A tick to be run now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When it was due.
    pub deadline: Duration,
    /// How long after that it begins.
    pub lateness: Duration,
    /// Deadlines after its own that have passed as well, and for which no tick will be run.
    pub skipped: u64,
}

impl Deadlines {
    /// One tick.
    pub const PERIOD: Duration = Duration::from_millis(uo_proto::TICK_MS);
    /// A tick that begins later than this after its deadline is late.
    pub const LATE: Duration = Duration::from_millis(TICK_LATE_MS);

    /// A grid on which the first tick is due at `first`. Nodes that share a machine do well to start apart.
    pub fn from(first: Duration) -> Deadlines {
        Deadlines { next: first }
    }

    /// How long to wait, at `now`, until a tick is due.
    pub fn wait(&self, now: Duration) -> Duration {
        self.next.saturating_sub(now)
    }

    /// The tick that is due at `now`, if one is. At most one for each point of the grid, and never two for a time that
    /// was slept through.
    pub fn take(&mut self, now: Duration) -> Option<Due> {
        let lateness = now.checked_sub(self.next)?;
        let skipped = lateness.as_nanos() / Self::PERIOD.as_nanos();
        let deadline = self.next;
        // Lateness of years would be needed to reach the cap; it keeps the arithmetic total.
        let skipped = u32::try_from(skipped).unwrap_or(u32::MAX - 1);
        self.next = deadline.saturating_add(Self::PERIOD.saturating_mul(skipped + 1));
        Some(Due {
            deadline,
            lateness,
            skipped: u64::from(skipped),
        })
    }
}

impl Due {
    /// Ticks to be counted as late: this one, if it is, and those that it made impossible. A stall of a second is not
    /// one late tick among twenty good ones.
    pub fn late_ticks(&self) -> u64 {
        u64::from(self.lateness > Deadlines::LATE) + self.skipped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn nothing_is_due_before_its_deadline() {
        let mut deadlines = Deadlines::from(ms(100));
        assert_eq!(deadlines.take(ms(99)), None);
        assert_eq!(deadlines.wait(ms(40)), ms(60));
        assert_eq!(
            deadlines.take(ms(100)),
            Some(Due {
                deadline: ms(100),
                lateness: ms(0),
                skipped: 0
            })
        );
        assert_eq!(deadlines.take(ms(100)), None);
        assert_eq!(deadlines.wait(ms(101)), ms(49));
    }

    #[test]
    fn lateness_does_not_move_the_grid() {
        let mut deadlines = Deadlines::from(ms(0));
        for tick in 0..1000 {
            let due = deadlines.take(ms(tick * 50 + 9)).unwrap();
            assert_eq!(
                due,
                Due {
                    deadline: ms(tick * 50),
                    lateness: ms(9),
                    skipped: 0
                }
            );
            assert_eq!(due.late_ticks(), 0);
        }
    }

    #[test]
    fn late_is_more_than_ten_milliseconds() {
        let late_at = |lateness| Deadlines::from(ms(0)).take(lateness).unwrap().late_ticks();
        assert_eq!(late_at(ms(10)), 0);
        assert_eq!(late_at(ms(10) + Duration::from_nanos(1)), 1);
        assert_eq!(late_at(ms(49)), 1);
    }

    #[test]
    fn a_stall_is_counted_in_full_and_never_caught_up_with() {
        let mut deadlines = Deadlines::from(ms(0));
        let due = deadlines.take(ms(1_020)).unwrap();
        assert_eq!(
            due,
            Due {
                deadline: ms(0),
                lateness: ms(1_020),
                skipped: 20
            }
        );
        assert_eq!(due.late_ticks(), 21);
        assert_eq!(deadlines.take(ms(1_049)), None);
        assert_eq!(deadlines.take(ms(1_050)).unwrap().late_ticks(), 0);
    }

    #[test]
    fn ticks_that_take_longer_than_their_time_are_run_one_after_the_other() {
        let mut deadlines = Deadlines::from(ms(0));
        let (mut now, mut run, mut late) = (ms(0), 0, 0);
        while now < ms(7_000) {
            now += deadlines.wait(now);
            late += deadlines.take(now).unwrap().late_ticks();
            run += 1;
            now += ms(70);
        }
        assert_eq!(run, 100);
        assert!(late > 90, "{late}");
    }

    proptest! {
        /// However the thread is woken: each point of the grid is either run or skipped, once, and two ticks are never
        /// run for one point. Taking the next deadline as `now` plus the period, or adding only one period after a
        /// stall, fails this.
        #[test]
        fn every_deadline_is_run_or_skipped_once(
            first in 0_u64..10_000_000,
            steps in prop::collection::vec(0_u64..200_000, 1..200),
        ) {
            let first = Duration::from_micros(first);
            let mut deadlines = Deadlines::from(first);
            let (mut now, mut points) = (Duration::ZERO, 0_u32);
            for step in steps {
                now += Duration::from_micros(step);
                let Some(due) = deadlines.take(now) else { continue };
                prop_assert_eq!(due.deadline, first + Deadlines::PERIOD * points);
                prop_assert_eq!(due.deadline + due.lateness, now);
                points += 1 + u32::try_from(due.skipped).unwrap();
                prop_assert_eq!(deadlines.take(now), None);
                prop_assert!(deadlines.wait(now) <= Deadlines::PERIOD && !deadlines.wait(now).is_zero());
            }
        }
    }
}
