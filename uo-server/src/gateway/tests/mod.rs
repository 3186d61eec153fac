//! The whole core, driven by inputs alone: a sim, a store and clients that do what the test says.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod client;
mod feeds;
mod gaps;
mod locating;
mod merge;
mod orders;
mod rig;
mod sessions;
mod sight;
mod slow;
mod streams;
mod told;
