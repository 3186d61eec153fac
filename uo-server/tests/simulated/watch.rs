//! What must hold after each tick, and what was promised across restarts.

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{CharId, ObjectKey, ObjectState, RegionId};
use uo_server::Millis;
use uo_server::peer::{Message, ToGateway};
use uo_server::sim::journal::read_rows;
use uo_server::sim::state::Phase;
use uo_server::store::{Request, Right};

use super::shard::{Node, Shard};

/// The objects of a region by their keys.
type Objects = BTreeMap<ObjectKey, ObjectState>;

/// What was seen of the sim so far.
#[derive(Debug, Default)]
pub struct Watch {
    generations: BTreeMap<CharId, u64>,
    epochs: BTreeMap<RegionId, u64>,
    ticks: BTreeMap<RegionId, u64>,
    /// Of each character and session: when an order was first seen applied, and the tick before that.
    applied: BTreeMap<(CharId, u64), BTreeMap<u64, Millis>>,
    /// What each object was, from when on; the first entry was durable when the sim started.
    objects: BTreeMap<ObjectKey, Vec<(Millis, ObjectState)>>,
    /// Changes of objects up to then are part of a promise.
    promised_until: Millis,
    ticked_at: Millis,
    /// Regions whose loaded objects were looked at since the sim started.
    loaded: BTreeSet<RegionId>,
}

impl Watch {
    pub fn sim_is_down(&mut self) {
        self.loaded.clear();
        self.applied.clear();
        self.ticks.clear();
    }

    fn grow<K: Ord + Copy + std::fmt::Debug>(
        known: &mut BTreeMap<K, u64>,
        key: K,
        number: u64,
    ) -> Result<(), String> {
        let known = known.entry(key).or_default();
        if number < *known {
            return Err(format!("{key:?} runs under {number} after {known}"));
        }
        *known = number;
        Ok(())
    }

    /// After a start: each object of a region is as it was promised to be, or as it became later.
    fn check_loaded(&mut self, region: RegionId, now: &Objects) -> Result<(), String> {
        if !self.loaded.insert(region) {
            return Ok(());
        }
        for (key, history) in self
            .objects
            .iter()
            .filter(|(key, _)| key.region() == region)
        {
            let promised = history
                .iter()
                .rposition(|&(at, _)| at <= self.promised_until);
            let Some(promised) = promised else { continue };
            let is_kept = history[promised..]
                .iter()
                .any(|(_, state)| now.get(key).copied() == standing(*state));
            if !is_kept {
                return Err(format!(
                    "{key:?} came back as {:?}, and {:?} was promised",
                    now.get(key),
                    history[promised]
                ));
            }
        }
        // What was loaded is durable; what was lost never was.
        self.objects.retain(|key, _| key.region() != region);
        let loaded = now.iter().map(|(&key, &object)| (key, vec![(0, object)]));
        self.objects.extend(loaded);
        Ok(())
    }

    fn see_objects(&mut self, at: Millis, region: RegionId, now: &Objects) {
        for (key, state) in now {
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
}

/// What is left of an object in a region's differences.
fn standing(state: ObjectState) -> Option<ObjectState> {
    let leaves_nothing = state.gone && state.key.is_runtime();
    (!leaves_nothing).then_some(state)
}

impl Shard {
    /// After each tick of the sim.
    pub(super) fn watch_sim(&mut self) -> Result<(), String> {
        let Some(sim) = &self.sim else { return Ok(()) };
        let me = sim.me.clone();
        let (regions, characters) = (sim.core.region_states(), sim.core.character_states());
        self.fold(&characters.len());

        let mut placed: BTreeMap<CharId, RegionId> = BTreeMap::new();
        for running in &regions {
            // One that is being given up stands still.
            let before = self.watch.ticks.insert(running.id, running.ticks);
            let has_ticked = before != Some(running.ticks);
            let row = self.store.claim(Right::Region(running.id));
            let is_mine = row
                .as_ref()
                .is_some_and(|row| row.holder.as_ref() == Some(&me) && row.number >= running.epoch);
            if has_ticked && !is_mine {
                return Err(format!(
                    "{:?} runs under epoch {}, and its lease says {row:?}",
                    running.id, running.epoch
                ));
            }
            Watch::grow(&mut self.watch.epochs, running.id, running.epoch)?;
            let Some(region) = self
                .sim
                .as_ref()
                .and_then(|sim| sim.core.region(running.id))
            else {
                continue;
            };
            for char_id in region.characters() {
                if let Some(other) = placed.insert(char_id, running.id) {
                    return Err(format!(
                        "{char_id:?} is in the battles of {other:?} and {:?}",
                        running.id
                    ));
                }
            }
            let objects: Objects = region
                .differences()
                .into_iter()
                .map(|o| (o.key, o))
                .collect();
            self.watch.see_objects(self.now, running.id, &objects);
        }
        for character in &characters {
            if character.phase != Phase::Playing {
                continue;
            }
            let row = self.store.claim(Right::Character(character.id));
            let is_mine = row.as_ref().is_some_and(|row| {
                row.holder.as_ref() == Some(&me) && row.number >= character.generation
            });
            if !is_mine {
                return Err(format!(
                    "{} plays under generation {}, and its owner row says {row:?}",
                    character.name, character.generation
                ));
            }
            Watch::grow(
                &mut self.watch.generations,
                character.id,
                character.generation,
            )?;
            if placed.get(&character.id).copied() != character.region {
                return Err(format!(
                    "{} is said to be in {:?} and is in {:?}",
                    character.name,
                    character.region,
                    placed.get(&character.id)
                ));
            }
            let before = self.watch.ticked_at;
            self.watch
                .applied
                .entry((character.id, character.session))
                .or_default()
                .entry(character.last_order)
                .or_insert(before);
        }
        self.watch.ticked_at = self.now;
        Ok(())
    }

    /// Whether every character that the sim has is in a battle.
    pub(super) fn is_everybody_placed(&self) -> bool {
        self.sim.as_ref().is_some_and(|sim| {
            let characters = sim.core.character_states();
            let mut characters = characters.iter();
            sim.core.holds_everything()
                && characters.all(|character| character.phase == Phase::Playing)
        })
    }

    /// A region that is about to be opened seals what it loaded.
    pub(super) fn note_seal(&mut self, request: &Request) -> Result<(), String> {
        let Request::ObjectsSeal { region, rows, .. } = request else {
            return Ok(());
        };
        let sim = self.sim.as_ref();
        if sim.is_some_and(|sim| sim.core.region(*region).is_some()) {
            return Ok(()); // It runs, and is renewed.
        }
        let loaded = read_rows(rows).map_err(|error| error.to_string())?;
        let objects = loaded.objects.into_iter().map(|o| (o.key, o)).collect();
        self.watch.check_loaded(*region, &objects)
    }

    /// A promise leaves the sim: it covers every change of an object before the order was applied.
    pub(super) fn note_saved(&mut self, message: &Message) {
        let Message::ToGateway(ToGateway::Saved { char_id, seq, .. }) = message else {
            return;
        };
        let Some(sim) = &self.sim else { return };
        let characters = sim.core.character_states();
        let Some(character) = characters.iter().find(|c| c.id == *char_id) else {
            return;
        };
        let applied = self.watch.applied.get(&(*char_id, character.session));
        let first = applied.and_then(|applied| applied.range(seq..).next());
        if let Some((_, &before)) = first {
            self.watch.promised_until = self.watch.promised_until.max(before);
        }
    }

    pub(super) fn collect_counters(&mut self, node: Node) {
        if let (Node::Sim, Some(sim)) = (node, &self.sim) {
            let counters = sim.core.counters();
            self.counted.handoffs += counters.handoffs_accepted;
            self.counted.reclaims += counters.handoffs_reclaimed;
            self.counted.pins += counters.pins;
            self.counted.duplicates += counters.orders_duplicate;
            self.counted.renewals += counters.renewals;
        }
    }
}
