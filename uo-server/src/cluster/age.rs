//! How long something has lasted: the only form in which the cluster core keeps time.
//!
//! An age has a cap beyond which nobody asks any more. So it takes few values, states that behave alike are equal, and no
//! decision can compare the clocks of two machines: an age means nothing on another one.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// Milliseconds since something happened, up to a cap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Age(u64);

impl Age {
    /// It happened just now.
    pub const ZERO: Age = Age(0);

    /// It happened at least `ms` ago.
    pub fn of(ms: u64) -> Age {
        Age(ms)
    }

    /// `ms` pass; nobody asks what is beyond `cap`.
    pub fn elapse(&mut self, ms: u64, cap: u64) {
        self.0 = self.0.saturating_add(ms).min(cap);
    }

    /// Whether `ms` have passed.
    pub fn reached(self, ms: u64) -> bool {
        self.0 >= ms
    }

    /// Milliseconds, up to the cap.
    pub fn ms(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_stops_at_its_cap() {
        let mut age = Age::ZERO;
        age.elapse(30, 100);
        assert!(age.reached(30) && !age.reached(31));
        age.elapse(u64::MAX, 100);
        assert_eq!(age, Age::of(100));
    }
}
