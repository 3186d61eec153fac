//! What is done to a cluster while it is played on.
//!
//! Reading order:
//! - [`step`]: one thing that is done, as it is written on a command line;
//! - [`plan`]: whether all of them can be done, one after the other, to such a cluster.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod plan;
pub mod step;

pub use plan::Stage;
pub use step::{Step, What};
