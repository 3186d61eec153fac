//! Writing down in the store what a region did to this boot, before it ends.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use crate::Millis;
use crate::identity::BootId;
use crate::limits::{FAULT_REPORT_MS, REGION_PANICS_MAX};
use crate::store::{FaultRow, Reply, Request, StoreError};

/// A region's row, and what becomes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Stage {
    Reading,
    Writing,
    Done,
}

/// A report that is on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct FaultReport {
    pub(super) region: RegionId,
    boot: BootId,
    until: Millis,
    stage: Stage,
    has_ended_boot: bool,
}

impl FaultReport {
    /// The tick of `region` ended `boot` just now. Begins with [`FaultReport::read`].
    pub(super) fn new(region: RegionId, boot: BootId, now: Millis) -> FaultReport {
        FaultReport {
            region,
            boot,
            until: now + FAULT_REPORT_MS,
            stage: Stage::Reading,
            has_ended_boot: false,
        }
    }

    pub(super) fn read(&mut self) -> Request {
        self.stage = Stage::Reading;
        Request::FaultRead {
            region: self.region,
        }
    }

    /// The store answered. What it is to be asked next.
    pub(super) fn answered(&mut self, reply: Result<Reply, StoreError>) -> Option<Request> {
        match (&self.stage, reply) {
            (Stage::Done, _) => None,
            (Stage::Reading, Ok(Reply::Fault(row))) => self.write(row),
            (Stage::Writing, Ok(Reply::FaultCas { applied: true, .. })) => {
                self.stage = Stage::Done;
                None
            }
            (Stage::Writing, Ok(Reply::FaultCas { row, .. })) => self.write(row),
            // The row tells what came of it.
            _ => Some(self.read()),
        }
    }

    fn write(&mut self, seen: Option<FaultRow>) -> Option<Request> {
        let mut to = seen.clone().unwrap_or_default();
        if to.panics.contains(&self.boot) {
            self.stage = Stage::Done;
            return None;
        }
        to.panics.push(self.boot);
        to.quarantined |= to.panics.len() >= REGION_PANICS_MAX;
        self.stage = Stage::Writing;
        let region = self.region;
        Some(Request::FaultCas { region, seen, to })
    }

    /// Whether its boot is to be declared dead now. That is once.
    pub(super) fn ends_boot(&mut self, now: Millis) -> bool {
        let is_time = self.is_over(now) && !self.has_ended_boot;
        self.has_ended_boot |= is_time;
        is_time
    }

    /// Whether nobody need wait for it any longer.
    pub(super) fn is_over(&self, now: Millis) -> bool {
        self.stage == Stage::Done || now >= self.until
    }
}
