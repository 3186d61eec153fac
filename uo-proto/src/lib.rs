//! What both sides of every connection agree on: ids, places, orders, the public messages, and how they become bytes.
//!
//! Reading order:
//! - [`ids`]: characters, entities, objects, regions, and the coin serial;
//! - [`place`]: tiles, headings and distances;
//! - [`map`]: terrain and height of a tile, from the world's seed alone;
//! - [`item`]: what a character can carry and wear;
//! - [`order`]: what a player asks for;
//! - [`entity`]: what a player sees: entities, objects, combat events;
//! - [`msg`]: the public protocol, version 2;
//! - [`validate`]: the bounds of what clients send;
//! - [`frame`]: JSON and MessagePack, and frames assembled from fragments.
//!
//! Everything here is pure.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod entity;
pub mod frame;
pub mod ids;
pub mod item;
pub mod map;
pub mod msg;
pub mod order;
pub mod place;
pub mod validate;

pub use entity::*;
pub use frame::{DecodeError, DeltaParts, Encoding};
pub use ids::*;
pub use item::*;
pub use map::{Terrain, Tile};
pub use msg::*;
pub use order::*;
pub use place::*;
pub use validate::*;

/// The version of the public protocol that this build speaks.
pub const PROTOCOL_VERSION: u32 = 2;
/// Side of a region, in tiles.
pub const REGION_SIZE: u16 = 64;
/// Radius of the area of interest, in tiles (Chebyshev distance).
pub const AOI_RADIUS: u16 = 18;
/// Ticks a second.
pub const TICK_HZ: u32 = 20;
/// Length of one tick and of one battle step, in milliseconds.
pub const TICK_MS: u64 = 50;
