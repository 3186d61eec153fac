//! What whoever plays is told: events, broken promises, ends and refusals.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{PROTOCOL_VERSION, ServerMsg, Welcome};

/// What the player is told.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// In the world: the answer to a login, or to a resume.
    Welcomed {
        /// The answer itself.
        welcome: Box<Welcome>,
        /// The same session goes on; otherwise it is a new one, and orders not yet taken are forgotten.
        resumed: bool,
    },
    /// A message, checked and free of duplicates; the local world has taken it already.
    Message(ServerMsg),
    /// The connection is gone; another attempt follows by itself.
    Disconnected {
        /// The server's close code, if it gave one.
        code: Option<u16>,
        /// When the next attempt is made.
        retry_ms: u64,
    },
    /// A promise of the protocol was broken.
    Violation(Violation),
    /// The end: no further attempt is made.
    Stopped(StopReason),
}

/// A broken promise of the protocol.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// A reliable message is missing.
    #[error("a gap in the {stream} stream before number {number}")]
    Gap {
        /// `public` or `private`.
        stream: &'static str,
        /// The number that came.
        number: u64,
    },
    /// A reliable message came twice on one connection.
    #[error("number {number} of the {stream} stream came twice")]
    Repeated {
        /// `public` or `private`.
        stream: &'static str,
        /// The number that came.
        number: u64,
    },
    /// The server sent something that is no message.
    #[error("the server sent what is no message: {0}")]
    Undecodable(String),
    /// The server sent what does not fit the state of the connection.
    #[error("the server sent {0}")]
    Unexpected(&'static str),
    /// A delta does not fit the view it builds on.
    #[error("the view does not fit: {0}")]
    View(#[from] crate::world::ViewError),
    /// The server could not make sense of a message of ours.
    #[error("the server calls a message invalid: {0}")]
    CalledInvalid(String),
    /// The server closed the connection for what we sent.
    #[error("the server closed the connection with {0}")]
    ClosedFor(u16),
}

/// Why there is no further attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StopReason {
    /// The character was opened elsewhere (4000).
    #[error("the character was opened elsewhere")]
    Superseded,
    /// The name or password is wrong (4401).
    #[error("not authorised")]
    Unauthorised,
    /// The server does not speak this version.
    #[error("the server does not speak protocol version {PROTOCOL_VERSION}")]
    Version,
    /// As asked for by `logout`.
    #[error("logged out")]
    LoggedOut,
}

/// Why an order was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// Too many orders wait for the server already.
    #[error("too many orders wait for the server")]
    Full,
    /// There is no session yet.
    #[error("not logged in")]
    NotLoggedIn,
    /// The session has ended.
    #[error("the session has ended")]
    Stopped,
}
