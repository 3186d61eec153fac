//! One tick of the core: what is due, a step of every region, and handing around what the steps left.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use uo_combat::{Notice, ObjectHit};
use uo_proto::{CharId, EntityId, ObjectState, Pos, RegionId, Respawned, ServerMsg, StepRejected};

use super::claims::Who;
use super::core::SimCore;
use super::lease::Slot;
use super::region::Region;
use super::tick::{Panicked, TickOutput, step_all};
use super::timer::Timer;
use crate::cluster::claim::Input;
use crate::identity::NodeName;
use crate::peer::ToGateway;
use crate::peer::message::HandoffCause;
use crate::planted::PlantedBug;

impl SimCore {
    pub(super) fn tick(&mut self, parallel: bool) {
        self.allow_forwards();
        self.run_timers();
        self.end_gatherings();
        // Stop, then flush, then release: a core that gives up simulates nothing any more.
        let simulates = !self.gives_up() || self.has_bug(PlantedBug::ReleasedBeforeStopped);
        if simulates && let Err(Panicked(region)) = self.step(parallel) {
            return self.break_down(region);
        }
        self.ticks += 1;
        self.say_unsaid(None);
        self.tell_everyone_saved();
        self.go_on_with_drains();
        if self.stopping {
            self.go_on_stopping();
        } else {
            self.go_on_retiring();
            self.read_back_owners();
            self.tell_demand();
        }
        self.tell_leases();
    }

    fn run_timers(&mut self) {
        while let Some((due, timer)) = self.timers.pop(self.now) {
            match timer {
                Timer::Claim(who) => self.retry_claim(who),
                Timer::Health(region) => self.ask_health_again(region),
                Timer::Objects(region) => self.write_objects_again(region),
                Timer::Checkpoint(id) => self.checkpoint_is_due(id, due),
                Timer::LastWrite(id) => self.write_last(id),
                Timer::Linger(id) => self.linger_is_over(id, due),
                Timer::Offer(id) => self.offer_is_over(id, due),
                Timer::Seek(id) => self.seek(id),
                Timer::Settle(id) => self.settle(id, due),
                Timer::Drain(id) => self.drain_is_over(id, due),
                Timer::EvacuationOver => self.give_up(),
                Timer::StopOver => self.stop_anyway(),
            }
        }
    }

    fn step(&mut self, parallel: bool) -> Result<(), Panicked> {
        let running: Vec<RegionId> = self.running().collect();
        let mut regions = regions_of(&mut self.slots, &running);
        step_all(&mut regions, parallel)?;
        let mut watchers: BTreeSet<NodeName> = BTreeSet::new();
        for id in running {
            self.hand_around(id, &mut watchers);
        }
        self.end_feeds(watchers);
        Ok(())
    }

    /// Hands around what a region left behind beside its steps.
    pub(super) fn take_output(&mut self, id: RegionId) {
        let mut watchers = BTreeSet::new();
        self.hand_around(id, &mut watchers);
        self.end_feeds(watchers);
    }

    /// Nothing more follows for those who were shown something.
    fn end_feeds(&mut self, watchers: BTreeSet<NodeName>) {
        for node in watchers {
            self.send_gateway(node, ToGateway::FeedsDone);
        }
    }

    /// Regions that are simulated, in order.
    fn running(&self) -> impl Iterator<Item = RegionId> {
        let ends_late = self.has_bug(PlantedBug::ReleasedBeforeStopped);
        let runs = move |id: &RegionId| {
            let stands_still = self.retiring.contains(id) || self.gathering.contains_key(id);
            self.serves(*id) && !stands_still || ends_late
        };
        self.open.iter().copied().filter(runs)
    }

    fn hand_around(&mut self, id: RegionId, watchers: &mut BTreeSet<NodeName>) {
        let slot = self.slot_mut(id);
        let Some(region) = slot.and_then(|slot| slot.region.as_mut()) else {
            return;
        };
        let output: TickOutput = region.take_output();
        for (node, message) in output.feeds {
            if !watchers.contains(&node) {
                watchers.insert(node.clone());
            }
            self.send_gateway(node, message);
        }
        self.counters.add_battle(output.counters);
        if !output.objects.is_empty() {
            self.objects_changed(id, &output.objects);
        }
        for (owner, hits) in output.foreign_hits {
            self.pass_hits(owner, hits);
        }
        for notice in output.notices {
            self.heed(notice);
        }
        for char_id in output.changed {
            self.touch(char_id);
        }
        for (char_id, to) in output.border {
            if self.can_hand_over(char_id, to) {
                self.hand_over(char_id, to, HandoffCause::Border, Vec::new());
            }
        }
    }

    /// Writes what changed, and shows it to the arenas around.
    fn objects_changed(&mut self, id: RegionId, objects: &[ObjectState]) {
        let tick = self.ticks + 1;
        let Some(journal) = self.slot_mut(id).and_then(|slot| slot.journal.as_mut()) else {
            return;
        };
        let write = journal.record(tick, objects);
        let is_exhausted = journal.is_exhausted();
        self.write_objects(write);
        if is_exhausted {
            self.counters.renewals += 1;
            self.drive(Who::Region(id), Input::Renew);
        }
        self.tell_neighbours(id, false, objects);
    }

    /// Harm to objects goes to their owner.
    fn pass_hits(&mut self, owner: RegionId, hits: Vec<ObjectHit>) {
        if self.serves(owner) {
            if let Some(region) = self.slot_mut(owner).and_then(|slot| slot.region.as_mut()) {
                region.hit(&hits);
            }
        } else if !self.keep_hits(owner, &hits) {
            self.pass_on_hits(owner, hits);
        }
    }

    pub(super) fn object_hits(&mut self, owner: RegionId, epoch: u64, hits: &[ObjectHit]) {
        if self.keep_hits(owner, hits) {
            return;
        }
        let known = self.elsewhere.get(&owner).map(|(known, _)| *known);
        if known > Some(epoch) && self.slot(owner).is_some_and(Slot::is_free) {
            // Whoever sent it does not know yet that it was drained. It goes on to a higher number each time, so not for ever.
            return self.pass_on_hits(owner, hits.to_vec());
        }
        let region = self.slot_mut(owner).and_then(|slot| slot.region.as_mut());
        match region.filter(|region| epoch >= region.epoch()) {
            Some(region) => region.hit(hits),
            None => self.counters.messages_old_number += 1,
        }
    }

    /// Objects of another node's region changed.
    pub(super) fn object_changes(
        &mut self,
        owner: RegionId,
        (epoch, _tick): (u64, u64),
        full: bool,
        objects: &[ObjectState],
    ) {
        let known = self.elsewhere.get(&owner).map_or(0, |(known, _)| *known);
        if epoch < known || self.serves(owner) {
            self.counters.messages_old_number += 1;
            return;
        }
        for beside in self.config.world.clone().neighbours(owner) {
            if let Some(region) = self.slot_mut(beside).and_then(|slot| slot.region.as_mut()) {
                if full {
                    region.replace_foreign(owner, objects);
                } else {
                    region.place_foreign(objects);
                }
            }
        }
    }

    /// What happened to single characters.
    fn heed(&mut self, notice: Notice) {
        match notice {
            Notice::StepRejected { id, pos, seq } | Notice::WalkFailed { id, pos, seq } => {
                self.tell_rejected(id, pos, seq);
            }
            Notice::Respawned { id, pos } => {
                let char_id = CharId(id.0);
                self.tell(char_id, |private| {
                    ServerMsg::Respawned(Respawned {
                        private,
                        x: pos.x,
                        y: pos.y,
                    })
                });
            }
            Notice::InventoryChanged { id } => {
                self.tell_inventory(CharId(id.0));
                self.touch_urgent(CharId(id.0));
            }
            Notice::Died { id, .. } => self.touch_urgent(CharId(id.0)),
            Notice::Refused { id, seq, refusal } => self.tell_refusal(CharId(id.0), seq, refusal),
            // Counted by the region.
            Notice::LegDone { .. } | Notice::FightBegan { .. } => {}
        }
    }

    fn tell_rejected(&mut self, id: EntityId, pos: Pos, seq: u64) {
        self.tell(CharId(id.0), |private| {
            ServerMsg::StepRejected(StepRejected {
                private,
                x: pos.x,
                y: pos.y,
                seq,
            })
        });
    }
}

/// The battles of `ids`, which are in order.
fn regions_of<'a>(slots: &'a mut [Slot], ids: &[RegionId]) -> Vec<&'a mut Region> {
    let mut regions = Vec::with_capacity(ids.len());
    let (mut rest, mut first) = (slots, 0);
    for id in ids {
        let index = id.0 as usize;
        let (_, from_here) = rest.split_at_mut(index - first);
        let Some((slot, behind)) = from_here.split_first_mut() else {
            return regions;
        };
        regions.extend(slot.region.as_mut());
        (rest, first) = (behind, index + 1);
    }
    regions
}
