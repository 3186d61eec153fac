//! One claim machine, for the lease of a region and for the ownership of a character.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]
