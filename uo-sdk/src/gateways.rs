//! Which gateway to try next: those that were configured, and those that the server told of. They are walked round and
//! round; a round begins where the last connection was.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::Dice;

/// Most gateways remembered.
pub const GATEWAYS_MAX: usize = 64;

/// The known gateways, and the one in use.
#[derive(Clone, Debug)]
pub struct Gateways {
    known: Vec<String>,
    current: usize,
    /// Where this round began.
    first: usize,
}

impl Gateways {
    /// At least one is needed for [`Gateways::current`] to be one; the first is used first.
    pub fn new(configured: Vec<String>) -> Gateways {
        Gateways {
            known: configured,
            current: 0,
            first: 0,
        }
    }

    /// The one in use.
    pub fn current(&self) -> Option<&str> {
        self.known.get(self.current).map(String::as_str)
    }

    /// Goes on to the next one. Whether that ends a round: every one was tried since it began.
    pub fn advance(&mut self) -> bool {
        self.current = (self.current + 1) % self.known.len().max(1);
        self.current == self.first
    }

    /// The one in use took us: the next round begins here.
    pub fn arrived(&mut self) {
        self.first = self.current;
    }

    /// Goes to one of those that the server names, but not to the one in use; which one is thrown, so that a thousand
    /// clients of one gateway do not all go to the same. To the next one, if it names no other.
    pub fn go_to_one_of(&mut self, named: &[String], dice: &mut Dice) {
        self.learn(named);
        let others = |at: &usize| *at != self.current && named.contains(&self.known[*at]);
        let others: Vec<usize> = (0..self.known.len()).filter(others).collect();
        if others.is_empty() {
            self.advance();
        } else {
            self.current = others[dice.below(others.len() as u64) as usize];
        }
        self.first = self.current;
    }

    /// Whether there is more than one.
    pub fn has_others(&self) -> bool {
        self.known.len() > 1
    }

    /// The server told of these. Unknown ones come after those that are known: a configured address may lead through
    /// a proxy that the server knows nothing of.
    pub fn learn(&mut self, told: &[String]) {
        for gateway in told {
            if self.known.len() < GATEWAYS_MAX && !self.known.contains(gateway) {
                self.known.push(gateway.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_ones_come_first_and_all_come_round() {
        let mut gateways = Gateways::new(vec!["a".into(), "b".into()]);
        gateways.learn(&["b".into(), "c".into()]);
        let mut tried = Vec::new();
        for _ in 0..4 {
            tried.push(gateways.current().unwrap().to_owned());
            gateways.advance();
        }
        assert_eq!(tried, ["a", "b", "c", "a"]);
    }

    #[test]
    fn a_round_ends_where_it_began() {
        let mut gateways = Gateways::new(vec!["a".into(), "b".into(), "c".into()]);
        gateways.advance();
        gateways.arrived();
        let ends: Vec<bool> = (0..6).map(|_| gateways.advance()).collect();
        assert_eq!(ends, [false, false, true, false, false, true]);
    }

    // Red when the first that is named is taken, or when the one in use may be.
    #[test]
    fn those_who_are_sent_away_spread_over_the_others() {
        let named = ["b", "c", "d", "a"].map(String::from);
        let mut taken = std::collections::BTreeMap::new();
        for seed in 0..300 {
            let mut gateways = Gateways::new(vec!["a".into(), "b".into()]);
            gateways.go_to_one_of(&named, &mut Dice::new(seed));
            let current = gateways.current().unwrap().to_owned();
            *taken.entry(current).or_insert(0) += 1;
        }
        assert_eq!(taken.keys().collect::<Vec<_>>(), ["b", "c", "d"]);
        assert!(taken.values().all(|&times| times > 60), "{taken:?}");
    }

    #[test]
    fn who_is_sent_nowhere_goes_to_the_next() {
        let mut gateways = Gateways::new(vec!["a".into(), "b".into()]);
        gateways.go_to_one_of(&["a".into()], &mut Dice::new(1));
        assert_eq!(gateways.current(), Some("b"));
        let mut alone = Gateways::new(vec!["a".into()]);
        alone.go_to_one_of(&[], &mut Dice::new(1));
        assert_eq!(alone.current(), Some("a"));
    }

    #[test]
    fn no_gateway_is_no_panic() {
        let mut gateways = Gateways::new(Vec::new());
        gateways.advance();
        gateways.go_to_one_of(&[], &mut Dice::new(1));
        assert_eq!(gateways.current(), None);
    }
}
