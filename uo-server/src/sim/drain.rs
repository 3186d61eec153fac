//! The source of a drain: a region is moved to another node on purpose, with everybody in it.
//!
//! It stands still first, and all that it changed becomes durable: whatever then becomes of the two nodes, no object is
//! lost. Then it is offered, and waits. Ready: the other holds it, and each player follows by an own claim. Refused before
//! anything was claimed: on as before. No answer: back by compare-and-set, and if that finds the row changed, the other
//! has it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::ObjectHit;
use uo_proto::{CharId, RegionId};

use super::claims::{Asked, Who};
use super::core::{News, SimCore};
use super::quarantine::Health;
use super::timer::Timer;
use crate::Millis;
use crate::cluster::claim::{Claim, Input};
use crate::identity::{BootId, Holder, Nonce};
use crate::limits::{DRAIN_HITS_MAX, DRAIN_TIMEOUT_MS, DRAIN_TIMES_MAX};
use crate::peer::ToSim;
use crate::peer::message::DrainOffer;
use crate::planted::PlantedBug;
use crate::store::{ClaimRow, Request, Right, Seen};

/// A region that stands still here because it is on its way to another node.
#[derive(Debug)]
pub(super) struct Drain {
    to: Holder,
    is_wished: bool,
    step: Step,
    began_at: Millis,
    /// When it has waited long enough.
    due: Millis,
    /// Harm to its objects that came meanwhile.
    hits: Vec<ObjectHit>,
}

/// How far a drain is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// What it changed is being written. Nobody else knows of it.
    Flushing,
    /// It is offered.
    Offered,
    /// It is taken back.
    Reclaiming,
}

impl SimCore {
    /// Hands a region to another node, if that can be done: it is served here, and the other is there to take it.
    pub(super) fn drain(&mut self, id: RegionId, to: Holder, is_wished: bool) {
        let Some(slot) = self.slot(id) else { return };
        if slot.region.is_none() {
            if slot.is_free() && !slot.is_wanted {
                self.tell_cluster(News::Gone {
                    region: id,
                    row: None,
                });
            }
            return; // Otherwise it is being taken, and the news of that follow.
        }
        if self.drains.contains_key(&id) {
            return;
        }
        if slot.health != Health::Well {
            return self.drain_sick(id);
        }
        if self.retiring.contains(&id) || !self.others.takes_over(&to) {
            return self.tell_stays(id);
        }
        self.freeze(id);
        let due = self.now + DRAIN_TIMEOUT_MS;
        let drain = Drain {
            to,
            is_wished,
            step: Step::Flushing,
            began_at: self.now,
            due,
            hits: Vec::new(),
        };
        self.counters.drains_begun += 1;
        self.drains.insert(id, drain);
        self.timers.add(due, Timer::Drain(id));
        self.go_on_draining(id);
    }

    /// One that stands still for its panics has nothing to go on with elsewhere: a sim that stops releases it at once.
    fn drain_sick(&mut self, id: RegionId) {
        if self.stopping && self.slot(id).is_some_and(|slot| slot.is_served()) {
            return self.drive(Who::Region(id), Input::Release);
        }
        self.tell_stays(id);
    }

    /// The cluster core hears that a region is held here as before.
    fn tell_stays(&mut self, id: RegionId) {
        let number = self.slot(id).and_then(|slot| slot.task.claim.number());
        if let Some(epoch) = number {
            self.tell_cluster(News::Served { region: id, epoch });
        }
    }

    /// The last that is shown and told of a region before it stands still.
    fn freeze(&mut self, id: RegionId) {
        let Some(region) = self.region(id) else {
            return;
        };
        let players: Vec<CharId> = region.characters().collect();
        for char_id in players {
            self.say_unsaid(Some(char_id));
        }
        let slot = self.slot_mut(id);
        if let Some(region) = slot.and_then(|slot| slot.region.as_mut()) {
            region.show_last();
        }
        self.take_output(id);
    }

    /// Whether a region stands still because it is on its way to another node.
    pub(super) fn is_draining(&self, id: RegionId) -> bool {
        self.drains.contains_key(&id)
    }

    /// Whether a region is offered to another node. All that it ever changed is durable then.
    pub(super) fn is_offered(&self, id: RegionId) -> bool {
        let drain = self.drains.get(&id);
        drain.is_some_and(|drain| drain.step != Step::Flushing)
    }

    /// Offers a region that stands still as soon as everything about it is durable.
    pub(super) fn go_on_draining(&mut self, id: RegionId) {
        let Some(drain) = self.drains.get(&id) else {
            return;
        };
        let (to, is_wished) = (drain.to.clone(), drain.is_wished);
        let is_ready = drain.step == Step::Flushing
            && self.slot(id).is_some_and(|slot| slot.is_served())
            && self.is_flushed(id);
        if !is_ready {
            return;
        }
        if !self.others.takes_over(&to) {
            return self.unfreeze(id);
        }
        self.drive(Who::Region(id), Input::HandOver);
        if self.has_bug(PlantedBug::DrainBySourceCas) {
            self.name_in_lease(id, &to);
        }
        let source = self.config.me.clone();
        let Some(slot) = self.slot(id) else { return };
        let (Some(region), Some(epoch)) = (&slot.region, slot.task.claim.number()) else {
            return;
        };
        let (battle, players) = region.copy();
        let offer = DrainOffer {
            region: id,
            epoch,
            source,
            battle,
            objects: region.differences(),
            players,
            told: region.feed.told(),
            is_wished,
        };
        if let Some(drain) = self.drains.get_mut(&id) {
            drain.step = Step::Offered;
        }
        self.send_sim(to.node, ToSim::DrainOffer(Box::new(offer)));
    }

    /// The fault: the source writes the other's name into the lease.
    fn name_in_lease(&mut self, id: RegionId, to: &Holder) {
        let Some(number) = self.slot(id).and_then(|slot| slot.task.claim.number()) else {
            return;
        };
        let request = Request::ClaimCas {
            right: Right::Region(id),
            seen: Some(Seen {
                holder: Some(self.config.me.clone()),
                number,
            }),
            to: ClaimRow {
                holder: Some(to.clone()),
                number: number + 1,
                nonce: self.nonces.fresh(),
            },
        };
        self.ask(request, Asked::Claim(Who::Region(id)));
    }

    /// Those whose writes were acknowledged, or whose renewal is complete, since.
    pub(super) fn go_on_with_drains(&mut self) {
        let all: Vec<RegionId> = self.drains.keys().copied().collect();
        for id in all {
            self.go_on_draining(id);
        }
    }

    /// The other holds it and serves it.
    pub(super) fn drain_ready(&mut self, from: &Holder, id: RegionId, epoch: u64) {
        let number = self.slot(id).and_then(|slot| slot.task.claim.number());
        let drain = self.drains.get(&id);
        let is_it = drain.is_some_and(|drain| drain.to == *from && drain.step != Step::Flushing)
            && number.is_some_and(|number| number < epoch);
        if !is_it {
            self.counters.messages_old_number += 1;
            return;
        }
        self.drive(Who::Region(id), Input::Given);
        let Some(drain) = self.drains.remove(&id) else {
            return;
        };
        self.counters.drains_done += 1;
        if self.drain_ms.len() < DRAIN_TIMES_MAX {
            let took = self.now.saturating_sub(drain.began_at);
            self.drain_ms.push(u32::try_from(took).unwrap_or(u32::MAX));
        }
        let row = ClaimRow {
            holder: Some(drain.to.clone()),
            number: epoch,
            nonce: Nonce::default(),
        };
        self.learn_holder(id, row.clone());
        self.show_borders(id, &drain.to);
        self.pass_on_hits(id, drain.hits);
        self.close_region(id, Some(drain.began_at));
        self.tell_cluster(News::Given { region: id, row });
        self.is_taken(id);
    }

    /// The other refused before it claimed anything.
    pub(super) fn drain_aborted(&mut self, id: RegionId, epoch: u64) {
        let claim = self.slot(id).map(|slot| &slot.task.claim);
        if !self.is_offered(id) || claim != Some(&Claim::Outgoing { number: epoch }) {
            self.counters.messages_old_number += 1;
            return;
        }
        self.counters.drains_refused += 1;
        self.drive(Who::Region(id), Input::TakeBack);
        self.unfreeze(id);
    }

    /// It was offered, or tried to become durable, for too long.
    pub(super) fn drain_is_over(&mut self, id: RegionId, due: Millis) {
        match self.drains.get(&id) {
            Some(drain) if drain.due == due => match drain.step {
                Step::Flushing => {
                    self.counters.drains_timed_out += 1;
                    self.unfreeze(id);
                }
                Step::Offered => {
                    self.counters.drains_timed_out += 1;
                    self.take_region_back(id);
                }
                Step::Reclaiming => {}
            },
            _ => {}
        }
    }

    /// Only a compare-and-set tells whether the other has it.
    fn take_region_back(&mut self, id: RegionId) {
        if let Some(drain) = self.drains.get_mut(&id) {
            drain.step = Step::Reclaiming;
            self.drive(Who::Region(id), Input::Reclaim);
        }
    }

    /// Whoever is dead does not answer.
    pub(super) fn drain_to_dead(&mut self, boot: BootId) {
        let offered =
            |(_, drain): &(&RegionId, &Drain)| drain.to.boot == boot && drain.step == Step::Offered;
        let lost: Vec<RegionId> = self
            .drains
            .iter()
            .filter(offered)
            .map(|(&id, _)| id)
            .collect();
        for id in lost {
            self.take_region_back(id);
        }
    }

    /// A claim of the region is settled, and it runs here: a renewal, or a reclaim.
    pub(super) fn region_renewed(&mut self, id: RegionId) {
        match self.drains.get(&id).map(|drain| drain.step) {
            Some(Step::Reclaiming) => {
                self.counters.drains_reclaimed += 1;
                self.unfreeze(id);
            }
            Some(Step::Flushing) => self.go_on_draining(id),
            Some(Step::Offered) | None => {}
        }
    }

    /// It goes on here, with everything that came meanwhile.
    fn unfreeze(&mut self, id: RegionId) {
        let Some(drain) = self.drains.remove(&id) else {
            return;
        };
        self.tell_stays(id);
        let slot = self.slot_mut(id);
        let Some(region) = slot.and_then(|slot| slot.region.as_mut()) else {
            return;
        };
        region.hit(&drain.hits);
        let players: Vec<CharId> = region.characters().collect();
        for char_id in players {
            self.apply_kept(char_id);
        }
        self.is_taken(id);
    }

    /// Nothing more is offered. What is offered is settled first.
    pub(super) fn forget_drains(&mut self) {
        self.drains.retain(|_, drain| drain.step != Step::Flushing);
    }

    /// It is another's, as a row says: nothing of the drain is left but what is to be passed on.
    /// Since when it stood still.
    pub(super) fn end_drain(&mut self, id: RegionId) -> Option<Millis> {
        let drain = self.drains.remove(&id)?;
        self.counters.drains_lost += 1;
        self.pass_on_hits(id, drain.hits);
        Some(drain.began_at)
    }

    /// Keeps harm to the objects of a region that stands still. Says whether it does.
    pub(super) fn keep_hits(&mut self, id: RegionId, hits: &[ObjectHit]) -> bool {
        let Some(drain) = self.drains.get_mut(&id) else {
            return false;
        };
        let room = DRAIN_HITS_MAX - drain.hits.len();
        let kept = hits.len().min(room);
        drain.hits.extend_from_slice(&hits[..kept]);
        self.counters.hits_dropped += (hits.len() - kept) as u64;
        true
    }

    /// Harm to the objects of a region goes to whoever holds it by now.
    pub(super) fn pass_on_hits(&mut self, id: RegionId, hits: Vec<ObjectHit>) {
        if hits.is_empty() {
            return;
        }
        let Some((epoch, holder)) = self.elsewhere.get(&id).cloned() else {
            self.counters.hits_dropped += hits.len() as u64;
            return;
        };
        let message = ToSim::ObjectHits {
            region: id,
            epoch,
            hits,
        };
        self.send_sim(holder.node, message);
    }
}
