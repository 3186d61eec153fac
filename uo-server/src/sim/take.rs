//! Taking and giving up regions, as the cluster core wants it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::claims::Who;
use super::core::{News, SimCore};
use crate::cluster::claim::Input;
use crate::limits::REGION_CLAIMS_MAX;
use crate::planted::PlantedBug;
use crate::store::ClaimRow;

impl SimCore {
    /// Takes a region. The row is a hint: the compare-and-set finds out for itself.
    pub(super) fn take(&mut self, id: RegionId, row: Option<ClaimRow>) {
        let is_stopping = self.stopping;
        let Some(slot) = self.slot_mut(id) else {
            return;
        };
        if is_stopping {
            self.tell_cluster(News::Gone { region: id, row });
        } else if slot.is_served() {
            self.tell_served(id);
        } else if slot.is_free() && !slot.is_wanted {
            slot.is_wanted = true;
            self.wanted.push_back((id, row));
            self.take_regions();
        }
        // Otherwise it is under way, and the news of it follow.
    }

    /// Begins claims until as many are under way as may be.
    pub(super) fn take_regions(&mut self) {
        while self.taking.len() < REGION_CLAIMS_MAX {
            let Some((id, row)) = self.wanted.pop_front() else {
                return;
            };
            if let Some(slot) = self.slot_mut(id) {
                slot.is_wanted = false;
            }
            if self.stopping {
                self.tell_cluster(News::Gone { region: id, row });
            } else {
                self.taking.insert(id);
                self.drive(Who::Region(id), Input::TakeSeen(row));
            }
        }
    }

    /// One that was being taken is decided: the next may begin.
    pub(super) fn is_taken(&mut self, id: RegionId) {
        self.taking.remove(&id);
        self.go_in(id);
        self.take_regions();
    }

    /// Whether it will soon be decided who serves a region that is not served here now.
    pub(super) fn is_coming(&self, id: RegionId) -> bool {
        let is_taken = self.taking.contains(&id) || self.is_draining(id);
        is_taken || self.slot(id).is_some_and(|slot| slot.is_wanted)
    }

    pub(super) fn tell_served(&mut self, id: RegionId) {
        let slot = self.slot(id).filter(|slot| slot.is_served());
        if let Some(epoch) = slot.and_then(|slot| slot.task.claim.held()) {
            self.tell_cluster(News::Served { region: id, epoch });
        }
    }

    /// Stops a region that nobody needs, flushes and releases it.
    pub(super) fn retire(&mut self, id: RegionId) {
        if !self.serves(id) {
            // One that stands still stays where an operator finds it.
            return self.tell_served(id);
        }
        self.retiring.insert(id);
        self.go_on_retiring();
    }

    /// As much of it as can be done now. Until its release is sent, a region goes on if somebody comes.
    pub(super) fn go_on_retiring(&mut self) {
        let candidates: Vec<RegionId> = self.retiring.iter().copied().collect();
        for id in candidates {
            if !self.serves(id) {
                self.retiring.remove(&id);
            } else if self.is_needed(id) {
                self.retiring.remove(&id);
                self.tell_served(id);
            } else if self.is_flushed(id) || self.has_bug(PlantedBug::ReleasedBeforeStopped) {
                self.retiring.remove(&id);
                self.counters.regions_retired += 1;
                self.drive(Who::Region(id), Input::Release);
            }
        }
    }

    pub(super) fn is_flushed(&self, id: RegionId) -> bool {
        let journal = self.slot(id).and_then(|slot| slot.journal.as_ref());
        journal.is_none_or(|journal| journal.is_flushed())
    }
}
