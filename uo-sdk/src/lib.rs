//! Connect to Felucca, play, and write bots. `examples/hello_bot.rs` is the shortest complete use.
//!
//! Reading order:
//! - [`options`]: whom to connect to, and how;
//! - [`session`]: the rules of being a client, as a pure state machine (with [`streams`], [`outbox`], [`backoff`] and
//!   [`gateways`] as its parts);
//! - [`event`]: what it tells whoever plays;
//! - [`world`]: what the client knows of the world around its character, and [`content`], what it can generate of it;
//! - [`client`]: the socket and the clock around a session and a world (with `connection` for the socket alone);
//! - [`bot`]: what decides for a character, and the runner that lets it play;
//! - [`bots`]: the bots that load tests are made of;
//! - [`dice`]: the seeded generator that back-off and bots draw from.

pub mod backoff;
pub mod bot;
pub mod bots;
pub mod client;
mod connection;
pub mod content;
pub mod dice;
pub mod event;
pub mod gateways;
pub mod options;
pub mod outbox;
pub mod session;
pub mod streams;
pub mod world;

pub use bot::{Bot, Runner};
pub use client::Client;
pub use dice::Dice;
pub use event::{Event, SendError, StopReason, Violation};
pub use options::Options;
pub use world::{Entity, LocalWorld};
