//! How a thread that lives on letters rests between them.

use std::time::{Duration, Instant};

/// So long after it was woken a thread is not woken again.
const MOMENT: Duration = Duration::from_millis(1);

/// Lets letters gather while many come.
///
/// To be woken costs both sides more than a letter is worth: system calls, and a change of what the processor does. So a
/// thread that was woken a moment ago sleeps, deaf, until that moment is over, and finds all that came meanwhile. One
/// that had nothing to do is woken at once.
#[derive(Debug)]
pub struct Pace {
    woken: Instant,
}

impl Pace {
    /// Of a thread that begins.
    pub fn new() -> Pace {
        Pace {
            woken: Instant::now(),
        }
    }

    /// Rests, but no longer than `at_most`. How much of that is left to wait for a letter.
    pub fn rest(&self, at_most: Duration) -> Duration {
        let rest = MOMENT.saturating_sub(self.woken.elapsed()).min(at_most);
        if !rest.is_zero() {
            std::thread::sleep(rest);
        }
        at_most.saturating_sub(rest)
    }

    /// There was a letter.
    pub fn woken(&mut self) {
        self.woken = Instant::now();
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}
