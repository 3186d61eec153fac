//! How long to wait before the next attempt: doubling, bounded, and jittered so that a thousand clients which lost the
//! same gateway do not all come back in the same instant.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::Dice;

/// The longest wait between two gateways of one round, in milliseconds.
const NEXT_MS_MAX: u64 = 50;

/// Why an attempt is to be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// The connection broke or could not be made: come back soon.
    Broken,
    /// This gateway does not answer, but others were not tried yet: go there at once.
    Next,
    /// The server is full: come back slowly.
    Full,
    /// The gateway restarts and names others: go there at once.
    Moved,
}

/// The waits between attempts. Reset by success.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// How long to wait before the next attempt, in milliseconds: between half and all of a bound that doubles.
    pub fn next_ms(&mut self, retry: Retry, dice: &mut Dice) -> u64 {
        let (first_ms, most_ms) = match retry {
            // A step of a round, and no failure of the whole.
            Retry::Next => return dice.below(NEXT_MS_MAX + 1),
            Retry::Broken => (200, 10_000),
            Retry::Full => (2_000, 60_000),
            Retry::Moved => (50, 10_000),
        };
        let bound = (first_ms << self.failures.min(16)).min(most_ms);
        self.failures = self.failures.saturating_add(1);
        dice.between(bound / 2, bound)
    }

    /// An attempt succeeded.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_begin_again_after_success() {
        let mut dice = Dice::new(1);
        let mut backoff = Backoff::default();
        for bound in [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000] {
            let wait = backoff.next_ms(Retry::Broken, &mut dice);
            assert!((bound / 2..=bound).contains(&wait), "{wait} of {bound}");
        }
        backoff.reset();
        assert!(backoff.next_ms(Retry::Broken, &mut dice) <= 200);
    }

    #[test]
    fn a_full_server_is_asked_more_slowly() {
        let mut dice = Dice::new(2);
        assert!(Backoff::default().next_ms(Retry::Full, &mut dice) >= 1000);
        let mut patient = Backoff { failures: 40 };
        assert!(patient.next_ms(Retry::Full, &mut dice) >= 30_000);
    }

    #[test]
    fn the_next_gateway_of_a_round_is_tried_soon_and_changes_nothing() {
        let mut dice = Dice::new(4);
        let mut backoff = Backoff::default();
        for _ in 0..20 {
            assert!(backoff.next_ms(Retry::Next, &mut dice) <= NEXT_MS_MAX);
        }
        assert!(backoff.next_ms(Retry::Broken, &mut dice) <= 200);
    }

    #[test]
    fn two_seeds_wait_differently() {
        let wait = |seed| Backoff { failures: 5 }.next_ms(Retry::Broken, &mut Dice::new(seed));
        assert_ne!(wait(1), wait(2));
    }
}
