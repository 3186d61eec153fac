//! How nodes talk. The same messages, through the same [`Transport`], inside one process and between processes.
//!
//! Reading order:
//! - [`message`]: what is said; this file: what carries it; [`local`]: inside one process;
//! - [`wire`]: frames; [`proof`]: who is there; [`connection`]: one connection, from greeting to end;
//! - [`links`]: the one link of each pair, dialing, and what takes whose place;
//! - [`rule`], [`merge`], [`weight`], [`outbound`]: what waits for a slow node, and what becomes of it;
//! - [`lane`], [`socket`], [`tcp`]: the sockets around all that; [`flags`]: who is let in, and where.

pub mod connection;
pub mod flags;
pub mod lane;
pub mod links;
pub mod local;
pub mod merge;
pub mod message;
pub mod outbound;
pub mod proof;
pub mod rule;
#[cfg(test)]
mod samples;
mod socket;
pub mod tcp;
pub mod weight;
pub mod wire;

pub use links::PeerAddress;
pub use message::{Message, ToGateway, ToSim};

use crate::identity::{Holder, NodeName};

/// Carries messages to nodes. Bounded; what happens when a queue is full is told by [`rule`] for each kind.
pub trait Transport: Send + Sync + 'static {
    /// Queues `message` for `to`, in the name of `from`: this node, and the boot that the sender is now. The own name is
    /// allowed as `to` and is how a one-process shard talks to itself.
    fn send(&self, from: &Holder, to: &NodeName, message: Message);

    /// Everybody who is in the cluster now, and where they can be reached; replaces what was said before. A transport
    /// that reaches nobody else has no use for it.
    fn peers_are(&self, _peers: Vec<PeerAddress>) {}
}
