//! When a tick is due, and getting it to run then.
//!
//! Reading order:
//! - [`deadlines`]: when each tick is due and how late it began; pure;
//! - [`precedence`]: asks the system to let the tick thread go first.

pub mod deadlines;
pub mod precedence;

pub use deadlines::{Deadlines, Due};
