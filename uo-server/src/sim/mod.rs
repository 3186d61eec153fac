//! The sim: regions on leases, characters with owners, 20 ticks a second.
//!
//! Reading order:
//! - [`core`]: the sim core: its inputs and effects, and which handler sees to what; [`turn`]: one tick of it; [`timer`]:
//!   what is to happen later;
//! - [`fenced`]: what it does while it may not act; [`others`]: what it knows of the other nodes;
//! - [`claims`]: carrying out what claims want; [`take`]: regions taken and given up; [`lease`]: regions served;
//! - [`quarantine`]: regions whose ticks end nodes;
//! - [`read_back`]: looking up again what is ours; [`demand`]: which regions somebody needs;
//! - [`character`]: what an owner knows of its character; [`attach`]: how it gets into the world; [`leave`]: and out of it;
//! - [`order`]: orders, at most once and in order; [`private`]: what one player alone is told;
//! - [`checkpoint`]: what is written when, and what may be called saved;
//! - [`handoff`]: the source of a handoff; [`arrival`]: its destination; [`flight`]: what both note of it;
//! - [`drain`]: the source of a drain; [`gather`]: its target;
//! - [`stop`]: a stop in order; [`state`]: what operators see;
//! - [`region`]: one held region: its battle and who is in it; [`tick`]: its step, and what that leaves behind;
//! - [`walk`]: walks across regions; [`pin`]: who has to change battles to fight;
//! - [`look`]: what one sees; [`view`]: what operators see;
//! - [`feed`]: what a region's subscribers are shown of it;
//! - [`journal`]: the object writes of a region;
//! - [`schedule`]: when a tick is due, and getting it to run then;
//! - [`member`]: the sim core and the cluster core as one machine;
//! - [`loops`], [`mailbox`]: the tick thread around it; [`report`]: what it logs.

mod arrival;
mod attach;
mod character;
mod checkpoint;
mod claims;
pub mod core;
mod demand;
mod drain;
pub mod feed;
mod fenced;
mod flight;
mod gather;
mod handoff;
pub mod journal;
mod lease;
mod leave;
pub mod look;
pub mod loops;
pub mod mailbox;
pub mod member;
mod order;
pub mod others;
pub mod pin;
pub mod private;
mod quarantine;
mod read_back;
pub mod region;
mod report;
pub mod schedule;
pub mod state;
mod stop;
mod take;
#[cfg(test)]
mod tests;
pub mod tick;
mod timer;
mod turn;
pub mod view;
pub mod walk;

pub use core::{Effect, Input, SimConfig, SimCore};
pub use region::Region;
