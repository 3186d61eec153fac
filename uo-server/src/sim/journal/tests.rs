use super::*;
use proptest::prelude::*;
use uo_proto::{ObjectKind, RUNTIME_OBJECT_BIT};

const REGION: RegionId = RegionId(5);

fn object(index: u32, hits: u16, gone: bool) -> ObjectState {
    ObjectState {
        key: ObjectKey::new(REGION, index),
        kind: ObjectKind::Wall,
        x: 1,
        y: 2,
        edge: None,
        hits,
        active: false,
        gone,
    }
}

/// Rows as last write wins leaves them, whatever the order of arrival.
#[derive(Default)]
struct Rows(BTreeMap<ObjectKey, (Stamp, Option<Vec<u8>>)>);

impl Rows {
    fn write(&mut self, request: &Request) {
        let Request::ObjectsWrite { stamp, rows, .. } = request else {
            panic!("not a write: {request:?}");
        };
        for (key, row) in rows {
            let slot = self.0.entry(*key).or_insert((*stamp, row.clone()));
            if *stamp >= slot.0 {
                *slot = (*stamp, row.clone());
            }
        }
    }

    fn objects(&self) -> Vec<ObjectState> {
        let rows: Vec<_> = self
            .0
            .iter()
            .filter_map(|(&key, (_, row))| Some((key, row.clone()?)))
            .collect();
        read_rows(&rows).expect("our own rows").objects
    }
}

fn stamp_of(request: &Request) -> Stamp {
    match request {
        Request::ObjectsWrite { stamp, .. } => *stamp,
        other => panic!("not a write: {other:?}"),
    }
}

#[test]
fn one_write_at_a_time_and_the_newest_state_of_each_object() {
    let mut journal = Journal::new(REGION, 7);
    assert!(journal.is_flushed());
    assert_eq!(journal.flushed_through(), u64::MAX);
    let first = journal
        .record(10, &[object(1, 9, false)])
        .expect("nothing is under way");
    assert_eq!(stamp_of(&first), Stamp { number: 7, n: 2 });
    assert_eq!(journal.record(11, &[object(1, 8, false)]), None);
    assert_eq!(
        journal.record(12, &[object(1, 7, false), object(2, 7, false)]),
        None
    );
    assert_eq!(journal.flushed_through(), 9);

    let second = journal.acked(stamp_of(&first)).expect("there is more");
    assert_eq!(journal.flushed_through(), 10);
    let Request::ObjectsWrite { stamp, rows, .. } = &second else {
        panic!("not a write");
    };
    assert_eq!((stamp.n, rows.len()), (3, 2));
    assert_eq!(
        journal.acked(stamp_of(&first)),
        None,
        "a late answer ends nothing"
    );
    assert!(!journal.is_flushed());
    assert_eq!(journal.acked(stamp_of(&second)), None);
    assert!(journal.is_flushed());
}

#[test]
fn what_was_made_at_run_time_and_is_gone_is_deleted() {
    let mut journal = Journal::new(REGION, 1);
    let gone = [object(1, 0, true), object(RUNTIME_OBJECT_BIT | 1, 0, true)];
    let Some(Request::ObjectsWrite { rows, .. }) = journal.record(1, &gone) else {
        panic!("no write");
    };
    assert!(
        rows[0].1.is_some(),
        "it would be generated again without its row"
    );
    assert_eq!(rows[1].1, None);
    assert_eq!(seal_rows(1, &gone).len(), 1);
}

#[test]
fn the_last_stamp_of_an_epoch_is_not_passed() {
    let mut journal = Journal::new(REGION, 3);
    journal.next_n = Stamp::N_MAX;
    let last = journal
        .record(1, &[object(1, 1, false)])
        .expect("one is left");
    assert_eq!(stamp_of(&last).n, Stamp::N_MAX);
    assert_eq!(journal.record(2, &[object(1, 2, false)]), None);
    assert_eq!(journal.acked(stamp_of(&last)), None);
    assert!(journal.is_exhausted() && !journal.is_flushed());
    journal.renew(4);
    assert!(!journal.is_exhausted() && journal.is_flushed());
    let next = journal
        .record(3, &[object(1, 3, false)])
        .expect("a new epoch");
    assert_eq!(stamp_of(&next), Stamp { number: 4, n: 2 });
}

#[test]
fn a_large_change_goes_in_bounded_writes() {
    let mut journal = Journal::new(REGION, 1);
    let many: Vec<_> = (0..600).map(|index| object(index, 1, false)).collect();
    let mut next = journal.record(4, &many);
    let mut sizes = Vec::new();
    while let Some(write) = next {
        assert_eq!(journal.flushed_through(), 3);
        let Request::ObjectsWrite { rows, .. } = &write else {
            panic!("not a write");
        };
        let bytes: usize = rows
            .iter()
            .filter_map(|(_, row)| row.as_ref())
            .map(Vec::len)
            .sum();
        assert!(bytes < 50 * 1024, "{bytes} bytes in one batch");
        sizes.push(rows.len());
        next = journal.acked(stamp_of(&write));
    }
    assert_eq!(sizes, [256, 256, 88]);
    assert!(journal.is_flushed());
}

#[derive(Clone, Debug)]
enum Act {
    Change {
        index: u32,
        hits: u16,
        gone: bool,
    },
    /// The write under way is answered; `applied` now, or kept to arrive later.
    Ack,
    Fail {
        applied: bool,
    },
    Retry,
    /// The oldest write that failed arrives after all.
    Late,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..6u32, 0..50u16, any::<bool>()).prop_map(|(index, hits, gone)| Act::Change {
            index: if index < 3 { index } else { index | RUNTIME_OBJECT_BIT },
            hits,
            gone,
        }),
        3 => Just(Act::Ack),
        2 => any::<bool>().prop_map(|applied| Act::Fail { applied }),
        2 => Just(Act::Retry),
        1 => Just(Act::Late),
    ]
}

proptest! {
    /// Red when a retry repeats its stamp, when a failed batch overwrites what changed meanwhile, and when
    /// `flushed_through` forgets the write under way.
    #[test]
    fn what_is_flushed_is_stored(acts in proptest::collection::vec(act(), 0..80)) {
        let mut journal = Journal::new(REGION, 2);
        let mut rows = Rows::default();
        let mut truth: BTreeMap<ObjectKey, (u64, ObjectState)> = BTreeMap::new();
        let (mut flight, mut late) = (None::<Request>, Vec::new());
        let mut stamps = Vec::new();
        let rest = (0..40).flat_map(|_| [Act::Late, Act::Ack, Act::Retry]);
        for (tick, act) in (1..).zip(acts.into_iter().chain(rest)) {
            let sent = match act {
                Act::Change { index, hits, gone } => {
                    let object = object(index, hits, gone);
                    truth.insert(object.key, (tick, object));
                    journal.record(tick, &[object])
                }
                Act::Ack => match flight.take() {
                    Some(write) => {
                        rows.write(&write);
                        journal.acked(stamp_of(&write))
                    }
                    None => None,
                },
                Act::Fail { applied } => {
                    if let Some(write) = flight.take() {
                        journal.failed(stamp_of(&write));
                        if applied {
                            rows.write(&write);
                        } else {
                            late.push(write);
                        }
                    }
                    None
                }
                Act::Retry => journal.next_write(),
                Act::Late => {
                    if !late.is_empty() {
                        rows.write(&late.remove(0));
                    }
                    None
                }
            };
            if let Some(write) = sent {
                prop_assert!(flight.is_none(), "two writes under way");
                stamps.push(stamp_of(&write));
                flight = Some(write);
            }
            prop_assert!(stamps.is_sorted_by(|a, b| a < b), "a stamp was used twice");
            let stored = rows.objects();
            for (changed, object) in truth.values() {
                if *changed <= journal.flushed_through() {
                    let leaves_nothing = object.gone && object.key.is_runtime();
                    prop_assert_eq!(stored.contains(object), !leaves_nothing);
                }
            }
        }
        prop_assert!(journal.is_flushed() && late.is_empty());
        let left: Vec<_> = truth
            .values()
            .map(|(_, object)| *object)
            .filter(|object| !(object.gone && object.key.is_runtime()))
            .collect();
        prop_assert_eq!(rows.objects(), left);
    }
}
