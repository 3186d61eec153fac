//! The gateway: sessions and views, and no game state.
//!
//! Reading order:
//! - [`core`]: the configuration, inputs and effects of the gateway core;
//! - [`frames`]: several messages in one buffer.

pub mod core;
pub mod frames;
