//! What a player sees is what there is: views against a brute-force oracle.
//!
//! The oracle is every node's whole page, and knows nothing of how views are made: whatever is within sight must be seen,
//! as it is, and nothing else. Pages, and views, are of different moments. So two sets of pages are taken, and the views
//! between them: what both sets show alike stood still meanwhile, and is what is compared. Something may still have gone
//! and come back; an error counts when a second comparison finds it again.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;
use uo_proto::{AOI_RADIUS, EntityId, EntityState, ObjectKey, ObjectState, Pos};

/// What there is, as the nodes say.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Truth {
    entities: BTreeMap<EntityId, EntityState>,
    objects: BTreeMap<ObjectKey, ObjectState>,
    /// Shown by two battles: on its way from one to the other.
    moving: BTreeSet<EntityId>,
}

/// What one player sees.
#[derive(Clone, PartialEq, Debug)]
pub struct Seen {
    /// By name.
    pub name: String,
    /// Its own character.
    pub me: EntityId,
    /// Everybody in view.
    pub entities: BTreeMap<EntityId, EntityState>,
    /// Objects that it was told of and that are not as the world began with them.
    pub objects: BTreeMap<ObjectKey, ObjectState>,
}

/// A difference between a view and the truth.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wrong {
    /// Whose view.
    who: String,
    about: About,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum About {
    Entity(EntityId),
    Object(ObjectKey),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum What {
    Missing,
    Different,
    Ghost,
    TooFar,
}

/// What comes of a comparison.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// How many entities and objects of views were compared.
    pub compared: u64,
    /// What was found.
    pub wrong: BTreeSet<Wrong>,
}

#[derive(Deserialize)]
struct EntityEntry {
    id: EntityId,
    state: EntityState,
}

impl Truth {
    /// Joins the nodes' `/state?full`. Nodes without a sim may be among them.
    pub fn of(pages: &[Value]) -> anyhow::Result<Truth> {
        let mut truth = Truth::default();
        let regions = pages
            .iter()
            .filter_map(|page| page["sim"]["regions"].as_array())
            .flatten();
        for region in regions {
            for list in ["players", "mobs"] {
                let entries: Vec<EntityEntry> = Vec::deserialize(&region[list])
                    .with_context(|| format!("/state?full does not list {list} as expected"))?;
                for entry in entries {
                    if truth.entities.insert(entry.id, entry.state).is_some() {
                        truth.moving.insert(entry.id);
                    }
                }
            }
            let objects: Vec<ObjectState> = Vec::deserialize(&region["objects"])
                .context("/state?full does not list objects as expected")?;
            truth
                .objects
                .extend(objects.into_iter().map(|object| (object.key, object)));
        }
        Ok(truth)
    }

    /// What stood still from `self` to `later`.
    fn still(&self, later: &Truth) -> Truth {
        let moves = |id| self.moving.contains(id) || later.moving.contains(id);
        let entities = self
            .entities
            .iter()
            .filter(|(id, state)| !moves(id) && later.entities.get(id) == Some(state));
        let objects = self
            .objects
            .iter()
            .filter(|(key, state)| later.objects.get(key) == Some(state));
        Truth {
            entities: entities.map(|(&id, &state)| (id, state)).collect(),
            objects: objects.map(|(&key, &state)| (key, state)).collect(),
            moving: BTreeSet::new(),
        }
    }
}

/// Compares views with what was true before them and is true after them.
pub fn compare(before: &Truth, after: &Truth, views: &[Seen]) -> Verdict {
    let still = before.still(after);
    let mut verdict = Verdict::default();
    for seen in views {
        // Who moves looks from elsewhere at each moment.
        let Some(me) = still.entities.get(&seen.me) else {
            continue;
        };
        let view = View {
            seen,
            centre: me.pos(),
            verdict: &mut verdict,
        };
        view.judge(&still, before, after);
    }
    verdict
}

/// One view under judgement.
struct View<'a> {
    seen: &'a Seen,
    centre: Pos,
    verdict: &'a mut Verdict,
}

impl View<'_> {
    fn judge(mut self, still: &Truth, before: &Truth, after: &Truth) {
        let near = |pos: Pos| pos.distance(self.centre) <= AOI_RADIUS;
        let entities = still.entities.iter().filter(|(_, state)| near(state.pos()));
        let entities: Vec<_> = entities
            .map(|(&id, state)| {
                (
                    About::Entity(id),
                    self.seen.entities.get(&id) == Some(state),
                    self.seen.entities.contains_key(&id),
                )
            })
            .collect();
        let objects = still.objects.iter().filter(|(_, state)| near(state.pos()));
        let objects: Vec<_> = objects
            .map(|(&key, state)| {
                (
                    About::Object(key),
                    self.seen.objects.get(&key) == Some(state),
                    self.seen.objects.contains_key(&key),
                )
            })
            .collect();
        for (about, is_same, is_there) in entities.into_iter().chain(objects) {
            self.verdict.compared += 1;
            match (is_same, is_there) {
                (true, _) => {}
                (false, true) => self.say(about, What::Different),
                (false, false) => self.say(about, What::Missing),
            }
        }
        for &id in self.seen.entities.keys() {
            let exists = before.entities.contains_key(&id) || after.entities.contains_key(&id);
            let is_far = still
                .entities
                .get(&id)
                .is_some_and(|state| state.pos().distance(self.centre) > AOI_RADIUS);
            if !exists {
                self.say(About::Entity(id), What::Ghost);
            } else if is_far {
                self.say(About::Entity(id), What::TooFar);
            }
        }
        for (&key, object) in &self.seen.objects {
            let exists = before.objects.contains_key(&key) || after.objects.contains_key(&key);
            // What it was told of and is out of sight may have changed since.
            if !exists && !object.gone && object.pos().distance(self.centre) <= AOI_RADIUS {
                self.say(About::Object(key), What::Ghost);
            }
        }
    }

    fn say(&mut self, about: About, what: What) {
        self.verdict.wrong.insert(Wrong {
            who: self.seen.name.clone(),
            about,
            what,
        });
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { who, about, what } = self;
        let what = match what {
            What::Missing => "does not see",
            What::Different => "sees otherwise than it is",
            What::Ghost => "sees, although there is no such thing,",
            What::TooFar => "still sees from afar",
        };
        match about {
            About::Entity(id) => write!(f, "{who} {what} {id}"),
            About::Object(key) => write!(f, "{who} {what} object {key}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uo_proto::{Action, Dir, ObjectKind, RegionId};

    use super::*;

    fn state(id: u64, x: u16) -> EntityState {
        EntityState {
            id: EntityId(id),
            x,
            y: 5,
            heading: Dir::N,
            hits: 40,
            action: Action::Idle,
            target: None,
        }
    }

    fn truth(states: &[EntityState]) -> Truth {
        let entry = |state: &EntityState| json!({"id": state.id, "state": state});
        let entries: Vec<Value> = states.iter().map(entry).collect();
        let page = json!({"sim": {"regions": [{"players": entries, "mobs": [], "objects": []}]}});
        Truth::of(&[json!({"sim": null}), page]).expect("it is read")
    }

    fn seen(states: &[EntityState]) -> Seen {
        Seen {
            name: "bot".into(),
            me: EntityId(1),
            entities: states.iter().map(|state| (state.id, *state)).collect(),
            objects: BTreeMap::new(),
        }
    }

    fn wrong(before: &Truth, after: &Truth, view: &[EntityState]) -> Vec<String> {
        let verdict = compare(before, after, &[seen(view)]);
        verdict.wrong.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_view_shows_all_that_is_near_as_it_is_and_nothing_else() {
        let (me, near, far) = (state(1, 20), state(2, 38), state(3, 39));
        let all = truth(&[me, near, far]);
        assert_eq!(compare(&all, &all, &[seen(&[me, near])]).compared, 2);
        assert!(wrong(&all, &all, &[me, near]).is_empty());
        assert!(wrong(&all, &all, &[me])[0].contains("does not see"));
        let hurt = EntityState { hits: 3, ..near };
        assert!(wrong(&all, &all, &[me, hurt])[0].contains("otherwise"));
        assert!(wrong(&all, &all, &[me, near, far])[0].contains("from afar"));
        let ghost = state(9, 21);
        assert!(wrong(&all, &all, &[me, near, ghost])[0].contains("no such thing"));
    }

    #[test]
    fn what_moves_is_not_judged() {
        let (me, one, other) = (state(1, 20), state(2, 22), state(2, 23));
        let (before, after) = (truth(&[me, one]), truth(&[me, other]));
        for view in [&[me][..], &[me, one], &[me, other]] {
            assert!(wrong(&before, &after, view).is_empty());
        }
        let gone = truth(&[me]);
        assert!(wrong(&before, &gone, &[me, one]).is_empty());
        // Nor is anything that somebody sees who moves, or is between two battles.
        let moved = truth(&[state(1, 21), one]);
        assert_eq!(compare(&before, &moved, &[seen(&[me])]).compared, 0);
        let twice = truth(&[me, one, one]);
        assert!(wrong(&twice, &twice, &[me]).is_empty());
    }

    #[test]
    fn objects_are_compared_like_people() {
        let object = ObjectState {
            key: ObjectKey::new(RegionId(0), 4),
            kind: ObjectKind::Tree,
            x: 22,
            y: 5,
            edge: None,
            hits: 1,
            active: false,
            gone: false,
        };
        let page = |objects: Value| json!({"sim": {"regions": [{"players": [{"id": 1, "state": state(1, 20)}], "mobs": [], "objects": objects}]}});
        let all = Truth::of(&[page(json!([object]))]).expect("it is read");
        assert!(wrong(&all, &all, &[state(1, 20)])[0].contains("does not see object"));
        let mut view = seen(&[state(1, 20)]);
        view.objects = all.objects.clone();
        assert_eq!(
            compare(&all, &all, std::slice::from_ref(&view)).wrong.len(),
            0
        );
        let none = Truth::of(&[page(json!([]))]).expect("it is read");
        let verdict = compare(&none, &none, &[view]);
        assert!(
            verdict
                .wrong
                .first()
                .expect("a ghost")
                .to_string()
                .contains("no such thing")
        );
    }
}
