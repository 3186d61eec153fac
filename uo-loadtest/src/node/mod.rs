//! Server processes under test.
//!
//! Reading order:
//! - [`process`]: one process: start, kill, pause, resume; it ends with whoever started it;
//! - [`ports`]: addresses that are free;
//! - [`look`]: what a node's `/state` says, as far as is judged here;
//! - [`watch`]: looks at many nodes, again and again.

pub mod look;
pub mod ports;
pub mod process;
pub mod watch;

pub use look::{Character, Look};
pub use process::{Node, Plan, server_program};
pub use watch::{Sample, Watch};
