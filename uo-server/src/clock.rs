//! The node's own clock: milliseconds since it started, suspended time included.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::Millis;

/// Counts from its creation. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Timespec,
}

/// A suspended machine must find its fence fallen when it wakes, so the clock counts suspend where the system can.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

impl Clock {
    /// A clock that begins now.
    pub fn start() -> Clock {
        Clock {
            start: clock_gettime(CLOCK),
        }
    }

    /// Time since the start.
    pub fn elapsed(self) -> Duration {
        let now = clock_gettime(CLOCK);
        let seconds = now.tv_sec - self.start.tv_sec;
        let nanos = now.tv_nsec - self.start.tv_nsec;
        Duration::from_nanos((seconds * 1_000_000_000 + nanos).max(0) as u64)
    }

    /// Milliseconds since the start.
    pub fn now(self) -> Millis {
        self.elapsed().as_millis() as Millis
    }
}
