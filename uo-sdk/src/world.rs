//! What the client knows of the world: its own character, what is in view, and what can be generated.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::{
    CharId, Delta, Dir, EntityEnter, EntityId, EntityInfo, EntityKind, EntityState, Inventory,
    MapInfo, ObjectKey, ObjectKind, ObjectState, Pos, ServerMsg, Snapshot, Welcome,
};

use crate::content::Content;
use crate::event::Event;

/// Once this many objects are remembered, far ones are forgotten.
const OBJECTS_KEPT: usize = 512;
/// What is nearer than this is never forgotten: well beyond any area of interest.
const OBJECT_MEMORY_RADIUS: u16 = 64;

/// An entity in view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entity {
    /// What does not change.
    pub info: EntityInfo,
    /// What does.
    pub state: EntityState,
}

/// A delta that does not fit the view it builds on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ViewError {
    /// It changes an entity that is not in view.
    #[error("an update of entity {0}, which is not in view")]
    UnknownUpdate(EntityId),
    /// It takes away an entity that is not in view.
    #[error("entity {0} leaves, which is not in view")]
    UnknownLeave(EntityId),
    /// Its tick is not later than the one before.
    #[error("tick {tick} after tick {last}")]
    OldTick {
        /// Of the delta.
        tick: u64,
        /// Of the one before.
        last: u64,
    },
}

/// The world as one client knows it.
#[derive(Clone, Debug, Default)]
pub struct LocalWorld {
    me: Option<EntityId>,
    map: Option<MapInfo>,
    content: Option<Content>,
    /// Where the character is, also before it is in view.
    pos: Pos,
    entities: BTreeMap<EntityId, Entity>,
    /// Only what differs from the generated content.
    objects: BTreeMap<ObjectKey, ObjectState>,
    inventory: Option<Inventory>,
    tick: u64,
    ack: u64,
}

impl LocalWorld {
    /// The own character's entity; none until it is in view.
    pub fn me(&self) -> Option<&Entity> {
        self.entities.get(&self.me?)
    }

    /// The own character's id; none before the first login.
    pub fn my_id(&self) -> Option<EntityId> {
        self.me
    }

    /// Where the own character is.
    pub fn pos(&self) -> Pos {
        self.pos
    }

    /// What the world is made from; none before the first login.
    pub fn map(&self) -> Option<MapInfo> {
        self.map
    }

    /// What can be generated of the world; none before the first login.
    pub fn content(&self) -> Option<&Content> {
        self.content.as_ref()
    }

    /// Everything that moves and is in view, in the order of ids.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.entities.values()
    }

    /// One of them.
    pub fn entity(&self, id: EntityId) -> Option<&Entity> {
        self.entities.get(&id)
    }

    /// Everything else that moves, lives and is in view.
    pub fn others(&self) -> impl Iterator<Item = &Entity> {
        let me = self.me;
        self.entities
            .values()
            .filter(move |entity| entity.is_alive() && Some(entity.state.id) != me)
    }

    /// The own inventory, as the server last told it.
    pub fn inventory(&self) -> Option<&Inventory> {
        self.inventory.as_ref()
    }

    /// The tick of the newest delta on this connection; 0 before the first.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The number of the newest order that a delta showed as taken.
    pub fn ack(&self) -> u64 {
        self.ack
    }

    /// The object as it is known: as told by the server, or as generated. None if it is gone.
    pub fn object(&self, key: ObjectKey) -> Option<ObjectState> {
        match self.objects.get(&key) {
            Some(told) => Some(*told).filter(|object| !object.gone),
            None => self.content()?.object(key),
        }
    }

    /// Every object that was told of and is not forgotten, those that are gone among them.
    pub fn objects_told(&self) -> impl Iterator<Item = &ObjectState> {
        self.objects.values()
    }

    /// The objects within `radius` tiles (Chebyshev) of `center`, in the order of keys. What is farther than the area of
    /// interest is known as generated only.
    pub fn objects_near(&self, center: Pos, radius: u16) -> Vec<ObjectState> {
        let mut near = BTreeMap::new();
        if let Some(content) = &self.content {
            content.each_object_near(center, radius, |object| {
                near.insert(object.key, object);
            });
        }
        for (key, told) in &self.objects {
            if told.gone || told.pos().distance(center) > radius {
                near.remove(key);
            } else {
                near.insert(*key, *told);
            }
        }
        near.into_values().collect()
    }

    /// The nearest object of `kind` within `radius` tiles of the character.
    pub fn nearest_object(&self, kind: ObjectKind, radius: u16) -> Option<ObjectState> {
        self.objects_near(self.pos, radius)
            .into_iter()
            .filter(|object| object.kind == kind)
            .min_by_key(|object| (object.pos().distance(self.pos), object.key))
    }

    /// Whether `pos` is on ground that can be reached, as the world was generated; false off the map.
    pub fn is_open(&self, pos: Pos) -> bool {
        self.content().is_some_and(|content| content.is_open(pos))
    }

    /// The tile next to `pos` that is open, has nothing on it, and is nearest to the character: where to stand beside a
    /// thing that fills its own tile.
    pub fn tile_beside(&self, pos: Pos) -> Option<Pos> {
        let things = self.objects_near(pos, 1);
        let is_taken = |tile: Pos| {
            let fills = |object: &&ObjectState| object.edge.is_none() && object.pos() == tile;
            things.iter().any(|object| fills(&object))
        };
        Dir::ALL
            .into_iter()
            .filter_map(|dir| pos.step(dir))
            .filter(|&tile| tile == self.pos || (self.is_open(tile) && !is_taken(tile)))
            .min_by_key(|&tile| (tile.distance(self.pos), tile))
    }

    /// Takes an event of the session. A delta that does not fit is applied as far as it goes.
    pub fn apply(&mut self, event: &Event) -> Result<(), ViewError> {
        match event {
            Event::Welcomed { welcome, resumed } => self.welcome(welcome, *resumed),
            Event::Message(ServerMsg::Snapshot(snapshot)) => self.snapshot(snapshot),
            Event::Message(ServerMsg::Delta(delta)) => return self.delta(delta),
            Event::Message(ServerMsg::Respawned(respawned)) => self.pos = respawned.pos(),
            Event::Message(ServerMsg::Inventory(told)) => {
                self.inventory = Some(told.inventory.clone());
            }
            _ => {}
        }
        Ok(())
    }

    fn welcome(&mut self, welcome: &Welcome, resumed: bool) {
        if self.map != Some(welcome.map) {
            self.content = Content::of(welcome.map);
        }
        self.map = Some(welcome.map);
        self.me = Some(CharId::entity(welcome.char_id));
        self.pos = Pos::new(welcome.x, welcome.y);
        self.tick = 0;
        if !resumed {
            self.ack = 0;
            self.inventory = None;
        }
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.entities.clear();
        self.objects.clear();
        for enter in &snapshot.entities {
            self.enter(enter);
        }
        self.take_objects(&snapshot.objects);
        self.find_myself();
    }

    fn delta(&mut self, delta: &Delta) -> Result<(), ViewError> {
        let mut outcome = Ok(());
        if delta.tick <= self.tick {
            outcome = Err(ViewError::OldTick {
                tick: delta.tick,
                last: self.tick,
            });
        }
        self.tick = delta.tick;
        self.ack = self.ack.max(delta.ack);
        // An entity may leave and enter in one delta: it was taken from one region's feed and given by another's.
        for id in &delta.leave {
            if self.entities.remove(id).is_none() {
                outcome = Err(ViewError::UnknownLeave(*id));
            }
        }
        for enter in &delta.enter {
            self.enter(enter);
        }
        for state in &delta.update {
            match self.entities.get_mut(&state.id) {
                Some(entity) => entity.state = *state,
                None => outcome = Err(ViewError::UnknownUpdate(state.id)),
            }
        }
        self.take_objects(&delta.objects);
        self.find_myself();
        outcome
    }

    fn enter(&mut self, enter: &EntityEnter) {
        let entity = Entity {
            info: enter.info.clone(),
            state: enter.state,
        };
        self.entities.insert(enter.state.id, entity);
    }

    fn take_objects(&mut self, objects: &[ObjectState]) {
        for object in objects {
            self.objects.insert(object.key, *object);
        }
        if self.objects.len() > OBJECTS_KEPT {
            // What comes into view again is told again, so far ones can be forgotten.
            let pos = self.pos;
            self.objects
                .retain(|_, object| object.pos().distance(pos) <= OBJECT_MEMORY_RADIUS);
        }
    }

    fn find_myself(&mut self) {
        if let Some(pos) = self.me().map(|me| me.state.pos()) {
            self.pos = pos;
        }
    }
}

impl Entity {
    /// Whether it lives.
    pub fn is_alive(&self) -> bool {
        self.state.hits > 0
    }

    /// Whether it is a mob.
    pub fn is_mob(&self) -> bool {
        self.info.kind == EntityKind::Mob
    }
}

#[cfg(test)]
mod tests;
