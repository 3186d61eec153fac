//! Regions: serving them, what their objects need, and how they end.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use uo_combat::{AdmitError, Fighter};
use uo_proto::{CharId, ObjectKey, ObjectState, Pos, RegionId};

use super::claims::{Asked, Task, Who};
use super::core::{News, SimCore};
use super::journal::{Journal, read_rows, seal_rows};
use super::quarantine::Health;
use super::region::Region;
use super::timer::Timer;
use crate::Millis;
use crate::cluster::claim::{Claim, Input};
use crate::identity::{Holder, NodeName};
use crate::limits::CAS_RETRY_MS;
use crate::peer::message::{DrainOffer, HandoffCause, Leases};
use crate::peer::{ToGateway, ToSim};
use crate::store::{ClaimRow, Request, Stamp};

/// What this node has of one region of the map.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) task: Task,
    /// It waits for its turn to be taken.
    pub(super) is_wanted: bool,
    /// What was loaded or offered, until it is opened.
    pub(super) loaded: Vec<ObjectState>,
    /// What another node offered, until it is opened.
    pub(super) offered: Option<Box<DrainOffer>>,
    pub(super) region: Option<Region>,
    pub(super) journal: Option<Journal>,
    pub(super) health: Health,
    /// Who asked for its feed.
    subscribers: BTreeSet<NodeName>,
}

impl Slot {
    /// Whether it is held, sealed and open: it ticks.
    pub(super) fn is_served(&self) -> bool {
        self.region.is_some() && self.task.claim.held().is_some()
    }

    /// Nothing of it is ours, and nothing is under way.
    pub(super) fn is_free(&self) -> bool {
        self.task.claim == Claim::Free
    }
}

impl SimCore {
    pub(super) fn slot(&self, region: RegionId) -> Option<&Slot> {
        self.slots.get(region.0 as usize)
    }

    pub(super) fn slot_mut(&mut self, region: RegionId) -> Option<&mut Slot> {
        self.slots.get_mut(region.0 as usize)
    }

    pub(super) fn objects_loaded(&mut self, who: Who, rows: &[(ObjectKey, Vec<u8>)]) {
        let Who::Region(region) = who else { return };
        match read_rows(rows) {
            Ok(stored) => {
                if let Some(slot) = self.slot_mut(region) {
                    slot.loaded = stored.objects;
                }
                let found = (!rows.is_empty()).then_some(stored.epoch_max);
                self.drive(who, Input::Loaded(found));
            }
            Err(_) => {
                // Sealing would destroy what this build cannot read: the region stays down until that is repaired.
                self.counters.rows_unreadable += 1;
                self.drive(who, Input::Failed);
            }
        }
    }

    /// The rows of the seal: what was loaded, or what the running region shows (a renewal).
    pub(super) fn region_seal(&mut self, region: RegionId, number: u64) -> Option<Request> {
        let slot = self.slot_mut(region)?;
        let rows = match &slot.region {
            Some(running) => seal_rows(number, &running.differences()),
            None => seal_rows(number, &slot.loaded),
        };
        Some(Request::ObjectsSeal {
            region,
            number,
            rows,
        })
    }

    pub(super) fn serve_region(&mut self, id: RegionId, epoch: u64) {
        if !self.knows_health(id, epoch) {
            return;
        }
        let world = self.config.world.clone();
        let beside = self.objects_beside(id);
        let Some(slot) = self.slot_mut(id) else {
            return;
        };
        if let Some(journal) = &mut slot.journal {
            // A renewal or a reclaim: the battle goes on under the epoch that it was opened with.
            journal.renew(epoch);
            return self.region_renewed(id);
        }
        let objects = std::mem::take(&mut slot.loaded);
        let offered = slot.offered.take();
        let mut region = match &offered {
            Some(offer) => self.adopt(epoch, offer),
            None => Region::open(&world, id, epoch, objects, &beside),
        };
        let Some(slot) = self.slot_mut(id) else {
            return;
        };
        for node in &slot.subscribers {
            region.subscribe(node.clone());
        }
        let differences = region.differences();
        slot.region = Some(region);
        slot.journal = Some(Journal::new(id, epoch));
        self.open.insert(id);
        self.elsewhere.remove(&id);
        self.untold
            .insert(id, (epoch, Some(self.config.me.clone())));
        self.tell_neighbours(id, true, &differences);
        self.tell_served(id);
        if let Some(offer) = offered {
            self.taken_over(epoch, *offer);
        }
        self.is_taken(id);
    }

    /// What the neighbours that run here differ in from the generated content.
    fn objects_beside(&self, id: RegionId) -> Vec<ObjectState> {
        self.config
            .world
            .neighbours(id)
            .filter_map(|beside| self.slot(beside)?.region.as_ref())
            .flat_map(Region::differences)
            .collect()
    }

    /// Changed objects of `id`, for the arenas of the regions around it.
    pub(super) fn tell_neighbours(&mut self, id: RegionId, full: bool, objects: &[ObjectState]) {
        let Some((epoch, tick)) = self
            .slot(id)
            .and_then(|slot| slot.region.as_ref())
            .map(|region| (region.epoch(), region.tick_count()))
        else {
            return;
        };
        let mut nodes = BTreeSet::new();
        for beside in self.config.world.clone().neighbours(id) {
            if let Some(region) = self.slot_mut(beside).and_then(|slot| slot.region.as_mut()) {
                region.place_foreign(objects);
            } else if let Some((_, holder)) = self.elsewhere.get(&beside) {
                nodes.insert(holder.node.clone());
            }
        }
        for node in nodes {
            let message = ToSim::ObjectChanges {
                region: id,
                epoch,
                tick,
                full,
                objects: objects.to_vec(),
            };
            self.send_sim(node, message);
        }
    }

    /// Somebody else has it.
    pub(super) fn region_gone(&mut self, id: RegionId, row: Option<ClaimRow>) {
        if let Some(row) = row.clone() {
            self.learn_holder(id, row);
        }
        let drained_at = self.end_drain(id);
        self.close_region(id, drained_at);
        self.tell_cluster(News::Gone { region: id, row });
        self.is_taken(id);
    }

    pub(super) fn region_released(&mut self, id: RegionId, number: u64) {
        self.end_drain(id);
        self.close_region(id, None);
        self.untold.insert(id, (number, None));
        self.tell_cluster(News::Released { region: id, number });
        self.is_taken(id);
    }

    /// Ends a region that is ours no longer. Whoever was in it is without a battle, and looks for one: where it was drained
    /// to, if it was, and since when it stood still for that.
    pub(super) fn close_region(&mut self, id: RegionId, drained_at: Option<Millis>) {
        let Some(slot) = self.slot_mut(id) else {
            return;
        };
        slot.journal = None;
        slot.offered = None;
        slot.loaded = Vec::new();
        slot.health = Health::Unknown;
        let subscribers = std::mem::take(&mut slot.subscribers);
        let Some(mut region) = slot.region.take() else {
            return;
        };
        let epoch = region.epoch();
        self.open.remove(&id);
        self.gathering.remove(&id);
        let (cause, left_at) = match drained_at {
            Some(at) => (HandoffCause::Drain, at),
            None => (HandoffCause::Forward, self.now),
        };
        for node in subscribers {
            self.send_gateway(node, ToGateway::FeedEnd { region: id, epoch });
        }
        let stranded: Vec<_> = region.characters().collect();
        for char_id in stranded {
            let withdrawn = region.withdraw(char_id);
            if let (Some((fighter, walk)), Some(mut character)) =
                (withdrawn, self.characters.remove(&char_id))
            {
                let held = std::mem::take(&mut character.early).into_values().collect();
                character.checkpoint.suspend();
                self.hold_unplaced(character, fighter, walk, held, left_at, cause);
            }
        }
    }

    pub(super) fn subscribe(&mut self, node: NodeName, id: RegionId) {
        let is_coming = self.is_coming(id);
        let Some(slot) = self.slot_mut(id) else {
            return;
        };
        if let Some(region) = &mut slot.region {
            slot.subscribers.insert(node.clone());
            region.subscribe(node);
        } else if is_coming {
            slot.subscribers.insert(node);
        } else {
            let message = ToGateway::FeedEnd {
                region: id,
                epoch: 0,
            };
            self.send_gateway(node, message);
        }
    }

    pub(super) fn unsubscribe(&mut self, node: &NodeName, id: RegionId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.subscribers.remove(node);
            if let Some(region) = &mut slot.region {
                region.unsubscribe(node);
            }
        }
    }

    /// The link to a node is gone: a gateway's players linger, and its feeds end. What was offered to it waits for its
    /// time-out, because only a compare-and-set tells.
    pub(super) fn peer_lost(&mut self, node: &NodeName) {
        for slot in &mut self.slots {
            slot.subscribers.remove(node);
            if let Some(region) = &mut slot.region {
                region.unsubscribe(node);
            }
        }
        self.detach_all_of(node);
    }

    /// Puts a character into the battle of `region`, if that runs here.
    pub(super) fn admit(
        &mut self,
        region: RegionId,
        fighter: Fighter,
        generation: u64,
        ack: u64,
        walk: Option<(Pos, u64)>,
    ) -> Result<(), AdmitError> {
        if !self.serves(region) {
            return Err(AdmitError::Outside);
        }
        let id = CharId(fighter.id.0);
        match self.slot_mut(region).and_then(|slot| slot.region.as_mut()) {
            Some(battle) => battle.admit(fighter, generation, ack, walk)?,
            None => return Err(AdmitError::Outside),
        }
        self.has_come(region, id);
        Ok(())
    }

    /// Who holds `region` and can be offered a character, as far as is known.
    pub(super) fn taker_of(&self, region: RegionId) -> Option<Holder> {
        if self.serves(region) {
            return Some(self.config.me.clone());
        }
        let (_, holder) = self.elsewhere.get(&region)?;
        self.others.takes_over(holder).then(|| holder.clone())
    }

    /// Other sims tell which regions they took and gave up.
    pub(super) fn hear_leases(&mut self, leases: Leases) {
        for (region, epoch, holder) in leases.changes {
            let known = self.elsewhere.get(&region).map_or(0, |(known, _)| *known);
            let ours = self.slot(region).and_then(|slot| slot.task.claim.number());
            if epoch <= known || ours.is_some_and(|ours| ours >= epoch) {
                continue;
            }
            match holder {
                Some(holder) if holder != self.config.me && !self.others.is_dead(holder.boot) => {
                    self.elsewhere.insert(region, (epoch, holder.clone()));
                    self.show_borders(region, &holder);
                }
                _ => {
                    self.elsewhere.remove(&region);
                }
            }
        }
    }

    /// Whoever took `region` gets to know what differs in the regions around it that run here.
    pub(super) fn show_borders(&mut self, region: RegionId, holder: &Holder) {
        for beside in self.config.world.clone().neighbours(region) {
            let Some(ours) = self.slot(beside).and_then(|slot| slot.region.as_ref()) else {
                continue;
            };
            let message = ToSim::ObjectChanges {
                region: beside,
                epoch: ours.epoch(),
                tick: ours.tick_count(),
                full: true,
                objects: ours.differences(),
            };
            self.send_sim(holder.node.clone(), message);
        }
    }

    /// Tells which regions were taken and released since the last time.
    pub(super) fn tell_leases(&mut self) {
        if self.untold.is_empty() {
            return;
        }
        let changes: Vec<_> = std::mem::take(&mut self.untold)
            .into_iter()
            .map(|(id, (number, holder))| (id, number, holder))
            .collect();
        for node in self.told() {
            let changes = changes.clone();
            self.send_gateway(node, ToGateway::Leases(Leases { changes }));
        }
        let sims: Vec<NodeName> = self.others.sims().cloned().collect();
        for node in sims {
            let changes = changes.clone();
            self.send_sim(node, ToSim::Leases(Leases { changes }));
        }
    }

    /// The gateways that are told what concerns everybody.
    pub(super) fn told(&self) -> Vec<NodeName> {
        let mut told = self.config.told.clone();
        let others = self.others.gateways().filter(|node| !told.contains(node));
        let others: Vec<NodeName> = others.cloned().collect();
        told.extend(others);
        told
    }

    /// Sends what a region's journal has to write.
    pub(super) fn write_objects(&mut self, request: Option<Request>) {
        if let Some(request) = request
            && let Request::ObjectsWrite { region, stamp, .. } = &request
        {
            let asked = Asked::Objects(*region, *stamp);
            self.counters.object_writes += 1;
            self.ask(request, asked);
        }
    }

    pub(super) fn objects_answered(&mut self, id: RegionId, stamp: Stamp, is_done: bool) {
        let retry_at = self.now + CAS_RETRY_MS;
        let Some(journal) = self.slot_mut(id).and_then(|slot| slot.journal.as_mut()) else {
            return;
        };
        if is_done {
            let next = journal.acked(stamp);
            self.write_objects(next);
            self.go_on_draining(id);
        } else {
            journal.failed(stamp);
            self.counters.object_writes_failed += 1;
            self.timers.add(retry_at, Timer::Objects(id));
        }
    }

    pub(super) fn write_objects_again(&mut self, id: RegionId) {
        let next = self
            .slot_mut(id)
            .and_then(|slot| slot.journal.as_mut())
            .and_then(Journal::next_write);
        self.write_objects(next);
    }

    /// The tick up to which every object write of this node is acknowledged.
    pub(super) fn flushed_through(&self) -> u64 {
        self.open
            .iter()
            .filter_map(|&id| {
                let slot = self.slot(id)?;
                let journal = slot.journal.as_ref()?;
                // While a renewal is under way the journal does not know what its seal will hold. One that is offered
                // has nothing outstanding.
                Some(if slot.is_served() || self.is_offered(id) {
                    journal.flushed_through()
                } else {
                    0
                })
            })
            .min()
            .unwrap_or(u64::MAX)
    }
}
