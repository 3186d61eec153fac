//! What can be wrong.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{CharId, RegionId};

/// Something that must never be.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each sentence tells its fields")]
pub enum Violation {
    #[error("region {region} is held under epoch {epoch} by two boots: {one} and {other}")]
    TwoHolders {
        region: RegionId,
        epoch: u64,
        one: String,
        other: String,
    },
    #[error(
        "region {region} ticks on boot {boot} under epoch {epoch}, after another was seen to hold it under {newest}"
    )]
    TicksBehind {
        region: RegionId,
        boot: String,
        epoch: u64,
        newest: u64,
    },
    #[error(
        "region {region} was opened on boot {boot} under epoch {epoch}, after {newest} was seen"
    )]
    OpenedBehind {
        region: RegionId,
        boot: String,
        epoch: u64,
        newest: u64,
    },
    #[error("the ticks of region {region} went from {from} back to {to} on boot {boot}")]
    TicksWentBack {
        region: RegionId,
        boot: String,
        from: u64,
        to: u64,
    },
    #[error("the life of boot {boot} went from {from} back to {to}")]
    LifeWentBack { boot: String, from: u64, to: u64 },
    #[error(
        "boot {boot} woke up and ticked region {region} of epoch {epoch} {ticks} times, which another holds under {newest}"
    )]
    WokenTicks {
        region: RegionId,
        boot: String,
        epoch: u64,
        ticks: u64,
        newest: u64,
    },
    #[error("boot {boot} woke up with regions that another holds, and without its fence")]
    WokenUnfenced { boot: String },
    #[error("boot {boot} woke up dead and counted {more} more of `{counter}`")]
    WokenActs {
        boot: String,
        counter: &'static str,
        more: u64,
    },
    #[error("{node} woke up and was not reborn within {within_ms} ms")]
    NotReborn { node: String, within_ms: u64 },
    #[error("{held} of {regions} regions are held {within_ms} ms after the fault")]
    NotHeld {
        held: usize,
        regions: usize,
        within_ms: u64,
    },
    #[error("region {region} is served by {one} and by {other}, in two samples in a row")]
    RegionTwice {
        region: RegionId,
        one: String,
        other: String,
    },
    #[error("{character} is in a battle of {one} and of {other}, in two samples in a row")]
    CharacterTwice {
        character: CharId,
        one: String,
        other: String,
    },
    #[error("{character} is played under generation {generation}, after {newest} was seen")]
    GenerationWentBack {
        character: CharId,
        generation: u64,
        newest: u64,
    },
    #[error("{character} is in no battle at all for {for_ms} ms")]
    Limbo { character: CharId, for_ms: u64 },
    #[error("{name} is not back in the world after {for_ms} ms")]
    NotBack { name: String, for_ms: u64 },
    #[error("the session of {name} was lost: {why}")]
    SessionLost { name: String, why: String },
    #[error("{0}")]
    Ended(String),
    #[error("{0}")]
    Thaw(String),
}
