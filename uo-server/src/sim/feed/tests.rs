use super::*;
use proptest::prelude::*;
use uo_proto::{Action, CharId, Class, Dir, EntityKind, ObjectKind, Pos, Speech};

use crate::peer::message::PublicEvent;

const REGION: RegionId = RegionId(3);

/// A scene that a test changes at will.
#[derive(Default)]
struct Stage {
    entities: BTreeMap<EntityId, Current>,
    objects: BTreeMap<ObjectKey, ObjectState>,
}

impl Scene for Stage {
    fn current(&self, id: EntityId) -> Option<Current> {
        self.entities.get(&id).copied()
    }
    fn info(&self, id: EntityId) -> Option<EntityInfo> {
        self.entities.get(&id).map(|_| info(id))
    }
    fn objects(&self) -> Vec<ObjectState> {
        self.objects.values().copied().collect()
    }
}

fn info(id: EntityId) -> EntityInfo {
    EntityInfo {
        kind: EntityKind::Player,
        class: Class::Mage,
        name: format!("n{id}"),
        look: 0,
        hits_max: 100,
    }
}

fn state(id: EntityId, x: u16) -> EntityState {
    EntityState {
        id,
        x,
        y: 0,
        heading: Dir::N,
        hits: 1,
        action: Action::Idle,
        target: None,
    }
}

/// A gateway's side of one feed: it believes the frames and nothing else.
#[derive(Default)]
struct Watcher {
    tick: Option<u64>,
    told: u64,
    entities: BTreeMap<EntityId, (Current, EntityInfo)>,
    objects: BTreeMap<ObjectKey, ObjectState>,
    heard: Vec<FeedEvent>,
}

impl Watcher {
    fn apply(&mut self, message: &ToGateway) {
        match message {
            ToGateway::FeedFull(full) => {
                self.entities.clear();
                for entity in &full.entities {
                    self.upsert(entity);
                }
                self.objects = full.objects.iter().map(|o| (o.key, *o)).collect();
                self.heard.extend(full.events.iter().cloned());
                self.tick = Some(full.tick);
                self.told = full.told.count;
            }
            ToGateway::FeedDelta(delta) => {
                assert_eq!(self.tick, Some(delta.base_tick), "a gap in the feed");
                assert_eq!(self.told, delta.base_told, "an event is missing");
                self.told = delta.told;
                assert!(delta.tick > delta.base_tick || delta.is_speech());
                for (id, number) in &delta.removes {
                    let (current, _) = self.entities.remove(id).expect("shown before");
                    assert_eq!(current.number, *number);
                }
                for entity in &delta.upserts {
                    self.upsert(entity);
                }
                self.objects
                    .extend(delta.objects.iter().map(|o| (o.key, *o)));
                self.heard.extend(delta.events.iter().cloned());
                self.tick = Some(delta.tick);
            }
            other => panic!("not a frame: {other:?}"),
        }
    }

    fn upsert(&mut self, entity: &FeedEntity) {
        let current = Current {
            number: entity.number,
            ack: entity.ack,
            state: entity.state,
        };
        let known = self.entities.get(&entity.state.id);
        let info = match (&entity.info, known) {
            (Some(info), _) => (**info).clone(),
            (None, Some((_, info))) => info.clone(),
            (None, None) => panic!("an unknown entity without info"),
        };
        self.entities.insert(entity.state.id, (current, info));
    }

    fn sees(&self, stage: &Stage) {
        let truth: BTreeMap<_, _> = stage
            .entities
            .iter()
            .map(|(&id, &current)| (id, (current, info(id))))
            .collect();
        assert_eq!(self.entities, truth);
        assert_eq!(self.objects, stage.objects);
    }
}

#[derive(Clone, Debug)]
enum Act {
    Put {
        id: u64,
        number: u64,
        ack: u64,
        x: u16,
    },
    Take {
        id: u64,
    },
    Touch {
        id: u64,
    },
    Break {
        index: u32,
        hits: u16,
    },
    Say,
    SayAtOnce,
    Subscribe {
        node: u8,
    },
    Unsubscribe {
        node: u8,
    },
    Tick,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..4u64, 0..3u64, 0..3u64, 0..3u16)
            .prop_map(|(id, number, ack, x)| Act::Put { id, number, ack, x }),
        2 => (0..4u64).prop_map(|id| Act::Take { id }),
        1 => (0..4u64).prop_map(|id| Act::Touch { id }),
        1 => (0..3u32, 0..9u16).prop_map(|(index, hits)| Act::Break { index, hits }),
        1 => Just(Act::Say),
        2 => Just(Act::SayAtOnce),
        1 => (0..3u8).prop_map(|node| Act::Subscribe { node }),
        1 => (0..3u8).prop_map(|node| Act::Unsubscribe { node }),
        5 => Just(Act::Tick),
    ]
}

fn line(number: usize) -> FeedEvent {
    FeedEvent {
        at: Pos::new(0, 0),
        also: None,
        what: PublicEvent::Said(Speech {
            char_id: CharId(1),
            name: "n".into(),
            text: number.to_string(),
        }),
    }
}

/// Which line it is.
fn number(event: &FeedEvent) -> Option<usize> {
    match &event.what {
        PublicEvent::Said(speech) => speech.text.parse().ok(),
        PublicEvent::Combat(_) => None,
    }
}

proptest! {
    /// Red when `frame` forgets the newcomer's base, when `difference` does not give `info` to what comes back, and
    /// when a removal of something that came and went within a tick is told; when `say` does not wait for an event before it.
    #[test]
    fn watchers_see_what_is_true(acts in proptest::collection::vec(act(), 0..120)) {
        let mut feed = Feed::new(REGION, 1, Told::default());
        let mut stage = Stage::default();
        let mut watchers: BTreeMap<NodeName, Watcher> = BTreeMap::new();
        let mut said: BTreeMap<NodeName, usize> = BTreeMap::new();
        let (mut tick, mut lines) = (0, 0);
        for act in acts.into_iter().chain([Act::Tick]) {
            match act {
                Act::Put { id, number, ack, x } => {
                    let id = EntityId(id);
                    stage.entities.insert(id, Current { number, ack, state: state(id, x) });
                    feed.touch(id);
                }
                Act::Take { id } => {
                    stage.entities.remove(&EntityId(id));
                    feed.touch(EntityId(id));
                }
                Act::Touch { id } => feed.touch(EntityId(id)),
                Act::Break { index, hits } => {
                    let object = ObjectState {
                        key: ObjectKey::new(REGION, index),
                        kind: ObjectKind::Tree,
                        x: 0,
                        y: 0,
                        edge: None,
                        hits,
                        active: false,
                        gone: false,
                    };
                    stage.objects.insert(object.key, object);
                    feed.object(object);
                }
                Act::Say => {
                    feed.event(line(lines));
                    lines += 1;
                    for count in said.values_mut() {
                        *count += 1;
                    }
                }
                Act::SayAtOnce => {
                    for (node, message) in feed.say(line(lines)) {
                        watchers.get_mut(&node).expect("it subscribed").apply(&message);
                    }
                    lines += 1;
                    for count in said.values_mut() {
                        *count += 1;
                    }
                }
                Act::Subscribe { node } => {
                    let node = NodeName::from(["a", "b", "c"][usize::from(node)]);
                    watchers.entry(node.clone()).or_default();
                    said.entry(node.clone()).or_default();
                    feed.subscribe(node);
                }
                Act::Unsubscribe { node } => {
                    let node = NodeName::from(["a", "b", "c"][usize::from(node)]);
                    feed.unsubscribe(&node);
                    watchers.remove(&node);
                    said.remove(&node);
                }
                Act::Tick => {
                    tick += 1;
                    let mut frames = Vec::new();
                    feed.frame(tick, &stage, &mut frames);
                    let mut shared: BTreeMap<u64, *const FeedDelta> = BTreeMap::new();
                    for (node, message) in &frames {
                        if let ToGateway::FeedDelta(delta) = message {
                            let first = *shared
                                .entry(delta.base_tick)
                                .or_insert(Arc::as_ptr(delta));
                            prop_assert_eq!(first, Arc::as_ptr(delta), "built twice");
                        }
                        watchers.get_mut(node).expect("it subscribed").apply(message);
                    }
                    prop_assert!(!feed.is_pending());
                    for (node, watcher) in &watchers {
                        watcher.sees(&stage);
                        // A newcomer hears the whole tick in which it came.
                        prop_assert!(watcher.heard.len() >= said[node]);
                        prop_assert!(watcher.heard.is_sorted_by_key(number));
                        let mut heard = watcher.heard.clone();
                        heard.dedup();
                        prop_assert_eq!(&heard, &watcher.heard);
                    }
                }
            }
        }
    }
}

#[test]
fn speech_waits_for_no_tick_and_leads_to_none() {
    let (mut feed, stage, mut frames) = (
        Feed::new(REGION, 1, Told::default()),
        Stage::default(),
        Vec::new(),
    );
    feed.subscribe("gw".into());
    assert!(feed.say(line(0)).is_empty(), "a full state comes first");
    feed.frame(1, &stage, &mut frames);
    assert_eq!(frames.len(), 1);
    let told = feed.say(line(1));
    let [(_, ToGateway::FeedDelta(delta))] = &told[..] else {
        panic!("{told:?}");
    };
    assert!(delta.is_speech());
    assert_eq!((delta.base_tick, delta.events.len()), (1, 1));
    assert!(!feed.is_pending());
}

#[test]
fn nothing_new_is_no_frame() {
    let (mut feed, mut stage, mut frames) = (
        Feed::new(REGION, 1, Told::default()),
        Stage::default(),
        Vec::new(),
    );
    feed.subscribe("gw".into());
    feed.frame(1, &stage, &mut frames);
    assert!(matches!(frames[..], [(_, ToGateway::FeedFull(_))]));

    let id = EntityId(7);
    let current = Current {
        number: 1,
        ack: 1,
        state: state(id, 1),
    };
    stage.entities.insert(id, current);
    feed.touch(id);
    feed.frame(5, &stage, &mut frames);
    feed.touch(id);
    feed.frame(6, &stage, &mut frames);
    assert_eq!(frames.len(), 2, "an equal state was shown again");

    // An order that was applied and changed nothing is still acknowledged.
    stage.entities.insert(id, Current { ack: 2, ..current });
    feed.touch(id);
    feed.frame(9, &stage, &mut frames);
    let Some((_, ToGateway::FeedDelta(delta))) = frames.get(2) else {
        panic!("no delta for a new ack");
    };
    assert_eq!((delta.base_tick, delta.tick), (5, 9));
    assert_eq!(delta.upserts[0].ack, 2);
    assert_eq!(delta.upserts[0].info, None);
}
