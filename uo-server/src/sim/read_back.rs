//! The safety net: what is ours is looked up again, and what the store says another has is dropped.
//!
//! Only a higher number counts. An answer can be older than what was taken meanwhile, and then it must not undo it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::ops::Bound;

use uo_proto::{CharId, RegionId, TICK_MS};

use super::claims::{Asked, Who};
use super::core::SimCore;
use crate::cluster::claim::Input;
use crate::limits::OWNER_READS_MAX;
use crate::peer::ToGateway;
use crate::planted::PlantedBug;
use crate::store::{ClaimRow, Reply, Request, Right, StoreError};

impl SimCore {
    /// Leases were read. Those of others are remembered, as hints.
    pub(super) fn leases_read_back(&mut self, leases: Vec<(RegionId, ClaimRow)>) {
        self.others.suspect_again();
        for (region, row) in leases {
            if self.is_draining(region) {
                // Its own compare-and-set settles that. But who has it is told once.
                self.learn_holder(region, row);
                continue;
            }
            let mine = self.slot(region).and_then(|slot| slot.task.claim.number());
            match mine {
                Some(mine) => {
                    if self.is_anothers(&row, mine) {
                        self.counters.regions_lost += 1;
                        self.drive(Who::Region(region), Input::Lost(row.number));
                        self.learn_holder(region, row);
                    }
                }
                None => self.learn_holder(region, row),
            }
        }
    }

    /// Remembers who holds a region, if that is not older than what is known.
    pub(super) fn learn_holder(&mut self, region: RegionId, row: ClaimRow) {
        let known = self.elsewhere.get(&region).map_or(0, |(known, _)| *known);
        if row.number <= known {
            return;
        }
        match row.holder {
            Some(holder) if holder != self.config.me && !self.others.is_dead(holder.boot) => {
                self.elsewhere.insert(region, (row.number, holder));
            }
            _ => {
                self.elsewhere.remove(&region);
            }
        }
    }

    /// Whether a row takes away what is ours under `mine`.
    fn is_anothers(&self, row: &ClaimRow, mine: u64) -> bool {
        let is_newer = row.number > mine || self.has_bug(PlantedBug::LeaseCheckBelievesOlderRow);
        is_newer && row.holder.as_ref() != Some(&self.config.me)
    }

    /// Reads the owner rows of as many characters as it takes to look at each once in a checkpoint's time.
    pub(super) fn read_back_owners(&mut self) {
        let turns = (self.config.checkpoint_ms / TICK_MS).max(1) as usize;
        let due = self.characters.len().div_ceil(turns);
        let room = OWNER_READS_MAX.saturating_sub(self.reads_under_way);
        let after = self
            .read_back_last
            .map_or(Bound::Unbounded, Bound::Excluded);
        let mut next: Vec<CharId> = self
            .characters
            .range((after, Bound::Unbounded))
            .map(|(&id, _)| id)
            .take(due.min(room))
            .collect();
        if next.len() < due.min(room) {
            let again = self.characters.keys().take(due.min(room) - next.len());
            next.extend(again);
        }
        for id in next {
            self.read_back_last = Some(id);
            self.reads_under_way += 1;
            let right = Right::Character(id);
            let serial = false;
            self.ask(
                Request::ClaimRead { right, serial },
                Asked::OwnerReadBack(id),
            );
        }
    }

    pub(super) fn owner_read_back(&mut self, id: CharId, reply: Result<Reply, StoreError>) {
        self.reads_under_way -= 1;
        let Ok(Reply::Claim(Some(row))) = reply else {
            return; // It is asked again in its next turn.
        };
        let mine = self
            .characters
            .get(&id)
            .and_then(|it| it.task.claim.number());
        let Some(mine) = mine.filter(|&mine| self.is_anothers(&row, mine)) else {
            return;
        };
        let character = self.characters.get(&id);
        let generation = character.map_or(mine, |character| character.generation);
        let plays = character.and_then(|character| character.attach.clone());
        self.drive(Who::Owned(id), Input::Lost(row.number));
        if let Some((_, gateway)) = plays {
            // Whoever has it knows nothing of this session: its gateway looks for it.
            let message = ToGateway::Lost {
                char_id: id,
                generation,
            };
            self.send_gateway(gateway.node, message);
        }
    }
}
