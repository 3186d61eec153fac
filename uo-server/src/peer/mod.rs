//! How nodes talk. The same messages, through the same [`Transport`], inside one process and between processes.
//!
//! Reading order: [`message`], this file, [`local`] (inside one process).

pub mod local;
pub mod message;

pub use message::{Message, ToGateway, ToSim};

use crate::identity::{Holder, NodeName};

/// Carries messages to nodes. Bounded; what happens when a queue is full is told by [`message`] for each kind.
pub trait Transport: Send + Sync + 'static {
    /// Queues `message` for `to`, in the name of `from`: this node, and the boot that the sender is now. The own name is
    /// allowed as `to` and is how a one-process shard talks to itself.
    fn send(&self, from: &Holder, to: &NodeName, message: Message);
}
