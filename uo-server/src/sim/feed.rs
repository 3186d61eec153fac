//! A region's feed: what its subscribers are shown of it, a frame a tick at most; and speech, which waits for no tick.
//!
//! The feed remembers what it showed last of every entity, whether or not anybody watches. A frame is the difference
//! between that and what is true now, looked for only among the entities that were touched since. So all subscribers of
//! a tick share one delta, and a newcomer's full state is the memory itself.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uo_proto::{EntityId, EntityInfo, EntityState, ObjectKey, ObjectState, RegionId};

use crate::identity::NodeName;
use crate::peer::ToGateway;
use crate::peer::message::{FeedDelta, FeedEntity, FeedEvent, FeedFull, Told};

/// What a feed shows; the region is the only one outside of tests.
pub trait Scene {
    /// What an entity is and does now, and its number and ack; none: it is not there.
    fn current(&self, id: EntityId) -> Option<Current>;
    /// What does not change about an entity; none: it is not there.
    fn info(&self, id: EntityId) -> Option<EntityInfo>;
    /// Every object that differs from the generated content.
    fn objects(&self) -> Vec<ObjectState>;
}

/// The part of a feed's entity that changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Current {
    /// The generation of a character, the region's epoch for a mob.
    pub number: u64,
    /// The highest order `seq` applied.
    pub ack: u64,
    /// The volatile state.
    pub state: EntityState,
}

/// What was shown last of an entity.
struct Shown {
    current: Current,
    info: Arc<EntityInfo>,
}

/// The feed of one region.
pub struct Feed {
    region: RegionId,
    epoch: u64,
    shown: BTreeMap<EntityId, Shown>,
    /// Entities that may differ from what was shown.
    touched: BTreeSet<EntityId>,
    objects: BTreeMap<ObjectKey, ObjectState>,
    events: Vec<FeedEvent>,
    /// Who watches, and the tick of the last frame sent there; none: a full state is due.
    subscribers: BTreeMap<NodeName, Option<u64>>,
    full_is_due: bool,
    /// Events so far, those that wait for a frame included.
    told: Told,
}

impl Feed {
    /// The feed of `region` under `epoch`, which has shown nothing yet. It told of so much under another.
    pub fn new(region: RegionId, epoch: u64, told: Told) -> Feed {
        Feed {
            region,
            epoch,
            shown: BTreeMap::new(),
            touched: BTreeSet::new(),
            objects: BTreeMap::new(),
            events: Vec::new(),
            subscribers: BTreeMap::new(),
            full_is_due: false,
            told,
        }
    }

    /// Starts, or starts again, to show the region to `node`: its next frame is a full state.
    pub fn subscribe(&mut self, node: NodeName) {
        self.subscribers.insert(node, None);
        self.full_is_due = true;
    }

    /// Shows nothing more to `node`.
    pub fn unsubscribe(&mut self, node: &NodeName) {
        self.subscribers.remove(node);
    }

    /// Who watches.
    pub fn subscribers(&self) -> impl Iterator<Item = &NodeName> {
        self.subscribers.keys()
    }

    /// An entity came, went or changed.
    pub fn touch(&mut self, id: EntityId) {
        self.touched.insert(id);
    }

    /// An object of the region changed.
    pub fn object(&mut self, object: ObjectState) {
        self.objects.insert(object.key, object);
    }

    /// Something happened.
    pub fn event(&mut self, event: FeedEvent) {
        self.told.count += 1;
        self.events.push(event);
    }

    /// Events so far. Whoever goes on with the region goes on with this count; what waits for a frame here is lost.
    pub fn told(&self) -> Told {
        self.told
    }

    /// Something was said. Who watches is told at once, in a frame that leads from a tick to the same one; but with the
    /// next frame where something has to come before it: an event that waits, or the full state of a newcomer.
    pub fn say(&mut self, event: FeedEvent) -> Vec<(NodeName, ToGateway)> {
        if self.full_is_due || !self.events.is_empty() {
            self.event(event);
            return Vec::new();
        }
        self.told.count += 1;
        let mut speech: BTreeMap<u64, Arc<FeedDelta>> = BTreeMap::new();
        let shown = self.subscribers.iter();
        let shown = shown.filter_map(|(node, last)| Some((node, (*last)?)));
        let frame = |(node, tick): (&NodeName, u64)| {
            let delta = speech.entry(tick).or_insert_with(|| {
                Arc::new(FeedDelta {
                    region: self.region,
                    epoch: self.epoch,
                    tick,
                    base_tick: tick,
                    told: self.told.count,
                    base_told: self.told.count - 1,
                    upserts: Vec::new(),
                    removes: Vec::new(),
                    objects: Vec::new(),
                    events: vec![event.clone()],
                })
            });
            (node.clone(), ToGateway::FeedDelta(Arc::clone(delta)))
        };
        shown.map(frame).collect()
    }

    /// Whether [`Feed::frame`] would have something to look at.
    pub fn is_pending(&self) -> bool {
        self.full_is_due
            || !self.touched.is_empty()
            || !self.objects.is_empty()
            || !self.events.is_empty()
    }

    /// Ends the tick: appends to `out` a full state for each newcomer and, if something changed, a delta for all others.
    pub fn frame(&mut self, tick: u64, scene: &impl Scene, out: &mut Vec<(NodeName, ToGateway)>) {
        let mut delta = self.difference(tick, scene);
        let has_news = !delta.upserts.is_empty()
            || !delta.removes.is_empty()
            || !delta.objects.is_empty()
            || !delta.events.is_empty();
        if self.subscribers.is_empty() || !(has_news || self.full_is_due) {
            self.full_is_due = false;
            return;
        }
        let full = self
            .full_is_due
            .then(|| Arc::new(self.full(tick, scene, &delta.events)));
        self.full_is_due = false;

        // Nearly always one base: it differs only for those whose full state was sent after the last delta.
        let mut deltas: BTreeMap<u64, Arc<FeedDelta>> = BTreeMap::new();
        for (node, last) in &mut self.subscribers {
            let message = match (*last, &full) {
                (None, Some(full)) => ToGateway::FeedFull(Arc::clone(full)),
                (Some(base), _) if has_news => {
                    let delta = deltas.entry(base).or_insert_with(|| {
                        delta.base_tick = base;
                        Arc::new(delta.clone())
                    });
                    ToGateway::FeedDelta(Arc::clone(delta))
                }
                _ => continue,
            };
            *last = Some(tick);
            out.push((node.clone(), message));
        }
    }

    /// What changed since the last frame; remembers it as shown.
    fn difference(&mut self, tick: u64, scene: &impl Scene) -> FeedDelta {
        let mut upserts = Vec::new();
        let mut removes = Vec::new();
        for id in std::mem::take(&mut self.touched) {
            let current = scene.current(id);
            match (current, self.shown.get_mut(&id)) {
                (Some(current), Some(shown)) if shown.current == current => {}
                (Some(current), Some(shown)) => {
                    shown.current = current;
                    upserts.push(entity(&current, None));
                }
                (Some(current), None) => {
                    let Some(info) = scene.info(id).map(Arc::new) else {
                        continue;
                    };
                    upserts.push(entity(&current, Some(&info)));
                    self.shown.insert(id, Shown { current, info });
                }
                (None, Some(shown)) => {
                    removes.push((id, shown.current.number));
                    self.shown.remove(&id);
                }
                (None, None) => {}
            }
        }
        FeedDelta {
            region: self.region,
            epoch: self.epoch,
            tick,
            base_tick: 0,
            told: self.told.count,
            base_told: self.told.count - self.events.len() as u64,
            upserts,
            removes,
            objects: std::mem::take(&mut self.objects).into_values().collect(),
            events: std::mem::take(&mut self.events),
        }
    }

    fn full(&self, tick: u64, scene: &impl Scene, events: &[FeedEvent]) -> FeedFull {
        FeedFull {
            region: self.region,
            epoch: self.epoch,
            tick,
            told: self.told,
            entities: self
                .shown
                .values()
                .map(|shown| entity(&shown.current, Some(&shown.info)))
                .collect(),
            objects: scene.objects(),
            // One who subscribed again after a gap would otherwise miss what happened in this tick.
            events: events.to_vec(),
        }
    }
}

fn entity(current: &Current, info: Option<&Arc<EntityInfo>>) -> FeedEntity {
    FeedEntity {
        number: current.number,
        info: info.cloned(),
        state: current.state,
        ack: current.ack,
    }
}

#[cfg(test)]
mod tests;
