//! Seals: after one, nothing of a lower number is ever visible.

use std::sync::Arc;

use uo_proto::{ObjectKey, RegionId};
use uo_server::limits::SEAL_BATCH_ROWS_MAX;
use uo_server::store::{Request, Stamp, Store};

use super::{a_character, a_region, character, done, objects};

/// Nor is it when there is nothing to seal; and a repeated seal undoes nothing.
pub async fn hide_late_writes_to_a_character<S: Store>(store: Arc<S>) {
    for number in [4, 1_700, 100_000_000] {
        let (id, empty) = (a_character(), a_character());
        let write = |char_id, number, n, row: &str| Request::CharacterWrite {
            char_id,
            stamp: Stamp { number, n },
            row: row.into(),
        };
        let seal = |char_id, row: Option<&str>| Request::CharacterSeal {
            char_id,
            number,
            row: row.map(Into::into),
        };
        done(&*store, write(id, number - 1, 8, "old")).await;
        done(&*store, seal(id, Some("sealed"))).await;
        done(&*store, write(id, number - 1, 9, "late")).await;
        done(&*store, write(id, number - 1, Stamp::N_MAX, "latest")).await;
        assert_eq!(character(&*store, id).await, Some("sealed".into()));
        done(&*store, write(id, number, 2, "served")).await;
        done(&*store, seal(id, Some("sealed"))).await;
        assert_eq!(character(&*store, id).await, Some("served".into()));

        done(&*store, write(empty, number - 1, 8, "old")).await;
        done(&*store, seal(empty, None)).await;
        done(&*store, write(empty, number - 1, 9, "late")).await;
        assert_eq!(character(&*store, empty).await, None);
        done(&*store, write(empty, number, 1, "born")).await;
        assert_eq!(character(&*store, empty).await, Some("born".into()));
    }
}

fn write(region: RegionId, number: u64, n: u32, index: u32, row: Option<&str>) -> Request {
    Request::ObjectsWrite {
        region,
        stamp: Stamp { number, n },
        rows: vec![(ObjectKey::new(region, index), row.map(Into::into))],
    }
}

/// Also at keys that the new holder never touches.
pub async fn hide_late_writes_to_objects<S: Store>(store: Arc<S>) {
    let region = a_region();
    let seal = Request::ObjectsSeal {
        region,
        number: 4,
        rows: vec![(ObjectKey::new(region, 1), b"sealed".to_vec())],
    };
    done(&*store, write(region, 3, 2, 1, Some("old"))).await;
    done(&*store, write(region, 3, 3, 2, Some("old"))).await;
    done(&*store, seal.clone()).await;
    for (index, row) in [
        (1, Some("late")),
        (2, Some("late")),
        (3, Some("late, at a new key")),
        (1, None),
    ] {
        done(&*store, write(region, 3, Stamp::N_MAX, index, row)).await;
    }
    let sealed = vec![(ObjectKey::new(region, 1), b"sealed".to_vec())];
    assert_eq!(objects(&*store, region).await, sealed);
    done(&*store, write(region, 4, 2, 1, None)).await;
    done(&*store, seal).await;
    assert_eq!(
        objects(&*store, region).await,
        vec![],
        "a repeated seal undoes nothing"
    );
}

/// As many as do not fit into one batch, none of them hidden by the seal's own deletion. Red with that at n = 1.
pub async fn leave_their_own_rows<S: Store>(store: Arc<S>) {
    let region = a_region();
    done(&*store, write(region, 1, 2, 4_000_000, Some("gone"))).await;
    let rows: Vec<_> = (0..SEAL_BATCH_ROWS_MAX as u32 * 2 + 10)
        .map(|index| (ObjectKey::new(region, index), vec![index as u8; 40]))
        .collect();
    let request = Request::ObjectsSeal {
        region,
        number: 2,
        rows: rows.clone(),
    };
    done(&*store, request.clone()).await;
    assert!(
        objects(&*store, region).await == rows,
        "not what was sealed"
    );
    done(&*store, request).await;
    assert!(
        objects(&*store, region).await == rows,
        "not what was sealed"
    );
}
