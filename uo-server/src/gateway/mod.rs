//! The gateway: sessions and views, and no game state.
//!
//! Reading order:
//! - [`core`]: the configuration, inputs and effects of the gateway core;
//! - [`frames`]: several messages in one buffer;
//! - [`loops`], [`mailbox`]: the thread around the core;
//! - [`accept`], [`connection`]: the sockets.

pub mod accept;
pub mod connection;
pub mod core;
pub mod frames;
pub mod mailbox;
