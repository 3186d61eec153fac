//! Stamped writes: the later stamp wins, whenever it arrives.

use std::sync::Arc;

use uo_proto::{CharId, ObjectKey, RegionId};
use uo_server::limits::OBJECT_WRITE_ROWS_MAX;
use uo_server::store::{Request, Stamp, Store, StoreError};

use super::{a_character, a_region, character, done, objects};

fn write(char_id: CharId, number: u64, n: u32, row: &str) -> Request {
    Request::CharacterWrite {
        char_id,
        stamp: Stamp { number, n },
        row: row.into(),
    }
}

fn write_object(region: RegionId, index: u32, stamp: Stamp, row: Option<&str>) -> Request {
    Request::ObjectsWrite {
        region,
        stamp,
        rows: vec![(ObjectKey::new(region, index), row.map(Into::into))],
    }
}

/// A write under a lower number, or earlier under the same, loses; at the first numbers, where `number << 40` would be
/// three days ahead, and far on.
pub async fn stale_writes_lose<S: Store>(store: Arc<S>) {
    for generation in [1, 1_700, 100_000_000] {
        let id = a_character();
        for (number, n, row, there) in [
            (generation, 5, "new", "new"),
            (generation, 4, "older", "new"),
            (generation - 1, Stamp::N_MAX, "former owner", "new"),
            (generation, 6, "newer", "newer"),
            (generation + 1, 1, "next owner", "next owner"),
            (generation, Stamp::N_MAX, "former owner", "next owner"),
        ] {
            done(&*store, write(id, number, n, row)).await;
            assert_eq!(
                character(&*store, id).await,
                Some(there.into()),
                "after {row:?} of {number}"
            );
        }
    }
}

/// A delete is a write: it wins over earlier ones and loses to later ones.
pub async fn deletes_are_stamped<S: Store>(store: Arc<S>) {
    let region = a_region();
    for (n, row, there) in [
        (3, Some("there"), Some("there")),
        (2, None, Some("there")),
        (5, None, None),
        (4, Some("late"), None),
        (6, Some("again"), Some("again")),
    ] {
        done(
            &*store,
            write_object(region, 1, Stamp { number: 1, n }, row),
        )
        .await;
        let expected: Vec<(ObjectKey, Vec<u8>)> = there
            .map(|row| (ObjectKey::new(region, 1), row.into()))
            .into_iter()
            .collect();
        assert_eq!(objects(&*store, region).await, expected, "after {row:?}");
    }
    let other = a_region();
    assert_eq!(objects(&*store, other).await, vec![]);
}

/// The last stamp of a number loses to the first of the next, and a stamp beyond it is refused, not taken for the next
/// number's.
pub async fn a_number_ends_before_the_next_begins<S: Store>(store: Arc<S>) {
    let id = a_character();
    done(&*store, write(id, 7, Stamp::N_MAX, "last of 7")).await;
    for (number, n) in [(7, Stamp::N_MAX + 1), (Stamp::NUMBER_MAX + 1, 1)] {
        let refused = store.call(write(id, number, n, "too far")).await;
        assert!(
            matches!(refused, Err(StoreError::Refused(_))),
            "{refused:?}"
        );
    }
    assert_eq!(character(&*store, id).await, Some("last of 7".into()));
    done(&*store, write(id, 8, 1, "first of 8")).await;
    assert_eq!(character(&*store, id).await, Some("first of 8".into()));
}

/// No caller relies on it, since a stamp is never used twice; but the model must be like the databases in this too. A
/// deletion wins a tie, which is why a seal's rows must not carry its stamp.
pub async fn ties_are_settled_as_the_databases_do<S: Store>(store: Arc<S>) {
    let region = a_region();
    let stamp = Stamp { number: 3, n: 4 };
    for (index, first, second, there) in [
        (1, Some("a"), Some("b"), Some("b")),
        (2, Some("b"), Some("a"), Some("b")),
        (3, Some("a"), None, None),
        (4, None, Some("a"), None),
    ] {
        for row in [first, second] {
            done(&*store, write_object(region, index, stamp, row)).await;
        }
        let key = ObjectKey::new(region, index);
        let rows = objects(&*store, region).await;
        let found = rows.into_iter().find(|(there, _)| *there == key);
        assert_eq!(
            found.map(|(_, row)| row),
            there.map(|row| row.as_bytes().to_vec()),
            "{first:?}, then {second:?}"
        );
    }
}

/// The most rows of one write, each far larger than an object is, and every page of what they add up to.
pub async fn batches_are_as_large_as_they_get<S: Store>(store: Arc<S>) {
    let region = a_region();
    let writes = 12;
    for part in 0..writes {
        let rows = (0..OBJECT_WRITE_ROWS_MAX as u32).map(|index| {
            let key = ObjectKey::new(region, part * OBJECT_WRITE_ROWS_MAX as u32 + index);
            (key, Some(vec![part as u8; 300]))
        });
        let request = Request::ObjectsWrite {
            region,
            stamp: Stamp {
                number: 1,
                n: part + 2,
            },
            rows: rows.collect(),
        };
        done(&*store, request).await;
    }
    let there = objects(&*store, region).await;
    assert_eq!(there.len(), writes as usize * OBJECT_WRITE_ROWS_MAX);
    assert!(there.is_sorted_by_key(|(key, _)| *key));
    assert!(there.iter().all(|(_, row)| row.len() == 300));
}
