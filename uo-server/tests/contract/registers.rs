//! The other rows that change by compare-and-set only.

use std::sync::Arc;

use uo_server::identity::BootId;
use uo_server::store::{FaultRow, Reply, Request, Store, WorldRow};

use super::{a_region, ask};

/// The world is pinned by who comes first.
pub async fn the_world_is_pinned_once<S: Store>(store: Arc<S>) {
    let first = WorldRow {
        seed: u64::MAX,
        size: 1024,
        content: 1,
    };
    let pin = |row| ask(&*store, Request::WorldPin { row });
    assert_eq!(pin(first).await, Reply::World(first));
    let second = WorldRow { seed: 1, ..first };
    assert_eq!(pin(second).await, Reply::World(first));
    assert_eq!(pin(first).await, Reply::World(first));
}

/// The row is replaced only by who names all of it; an empty list is as good as any.
pub async fn faults_change_by_what_was_seen<S: Store>(store: Arc<S>) {
    let region = a_region();
    let cas = async |seen: Option<&FaultRow>, to: &FaultRow| {
        let (seen, to) = (seen.cloned(), to.clone());
        match ask(&*store, Request::FaultCas { region, seen, to }).await {
            Reply::FaultCas { applied, row } => (applied, row),
            other => panic!("not an answer to a compare-and-set: {other:?}"),
        }
    };
    let fault = |boots: &[u128], quarantined| FaultRow {
        panics: boots.iter().map(|boot| BootId(*boot)).collect(),
        quarantined,
    };
    let none = ask(&*store, Request::FaultRead { region }).await;
    assert_eq!(none, Reply::Fault(None));
    let steps = [
        fault(&[1], false),
        fault(&[1, 2], true),
        fault(&[], false),
        fault(&[3], false),
        fault(&[], true),
    ];
    assert_eq!(cas(Some(&steps[0]), &steps[1]).await, (false, None));
    assert_eq!(cas(Some(&steps[2]), &steps[1]).await, (false, None));
    assert_eq!(cas(None, &steps[0]).await, (true, None));
    for pair in steps.windows(2) {
        let (there, next) = (&pair[0], &pair[1]);
        let shown = (false, Some(there.clone()));
        for stale in [None, Some(next)] {
            assert_eq!(cas(stale, next).await, shown);
        }
        let half = fault(&[], !there.quarantined);
        assert_eq!(cas(Some(&half), next).await, shown);
        assert_eq!(cas(Some(there), next).await, (true, None));
        let read = ask(&*store, Request::FaultRead { region }).await;
        assert_eq!(read, Reply::Fault(Some(next.clone())));
    }
}
