//! What must hold, judged from what nodes showed. Everything here is pure.
//!
//! Reading order:
//! - [`violation`]: what can be wrong;
//! - [`holders`]: one holder a region, and nothing ever goes down;
//! - [`coverage`]: every region is held again within its time;
//! - [`rounds`]: nobody is with two nodes, and nobody is with none;
//! - [`oracle`]: what a player sees is what there is;
//! - [`wake`]: what a process may do that was paused until others took over;
//! - [`thaw`]: a world that froze and went on.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod coverage;
pub mod holders;
pub mod oracle;
pub mod rounds;
pub mod thaw;
pub mod violation;
pub mod wake;

pub use coverage::Coverage;
pub use holders::Holders;
pub use rounds::Rounds;
pub use thaw::Scene;
pub use violation::Violation;
pub use wake::Wake;
