//! The sim: regions on leases, characters with owners, 20 ticks a second.
//!
//! Reading order: [`core`], the inputs and effects of the sim core.

pub mod core;
