//! What the feeds of all regions show, merged: one entity, one place.
//!
//! An entity belongs to the region that upserted it under the highest number (a character's generation, which grows with
//! each change of battle; a mob's is its region's epoch). What is said under a lower number is late, and changes nothing:
//! not an upsert of the battle it left, and not a remove. Numbers of characters that are gone are remembered for a while
//! for the same reason.
//!
//! A character that its battle removed stays in view for [`LEAVE_GRACE_MS`]: between two battles it is in neither, and
//! would blink.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;
use slab::Slab;
use uo_proto::{
    CharId, Encoding, EntityId, EntityInfo, EntityState, ObjectKey, ObjectState, RegionId,
};
use uo_world::World;

use super::fragment::{Enter, Fragment};
use super::interest::{CellId, Grid, Kind, look};
use crate::Millis;
use crate::limits::{LEAVE_GRACE_MS, NUMBERS_KEPT_MS};
use crate::peer::message::{FeedDelta, FeedEntity, FeedFull};

/// An entity as the feeds show it.
#[derive(Clone, Debug)]
pub struct Entity {
    /// What does not change.
    pub info: Arc<EntityInfo>,
    /// What does.
    pub state: EntityState,
    /// The generation or epoch it was upserted under last.
    pub number: u64,
    /// The region whose feed did so.
    pub region: RegionId,
    /// The highest order `seq` applied.
    pub ack: u64,
    /// Grows with each change of what clients see; never the same twice in a view.
    pub version: u64,
    /// The version that brought the present `info`: who knows an older one needs a new `enter`.
    pub info_version: u64,
    /// Its removal, while it is put off.
    leaves_at: Option<Millis>,
    update: Fragment,
    enter: Fragment,
}

impl Entity {
    /// Sees to it that its `update` (or `enter`) fragment is there; true if it had to be encoded.
    pub fn encode(&mut self, encoding: Encoding, is_enter: bool) -> bool {
        if is_enter {
            let (info, state) = (&*self.info, &self.state);
            self.enter.encode(encoding, &Enter { info, state })
        } else {
            self.update.encode(encoding, &self.state)
        }
    }

    /// The fragment of an `update`, once encoded.
    pub fn update(&self, encoding: Encoding) -> &[u8] {
        self.update.get(encoding)
    }

    /// The fragment of an `enter`, once encoded.
    pub fn enter(&self, encoding: Encoding) -> &[u8] {
        self.enter.get(encoding)
    }

    fn changed(&mut self, version: u64) {
        self.version = version;
        self.update.forget();
        self.enter.forget();
    }
}

/// An object that differs, or differed, from the generated content.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is now.
    pub state: ObjectState,
    /// Grows with each change; never the same twice in a view.
    pub version: u64,
    fragment: Fragment,
}

impl Object {
    /// Sees to it that its fragment is there; true if it had to be encoded.
    pub fn encode(&mut self, encoding: Encoding) -> bool {
        self.fragment.encode(encoding, &self.state)
    }

    /// Its fragment, once encoded.
    pub fn fragment(&self, encoding: Encoding) -> &[u8] {
        self.fragment.get(encoding)
    }
}

/// A feed upserted an entity that nothing is known of without saying what it is: the feed has a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InfoMissing;

/// The merged view, and the grid that finds what is where in it.
#[derive(Debug)]
pub struct View {
    /// What is where, and which sessions look from where.
    pub grid: Grid,
    world: Arc<World>,
    entities: Slab<Entity>,
    entity_slots: FxHashMap<EntityId, u32>,
    objects: Slab<Object>,
    object_slots: BTreeMap<ObjectKey, u32>,
    version: u64,
    /// Removals that are put off, by when they are due.
    leaving: VecDeque<(Millis, EntityId)>,
    /// The numbers of characters that are gone, and when each may be forgotten.
    gone: FxHashMap<EntityId, u64>,
    gone_until: VecDeque<(Millis, EntityId, u64)>,
    /// Characters that were upserted or removed since this was last taken: their own sessions want to know.
    touched: Vec<CharId>,
}

impl View {
    /// A view of nothing.
    pub fn new(world: Arc<World>) -> View {
        View {
            grid: Grid::new(world.size()),
            world,
            entities: Slab::new(),
            entity_slots: FxHashMap::default(),
            objects: Slab::new(),
            object_slots: BTreeMap::new(),
            version: 0,
            leaving: VecDeque::new(),
            gone: FxHashMap::default(),
            gone_until: VecDeque::new(),
            touched: Vec::new(),
        }
    }

    /// An entity, if it is shown.
    pub fn find(&self, id: EntityId) -> Option<&Entity> {
        let slot = *self.entity_slots.get(&id)?;
        Some(&self.entities[slot as usize])
    }

    /// The slot of an entity, if it is shown.
    pub fn slot_of(&self, id: EntityId) -> Option<u32> {
        self.entity_slots.get(&id).copied()
    }

    /// The entity in a slot that the grid named.
    pub fn entity(&self, slot: u32) -> &Entity {
        &self.entities[slot as usize]
    }

    /// The entity in a slot that the grid named, to encode it.
    pub fn entity_mut(&mut self, slot: u32) -> &mut Entity {
        &mut self.entities[slot as usize]
    }

    /// The object in a slot that the grid named.
    pub fn object(&self, slot: u32) -> &Object {
        &self.objects[slot as usize]
    }

    /// The object in a slot that the grid named, to encode it.
    pub fn object_mut(&mut self, slot: u32) -> &mut Object {
        &mut self.objects[slot as usize]
    }

    /// How many entities and objects are held.
    pub fn sizes(&self) -> (usize, usize) {
        (self.entities.len(), self.objects.len())
    }

    /// Takes the characters that were upserted or removed.
    pub fn take_touched(&mut self, into: &mut Vec<CharId>) {
        into.append(&mut self.touched);
    }

    /// Replaces the part of a region.
    pub fn apply_full(&mut self, now: Millis, full: &FeedFull) -> Result<(), InfoMissing> {
        let mut listed: Vec<EntityId> = full.entities.iter().map(|e| e.state.id).collect();
        listed.sort_unstable();
        let is_lost = |entity: &Entity| {
            entity.region == full.region && listed.binary_search(&entity.state.id).is_err()
        };
        let lost = self.entities.iter().filter(|(_, entity)| is_lost(entity));
        let lost: Vec<_> = lost.map(|(_, e)| (e.state.id, e.number)).collect();
        for (id, number) in lost {
            self.remove(now, full.region, id, number);
        }
        let mut result = Ok(());
        for entity in &full.entities {
            result = result.and(self.upsert(full.region, entity));
        }
        self.revert_objects(full);
        full.objects
            .iter()
            .for_each(|&state| self.set_object(state));
        result
    }

    /// Applies what changed in a region. Even if something is missing, everything else is applied.
    pub fn apply_delta(&mut self, now: Millis, delta: &FeedDelta) -> Result<(), InfoMissing> {
        let mut result = Ok(());
        for entity in &delta.upserts {
            result = result.and(self.upsert(delta.region, entity));
        }
        for &(id, number) in &delta.removes {
            self.remove(now, delta.region, id, number);
        }
        delta
            .objects
            .iter()
            .for_each(|&state| self.set_object(state));
        result
    }

    /// Forgets the part of a region that nobody is near any more.
    pub fn drop_region(&mut self, now: Millis, region: RegionId) {
        let mine = self.entities.iter().filter(|(_, e)| e.region == region);
        let mine: Vec<u32> = mine.map(|(slot, _)| slot as u32).collect();
        for slot in mine {
            self.take_out(now, slot);
        }
        let keys = ObjectKey::new(region, 0)..=ObjectKey::new(region, 0xff_ffff);
        let mine: Vec<_> = self
            .object_slots
            .range(keys)
            .map(|(&k, &s)| (k, s))
            .collect();
        for (key, slot) in mine {
            self.object_slots.remove(&key);
            let object = self.objects.remove(slot as usize);
            self.grid
                .remove(Kind::Objects, slot, CellId::at(object.state.pos()));
        }
        self.grid.trim(region);
    }

    /// Carries out the removals that were put off and are due, and forgets old numbers.
    pub fn expire(&mut self, now: Millis) {
        while let Some(&(at, id)) = self.leaving.front().filter(|&&(at, _)| at <= now) {
            self.leaving.pop_front();
            if let Some(slot) = self.slot_of(id)
                && self.entity(slot).leaves_at == Some(at)
            {
                self.take_out(now, slot);
            }
        }
        while let Some(&(_, id, number)) = self.gone_until.front().filter(|(at, ..)| *at <= now) {
            self.gone_until.pop_front();
            if self.gone.get(&id) == Some(&number) {
                self.gone.remove(&id);
            }
        }
    }

    /// When [`View::expire`] has something to take out of view.
    pub fn expires_at(&self) -> Option<Millis> {
        self.leaving.front().map(|&(at, _)| at)
    }

    fn upsert(&mut self, region: RegionId, feed: &FeedEntity) -> Result<(), InfoMissing> {
        let id = feed.state.id;
        match self.entity_slots.get(&id) {
            Some(&slot) => {
                if feed.number < self.entity(slot).number {
                    return Ok(());
                }
                self.change(slot, region, feed);
            }
            None => {
                if self
                    .gone
                    .get(&id)
                    .is_some_and(|&number| feed.number < number)
                {
                    return Ok(());
                }
                let info = feed.info.clone().ok_or(InfoMissing)?;
                self.create(region, feed, info);
            }
        }
        self.touched.extend(id.character());
        Ok(())
    }

    fn create(&mut self, region: RegionId, feed: &FeedEntity, info: Arc<EntityInfo>) {
        self.version += 1;
        let slot = self.entities.insert(Entity {
            info,
            state: feed.state,
            number: feed.number,
            region,
            ack: feed.ack,
            version: self.version,
            info_version: self.version,
            leaves_at: None,
            update: Fragment::default(),
            enter: Fragment::default(),
        }) as u32;
        self.entity_slots.insert(feed.state.id, slot);
        let cell = CellId::at(feed.state.pos());
        self.grid.insert(Kind::Entities, slot, cell);
        self.grid.mark(cell, look::ENTITIES);
    }

    fn change(&mut self, slot: u32, region: RegionId, feed: &FeedEntity) {
        let entity = &mut self.entities[slot as usize];
        entity.number = feed.number;
        entity.region = region;
        entity.ack = feed.ack;
        entity.leaves_at = None;
        let new_info = feed.info.as_ref().filter(|info| **info != entity.info);
        if new_info.is_none() && entity.state == feed.state {
            return;
        }
        self.version += 1;
        entity.changed(self.version);
        if let Some(info) = new_info {
            entity.info = Arc::clone(info);
            entity.info_version = self.version;
        }
        let (from, to) = (CellId::at(entity.state.pos()), CellId::at(feed.state.pos()));
        entity.state = feed.state;
        self.grid.mark(to, look::ENTITIES);
        if from != to {
            self.grid.remove(Kind::Entities, slot, from);
            self.grid.insert(Kind::Entities, slot, to);
            self.grid.mark(from, look::ENTITIES);
        }
    }

    fn remove(&mut self, now: Millis, region: RegionId, id: EntityId, number: u64) {
        let Some(slot) = self.slot_of(id) else {
            return;
        };
        let entity = &mut self.entities[slot as usize];
        if entity.region != region || entity.number > number {
            return;
        }
        if id.character().is_none() {
            self.take_out(now, slot);
        } else if entity.leaves_at.is_none() {
            let at = now + LEAVE_GRACE_MS;
            entity.leaves_at = Some(at);
            self.leaving.push_back((at, id));
        }
    }

    fn take_out(&mut self, now: Millis, slot: u32) {
        let entity = self.entities.remove(slot as usize);
        let id = entity.state.id;
        self.entity_slots.remove(&id);
        let cell = CellId::at(entity.state.pos());
        self.grid.remove(Kind::Entities, slot, cell);
        self.grid.mark(cell, look::ENTITIES);
        if let Some(character) = id.character() {
            self.touched.push(character);
            self.gone.insert(id, entity.number);
            let until = now + NUMBERS_KEPT_MS;
            self.gone_until.push_back((until, id, entity.number));
        }
    }

    fn set_object(&mut self, state: ObjectState) {
        let cell = CellId::at(state.pos());
        if let Some(&slot) = self.object_slots.get(&state.key) {
            let object = &mut self.objects[slot as usize];
            if object.state == state {
                return;
            }
            let from = CellId::at(object.state.pos());
            self.version += 1;
            object.state = state;
            object.version = self.version;
            object.fragment.forget();
            if from != cell {
                self.grid.remove(Kind::Objects, slot, from);
                self.grid.insert(Kind::Objects, slot, cell);
                self.grid.mark(from, look::OBJECTS);
            }
        } else {
            self.version += 1;
            let slot = self.objects.insert(Object {
                state,
                version: self.version,
                fragment: Fragment::default(),
            }) as u32;
            self.object_slots.insert(state.key, slot);
            self.grid.insert(Kind::Objects, slot, cell);
        }
        self.grid.mark(cell, look::OBJECTS);
    }

    /// Objects that a full state no longer lists are as they were generated, or gone. They are kept as that: clients who
    /// saw them otherwise have to be told.
    fn revert_objects(&mut self, full: &FeedFull) {
        let keys = ObjectKey::new(full.region, 0)..=ObjectKey::new(full.region, 0xff_ffff);
        if self.object_slots.range(keys.clone()).next().is_none() {
            return;
        }
        let mut listed: Vec<ObjectKey> = full.objects.iter().map(|o| o.key).collect();
        listed.sort_unstable();
        let held = self.object_slots.range(keys);
        let dropped = held.filter(|(key, _)| listed.binary_search(key).is_err());
        let dropped: Vec<ObjectState> = dropped.map(|(_, &slot)| self.object(slot).state).collect();
        let content = self.world.content(full.region);
        for state in dropped {
            let generated = content.object(state.key).copied();
            self.set_object(generated.unwrap_or(ObjectState {
                gone: true,
                ..state
            }));
        }
    }
}
