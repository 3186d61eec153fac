//! The open battle: one region's fight, simulated in steps of [`SIM_STEP_MS`], never ending, nobody escaping.
//!
//! Same seed, same orders, same events: the crate does integer arithmetic only, draws from its own seeded generator and
//! keeps its whole state in [`Battle`], which can be taken out, sent elsewhere and stepped on.
//!
//! Reading order:
//! - [`table`]: what objects, items, spells and classes are; the one place for balance;
//! - [`rect`], [`arena`]: the tiles of a battle, what blocks them and what is connected; [`sight`]: who sees whom;
//! - [`fighter`]: one fighter's whole portable state;
//! - [`report`]: what a step tells its caller;
//! - [`battle`]: the battle itself, coming and going, and the step;
//! - `order`: what a player may ask for; `tempo`: what a fighter does in its turn;
//! - `walk`, [`path`]: steps and ways; `attack`, `damage`, `spell`: harm and healing; `object`: doors, kegs, stones, ruins;
//! - `mob`: the will of bandits; `event`: notes for the report;
//! - `random`: the generator.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod arena;
mod attack;
pub mod battle;
mod damage;
mod event;
pub mod fighter;
mod mob;
mod object;
mod order;
pub mod path;
mod random;
pub mod rect;
pub mod report;
pub mod sight;
mod spell;
pub mod table;
mod tempo;
mod walk;

pub use arena::{Arena, Ground};
pub use battle::{AdmitError, Battle, MobSpawn, Setup};
pub use fighter::Fighter;
pub use rect::Rect;
pub use report::{BattleEvent, Notice, ObjectHit, Refusal, Report};
pub use sight::Sight;

/// Length of one step of a battle, in milliseconds.
pub const SIM_STEP_MS: u64 = uo_proto::TICK_MS;
/// How many tiles of its neighbours a region's arena takes in.
pub const ARENA_MARGIN: u16 = 12;
/// How far a mob goes from its home, in tiles (Chebyshev).
pub const LEASH: u16 = 16;
/// One action point: the time of a run step.
pub const AP_MS: u64 = 250;
/// How long after the last blow given or taken a fighter still counts as fighting.
pub const FIGHT_MS: u64 = 10_000;
/// From a character's death to its return.
pub const RESPAWN_MS: u64 = 8_000;
/// How long a mob's body lies.
pub const BODY_MS: u64 = 10_000;
/// From a mob's death to its return.
pub const MOB_RETURN_MS: u64 = 30_000;
/// How many `step` orders wait at most.
pub const STEP_QUEUE: usize = 4;

/// [`SIM_STEP_MS`] in the width that timers have.
pub(crate) const STEP_MS: u32 = SIM_STEP_MS as u32;
