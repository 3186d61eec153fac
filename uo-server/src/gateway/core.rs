//! The inputs and effects of the gateway core.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{ClientMsg, Encoding};

use crate::identity::{Holder, NodeName};
use crate::peer::{Message, ToGateway};
use crate::sim::core::Ticket;
use crate::store::{Reply, Request, StoreError};

/// A WebSocket connection of this gateway. Never used twice in a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u64);

/// What happens to a gateway core.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// A WebSocket handshake is complete.
    Opened { conn: ConnId, encoding: Encoding },
    /// A client's message, decoded and validated by the shell (a pure function on its bytes).
    Client { conn: ConnId, message: ClientMsg },
    /// A message that does not parse or validate: answered with `invalid`.
    Invalid { conn: ConnId, reason: String },
    /// The connection is gone.
    Closed { conn: ConnId },
    /// Everything written to these connections so far is with the system: they can take the next frame.
    Writable { conns: Vec<ConnId> },
    /// A message arrived.
    Peer { from: Holder, message: ToGateway },
    /// The store answered.
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// The link to a node is gone.
    PeerLost { node: NodeName },
    /// Time passed: deadlines, and the flush when it is due. Given at least every 50 ms and at the core's `wake_at`.
    Timer,
    /// Entropy for tokens that the core will hand out: 24 bytes each, refilled by the shell on request.
    Entropy { tokens: Vec<[u8; 24]> },
    /// Stop in order: say goodbye, close, then [`Effect::Stopped`].
    Stop,
}

/// What a gateway core wants done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Send a message.
    Send { to: NodeName, message: Message },
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// Write frames to a connection, in order. The core writes no more until [`Input::Writable`] names it, except control.
    Write { conn: ConnId, frame: Vec<u8> },
    /// Close a connection after what was written.
    Close {
        conn: ConnId,
        code: u16,
        reason: String,
    },
    /// Give more entropy.
    WantEntropy,
    /// The stop is complete.
    Stopped,
}
