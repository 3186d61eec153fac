//! Stands where it is: what a session costs that does nothing.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::LocalWorld;
use crate::bot::{Bot, Cause, Hands};

/// Gives no orders at all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle;

impl Bot for Idle {
    fn act(&mut self, _: u64, _: &LocalWorld, _: Cause<'_>, _: &mut Hands) {}
}
