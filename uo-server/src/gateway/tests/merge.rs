//! The merged view against a brute-force oracle, under any interleaving of feeds that are each in order.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;
use uo_proto::{Action, CharId, Dir, EntityId, EntityState, RegionId};
use uo_world::World;

use super::rig::{MAP, info};
use crate::Millis;
use crate::gateway::view::View;
use crate::limits::LEAVE_GRACE_MS;
use crate::peer::message::{FeedDelta, FeedEntity, FeedFull, Told};

const REGIONS: u32 = 3;
const PEOPLE: usize = 3;

/// One message of a feed, on its way.
#[derive(Clone, Debug)]
enum Word {
    Upsert(EntityId, u64, u16),
    Remove(EntityId, u64),
    Full(Vec<(EntityId, u64, u16)>),
}

/// What the view was told about one entity, in the order of telling.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Upsert {
        number: u64,
        x: u16,
    },
    /// `grace`: whether it may be a handoff.
    Remove {
        number: u64,
        at: Millis,
        grace: bool,
    },
}

/// The true world: who is in which battle under which number, and the feeds that tell of it.
struct Model {
    now: Millis,
    people: Vec<(EntityId, Option<RegionId>, u64, u16)>,
    feeds: BTreeMap<RegionId, VecDeque<Word>>,
    watched: BTreeMap<RegionId, bool>,
    facts: BTreeMap<EntityId, Vec<(RegionId, Fact)>>,
    view: View,
}

fn person(who: usize) -> EntityId {
    CharId::of_name(&format!("p{who}")).entity()
}

fn entity(id: EntityId, number: u64, x: u16) -> FeedEntity {
    FeedEntity {
        number,
        info: Some(Arc::new(info("n"))),
        state: EntityState {
            id,
            x,
            y: 0,
            heading: Dir::N,
            hits: 1,
            action: Action::Idle,
            target: None,
        },
        ack: 0,
    }
}

impl Model {
    fn new() -> Model {
        let regions = || (0..REGIONS).map(RegionId);
        Model {
            now: 1_000,
            people: (0..PEOPLE).map(|who| (person(who), None, 0, 0)).collect(),
            feeds: regions().map(|region| (region, VecDeque::new())).collect(),
            watched: regions().map(|region| (region, true)).collect(),
            facts: BTreeMap::new(),
            view: View::new(Arc::new(World::new(7, MAP).expect("a good size"))),
        }
    }

    fn tell(&mut self, region: RegionId, word: Word) {
        if self.watched[&region] {
            self.feeds
                .get_mut(&region)
                .expect("a region")
                .push_back(word);
        }
    }

    /// Into another battle, or out of all.
    fn go(&mut self, who: usize, to: Option<RegionId>) {
        let (id, from, number, x) = self.people[who];
        if from == to {
            return;
        }
        if let Some(from) = from {
            self.tell(from, Word::Remove(id, number));
        }
        self.people[who] = (id, to, number + 1, x);
        if let Some(to) = to {
            self.tell(to, Word::Upsert(id, number + 1, x));
        }
    }

    fn change(&mut self, who: usize, x: u16) {
        self.people[who].3 = x;
        let (id, region, number, _) = self.people[who];
        if let Some(region) = region {
            self.tell(region, Word::Upsert(id, number, x));
        }
    }

    /// The queue of a feed was full: what is under way is replaced by a full state.
    fn coalesce(&mut self, region: RegionId) {
        let here = self.people.iter().filter(|(_, at, ..)| *at == Some(region));
        let full = here.map(|&(id, _, number, x)| (id, number, x)).collect();
        self.feeds
            .insert(region, VecDeque::from([Word::Full(full)]));
        self.watched.insert(region, true);
    }

    fn unsubscribe(&mut self, region: RegionId) {
        self.watched.insert(region, false);
        self.feeds.insert(region, VecDeque::new());
        let (number, at) = (u64::MAX, self.now);
        self.note_for_all(
            region,
            Fact::Remove {
                number,
                at,
                grace: false,
            },
        );
        self.view.drop_region(self.now, region);
    }

    fn note_for_all(&mut self, region: RegionId, fact: Fact) {
        for &(id, ..) in &self.people {
            self.facts.entry(id).or_default().push((region, fact));
        }
    }

    fn note(&mut self, region: RegionId, id: EntityId, fact: Fact) {
        self.facts.entry(id).or_default().push((region, fact));
    }

    fn deliver(&mut self, region: RegionId) {
        let Some(word) = self.feeds.get_mut(&region).and_then(VecDeque::pop_front) else {
            return;
        };
        let (now, grace) = (self.now, true);
        let mut delta = FeedDelta {
            region,
            epoch: 1,
            tick: 0,
            base_tick: 0,
            told: 0,
            base_told: 0,
            upserts: Vec::new(),
            removes: Vec::new(),
            objects: Vec::new(),
            events: Vec::new(),
        };
        match word {
            Word::Upsert(id, number, x) => {
                self.note(region, id, Fact::Upsert { number, x });
                delta.upserts.push(entity(id, number, x));
            }
            Word::Remove(id, number) => {
                self.note(
                    region,
                    id,
                    Fact::Remove {
                        number,
                        at: now,
                        grace,
                    },
                );
                delta.removes.push((id, number));
            }
            Word::Full(all) => {
                let listed = |id| all.iter().any(|&(other, ..)| other == id);
                for &(id, ..) in &self.people.clone() {
                    if !listed(id) {
                        let number = u64::MAX;
                        self.note(
                            region,
                            id,
                            Fact::Remove {
                                number,
                                at: now,
                                grace,
                            },
                        );
                    }
                }
                for &(id, number, x) in &all {
                    self.note(region, id, Fact::Upsert { number, x });
                }
                let full = FeedFull {
                    region,
                    epoch: 1,
                    tick: 0,
                    told: Told::default(),
                    entities: all.into_iter().map(|(id, n, x)| entity(id, n, x)).collect(),
                    objects: Vec::new(),
                    events: Vec::new(),
                };
                return self
                    .view
                    .apply_full(now, &full)
                    .expect("info is always given");
            }
        }
        self.view
            .apply_delta(now, &delta)
            .expect("info is always given");
    }

    /// Where an entity is shown, by everything that was told about it: the last upsert under the highest number counts,
    /// until that region takes it back.
    fn oracle(&self, id: EntityId) -> Option<u16> {
        let facts = self.facts.get(&id)?;
        let upserts = facts
            .iter()
            .enumerate()
            .filter_map(|(at, (region, fact))| match fact {
                Fact::Upsert { number, x } => Some((*number, at, *region, *x)),
                Fact::Remove { .. } => None,
            });
        let (highest, last, owner, x) = upserts.max()?;
        let taken_back = facts[last..].iter().find_map(|(region, fact)| match fact {
            Fact::Remove { number, at, grace } if *region == owner && *number >= highest => {
                Some(if *grace { at + LEAVE_GRACE_MS } else { *at })
            }
            _ => None,
        });
        // A region that is let go takes at once what was only put off.
        let dropped = facts[last..].iter().any(|(region, fact)| {
            *region == owner && matches!(fact, Fact::Remove { grace: false, .. })
        });
        let is_shown = taken_back.is_none_or(|until| self.now < until) && !dropped;
        is_shown.then_some(x)
    }

    fn shown(&self, id: EntityId) -> Option<u16> {
        self.view.find(id).map(|entity| entity.state.x)
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.view.expire(self.now);
    }
}

#[derive(Clone, Debug)]
enum Act {
    Go { who: usize, to: Option<u32> },
    Change { who: usize, x: u16 },
    Deliver { region: u32 },
    Coalesce { region: u32 },
    Unsubscribe { region: u32 },
    Pass { ms: u64 },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..PEOPLE, prop::option::weighted(0.9, 0..REGIONS)).prop_map(|(who, to)| Act::Go { who, to }),
        4 => (0..PEOPLE, 0..200_u16).prop_map(|(who, x)| Act::Change { who, x }),
        12 => (0..REGIONS).prop_map(|region| Act::Deliver { region }),
        1 => (0..REGIONS).prop_map(|region| Act::Coalesce { region }),
        1 => (0..REGIONS).prop_map(|region| Act::Unsubscribe { region }),
        3 => (1..200_u64).prop_map(|ms| Act::Pass { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Red when a lower number replaces a higher one, when a remove is believed of any region, when numbers of those who
    /// are gone are not kept, or when a full state does not take back what it does not list.
    #[test]
    fn the_view_is_what_the_newest_words_say(acts in prop::collection::vec(act(), 0..120)) {
        let mut model = Model::new();
        for act in acts {
            match act {
                Act::Go { who, to } => model.go(who, to.map(RegionId)),
                Act::Change { who, x } => model.change(who, x),
                Act::Deliver { region } => model.deliver(RegionId(region)),
                Act::Coalesce { region } => model.coalesce(RegionId(region)),
                Act::Unsubscribe { region } => model.unsubscribe(RegionId(region)),
                Act::Pass { ms } => model.pass(ms),
            }
            for who in 0..PEOPLE {
                let id = person(who);
                prop_assert_eq!(model.shown(id), model.oracle(id), "p{}", who);
            }
        }
        // When everything has been told and the dust has settled, the view is the truth, with neither ghost nor gap.
        for region in (0..REGIONS).map(RegionId) {
            if !model.watched[&region] {
                model.coalesce(region);
            }
            while !model.feeds[&region].is_empty() {
                model.deliver(region);
            }
        }
        model.pass(LEAVE_GRACE_MS);
        for &(id, at, _, x) in &model.people {
            prop_assert_eq!(model.shown(id), at.map(|_| x));
        }
    }

    /// Whoever crosses borders is never out of sight, however the feeds of the two sides are interleaved, as long as they
    /// are not further apart than the grace. Red without the grace.
    #[test]
    fn nobody_blinks_at_a_border(
        crossings in prop::collection::vec((0..REGIONS, prop::collection::vec((0..REGIONS, 1..90_u64), 3)), 1..20),
    ) {
        let mut model = Model::new();
        model.go(0, Some(RegionId(0)));
        model.deliver(RegionId(0));
        for (x, (to, deliveries)) in (0..).zip(crossings) {
            model.go(0, Some(RegionId(to)));
            model.change(0, x);
            for (region, ms) in deliveries {
                model.deliver(RegionId(region));
                model.pass(ms);
                prop_assert!(model.shown(person(0)).is_some());
            }
            for region in (0..REGIONS).map(RegionId) {
                while !model.feeds[&region].is_empty() {
                    model.deliver(region);
                }
            }
            prop_assert_eq!(model.shown(person(0)), Some(x));
        }
    }
}
