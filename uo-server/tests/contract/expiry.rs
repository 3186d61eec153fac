//! Rows with a time to live, and beats.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uo_proto::{CharId, RegionId};
use uo_server::identity::BootId;
use uo_server::store::{Reply, Request, SessionRow, Store, StoreError, TokenHash};

use super::{a_boot, a_region, ask, done, fresh};

/// How often it is looked whether a row is still there.
const LOOK: Duration = Duration::from_millis(20);

fn a_token() -> TokenHash {
    let mut token = [9; 32];
    token[..8].copy_from_slice(&fresh().to_be_bytes());
    TokenHash(token)
}

fn put(token: TokenHash, number: u64, ttl_s: u32) -> Request {
    let row = SessionRow {
        char_id: CharId(1 << 60),
        name: "Ada".into(),
        number,
    };
    Request::SessionPut { token, row, ttl_s }
}

async fn session(store: &impl Store, token: TokenHash) -> Option<SessionRow> {
    match ask(store, Request::SessionRead { token }).await {
        Reply::Session(row) => row,
        other => panic!("not a session: {other:?}"),
    }
}

/// The latest is there as it was written, until it is deleted.
pub async fn sessions_are_whole_or_gone<S: Store>(store: Arc<S>) {
    let token = a_token();
    assert_eq!(session(&*store, token).await, None);
    for number in [3, u64::MAX >> 1] {
        done(&*store, put(token, number, 1_000)).await;
        let there = session(&*store, token).await.expect("it is there");
        assert_eq!(
            (there.char_id, there.name.as_str()),
            (CharId(1 << 60), "Ada")
        );
        assert_eq!(there.number, number);
    }
    done(&*store, Request::SessionDelete { token }).await;
    assert_eq!(session(&*store, token).await, None);
    done(&*store, Request::SessionDelete { token }).await;
    let refused = store.call(put(token, 1, 0)).await;
    assert!(
        matches!(refused, Err(StoreError::Refused(_))),
        "there, 0 would be for ever: {refused:?}"
    );
}

/// A row written at any moment of a second lives to the beginning of a second: for more than `ttl - 1` seconds, and at
/// most `ttl`. (Plus what it takes to ask.)
pub async fn rows_expire_at_whole_seconds<S: Store>(store: Arc<S>) {
    const TTL_S: u32 = 3;
    let asking = Duration::from_millis(700);
    let (token, region, boot) = (a_token(), a_region(), a_boot());
    let begun = Instant::now();
    done(&*store, put(token, 1, TTL_S)).await;
    let regions = vec![region];
    done(
        &*store,
        Request::DemandPut {
            regions,
            ttl_s: TTL_S,
        },
    )
    .await;
    done(&*store, beat(boot, 1, "up", TTL_S)).await;
    let written = Instant::now();
    let mut there = [true; 3];
    while there.contains(&true) {
        let asked = Instant::now();
        let now = [
            session(&*store, token).await.is_some(),
            demand(&*store).await.contains(&region),
            rows_of(&*store, boot).await.is_some(),
        ];
        for (was, is) in there.iter_mut().zip(now) {
            assert!(*was || !is, "an expired row came back");
            if *was && !is {
                let lived_at_most = begun.elapsed();
                assert!(
                    lived_at_most > Duration::from_secs(u64::from(TTL_S) - 1),
                    "gone after {lived_at_most:?}"
                );
            }
            *was = is;
        }
        assert!(
            asked < written + Duration::from_secs(TTL_S.into()) + asking || !there.contains(&true),
            "still there after {:?}",
            written.elapsed()
        );
        tokio::time::sleep(LOOK).await;
    }
}

fn beat(boot: BootId, beat: u64, row: &str, ttl_s: u32) -> Request {
    Request::NodeBeat {
        node: "sim-1".into(),
        boot,
        beat,
        row: row.into(),
        ttl_s,
    }
}

async fn rows_of(store: &impl Store, boot: BootId) -> Option<String> {
    let Reply::Nodes(rows) = ask(store, Request::NodesRead).await else {
        panic!("not nodes")
    };
    let mut own = rows.into_iter().filter(|(_, there, _)| *there == boot);
    let (node, _, row) = own.next()?;
    assert_eq!((&*node.0, own.next()), ("sim-1", None));
    Some(String::from_utf8(row).expect("it is text"))
}

/// The beat is the stamp, whatever time of day the writer or the database believes it is.
pub async fn late_beats_lose<S: Store>(store: Arc<S>) {
    let boot = a_boot();
    for (number, row, there) in [
        (1, "first", "first"),
        (3, "third", "third"),
        (2, "second, late", "third"),
        (1_000_000_000_000, "far on", "far on"),
        (4, "fourth, very late", "far on"),
    ] {
        done(&*store, beat(boot, number, row, 60)).await;
        assert_eq!(rows_of(&*store, boot).await.as_deref(), Some(there));
    }
}

/// A restart under the same name writes beside the former row.
pub async fn every_boot_has_its_own_row<S: Store>(store: Arc<S>) {
    let (former, present) = (a_boot(), a_boot());
    done(&*store, beat(former, 900, "former", 60)).await;
    done(&*store, beat(present, 1, "present", 60)).await;
    assert_eq!(rows_of(&*store, former).await.as_deref(), Some("former"));
    assert_eq!(rows_of(&*store, present).await.as_deref(), Some("present"));
}

async fn demand(store: &impl Store) -> Vec<RegionId> {
    match ask(store, Request::DemandRead).await {
        Reply::Demand(regions) => regions,
        other => panic!("not demand: {other:?}"),
    }
}

/// Many at once, some of them twice; in order.
pub async fn demand_is_said_again<S: Store>(store: Arc<S>) {
    let regions: Vec<_> = (0..100).map(|_| a_region()).collect();
    let put = |regions: &[RegionId]| Request::DemandPut {
        regions: regions.to_vec(),
        ttl_s: 60,
    };
    done(&*store, put(&regions[..60])).await;
    done(&*store, put(&regions[40..])).await;
    done(&*store, put(&[])).await;
    let there = demand(&*store).await;
    assert!(there.is_sorted());
    for region in &regions {
        let times = there.iter().filter(|there| *there == region).count();
        assert_eq!(times, 1, "{region}");
    }
}
