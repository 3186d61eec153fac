//! Who is who among nodes: names that last, boots that do not, and nonces that tell one attempt from another.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};

/// The lasting name of a node, like `sim-1`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeName(pub Arc<str>);

impl From<&str> for NodeName {
    fn from(name: &str) -> Self {
        NodeName(name.into())
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One start of a node, or one life of it after being declared dead: a random 128-bit number (a uuid in Cassandra).
/// JSON has no numbers of that size, so it is 32 hexadecimal digits there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub u128);

impl Serialize for BootId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_u128(self.0)
        }
    }
}

impl fmt::Display for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for BootId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BootId({:08x})", self.0 >> 96)
    }
}

/// A node and which start of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// Its name.
    pub node: NodeName,
    /// Its boot.
    pub boot: BootId,
}

/// Tells one attempt at a compare-and-set from every other: unique to (boot, counter).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nonce(pub u128);

/// Hands out the nonces of one boot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Nonces {
    boot: BootId,
    next: u64,
}

impl Nonces {
    /// The nonces of `boot`.
    pub fn new(boot: BootId) -> Nonces {
        Nonces { boot, next: 1 }
    }

    /// A nonce never handed out before by any boot: boots are random, so their shifted ranges do not meet.
    pub fn fresh(&mut self) -> Nonce {
        let nonce = Nonce(self.boot.0 ^ u128::from(self.next));
        self.next += 1;
        nonce
    }
}
