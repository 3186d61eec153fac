//! Who a peer says it is, and how it proves that it knows the cluster's secret without telling it.
//!
//! A proof is an HMAC-SHA-256, keyed by the secret, over what both sides said of themselves, the nonces of both, and which
//! of the two proves. So it fits one connection, one direction and this pair: a recorded one is worth nothing, one that is
//! mirrored back neither, and a version that was tampered with on the way does not match.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;

use hmac::{Hmac, KeyInit, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::identity::Holder;
use crate::limits::SECRET_BYTES_MIN;
use crate::store::row::Role;

/// The version of the messages between nodes that this build speaks. What is new in it: regions are drained, and crossings
/// tell how long they took.
pub const VERSION: u16 = 2;
/// The oldest one that it understands: the one before, so that a cluster can be upgraded node by node.
pub const VERSION_MIN: u16 = VERSION - 1;

/// Random, and used once.
pub type Nonce = [u8; 32];
/// An HMAC-SHA-256.
pub type Mac = [u8; 32];

/// What all nodes of a cluster know and nobody else does. Never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

/// A secret that anybody could try out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the cluster's secret has fewer than {SECRET_BYTES_MIN} bytes")]
pub struct SecretTooShort;

impl Secret {
    /// The secret in `text`; what white space is around it does not count, because editors end files with some.
    pub fn parse(text: &str) -> Result<Secret, SecretTooShort> {
        let text = text.trim();
        match text.len() < SECRET_BYTES_MIN {
            true => Err(SecretTooShort),
            false => Ok(Secret(text.into())),
        }
    }

    /// For nodes that nobody outside of this machine can reach.
    pub fn none() -> Secret {
        Secret(Vec::new())
    }

    /// Whether it keeps nobody out.
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What a node says of itself when a connection opens.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// The cluster that it belongs to.
    pub cluster: String,
    /// The oldest version of the messages that it understands.
    pub version_min: u16,
    /// The newest.
    pub version_max: u16,
    /// Its name, and the boot with which its process began.
    pub holder: Holder,
    /// What it does.
    pub role: Role,
}

impl Hello {
    /// The newest version that both understand.
    pub fn common_version(&self, other: &Hello) -> Option<u16> {
        let newest = self.version_max.min(other.version_max);
        (newest >= self.version_min.max(other.version_min)).then_some(newest)
    }
}

/// Which end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The one that opened it.
    Dialer,
    /// The one that was called.
    Acceptor,
}

/// All that both sides of one connection have said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transcript<'a> {
    /// What the dialer says of itself.
    pub dialer: &'a Hello,
    /// And what it asks.
    pub dialer_nonce: &'a Nonce,
    /// What the acceptor says of itself.
    pub acceptor: &'a Hello,
    /// And what it asks.
    pub acceptor_nonce: &'a Nonce,
}

impl Transcript<'_> {
    /// The proof of the node on that side.
    pub fn prove(&self, secret: &Secret, prover: Side) -> Mac {
        self.mac(secret, prover).finalize().into_bytes().into()
    }

    /// Whether `proof` is the one of the node on that side. Takes the same time for every wrong one.
    pub fn is_proof(&self, secret: &Secret, prover: Side, proof: &Mac) -> bool {
        self.mac(secret, prover).verify_slice(proof).is_ok()
    }

    fn mac(&self, secret: &Secret, prover: Side) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("any length will do");
        mac.update(b"felucca peer link");
        mac.update(match prover {
            Side::Dialer => b"D",
            Side::Acceptor => b"A",
        });
        for (hello, nonce) in [
            (self.dialer, self.dialer_nonce),
            (self.acceptor, self.acceptor_nonce),
        ] {
            mac.update(nonce);
            for text in [&hello.cluster, &*hello.holder.node.0] {
                // With its length, so that nothing can move from one field into the next.
                mac.update(&(text.len() as u64).to_be_bytes());
                mac.update(text.as_bytes());
            }
            mac.update(&hello.holder.boot.0.to_be_bytes());
            mac.update(&hello.version_min.to_be_bytes());
            mac.update(&hello.version_max.to_be_bytes());
            mac.update(&[match hello.role {
                Role::Gateway => 0,
                Role::Sim => 1,
                Role::All => 2,
            }]);
        }
        mac
    }
}

#[cfg(test)]
mod tests;
