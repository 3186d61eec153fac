//! Session tokens: random, handed out once, kept only as hashes.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::limits::{TOKEN_STOCK_LOW, TOKEN_STOCK_MAX};
use crate::store::TokenHash;

/// The hash under which a token is known here and in the store.
pub fn hash(token: &str) -> TokenHash {
    TokenHash(Sha256::digest(token.as_bytes()).into())
}

/// Entropy that the shell gave and no token has used yet.
#[derive(Debug, Default)]
pub struct Stock {
    left: Vec<[u8; 24]>,
    is_asked_for: bool,
}

impl Stock {
    /// A new token, in the letters of a URL; none while the stock is empty.
    pub fn take(&mut self) -> Option<String> {
        self.left.pop().map(|bytes| URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Takes what the shell gave.
    pub fn refill(&mut self, tokens: Vec<[u8; 24]>) {
        self.is_asked_for = false;
        self.left.extend(tokens);
        self.left.truncate(TOKEN_STOCK_MAX);
    }

    /// How much to ask the shell for, once each time the stock runs low.
    pub fn wants(&mut self) -> Option<usize> {
        let is_low = self.left.len() < TOKEN_STOCK_LOW && !self.is_asked_for;
        self.is_asked_for |= is_low;
        is_low.then(|| TOKEN_STOCK_MAX - self.left.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stock_is_asked_for_once_and_gives_each_token_once() {
        let mut stock = Stock::default();
        assert_eq!(stock.wants(), Some(TOKEN_STOCK_MAX));
        assert_eq!((stock.wants(), stock.take()), (None, None));
        stock.refill(vec![[1; 24], [2; 24]]);
        let (first, second) = (stock.take().unwrap(), stock.take().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.len(), 32);
        assert_ne!(hash(&first), hash(&second));
        assert_eq!(stock.take(), None);
        assert_eq!(stock.wants(), Some(TOKEN_STOCK_MAX));
    }
}
