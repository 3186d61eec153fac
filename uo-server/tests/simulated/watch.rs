//! What must hold after each tick of a sim, whatever the others do.

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{CharId, RegionId};
use uo_server::identity::{BootId, Holder};
use uo_server::sim::state::{CharacterState, Phase, RegionState};
use uo_server::store::{ClaimRow, Right};

use super::node::Node;
use super::promises::Promises;
use super::shard::Shard;

/// What was seen of the sims so far.
#[derive(Debug, Default)]
pub struct Watch {
    generations: BTreeMap<CharId, u64>,
    epochs: BTreeMap<RegionId, u64>,
    /// How far each region was at the last tick of each sim that has it, under which epoch.
    ticks: BTreeMap<(usize, RegionId), (u64, u64)>,
    /// Who ran each region last, and how often its lease had changed hands by then.
    ran: BTreeMap<RegionId, (BootId, u64)>,
    pub(super) promises: Promises,
}

impl Watch {
    pub fn sim_is_down(&mut self, index: usize) {
        self.ticks.retain(|&(of, _), _| of != index);
        self.promises.sim_is_down(index);
    }
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

fn is_of(row: Option<&ClaimRow>, me: &Holder, number: u64) -> bool {
    row.is_some_and(|row| row.holder.as_ref() == Some(me) && row.number >= number)
}

impl Shard {
    /// After each tick of a sim. What stands still is nobody's business: whoever may not act keeps its state, and others
    /// may have it as well.
    pub(super) fn watch_sim(&mut self, index: usize) -> Result<(), String> {
        let Some(sim) = &self.sims[index] else {
            return Ok(());
        };
        if !sim.may_act() {
            return Ok(());
        }
        let me = sim.me();
        if self.store.is_dead(me.boot) {
            return Err(format!("{me:?} was declared dead, and acts"));
        }
        let (regions, characters) = (sim.core().region_states(), sim.core().character_states());
        self.fold(&characters.len());
        let mut placed = BTreeMap::new();
        for region in &regions {
            self.watch_region(index, &me, region, &mut placed)?;
        }
        let present: BTreeSet<CharId> = characters.iter().map(|character| character.id).collect();
        for character in characters.iter().filter(|it| it.phase == Phase::Playing) {
            self.watch_character(index, &me, character, &placed)?;
        }
        let now = self.now;
        self.watch.promises.ticked(index, now, present);
        Ok(())
    }

    fn watch_region(
        &mut self,
        index: usize,
        me: &Holder,
        running: &RegionState,
        placed: &mut BTreeMap<CharId, RegionId>,
    ) -> Result<(), String> {
        // One that is being given up stands still.
        let place = (running.epoch, running.ticks);
        let before = self.watch.ticks.insert((index, running.id), place);
        // One that was handed on before its first tick never ran here.
        let has_ticked = running.ticks > 0 && before != Some(place);
        if has_ticked {
            let row = self.store.claim(Right::Region(running.id));
            if !is_of(row.as_ref(), me, running.epoch) {
                return Err(format!(
                    "{:?} runs at {} under epoch {}, and its lease says {row:?}",
                    running.id, me.node, running.epoch
                ));
            }
            grow(&mut self.watch.epochs, running.id, running.epoch)?;
            let changes = self.store.changes(Right::Region(running.id));
            self.watch.ran.insert(running.id, (me.boot, changes));
        }
        let sim = self.sims[index].as_ref();
        let Some(region) = sim.and_then(|sim| sim.core().region(running.id)) else {
            return Ok(());
        };
        for char_id in region.characters() {
            if let Some(other) = placed.insert(char_id, running.id) {
                return Err(format!(
                    "{char_id:?} is in the battles of {other:?} and {:?}",
                    running.id
                ));
            }
            let row = self.store.claim(Right::Character(char_id));
            if !is_of(row.as_ref(), me, 0) {
                return Err(format!(
                    "{char_id:?} is in a battle of {}, and its owner row says {row:?}",
                    me.node
                ));
            }
        }
        if has_ticked {
            let objects = region.differences();
            let (now, epoch) = (self.now, running.epoch);
            let promises = &mut self.watch.promises;
            promises.see_objects(now, running.id, epoch, objects);
            promises.region_ticked(index, running.id, now);
        }
        Ok(())
    }

    fn watch_character(
        &mut self,
        index: usize,
        me: &Holder,
        character: &CharacterState,
        placed: &BTreeMap<CharId, RegionId>,
    ) -> Result<(), String> {
        let row = self.store.claim(Right::Character(character.id));
        if !is_of(row.as_ref(), me, character.generation) {
            return Err(format!(
                "{} plays at {} under generation {}, and its owner row says {row:?}",
                character.name, me.node, character.generation
            ));
        }
        grow(
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
        self.watch.promises.see_character(index, character);
        Ok(())
    }

    /// Whoever opens a region again that it ran has lost it to somebody, or given it up.
    pub(super) fn watch_opening(&self, me: &Holder, region: RegionId) -> Result<(), String> {
        let changes = self.store.changes(Right::Region(region));
        if self.watch.ran.get(&region) == Some(&(me.boot, changes)) {
            return Err(format!(
                "{region:?} was dropped by {}, who had it all the time",
                me.node
            ));
        }
        Ok(())
    }

    /// Whether every region is held, and every character that anybody has is in a battle.
    pub(super) fn is_everybody_placed(&self) -> bool {
        let mut held = BTreeSet::new();
        for sim in self.sims.iter().flatten() {
            let regions = sim.core().region_states();
            let characters = sim.core().character_states();
            let are_placed = characters.iter().all(|it| it.phase == Phase::Playing);
            let has_nothing = regions.is_empty() && characters.is_empty();
            let is_settled = sim.may_act() && are_placed;
            if !has_nothing && !is_settled {
                return false;
            }
            held.extend(regions.iter().map(|region| region.id));
        }
        self.world.regions().all(|id| held.contains(&id))
    }

    pub(super) fn collect_counters(&mut self, node: Node) {
        let Node::Sim(index) = node else { return };
        if let Some(sim) = &self.sims[index] {
            let counters = sim.core().counters();
            self.counted.handoffs += counters.handoffs_accepted;
            self.counted.reclaims += counters.handoffs_reclaimed;
            self.counted.pins += counters.pins;
            self.counted.drains += counters.drains_done;
            self.counted.drains_refused += counters.drains_refused;
            self.counted.drains_timed_out += counters.drains_timed_out;
            self.counted.drains_reclaimed += counters.drains_reclaimed;
            self.counted.drains_lost += counters.drains_lost;
            self.counted.duplicates += counters.orders_duplicate;
            self.counted.renewals += counters.renewals;
            let standing = sim.counters();
            self.counted.fences += standing.fence_falls;
            self.counted.rebirths += standing.rebirths;
        }
    }
}
