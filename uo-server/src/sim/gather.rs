//! The target of a drain: refuse before anything is claimed, or claim, seal, go on with the battle, and say so.
//!
//! The players follow one by one. Until they are here the battle stands still, for a moment at most: nobody is to swing at
//! someone who is on the way.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use uo_proto::{CharId, RegionId};

use super::claims::Who;
use super::core::{News, SimCore};
use super::region::Region;
use crate::Millis;
use crate::cluster::claim::{Claim, Input};
use crate::identity::Holder;
use crate::limits::{DRAIN_GATHER_MS, REGION_CLAIMS_MAX};
use crate::peer::ToSim;
use crate::peer::message::DrainOffer;
use crate::planted::PlantedBug;
use crate::store::Seen;

/// A region that was taken over and waits for its players.
#[derive(Debug)]
pub(super) struct Gathering {
    missing: BTreeSet<CharId>,
    until: Millis,
}

impl SimCore {
    pub(super) fn drain_offered(&mut self, from: &Holder, offer: DrainOffer) {
        let id = offer.region;
        let elsewhere = self.elsewhere.get(&id).map(|(known, _)| *known);
        let Some(slot) = self.slot(id) else {
            self.counters.messages_not_understood += 1;
            return;
        };
        let ours = slot.task.claim.known_number();
        if offer.source != *from || ours >= Some(offer.epoch) || elsewhere > Some(offer.epoch) {
            self.counters.messages_old_number += 1;
            return;
        }
        if self.stopping {
            return self.refuse_drain(&offer, "it is stopping");
        }
        if !slot.is_free() || slot.is_wanted {
            return self.refuse_drain(&offer, "it is about to take the region by itself");
        }
        if self.taking.len() >= REGION_CLAIMS_MAX {
            return self.refuse_drain(&offer, "it takes too many regions already");
        }
        let seen = Seen {
            holder: Some(offer.source.clone()),
            number: offer.epoch,
        };
        if let Some(slot) = self.slot_mut(id) {
            slot.loaded.clone_from(&offer.objects);
            slot.offered = Some(Box::new(offer));
        }
        self.taking.insert(id);
        if self.has_bug(PlantedBug::DrainBySourceCas) {
            return self.believe_source(id, seen.number + 1);
        }
        self.drive(Who::Region(id), Input::TakeOffered(seen));
    }

    /// The fault: its former holder is to have named this node in the lease.
    fn believe_source(&mut self, id: RegionId, number: u64) {
        self.ask_health(id);
        if let Some(slot) = self.slot_mut(id) {
            slot.task.claim = Claim::Sealing { number };
        }
        self.drive(Who::Region(id), Input::Retry);
    }

    pub(super) fn refuse_drain(&mut self, offer: &DrainOffer, reason: &str) {
        self.counters.drain_offers_refused += 1;
        let message = ToSim::DrainAbort {
            region: offer.region,
            epoch: offer.epoch,
            reason: reason.to_owned(),
        };
        self.send_sim(offer.source.node.clone(), message);
    }

    /// Goes on with an offered battle, under `epoch`, among the regions that run here.
    pub(super) fn adopt(&self, epoch: u64, offer: &DrainOffer) -> Region {
        let world = &self.config.world;
        let (id, battle) = (offer.region, offer.battle.clone());
        let mut region = Region::adopt(world, id, epoch, battle, offer.objects.clone(), offer.told);
        for beside in world.neighbours(id) {
            if let Some(neighbour) = self.region(beside) {
                region.replace_foreign(beside, &neighbour.differences());
            }
        }
        region
    }

    /// An offered region is served: its former holder sends the players.
    pub(super) fn taken_over(&mut self, epoch: u64, offer: DrainOffer) {
        let (id, source) = (offer.region, offer.source);
        self.counters.drains_taken += 1;
        let missing: BTreeSet<CharId> = offer.players.iter().map(|&(id, _)| id).collect();
        if !missing.is_empty() && self.serves(id) {
            let until = self.now + DRAIN_GATHER_MS;
            self.gathering.insert(id, Gathering { missing, until });
        }
        if offer.is_wished {
            self.tell_cluster(News::Stays { region: id });
        }
        // Gateways are to hear who has the region before its players move.
        self.tell_leases();
        self.send_sim(source.node, ToSim::DrainReady { region: id, epoch });
    }

    /// A character is in the battle of a region.
    pub(super) fn has_come(&mut self, id: RegionId, char_id: CharId) {
        if let Some(gathering) = self.gathering.get_mut(&id) {
            gathering.missing.remove(&char_id);
        }
    }

    /// Regions whose players are here, or have been waited for long enough, go on.
    pub(super) fn end_gatherings(&mut self) {
        let now = self.now;
        self.gathering
            .retain(|_, it| now < it.until && !it.missing.is_empty());
    }
}
