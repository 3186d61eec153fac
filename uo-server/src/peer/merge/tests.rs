//! One frame that was merged says as much as the frames it was made of.

use proptest::prelude::*;

use super::*;
use crate::peer::samples::{delta, entity, event, full, object};

/// What a gateway would know of the region.
#[derive(Clone, PartialEq, Debug, Default)]
struct Seen {
    tick: u64,
    entities: BTreeMap<EntityId, FeedEntity>,
    objects: BTreeMap<uo_proto::ObjectKey, ObjectState>,
    events: Vec<FeedEvent>,
}

impl Seen {
    fn see(&mut self, message: &ToGateway) {
        match message {
            ToGateway::FeedFull(full) => {
                let entities = full.entities.iter().cloned();
                self.entities = entities.map(|it| (it.state.id, it)).collect();
                self.objects = full.objects.iter().map(|it| (it.key, *it)).collect();
                self.events.extend(full.events.iter().cloned());
                self.tick = full.tick;
            }
            ToGateway::FeedDelta(delta) => {
                assert_eq!(delta.base_tick, self.tick);
                for upsert in &delta.upserts {
                    let known = self.entities.get(&upsert.state.id);
                    let info = known.and_then(|known| known.info.clone());
                    let mut now = upsert.clone();
                    now.info = now.info.or(info);
                    assert!(now.info.is_some(), "nobody told who that is");
                    self.entities.insert(now.state.id, now);
                }
                for (id, number) in &delta.removes {
                    let known = self.entities.get(id);
                    if known.is_some_and(|known| known.number <= *number) {
                        self.entities.remove(id);
                    }
                }
                let objects = delta.objects.iter();
                self.objects.extend(objects.map(|it| (it.key, *it)));
                self.events.extend(delta.events.iter().cloned());
                self.tick = delta.tick;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Put { id: u64, x: u16 },
    Take { id: u64 },
    Hit { index: u32, hits: u16 },
    Full,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1..5_u64, 0..9_u16).prop_map(|(id, x)| Act::Put { id, x }),
        2 => (1..5_u64).prop_map(|id| Act::Take { id }),
        2 => (0..4_u32, 0..9_u16).prop_map(|(index, hits)| Act::Hit { index, hits }),
        1 => Just(Act::Full),
    ]
}

/// The frames of a feed, as a sim would send them.
fn frames(acts: &[Vec<Act>]) -> Vec<ToGateway> {
    let mut now = Seen::default();
    let mut frames = Vec::new();
    for (tick, acts) in (1_u64..).zip(acts) {
        let mut changed = delta(1, tick - 1, tick);
        let mut touched: BTreeMap<EntityId, bool> = BTreeMap::new();
        for act in acts {
            match *act {
                Act::Put { id, x } => {
                    let is_new = !now.entities.contains_key(&EntityId(id));
                    let was_new = touched.get(&EntityId(id)).copied().unwrap_or(false);
                    touched.insert(EntityId(id), is_new || was_new);
                    now.entities.insert(EntityId(id), entity(id, tick, x, true));
                }
                Act::Take { id } => {
                    // The feed tells of one change of an entity a tick.
                    if !touched.contains_key(&EntityId(id))
                        && let Some(gone) = now.entities.remove(&EntityId(id))
                    {
                        changed.removes.push((EntityId(id), gone.number));
                        touched.insert(EntityId(id), true);
                    }
                }
                Act::Hit { index, hits } => {
                    let state = object(index, hits);
                    now.objects.insert(state.key, state);
                    changed.objects.retain(|it| it.key != state.key);
                    changed.objects.push(state);
                }
                Act::Full => {}
            }
        }
        for (id, is_new) in touched {
            if let Some(known) = now.entities.get(&id) {
                let mut upsert = known.clone();
                upsert.info = upsert.info.filter(|_| is_new);
                changed.upserts.push(upsert);
                changed.removes.retain(|(gone, _)| *gone != id);
            }
        }
        if acts.iter().any(|act| matches!(act, Act::Full)) {
            let mut state = full(1, tick, now.entities.values().cloned().collect());
            state.objects = now.objects.values().copied().collect();
            frames.push(ToGateway::FeedFull(Arc::new(state)));
        } else {
            frames.push(ToGateway::FeedDelta(Arc::new(changed)));
        }
    }
    frames
}

proptest! {
    /// Guards the removal that is forgotten when somebody comes back, and the info that is kept.
    #[test]
    fn a_merged_frame_shows_what_its_parts_show(
        acts in prop::collection::vec(prop::collection::vec(act(), 0..5), 1..14),
        from in 0..14_usize,
    ) {
        let frames = frames(&acts);
        let from = from.min(frames.len() - 1);
        let (mut one_by_one, mut at_once) = (Seen::default(), Seen::default());
        frames.iter().for_each(|frame| one_by_one.see(frame));
        frames[..from].iter().for_each(|frame| at_once.see(frame));
        let mut merged = Message::ToGateway(frames[from].clone());
        for frame in &frames[from + 1..] {
            let done = merge(&mut merged, Message::ToGateway(frame.clone()));
            prop_assert_eq!(done, Merged::Both);
        }
        let Message::ToGateway(merged) = merged else { unreachable!() };
        at_once.see(&merged);
        prop_assert_eq!(one_by_one, at_once);
    }
}

#[test]
fn of_too_many_events_the_oldest_are_lost() {
    let mut first = Message::ToGateway(ToGateway::FeedFull(Arc::new(full(1, 0, Vec::new()))));
    for tick in 0..2 * PEER_FEED_EVENTS_MAX as u64 {
        let next = ToGateway::FeedDelta(Arc::new(delta(1, tick, tick + 1)));
        assert_eq!(merge(&mut first, Message::ToGateway(next)), Merged::Both);
    }
    let Message::ToGateway(ToGateway::FeedFull(all)) = first else {
        panic!("{first:?}")
    };
    assert_eq!(all.events.len(), PEER_FEED_EVENTS_MAX);
    let last = event(&format!("delta {}", 2 * PEER_FEED_EVENTS_MAX));
    assert_eq!(all.events.last(), Some(&last));
}

/// Red when the frames of speech are not compared, and when what is merged forgets how many there were.
#[test]
fn speech_joins_what_it_follows_and_a_lost_line_is_a_gap() {
    let speech = |number| {
        let mut frame = delta(1, 5, 5);
        (frame.told, frame.base_told) = (number, number - 1);
        Message::ToGateway(ToGateway::FeedDelta(Arc::new(frame)))
    };
    let state = Message::ToGateway(ToGateway::FeedFull(Arc::new(full(1, 5, Vec::new()))));
    for mut first in [
        state,
        Message::ToGateway(ToGateway::FeedDelta(Arc::new(delta(1, 4, 5)))),
    ] {
        assert_eq!(
            merge(&mut first, speech(2)),
            Merged::Gap,
            "the first is missing"
        );
        assert_eq!(merge(&mut first, speech(1)), Merged::Both);
        assert_eq!(merge(&mut first, speech(1)), Merged::Gap, "it has it");
        assert_eq!(merge(&mut first, speech(2)), Merged::Both);
    }
}

#[test]
fn a_full_state_does_not_take_in_somebody_unknown() {
    let mut state = Message::ToGateway(ToGateway::FeedFull(Arc::new(full(1, 1, Vec::new()))));
    let mut next = delta(1, 1, 2);
    next.upserts = vec![entity(7, 1, 1, false)];
    let next = Message::ToGateway(ToGateway::FeedDelta(Arc::new(next)));
    assert_eq!(merge(&mut state, next), Merged::Gap);
}
