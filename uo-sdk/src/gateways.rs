//! Which gateway to try next: those that were configured, and those that the server told of.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// Most gateways remembered.
pub const GATEWAYS_MAX: usize = 64;

/// The known gateways, and the one in use.
#[derive(Clone, Debug)]
pub struct Gateways {
    known: Vec<String>,
    current: usize,
}

impl Gateways {
    /// At least one is needed for [`Gateways::current`] to be one; the first is used first.
    pub fn new(configured: Vec<String>) -> Gateways {
        Gateways {
            known: configured,
            current: 0,
        }
    }

    /// The one in use.
    pub fn current(&self) -> Option<&str> {
        self.known.get(self.current).map(String::as_str)
    }

    /// Goes on to the next one, round and round.
    pub fn advance(&mut self) {
        self.current = (self.current + 1) % self.known.len().max(1);
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
    fn no_gateway_is_no_panic() {
        let mut gateways = Gateways::new(Vec::new());
        gateways.advance();
        assert_eq!(gateways.current(), None);
    }
}
