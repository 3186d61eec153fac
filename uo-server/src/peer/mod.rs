//! How nodes talk. The same messages, through the same [`Transport`], inside one process and between processes.
//!
//! Reading order: [`message`], this file, [`local`] (inside one process).

pub mod local;
pub mod message;

pub use message::{Message, ToGateway, ToSim};

use crate::identity::NodeName;

/// Carries messages to nodes. Bounded; what happens when a queue is full is told by [`message`] for each kind.
pub trait Transport: Send + Sync + 'static {
    /// Queues `message` for `to`; the own name is allowed and is how a one-process shard talks to itself.
    fn send(&self, to: &NodeName, message: Message);
}
