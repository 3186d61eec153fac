//! The gateway: sessions and views, and no game state.
//!
//! Reading order: [`core`], the inputs and effects of the gateway core.

pub mod core;
