//! How long to wait before the next try: bounded, and jittered, so that a thousand that failed at once do not come back in
//! the same millisecond.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::limits::{RETRY_FIRST_MS, RETRY_MAX_MS};

/// A seeded generator for waits.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Jitter(u64);

impl Jitter {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Jitter {
        Jitter(seed)
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        // SplitMix64, from Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }

    /// Between half and all of `full` milliseconds.
    pub fn of(&mut self, full: u64) -> u64 {
        full / 2 + self.below(full / 2 + 1)
    }

    /// Milliseconds before the try that follows `failed` ones: between half and all of the doubled wait.
    pub fn wait_ms(&mut self, failed: u32) -> u64 {
        self.of((RETRY_FIRST_MS << failed.saturating_sub(1).min(16)).min(RETRY_MAX_MS))
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_their_bound() {
        let mut jitter = Jitter::new(1);
        for (failed, full) in [
            (0, 50),
            (1, 50),
            (2, 100),
            (5, 800),
            (6, 1_000),
            (99, 1_000),
        ] {
            let waits: Vec<u64> = (0..100).map(|_| jitter.wait_ms(failed)).collect();
            assert!(waits.iter().all(|&wait| wait >= full / 2 && wait <= full));
            assert!(waits.iter().any(|&wait| wait != waits[0]));
        }
    }
}
