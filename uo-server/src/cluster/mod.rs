//! Who may simulate what. Everything here is pure.
//!
//! Reading order: [`claim`], the machine of both leases and character ownership.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod claim;
