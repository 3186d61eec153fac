//! The world between the seed and the battle: what stands where, who lives there, and how to get across it.
//!
//! Everything follows from a seed and a size. A client, a gateway and a sim that know both agree on every tree without
//! a message; only differences from the generated content are sent and stored.
//!
//! Reading order:
//! - [`region`]: the [`World`]: seed, size, regions, and the caches of what was generated;
//! - [`tiles`]: sets of a region's tiles, and floods over them;
//! - [`content`]: what a region holds: objects, camps, mobs, the respawn point;
//! - `site`: a region while it is being furnished, and the rules that keep it passable;
//! - [`camp`], `building`, `nature`: what it is furnished with;
//! - [`spawn`]: where new characters begin;
//! - [`build`]: arenas for the battle;
//! - `route`: coarse ways over the map, region by region; [`walk`]: ways in legs, each within one arena;
//! - `dice`, `cache`: the seeded generator and the bounded memory that the above share.
//!
//! Everything here is pure: the caches remember what would be computed again, and change no answer.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod build;
mod building;
mod cache;
pub mod camp;
pub mod content;
mod dice;
mod nature;
pub mod region;
mod route;
mod site;
pub mod spawn;
pub mod tiles;
pub mod walk;

pub use build::build_arena;
pub use camp::Camp;
pub use content::RegionContent;
pub use region::{BadSize, World};
pub use spawn::spawn_point;
pub use uo_combat::{MobSpawn, Rect};

/// Grows whenever a seed begins to give other content: object keys of one version mean nothing in another.
pub const CONTENT_VERSION: u32 = 1;
