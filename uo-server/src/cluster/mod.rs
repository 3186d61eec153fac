//! Who may simulate what. Everything here is pure.
//!
//! Reading order:
//! - [`age`], [`timing`]: how time is kept, and which times there are;
//! - [`fence`]: until when this sim may act;
//! - [`observer`]: which boots are presumed gone;
//! - [`life`]: this boot's own life, and the deaths of others;
//! - [`claim`]: the machine of both leases and character ownership;
//! - [`rank`], [`demand`], [`placement`]: which sim is the best for a region, which regions are needed, and which are
//!   taken, handed on or retired here;
//! - [`core`]: the cluster core, which puts these together;
//! - [`directory`]: who is there and can be reached.
//!
//! Each is a small state machine that can be cloned, compared and hashed and keeps time as capped ages only, so that a
//! model checker explores the very code that runs.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod age;
pub mod claim;
pub mod core;
pub mod demand;
pub mod directory;
pub mod fence;
pub mod life;
pub mod observer;
pub mod placement;
pub mod rank;
pub mod timing;
