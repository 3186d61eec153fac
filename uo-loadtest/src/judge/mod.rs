//! What must hold, judged from what nodes showed. Everything here is pure.
//!
//! Reading order:
//! - [`violation`]: what can be wrong;
//! - [`holders`]: one holder a region, and nothing ever goes down;
//! - [`wake`]: what a process may do that was paused until others took over;
//! - [`thaw`]: a world that froze and went on.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod holders;
pub mod thaw;
pub mod violation;
pub mod wake;

pub use holders::Holders;
pub use thaw::Scene;
pub use violation::Violation;
pub use wake::Wake;
