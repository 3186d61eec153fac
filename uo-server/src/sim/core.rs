//! The inputs and effects of the sim core.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::identity::{Holder, NodeName};
use crate::peer::{Message, ToSim};
use crate::store::{Reply, Request, StoreError};

/// Names a request to the store, so that its reply finds back to who asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// What happens to a sim core.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// Simulate 50 ms. `parallel`: on the shell's rayon pool; the result is the same.
    Tick { parallel: bool },
    /// A message arrived. `from` is the sending node.
    Peer { from: Holder, message: ToSim },
    /// The store answered.
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// The link to a node is gone.
    PeerLost { node: NodeName },
    /// The fence fell (true) or was lifted by a thaw (false).
    Fence { fallen: bool },
    /// Stop in order: checkpoint, hand over or release, then [`Effect::Stopped`].
    Stop,
}

/// What a sim core wants done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Send a message.
    Send { to: NodeName, message: Message },
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// The stop is complete.
    Stopped,
}
