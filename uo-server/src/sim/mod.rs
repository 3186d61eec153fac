//! The sim: regions on leases, characters with owners, 20 ticks a second.
//!
//! Reading order:
//! - [`core`]: the inputs and effects of the sim core;
//! - [`region`]: one held region: its battle and who is in it; [`tick`]: its step, and what that leaves behind;
//! - [`walk`]: walks across regions; [`pin`]: who has to change battles to fight;
//! - [`look`]: what one sees; [`view`]: what operators see;
//! - [`feed`]: what a region's subscribers are shown of it;
//! - [`journal`]: the object writes of a region;
//! - [`schedule`]: when a tick is due, and getting it to run then;
//! - [`loops`], [`mailbox`]: the tick thread around the core.

pub mod core;
pub mod feed;
pub mod journal;
pub mod look;
pub mod mailbox;
pub mod pin;
pub mod region;
pub mod schedule;
mod seam;
pub mod tick;
pub mod view;
pub mod walk;

pub use region::Region;
