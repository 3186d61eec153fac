//! What one client was last sent, and how that differs from what is true.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{AOI_RADIUS, EntityId, Pos};

use super::interest::Kind;
use super::view::View;

/// An entity or object that a client knows, and in which version. Versions are never used twice in a view, so equal
/// pairs mean equal state, also when something left and came back in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    id: u64,
    version: u64,
}

/// What one session sees, and what its client was told of it.
#[derive(Clone, Debug, Default)]
pub struct Sight {
    /// Where it looks from.
    pub centre: Option<Pos>,
    /// What has to be looked at again, as bits of [`super::interest::look`].
    pub looks: u8,
    /// Whether it is in the queue of the next flush.
    pub is_queued: bool,
    /// Whether a `snapshot` is to be written before anything else.
    pub wants_snapshot: bool,
    /// The gateway's tick of the last delta.
    pub tick: u64,
    entities: Vec<Known>,
    objects: Vec<Known>,
}

/// A difference: slots of the view, and the ids of what is no longer seen. Kept between uses for its memory.
#[derive(Debug, Default)]
pub struct Diff {
    /// Entities that the client does not know, or knows with another name or look.
    pub enter: Vec<u32>,
    /// Entities that it knows in an older version.
    pub update: Vec<u32>,
    /// Entities that it should forget.
    pub leave: Vec<EntityId>,
    /// Objects that it does not know in this version.
    pub objects: Vec<u32>,
    visible: Vec<(u64, u32)>,
    known: Vec<Known>,
}

impl Diff {
    /// Whether there is no difference.
    pub fn is_empty(&self) -> bool {
        self.enter.is_empty()
            && self.update.is_empty()
            && self.leave.is_empty()
            && self.objects.is_empty()
    }

    /// No difference.
    pub fn clear(&mut self) {
        self.enter.clear();
        self.update.clear();
        self.leave.clear();
        self.objects.clear();
    }
}

impl Sight {
    /// The client knows nothing any more: a new connection.
    pub fn forget(&mut self) {
        self.entities = Vec::new();
        self.objects = Vec::new();
    }

    /// How many entities and objects the client knows.
    pub fn known(&self) -> (usize, usize) {
        (self.entities.len(), self.objects.len())
    }

    /// Bytes of memory beyond the struct itself.
    #[cfg(test)]
    pub fn heap_bytes(&self) -> usize {
        (self.entities.capacity() + self.objects.capacity()) * size_of::<Known>()
    }

    /// Adds to `diff` how the entities in view differ from those that the client knows, and takes them as known. `own` is
    /// always in view, and never leaves.
    pub fn look_at_entities(&mut self, view: &View, own: EntityId, diff: &mut Diff) {
        let Some(centre) = self.centre else {
            return;
        };
        let Diff { visible, known, .. } = diff;
        visible.clear();
        known.clear();
        view.grid.each_near(Kind::Entities, centre, |slot| {
            let state = &view.entity(slot).state;
            if state.pos().distance(centre) <= AOI_RADIUS {
                visible.push((state.id.0, slot));
            }
        });
        if !visible.iter().any(|&(id, _)| id == own.0)
            && let Some(slot) = view.slot_of(own)
        {
            visible.push((own.0, slot));
        }
        visible.sort_unstable();
        let mut before = self.entities.iter().peekable();
        for &(id, slot) in visible.iter() {
            while let Some(gone) = before.next_if(|known| known.id < id) {
                leave(gone, own, &mut diff.leave, known);
            }
            let entity = view.entity(slot);
            let was = before.next_if(|known| known.id == id);
            match was.map(|known| known.version) {
                Some(version) if version == entity.version => {}
                Some(version) if version >= entity.info_version => diff.update.push(slot),
                _ => diff.enter.push(slot),
            }
            let version = entity.version;
            known.push(Known { id, version });
        }
        for gone in before {
            leave(gone, own, &mut diff.leave, known);
        }
        replace(&mut self.entities, known);
    }

    /// Adds to `diff` which objects in view the client does not know as they are, and takes them as known. Those out of
    /// view are forgotten, and told again when they come back.
    pub fn look_at_objects(&mut self, view: &View, diff: &mut Diff) {
        let Some(centre) = self.centre else {
            return;
        };
        let Diff { visible, known, .. } = diff;
        visible.clear();
        known.clear();
        view.grid.each_near(Kind::Objects, centre, |slot| {
            let state = &view.object(slot).state;
            if state.pos().distance(centre) <= AOI_RADIUS {
                visible.push((state.key.0, slot));
            }
        });
        visible.sort_unstable();
        let mut before = self.objects.iter().peekable();
        for &(id, slot) in visible.iter() {
            while before.next_if(|known| known.id < id).is_some() {}
            let version = view.object(slot).version;
            let was = before.next_if(|known| known.id == id);
            if was.is_none_or(|known| known.version != version) {
                diff.objects.push(slot);
            }
            known.push(Known { id, version });
        }
        replace(&mut self.objects, known);
    }
}

/// The own character is never taken from its player: while it is between two owners it stays where it was.
fn leave(gone: &Known, own: EntityId, leaves: &mut Vec<EntityId>, known: &mut Vec<Known>) {
    if gone.id == own.0 {
        known.push(*gone);
    } else {
        leaves.push(EntityId(gone.id));
    }
}

/// Keeps what a session holds close to what it needs: a crowd that was passed must not stay in memory.
fn replace(held: &mut Vec<Known>, by: &[Known]) {
    if held.capacity() < by.len() || held.capacity() > 2 * by.len() + 8 {
        *held = Vec::with_capacity(by.len() + by.len() / 4);
    }
    held.clear();
    held.extend_from_slice(by);
}
