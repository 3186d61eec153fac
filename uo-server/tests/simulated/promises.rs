//! What was promised to be durable, held against what is loaded later: the objects of the regions.

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{CharId, ObjectKey, ObjectState, RegionId};
use uo_server::Millis;
use uo_server::identity::Holder;
use uo_server::peer::{Message, ToGateway};
use uo_server::sim::journal::read_rows;
use uo_server::sim::state::CharacterState;
use uo_server::store::{Request, Right};

use super::shard::Shard;

/// The objects of a region by their keys.
type Objects = BTreeMap<ObjectKey, ObjectState>;

/// A character in a session, as a sim has it.
type Played = (usize, CharId, u64);

/// See the module.
#[derive(Debug, Default)]
pub struct Promises {
    /// When an order was first seen applied: the tick of that sim before it. None: it came with its character.
    applied: BTreeMap<Played, BTreeMap<u64, Option<Millis>>>,
    /// Who was at a sim at its last tick, and when that was.
    present: BTreeMap<usize, BTreeSet<CharId>>,
    ticked_at: BTreeMap<usize, Millis>,
    /// When each region ticked last at each sim. One that is on its way to another stands still there, and what changes in
    /// it at the other is nothing that this one promised.
    ran_at: BTreeMap<(usize, RegionId), Millis>,
    /// What each object was, from when on; the first entry was durable when its region was opened.
    objects: BTreeMap<ObjectKey, Vec<(Millis, ObjectState)>>,
    /// Changes of a region's objects up to then are part of a promise.
    promised_until: BTreeMap<RegionId, Millis>,
    /// What was loaded for an epoch that was not seen yet.
    loaded: BTreeMap<(RegionId, u64), Objects>,
    /// Under which epoch each region was seen last.
    epochs: BTreeMap<RegionId, u64>,
}

impl Promises {
    pub fn sim_is_down(&mut self, index: usize) {
        self.applied.retain(|&(of, _, _), _| of != index);
        self.present.remove(&index);
        self.ticked_at.remove(&index);
        self.ran_at.retain(|&(of, _), _| of != index);
    }

    pub fn region_ticked(&mut self, index: usize, region: RegionId, now: Millis) {
        self.ran_at.insert((index, region), now);
    }

    pub fn ticked(&mut self, index: usize, now: Millis, present: BTreeSet<CharId>) {
        self.ticked_at.insert(index, now);
        self.present.insert(index, present);
    }

    pub fn see_character(&mut self, index: usize, character: &CharacterState) {
        let present = self.present.get(&index);
        let was_here = present.is_some_and(|present| present.contains(&character.id));
        let before = self.ticked_at.get(&index).copied().filter(|_| was_here);
        let played = (index, character.id, character.session);
        let applied = self.applied.entry(played).or_default();
        applied.entry(character.last_order).or_insert(before);
    }

    /// Whoever opens a region loaded each object as it was promised to be, or as it became later.
    fn check_loaded(&mut self, region: RegionId, epoch: u64, now: Objects) -> Result<(), String> {
        let until = self.promised_until.get(&region).copied();
        let of_region = self.objects.iter();
        for (key, history) in of_region.filter(|(key, _)| key.region() == region) {
            let promised = history
                .iter()
                .rposition(|&(at, _)| at <= until.unwrap_or_default());
            let Some(promised) = promised else { continue };
            let is_kept = history[promised..]
                .iter()
                .any(|(_, state)| now.get(key).copied() == standing(*state));
            if !is_kept {
                return Err(format!(
                    "{key:?} came back as {:?} under epoch {epoch}, and {:?} was promised",
                    now.get(key),
                    history[promised]
                ));
            }
        }
        // What nobody ever saw there was never there.
        if let Some(stranger) = now.values().find(|it| !self.objects.contains_key(&it.key)) {
            return Err(format!(
                "{stranger:?} came back under epoch {epoch} from nowhere"
            ));
        }
        self.loaded.insert((region, epoch), now);
        Ok(())
    }

    /// What a region shows after a tick. Once it runs under a new epoch, what was loaded for that is durable, and what was
    /// lost never was.
    pub fn see_objects(&mut self, at: Millis, region: RegionId, epoch: u64, now: Vec<ObjectState>) {
        if self.epochs.insert(region, epoch) != Some(epoch) {
            let loaded = self.loaded.remove(&(region, epoch)).unwrap_or_default();
            self.loaded
                .retain(|&(id, old), _| id != region || old > epoch);
            self.objects.retain(|key, _| key.region() != region);
            let loaded = loaded.into_iter();
            self.objects
                .extend(loaded.map(|(key, object)| (key, vec![(0, object)])));
        }
        let now: Objects = now.into_iter().map(|object| (object.key, object)).collect();
        for (key, state) in &now {
            let history = self.objects.entry(*key).or_default();
            if history.last().map(|(_, known)| known) != Some(state) {
                history.push((at, *state));
            }
        }
        let of_region = self.objects.iter_mut();
        for (key, history) in of_region.filter(|(key, _)| key.region() == region) {
            if let Some(&(_, last)) = history.last()
                && !now.contains_key(key)
                && standing(last).is_some()
            {
                history.push((at, ObjectState { gone: true, ..last }));
            }
        }
    }

    /// A sim promises a character's orders up to `seq`: every change of an object in the regions that it runs from before
    /// the first of them was applied is durable.
    fn promise(&mut self, played: Played, seq: u64, regions: &[RegionId]) {
        let applied = self.applied.get(&played);
        let first = applied.and_then(|applied| applied.range(seq..).next());
        if let Some((_, &Some(before))) = first {
            for region in regions {
                let ran_at = self.ran_at.get(&(played.0, *region));
                let until = self.promised_until.entry(*region).or_default();
                *until = ran_at.map_or(0, |&at| before.min(at)).max(*until);
            }
        }
    }
}

/// What is left of an object in a region's differences.
fn standing(state: ObjectState) -> Option<ObjectState> {
    let leaves_nothing = state.gone && state.key.is_runtime();
    (!leaves_nothing).then_some(state)
}

impl Shard {
    /// A region that was just claimed is loaded.
    pub(super) fn note_load(
        &mut self,
        index: usize,
        region: RegionId,
        rows: &[(ObjectKey, Vec<u8>)],
    ) -> Result<(), String> {
        let row = self.store.claim(Right::Region(region));
        let Some((sim, row)) = self.sims[index].as_ref().zip(row) else {
            return Ok(());
        };
        let is_open = sim.core().region(region).is_some();
        if is_open || row.holder.as_ref() != Some(&sim.me()) {
            return Ok(()); // It was asked for too long ago.
        }
        let loaded = read_rows(rows).map_err(|error| error.to_string())?;
        let objects = loaded.objects.into_iter().map(|o| (o.key, o)).collect();
        let promises = &mut self.watch.promises;
        promises.check_loaded(region, row.number, objects)
    }

    /// A region that is about to be opened seals what it loaded.
    pub(super) fn note_seal(&mut self, index: usize, request: &Request) -> Result<(), String> {
        let Request::ObjectsSeal {
            region,
            number,
            rows,
        } = request
        else {
            return Ok(());
        };
        let Some(sim) = &self.sims[index] else {
            return Ok(());
        };
        if sim.core().region(*region).is_some() {
            return Ok(()); // It runs, and is renewed.
        }
        self.watch_opening(&sim.me(), *region)?;
        let loaded = read_rows(rows).map_err(|error| error.to_string())?;
        let objects = loaded.objects.into_iter().map(|o| (o.key, o)).collect();
        let promises = &mut self.watch.promises;
        promises.check_loaded(*region, *number, objects)
    }

    /// A promise leaves a sim: it is its own to give, and covers every change of an object before the order was applied.
    pub(super) fn note_saved(&mut self, index: usize, message: &Message) -> Result<(), String> {
        let Message::ToGateway(ToGateway::Saved {
            char_id,
            seq,
            generation,
            ..
        }) = message
        else {
            return Ok(());
        };
        let Some(sim) = &self.sims[index] else {
            return Ok(());
        };
        let me: Holder = sim.me();
        let row = self.store.claim(Right::Character(*char_id));
        let is_mine = row
            .as_ref()
            .is_some_and(|row| row.holder.as_ref() == Some(&me) && row.number >= *generation);
        if !is_mine || self.store.is_dead(me.boot) {
            return Err(format!(
                "{} promises {char_id:?} at generation {generation}, and its owner row says {row:?}",
                me.node
            ));
        }
        let characters = sim.core().character_states();
        let Some(character) = characters.iter().find(|c| c.id == *char_id) else {
            return Ok(());
        };
        let regions = sim.core().region_states();
        let regions: Vec<_> = regions.iter().map(|region| region.id).collect();
        let played = (index, *char_id, character.session);
        self.watch.promises.promise(played, *seq, &regions);
        Ok(())
    }
}
