//! Sick regions: one whose tick panics ends the node that holds it, and one that has done so to two boots is held, but not
//! simulated, until an operator releases it. Otherwise it would go around and end one node after another.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::claims::Asked;
#[cfg(test)]
use super::core::Effect;
use super::core::{News, SimCore, Ticket};
use super::fenced::Standing;
use super::timer::Timer;
use crate::limits::{CAS_RETRY_MS, REGION_PANICS_MAX};
use crate::store::{FaultRow, Reply, Request, StoreError};

/// What is known of a region's health.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Health {
    /// Nothing: it is not held here.
    #[default]
    Unknown,
    /// The store is asked. `serve`: everything else is done, under this epoch.
    Asking { ticket: Ticket, serve: Option<u64> },
    /// It runs.
    Well,
    /// It stands still.
    Quarantined,
}

/// Whether a region with this row stands still.
pub(super) fn is_sick(row: &FaultRow) -> bool {
    row.quarantined || row.panics.len() >= REGION_PANICS_MAX
}

impl SimCore {
    /// A region is about to be claimed: meanwhile the store is asked how healthy it is, anew with each attempt. One that
    /// applies replaces a row that was seen before, so nobody held the region since; and whom it ended, said so before.
    pub(super) fn ask_health(&mut self, id: RegionId) {
        if !self.taking.contains(&id) {
            return;
        }
        let ticket = self.ask(Request::FaultRead { region: id }, Asked::Health(id));
        if let Some(slot) = self.slot_mut(id) {
            slot.health = Health::Asking {
                ticket,
                serve: None,
            };
        }
    }

    pub(super) fn health_answered(
        &mut self,
        id: RegionId,
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    ) {
        let at = self.now + self.jitter.of(CAS_RETRY_MS);
        let Some(slot) = self.slot_mut(id) else {
            return;
        };
        let serve = match slot.health {
            // Not an older answer: the region may have been somebody else's in between.
            Health::Asking { ticket: of, serve } if of == ticket => serve,
            _ => return,
        };
        let Ok(Reply::Fault(row)) = reply else {
            return self.timers.add(at, Timer::Health(id));
        };
        let is_sick = row.as_ref().is_some_and(is_sick);
        slot.health = match is_sick {
            true => Health::Quarantined,
            false => Health::Well,
        };
        if is_sick {
            self.counters.regions_quarantined += 1;
        }
        if let Some(epoch) = serve {
            self.serve_region(id, epoch);
        }
    }

    pub(super) fn ask_health_again(&mut self, id: RegionId) {
        let health = self.slot(id).map(|slot| slot.health);
        if let Some(Health::Asking { serve, .. }) = health {
            let ticket = self.ask(Request::FaultRead { region: id }, Asked::Health(id));
            if let Some(slot) = self.slot_mut(id) {
                slot.health = Health::Asking { ticket, serve };
            }
        }
    }

    /// Whether it is known whether a region may run. If not, it is served as soon as it is.
    pub(super) fn knows_health(&mut self, id: RegionId, epoch: u64) -> bool {
        match self.slot_mut(id).map(|slot| &mut slot.health) {
            Some(Health::Asking { serve, .. }) => {
                *serve = Some(epoch);
                false
            }
            _ => true,
        }
    }

    /// An operator has released a region.
    pub(super) fn release_quarantine(&mut self, id: RegionId) {
        let slot = self.slot_mut(id);
        if let Some(slot) = slot.filter(|slot| slot.health == Health::Quarantined) {
            slot.health = Health::Well;
        }
    }

    /// A region's tick panicked: whatever it left behind, nothing of this boot is to be done any more.
    pub(super) fn break_down(&mut self, region: RegionId) {
        self.standing = Standing::Broken;
        self.tell_cluster(News::Panicked { region });
    }

    /// What a panic in the tick of `region` does.
    #[cfg(test)]
    pub(super) fn break_down_at(&mut self, region: RegionId, effects: &mut Vec<Effect>) {
        self.break_down(region);
        effects.append(&mut self.effects);
    }

    /// Has the next tick of a region panic.
    #[cfg(feature = "planted-bugs")]
    pub fn plant_panic(&mut self, id: RegionId) {
        if let Some(region) = self.slot_mut(id).and_then(|slot| slot.region.as_mut()) {
            region.panics = true;
        }
    }

    /// The regions that stand still.
    pub fn quarantined(&self) -> impl Iterator<Item = RegionId> {
        let open = self.open.iter().copied();
        open.filter(|&id| {
            self.slot(id)
                .is_some_and(|slot| slot.health == Health::Quarantined)
        })
    }
}
