//! The sim: regions on leases, characters with owners, 20 ticks a second.
//!
//! Reading order:
//! - [`core`]: the inputs and effects of the sim core;
//! - [`feed`]: what a region's subscribers are shown of it;
//! - [`journal`]: the object writes of a region.

pub mod core;
pub mod feed;
pub mod journal;
