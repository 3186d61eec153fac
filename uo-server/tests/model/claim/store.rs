//! The store as far as one right goes: a register with exact compare-and-set, and a partition of stamped rows.
//!
//! The partition has two rows. One holds what the right is about and is in every holder's hands; the other is an object
//! that a holder may put there or take away, and of which the next holder may know nothing.

use uo_server::cluster::claim::Attempt;
use uo_server::planted::{Planted, PlantedBug};
use uo_server::store::{ClaimRow, Stamp};

/// Deeds whose fate is in doubt, as bits: what a value holds of them.
pub type Deeds = u8;

/// What is durable, or would be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Data {
    pub deeds: Deeds,
    pub object: bool,
}

/// The stamped rows, and the newest tombstone over them.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cells {
    pub tombstone: Option<Stamp>,
    pub main: Option<(Stamp, Deeds)>,
    pub object: Option<(Stamp, bool)>,
}

/// A request whose sender does not wait for it any more: it takes effect now, later or never.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Late {
    Cas(Attempt),
    Seal { number: u64, data: Data },
    Main { stamp: Stamp, deeds: Deeds },
    Object { stamp: Stamp, there: bool },
}

/// Whether an attempt applies to the row that is there.
pub fn applies(row: Option<&ClaimRow>, attempt: &Attempt, planted: Planted) -> bool {
    match (row, &attempt.seen) {
        (Some(row), Some(seen)) if planted.has(PlantedBug::CasWithoutNumber) => {
            row.holder == seen.holder
        }
        (row, seen) => row.map(ClaimRow::seen) == *seen,
    }
}

impl Cells {
    /// What a holder wrote that no register knows of any more.
    pub fn restored() -> Cells {
        Cells {
            tombstone: Some(Stamp { number: 3, n: 0 }),
            main: Some((Stamp { number: 3, n: 2 }, 0)),
            object: Some((Stamp { number: 3, n: 3 }, true)),
        }
    }

    /// What a load shows.
    pub fn data(&self) -> Data {
        Data {
            deeds: self.main.map_or(0, |(_, deeds)| deeds),
            object: self.object.is_some_and(|(_, there)| there),
        }
    }

    /// The highest number that a load shows.
    pub fn number_max(&self) -> Option<u64> {
        let object = self.object.filter(|(_, there)| *there);
        let stamps = [self.main.map(|(at, _)| at), object.map(|(at, _)| at)];
        stamps.into_iter().flatten().map(|at| at.number).max()
    }

    pub fn seal(&mut self, number: u64, data: Data, planted: Planted) {
        let rows = Stamp { number, n: 1 };
        let tombstone = match planted.has(PlantedBug::TombstoneStampedLikeRows) {
            true => rows,
            false => Stamp { number, n: 0 },
        };
        if !planted.has(PlantedBug::SealWithoutTombstone) {
            self.tombstone = self.tombstone.max(Some(tombstone));
            self.main.take_if(|(at, _)| Some(*at) <= self.tombstone);
            self.object.take_if(|(at, _)| Some(*at) <= self.tombstone);
        }
        self.write_main(rows, data.deeds);
        if data.object {
            self.write_object(rows, true);
        }
    }

    pub fn write_main(&mut self, stamp: Stamp, deeds: Deeds) {
        if Some(stamp) > self.tombstone && self.main.is_none_or(|(at, _)| stamp > at) {
            self.main = Some((stamp, deeds));
        }
    }

    pub fn write_object(&mut self, stamp: Stamp, there: bool) {
        if Some(stamp) > self.tombstone && self.object.is_none_or(|(at, _)| stamp > at) {
            self.object = Some((stamp, there));
        }
    }

    /// Carries out a late request that is no compare-and-set.
    pub fn apply(&mut self, late: &Late, planted: Planted) {
        match late {
            Late::Cas(_) => {}
            Late::Seal { number, data } => self.seal(*number, *data, planted),
            Late::Main { stamp, deeds } => self.write_main(*stamp, *deeds),
            Late::Object { stamp, there } => self.write_object(*stamp, *there),
        }
    }

    /// Whether the request can still change anything. Last-write-wins is a join: what changes nothing now never will.
    pub fn can_change(&self, late: &Late, planted: Planted) -> bool {
        let mut after = self.clone();
        after.apply(late, planted);
        after != *self
    }
}

/// Adds a request to those under way; a second copy of one changes nothing that the first does not.
pub fn send(air: &mut Vec<Late>, late: Late) {
    if !air.contains(&late) {
        air.push(late);
    }
}
