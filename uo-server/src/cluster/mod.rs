//! Who may simulate what. Everything here is pure.
//!
//! Reading order: [`claim`], the machine of both leases and character ownership.

pub mod claim;
