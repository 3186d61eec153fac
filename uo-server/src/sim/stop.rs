//! A stop in order: what is here goes on until others have taken it. What nobody takes is given up: everybody is written
//! and released, then every region is flushed and released.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{CharId, RegionId};

use super::claims::Who;
use super::core::{News, SimCore};
use super::lease::Slot;
use super::timer::Timer;
use crate::cluster::claim::{Claim, Input};
use crate::limits::{CHARACTER_WRITES_MAX, EVACUATE_MS, REGION_CLAIMS_MAX, STOP_MS};
use crate::planted::PlantedBug;

impl SimCore {
    /// From now on nothing is taken over. What is here goes on until it is drained.
    pub(super) fn stop(&mut self) {
        if !self.stopping {
            self.stopping = true;
            self.evacuating = true;
            self.evacuate_until = self.now + EVACUATE_MS;
            self.timers.add(self.evacuate_until, Timer::EvacuationOver);
            self.timers.add(self.now + STOP_MS, Timer::StopOver);
            self.take_regions();
        }
    }

    /// Whether nothing is simulated any more.
    pub(super) fn gives_up(&self) -> bool {
        self.stopping && !self.evacuating
    }

    /// From now on nothing is simulated: what nobody took is written and released.
    pub(super) fn give_up(&mut self) {
        if !self.evacuating {
            return;
        }
        self.evacuating = false;
        self.forget_drains();
        let unplaced: Vec<CharId> = self.outgoing.keys().copied().collect();
        for id in unplaced {
            self.seek(id);
        }
        self.go_on_stopping();
    }

    /// The store does not answer: rows that were not released name a boot that will be found dead.
    pub(super) fn stop_anyway(&mut self) {
        if !self.stopped {
            self.stopped = true;
            self.tell_cluster(News::Drained);
        }
    }

    /// As much of a stop as has room now.
    pub(super) fn go_on_stopping(&mut self) {
        if !self.stopping || self.stopped {
            return;
        }
        if self.evacuating {
            let is_empty = !self.is_anybody_left() && self.open.is_empty();
            if is_empty && self.slots.iter().all(Slot::is_free) {
                self.stop_anyway();
            }
            return;
        }
        let room = CHARACTER_WRITES_MAX.saturating_sub(self.leaving.len());
        let next: Vec<CharId> = self
            .characters
            .values()
            .filter(|character| !character.is_leaving)
            .map(|character| character.id)
            .take(room)
            .collect();
        for id in next {
            self.leave(id);
        }
        if self.is_anybody_left() {
            return;
        }
        self.release_regions();
        if self.slots.iter().all(Slot::is_free) {
            self.stop_anyway();
        }
    }

    fn is_anybody_left(&self) -> bool {
        !(self.characters.is_empty()
            && self.entering.is_empty()
            && self.outgoing.is_empty()
            && self.arrivals.is_empty()
            && self.leaving.is_empty())
    }

    fn release_regions(&mut self) {
        let is_releasing = |slot: &&Slot| matches!(slot.task.claim, Claim::Releasing { .. });
        let under_way = self.slots.iter().filter(is_releasing).count();
        let ends_early = self.has_bug(PlantedBug::ReleasedBeforeStopped);
        let ready: Vec<RegionId> = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| {
                let is_flushed = slot.journal.as_ref().is_none_or(|it| it.is_flushed());
                (is_flushed || ends_early)
                    && matches!(
                        slot.task.claim,
                        Claim::Loading { .. } | Claim::Sealing { .. } | Claim::Held { .. }
                    )
            })
            .map(|(index, _)| RegionId(index as u32))
            .take(REGION_CLAIMS_MAX.saturating_sub(under_way))
            .collect();
        for region in ready {
            self.drive(Who::Region(region), Input::Release);
        }
    }
}
