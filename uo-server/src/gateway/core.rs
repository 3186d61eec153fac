//! The inputs and effects of the gateway core.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::Arc;

use uo_proto::{ClientMsg, Encoding, Limits, SpellInfo};
use uo_world::World;

use crate::identity::{Holder, NodeName};
use crate::peer::{Message, ToGateway};
use crate::sim::core::Ticket;
use crate::store::{Reply, Request, StoreError};

use super::frames::Frames;

/// A WebSocket connection of this gateway. Never used twice in a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u64);

/// What a gateway core is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// This gateway and its boot.
    pub me: Holder,
    /// The world: its map for `welcome`, its spawn points for new names.
    pub world: Arc<World>,
    /// Sims believed alive at the start; later [`Input::Members`].
    pub members: Vec<Holder>,
    /// Public addresses where a session can be resumed: `welcome` and `goodbye`.
    pub gateways: Vec<String>,
    /// For `welcome`.
    pub spells: Vec<SpellInfo>,
    /// For `welcome`; the shell enforces them.
    pub limits: Limits,
    /// Seed of the jitter in retries.
    pub seed: u64,
}

/// What happens to a gateway core.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// A WebSocket handshake is complete.
    Opened { conn: ConnId, encoding: Encoding },
    /// A client's message, decoded and validated by the shell (a pure function on its bytes).
    Client { conn: ConnId, message: ClientMsg },
    /// A message that does not parse or validate: answered with `invalid`. `seq` is the order it would have been.
    Invalid {
        conn: ConnId,
        reason: String,
        seq: Option<u64>,
    },
    /// A WebSocket pong whose payload is 8 bytes, big-endian; pongs with other payloads are the shell's own.
    Pong { conn: ConnId, payload: u64 },
    /// The connection is gone, whoever closed it. Given once for every [`Input::Opened`], and nothing of that
    /// connection after it.
    Closed { conn: ConnId },
    /// The one [`Effect::Write`] under way on each of these connections is with the system: they can take the next.
    Writable { conns: Vec<ConnId> },
    /// A message arrived.
    Peer { from: Holder, message: ToGateway },
    /// The store answered.
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// The sims whose boots are believed alive and which can be reached; replaces what was said before.
    Members { alive: Vec<Holder> },
    /// The link to a node is gone; it counts as unreachable until [`Input::Members`] names it again.
    PeerLost { node: NodeName },
    /// Time passed: deadlines, and the flush when it is due. Given when the core's `wake_at` is reached.
    Timer,
    /// Entropy for the tokens that the core will hand out, 24 bytes each.
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
    /// Write frames to a connection, in order, then a WebSocket ping whose payload is `ping` as 8 bytes, big-endian.
    /// There is never more than one under way on a connection: the next comes after [`Input::Writable`].
    Write {
        conn: ConnId,
        frames: Frames,
        ping: Option<u64>,
    },
    /// Close a connection after what is under way and after these last frames, without waiting long for either.
    Close {
        conn: ConnId,
        last: Frames,
        code: u16,
        reason: &'static str,
    },
    /// Give entropy for so many tokens.
    WantEntropy { tokens: usize },
    /// The stop is complete.
    Stopped,
}
