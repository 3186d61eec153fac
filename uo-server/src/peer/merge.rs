//! One message that says as much as two of the same key, for a queue whose node reads slowly.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;
use std::sync::Arc;

use uo_combat::ObjectHit;
use uo_proto::{EntityId, ObjectState};

use super::message::{FeedDelta, FeedEntity, FeedEvent, FeedFull, Leases};
use super::{Message, ToGateway, ToSim};
use crate::limits::{PEER_FEED_EVENTS_MAX, PEER_LEASES_MAX};

/// What came of it.
#[derive(Clone, PartialEq, Debug)]
pub enum Merged<M = Message> {
    /// The older one now says both.
    Both,
    /// The newer one does not follow the older one. It is dropped, and its receiver will notice.
    Gap,
    /// Both have to be said, and this is the newer one.
    Apart(M),
}

impl<M> Merged<M> {
    fn map<N>(self, wrap: impl FnOnce(M) -> N) -> Merged<N> {
        match self {
            Merged::Both => Merged::Both,
            Merged::Gap => Merged::Gap,
            Merged::Apart(message) => Merged::Apart(wrap(message)),
        }
    }
}

/// Merges `newer` into `older`, if one message can say both.
pub fn merge(older: &mut Message, newer: Message) -> Merged {
    match (older, newer) {
        (Message::ToGateway(older), Message::ToGateway(newer)) => {
            merge_feeds(older, newer).map(Message::ToGateway)
        }
        (Message::ToSim(older), Message::ToSim(newer)) => {
            merge_objects(older, newer).map(Message::ToSim)
        }
        (_, newer) => Merged::Apart(newer),
    }
}

fn merge_feeds(older: &mut ToGateway, newer: ToGateway) -> Merged<ToGateway> {
    match (&mut *older, newer) {
        (ToGateway::FeedFull(before), ToGateway::FeedFull(mut full))
            if before.epoch == full.epoch =>
        {
            precede(&before.events, &mut Arc::make_mut(&mut full).events);
            *older = ToGateway::FeedFull(full);
        }
        (ToGateway::FeedDelta(before), ToGateway::FeedFull(mut full))
            if before.epoch == full.epoch =>
        {
            precede(&before.events, &mut Arc::make_mut(&mut full).events);
            *older = ToGateway::FeedFull(full);
        }
        (ToGateway::FeedFull(full), ToGateway::FeedDelta(delta)) if full.epoch == delta.epoch => {
            let follows = (full.tick, full.told.count) == (delta.base_tick, delta.base_told);
            if !follows || !knows_all(full, &delta) {
                return Merged::Gap;
            }
            apply(Arc::make_mut(full), &delta);
        }
        (ToGateway::FeedDelta(first), ToGateway::FeedDelta(second))
            if first.epoch == second.epoch =>
        {
            if (first.tick, first.told) != (second.base_tick, second.base_told) {
                return Merged::Gap;
            }
            join(Arc::make_mut(first), &second);
        }
        (ToGateway::Leases(before), ToGateway::Leases(leases)) => add_leases(before, leases),
        (_, newer) => return Merged::Apart(newer),
    }
    Merged::Both
}

fn merge_objects(older: &mut ToSim, newer: ToSim) -> Merged<ToSim> {
    match (older, newer) {
        (
            ToSim::ObjectHits { epoch, hits, .. },
            ToSim::ObjectHits {
                epoch: newer_epoch,
                hits: more,
                ..
            },
        ) if *epoch == newer_epoch => more.into_iter().for_each(|hit| add_hit(hits, hit)),
        (
            ToSim::ObjectChanges {
                epoch,
                tick,
                full,
                objects,
                ..
            },
            ToSim::ObjectChanges {
                epoch: newer_epoch,
                tick: newer_tick,
                full: newer_full,
                objects: more,
                ..
            },
        ) => {
            if newer_epoch < *epoch {
                return Merged::Gap;
            }
            (*epoch, *tick) = (newer_epoch, newer_tick);
            match newer_full {
                true => (*full, *objects) = (true, more),
                false => set_objects(objects, &more),
            }
        }
        (ToSim::Leases(before), ToSim::Leases(leases)) => add_leases(before, leases),
        (_, newer) => return Merged::Apart(newer),
    }
    Merged::Both
}

/// Puts events before others; of too many the oldest are lost, and the gateway counts them.
fn precede(before: &[FeedEvent], events: &mut Vec<FeedEvent>) {
    events.splice(..0, before.iter().cloned());
    let excess = events.len().saturating_sub(PEER_FEED_EVENTS_MAX);
    events.drain(..excess);
}

fn follow(events: &mut Vec<FeedEvent>, after: &[FeedEvent]) {
    events.extend_from_slice(after);
    let excess = events.len().saturating_sub(PEER_FEED_EVENTS_MAX);
    events.drain(..excess);
}

/// Whether what does not change about each entity of `delta` is told in one of the two.
fn knows_all(full: &FeedFull, delta: &FeedDelta) -> bool {
    let mut known: Vec<EntityId> = full.entities.iter().map(|it| it.state.id).collect();
    known.sort_unstable();
    let is_known = |it: &FeedEntity| it.info.is_some() || known.binary_search(&it.state.id).is_ok();
    delta.upserts.iter().all(is_known)
}

fn apply(full: &mut FeedFull, delta: &FeedDelta) {
    let places = full.entities.iter().enumerate();
    let places: BTreeMap<EntityId, usize> = places.map(|(at, it)| (it.state.id, at)).collect();
    for upsert in &delta.upserts {
        match places.get(&upsert.state.id) {
            Some(&at) => supersede(&mut full.entities[at], upsert),
            None => full.entities.push(upsert.clone()),
        }
    }
    let mut removed: Vec<EntityId> = delta.removes.iter().map(|&(id, _)| id).collect();
    removed.sort_unstable();
    full.entities
        .retain(|it| removed.binary_search(&it.state.id).is_err());
    set_objects(&mut full.objects, &delta.objects);
    follow(&mut full.events, &delta.events);
    (full.tick, full.told.count) = (delta.tick, delta.told);
}

/// Makes of two deltas in a row one that leads from where the first begins to where the second ends.
fn join(first: &mut FeedDelta, second: &FeedDelta) {
    let mut upserts: BTreeMap<EntityId, FeedEntity> = BTreeMap::new();
    for upsert in first
        .upserts
        .drain(..)
        .chain(second.upserts.iter().cloned())
    {
        match upserts.get_mut(&upsert.state.id) {
            Some(before) => supersede(before, &upsert),
            None => drop(upserts.insert(upsert.state.id, upsert)),
        }
    }
    // Who left and came back is told of as who came: a receiver upserts before it removes.
    let mut removes: BTreeMap<EntityId, u64> = first.removes.iter().copied().collect();
    for upsert in &second.upserts {
        removes.remove(&upsert.state.id);
    }
    for &(id, number) in &second.removes {
        upserts.remove(&id);
        removes.insert(id, number);
    }
    first.upserts = upserts.into_values().collect();
    first.removes = removes.into_iter().collect();
    set_objects(&mut first.objects, &second.objects);
    follow(&mut first.events, &second.events);
    (first.tick, first.told) = (second.tick, second.told);
}

fn supersede(before: &mut FeedEntity, after: &FeedEntity) {
    let info = after.info.clone().or_else(|| before.info.take());
    *before = FeedEntity {
        info,
        ..after.clone()
    };
}

fn set_objects(objects: &mut Vec<ObjectState>, newer: &[ObjectState]) {
    let places = objects.iter().enumerate();
    let mut places: BTreeMap<_, usize> = places.map(|(at, it)| (it.key, at)).collect();
    for object in newer {
        match places.get(&object.key) {
            Some(&at) => objects[at] = *object,
            None => {
                places.insert(object.key, objects.len());
                objects.push(*object);
            }
        }
    }
}

fn add_hit(hits: &mut Vec<ObjectHit>, hit: ObjectHit) {
    let is_same = |it: &&mut ObjectHit| (it.key, it.fire, it.by) == (hit.key, hit.fire, hit.by);
    match hits.iter_mut().find(is_same) {
        Some(before) => before.damage = before.damage.saturating_add(hit.damage),
        None => hits.push(hit),
    }
}

/// Adds newer hints; what is older about the same region is forgotten, and what is too much is not worth keeping.
fn add_leases(before: &mut Leases, newer: Leases) {
    let hints = before.changes.drain(..).chain(newer.changes);
    let mut by_region = BTreeMap::new();
    for (region, epoch, holder) in hints {
        let is_older = |known: &(u64, _)| known.0 > epoch;
        if !by_region.get(&region).is_some_and(is_older) {
            by_region.insert(region, (epoch, holder));
        }
    }
    let hints = by_region.into_iter().take(PEER_LEASES_MAX);
    before.changes = hints
        .map(|(region, (epoch, holder))| (region, epoch, holder))
        .collect();
}

#[cfg(test)]
mod tests;
