//! One suite that every store must pass: what the cluster relies on, and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use uo_proto::{CharId, ObjectKey, RegionId};

use super::local::LocalStore;
use super::mem::MemStore;
use super::*;

fn holder(node: &str, boot: u128) -> Holder {
    Holder {
        node: node.into(),
        boot: BootId(boot),
    }
}

fn row(holder: Option<Holder>, number: u64, nonce: u128) -> ClaimRow {
    ClaimRow {
        holder,
        number,
        nonce: Nonce(nonce),
    }
}

async fn ask(store: &impl Store, request: Request) -> Reply {
    store.call(request).await.expect("the store answers")
}

async fn cas(
    store: &impl Store,
    right: Right,
    seen: Option<Seen>,
    to: ClaimRow,
) -> (bool, Option<ClaimRow>) {
    match ask(store, Request::ClaimCas { right, seen, to }).await {
        Reply::ClaimCas { applied, row } => (applied, row),
        other => panic!("not an answer to a compare-and-set: {other:?}"),
    }
}

async fn character(store: &impl Store, char_id: CharId) -> Option<Vec<u8>> {
    match ask(store, Request::CharacterRead { char_id }).await {
        Reply::Character(row) => row,
        other => panic!("not a character: {other:?}"),
    }
}

async fn objects(store: &impl Store, region: RegionId) -> Vec<(ObjectKey, Vec<u8>)> {
    match ask(store, Request::ObjectsRead { region }).await {
        Reply::Objects(rows) => rows,
        other => panic!("not objects: {other:?}"),
    }
}

/// A claim is replaced only by who names holder, boot and number of what is there; a refusal shows the nonce.
async fn claims_change_by_what_was_seen(store: &impl Store) {
    for right in [
        Right::Region(RegionId(7)),
        Right::Character(CharId(1 << 50)),
    ] {
        let (first, second) = (holder("sim-1", 1), holder("sim-1", 2));
        let taken = row(Some(first.clone()), 1, 10);
        assert_eq!(cas(store, right, None, taken.clone()).await, (true, None));
        assert_eq!(
            cas(store, right, None, row(Some(second.clone()), 1, 11)).await,
            (false, Some(taken.clone()))
        );
        let stale = [
            Seen {
                holder: Some(first.clone()),
                number: 2,
            },
            Seen {
                holder: Some(second.clone()),
                number: 1,
            },
            Seen {
                holder: None,
                number: 1,
            },
        ];
        for seen in stale {
            assert_eq!(
                cas(store, right, Some(seen), row(None, 3, 12)).await,
                (false, Some(taken.clone()))
            );
        }
        let released = row(None, 2, 13);
        assert_eq!(
            cas(store, right, Some(taken.seen()), released.clone()).await,
            (true, None)
        );
        assert_eq!(
            ask(
                store,
                Request::ClaimRead {
                    right,
                    serial: true
                }
            )
            .await,
            Reply::Claim(Some(released.clone()))
        );
        assert_eq!(
            cas(store, right, Some(taken.seen()), row(Some(first), 2, 14)).await,
            (false, Some(released))
        );
    }
    let Reply::Leases(leases) = ask(store, Request::LeasesRead).await else {
        panic!("not leases")
    };
    assert_eq!(leases, vec![(RegionId(7), row(None, 2, 13))]);
}

/// Of many who race for one row, one wins each round.
async fn races_have_one_winner(store: &Arc<impl Store>) {
    const RACERS: u128 = 32;
    let right = Right::Region(RegionId(9));
    let mut seen = None;
    for round in 1..=10_u64 {
        let winners = Arc::new(AtomicU32::new(0));
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (store, winners, seen) = (store.clone(), winners.clone(), seen.clone());
                tokio::spawn(async move {
                    let to = row(Some(holder("sim", racer)), round, racer);
                    if cas(&*store, right, seen, to).await.0 {
                        winners.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.await.expect("a racer ends");
        }
        assert_eq!(winners.load(Ordering::Relaxed), 1, "round {round}");
        let Reply::Claim(Some(won)) = ask(
            &**store,
            Request::ClaimRead {
                right,
                serial: true,
            },
        )
        .await
        else {
            panic!("nobody holds it")
        };
        assert_eq!(won.number, round);
        seen = Some(won.seen());
    }
}

/// Dead is for ever, and a life is left only by who names it.
async fn dead_is_final(store: &impl Store) {
    let (boot, ghost) = (BootId(77), BootId(78));
    let life = |boot| ask(store, Request::LifeRead { boot });
    assert_eq!(life(boot).await, Reply::Life(None));
    let begin = Request::LifeBegin {
        node: "sim-1".into(),
        boot,
    };
    assert_eq!(
        ask(store, begin.clone()).await,
        Reply::Life(Some(Life::Alive(1)))
    );
    let set = |boot, from, to| ask(store, Request::LifeCas { boot, from, to });
    let refused = |row| Reply::LifeCas {
        applied: false,
        row,
    };
    let applied = Reply::LifeCas {
        applied: true,
        row: None,
    };
    assert_eq!(
        set(boot, Some(Life::Alive(2)), Life::Dead).await,
        refused(Some(Life::Alive(1)))
    );
    assert_eq!(
        set(boot, Some(Life::Alive(1)), Life::Alive(2)).await,
        applied
    );
    assert_eq!(set(boot, Some(Life::Alive(2)), Life::Dead).await, applied);
    assert_eq!(
        set(boot, Some(Life::Alive(2)), Life::Alive(3)).await,
        refused(Some(Life::Dead))
    );
    assert_eq!(
        set(boot, Some(Life::Dead), Life::Alive(3)).await,
        refused(Some(Life::Dead))
    );
    assert_eq!(ask(store, begin).await, Reply::Life(Some(Life::Dead)));
    assert_eq!(set(ghost, None, Life::Alive(1)).await, refused(None));
    assert_eq!(set(ghost, None, Life::Dead).await, applied);
    let begin = Request::LifeBegin {
        node: "sim-1".into(),
        boot: ghost,
    };
    assert_eq!(ask(store, begin).await, Reply::Life(Some(Life::Dead)));
}

/// A write under a lower number, or earlier under the same, loses whenever it arrives.
async fn stale_writes_lose(store: &impl Store) {
    for (at, generation) in [1_u64, 1_700, 100_000_000].into_iter().enumerate() {
        let char_id = CharId((1 << 50) + at as u64);
        let write = |number, n, row: &str| {
            let stamp = Stamp { number, n };
            ask(
                store,
                Request::CharacterWrite {
                    char_id,
                    stamp,
                    row: row.into(),
                },
            )
        };
        assert_eq!(write(generation, 5, "new").await, Reply::Done);
        assert_eq!(write(generation, 4, "older").await, Reply::Done);
        assert_eq!(
            write(generation - 1, Stamp::N_MAX, "former owner").await,
            Reply::Done
        );
        assert_eq!(character(store, char_id).await, Some("new".into()));
        assert_eq!(write(generation, 6, "newer").await, Reply::Done);
        assert_eq!(character(store, char_id).await, Some("newer".into()));
    }
}

/// After a seal nothing of a lower number is ever visible, not at keys that the new holder never touches either.
async fn seals_hide_late_writes(store: &impl Store) {
    let char_id = CharId((1 << 50) + 100);
    let late = Request::CharacterWrite {
        char_id,
        stamp: Stamp { number: 3, n: 9 },
        row: "late".into(),
    };
    ask(
        store,
        Request::CharacterWrite {
            char_id,
            stamp: Stamp { number: 3, n: 8 },
            row: "old".into(),
        },
    )
    .await;
    let seal = Request::CharacterSeal {
        char_id,
        number: 4,
        row: Some("sealed".into()),
    };
    ask(store, seal.clone()).await;
    ask(store, late.clone()).await;
    assert_eq!(character(store, char_id).await, Some("sealed".into()));
    ask(
        store,
        Request::CharacterWrite {
            char_id,
            stamp: Stamp { number: 4, n: 2 },
            row: "served".into(),
        },
    )
    .await;
    ask(store, seal).await;
    assert_eq!(
        character(store, char_id).await,
        Some("served".into()),
        "a repeated seal undoes nothing"
    );
    let empty = CharId((1 << 50) + 101);
    ask(
        store,
        Request::CharacterSeal {
            char_id: empty,
            number: 4,
            row: None,
        },
    )
    .await;
    let late = Request::CharacterWrite {
        char_id: empty,
        stamp: Stamp { number: 3, n: 9 },
        row: "late".into(),
    };
    ask(store, late).await;
    assert_eq!(character(store, empty).await, None);

    let region = RegionId(11);
    let key = |index| ObjectKey::new(region, index);
    let write = |number, n, index, row: Option<&str>| {
        let rows = vec![(key(index), row.map(Into::into))];
        ask(
            store,
            Request::ObjectsWrite {
                region,
                stamp: Stamp { number, n },
                rows,
            },
        )
    };
    write(3, 2, 1, Some("old")).await;
    write(3, 3, 2, Some("old")).await;
    let rows = vec![(key(1), b"sealed".to_vec())];
    ask(
        store,
        Request::ObjectsSeal {
            region,
            number: 4,
            rows,
        },
    )
    .await;
    write(3, 9, 1, Some("late")).await;
    write(3, 9, 2, Some("late")).await;
    write(3, 9, 3, Some("late, at a new key")).await;
    write(3, 9, 1, None).await;
    assert_eq!(
        objects(store, region).await,
        vec![(key(1), b"sealed".to_vec())]
    );
}

/// A delete is a write: it wins over earlier ones and loses to later ones.
async fn deletes_are_stamped(store: &impl Store) {
    let region = RegionId(12);
    let key = |index| ObjectKey::new(region, index);
    let write = |n, row: Option<&str>| {
        let rows = vec![(key(1), row.map(Into::into))];
        ask(
            store,
            Request::ObjectsWrite {
                region,
                stamp: Stamp { number: 1, n },
                rows,
            },
        )
    };
    write(3, Some("there")).await;
    write(2, None).await;
    assert_eq!(
        objects(store, region).await,
        vec![(key(1), b"there".to_vec())]
    );
    write(5, None).await;
    write(4, Some("late")).await;
    assert_eq!(objects(store, region).await, vec![]);
    write(6, Some("again")).await;
    assert_eq!(
        objects(store, region).await,
        vec![(key(1), b"again".to_vec())]
    );
    let other = ObjectKey::new(RegionId(13), 1);
    assert_eq!(
        objects(store, RegionId(13)).await,
        vec![],
        "{other} is another region's"
    );
}

/// A session is whole or gone, and gone after its time.
async fn sessions_expire(store: &impl Store) {
    let token = TokenHash([5; 32]);
    let session = SessionRow {
        char_id: CharId(1 << 60),
        name: "Ada".into(),
        number: 3,
    };
    let put = |ttl_s| {
        ask(
            store,
            Request::SessionPut {
                token,
                row: session.clone(),
                ttl_s,
            },
        )
    };
    put(1_000).await;
    assert_eq!(
        ask(store, Request::SessionRead { token }).await,
        Reply::Session(Some(session.clone()))
    );
    ask(store, Request::SessionDelete { token }).await;
    assert_eq!(
        ask(store, Request::SessionRead { token }).await,
        Reply::Session(None)
    );
}

/// The world is pinned by who comes first.
async fn the_world_is_pinned_once(store: &impl Store) {
    let first = WorldRow {
        seed: u64::MAX,
        size: 1024,
        content: 1,
    };
    assert_eq!(
        ask(store, Request::WorldPin { row: first }).await,
        Reply::World(first)
    );
    let second = WorldRow { seed: 1, ..first };
    assert_eq!(
        ask(store, Request::WorldPin { row: second }).await,
        Reply::World(first)
    );
}

async fn contract(store: impl Store) {
    let store = Arc::new(store);
    claims_change_by_what_was_seen(&*store).await;
    races_have_one_winner(&store).await;
    dead_is_final(&*store).await;
    stale_writes_lose(&*store).await;
    seals_hide_late_writes(&*store).await;
    deletes_are_stamped(&*store).await;
    sessions_expire(&*store).await;
    the_world_is_pinned_once(&*store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mem_contract() {
    contract(MemStore::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_contract() {
    let dir = tempfile::tempdir().expect("a folder");
    contract(LocalStore::open(dir.path()).expect("it opens")).await;
}

/// Everything acknowledged is there after a restart, older boots are dead, and two servers never share a folder.
#[tokio::test]
async fn local_survives_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let char_id = CharId(1 << 50);
    let boot = BootId(5);
    {
        let store = LocalStore::open(dir.path()).expect("it opens");
        let error = LocalStore::open(dir.path())
            .err()
            .expect("the folder is taken");
        assert!(
            error.to_string().contains("in use by another server"),
            "{error}"
        );
        ask(
            &store,
            Request::LifeBegin {
                node: "all-1".into(),
                boot,
            },
        )
        .await;
        ask(
            &store,
            Request::CharacterWrite {
                char_id,
                stamp: Stamp { number: 1, n: 1 },
                row: "kept".into(),
            },
        )
        .await;
    }
    let store = reopen(dir.path());
    assert_eq!(character(&store, char_id).await, Some("kept".into()));
    assert_eq!(
        ask(&store, Request::LifeRead { boot }).await,
        Reply::Life(Some(Life::Dead))
    );
}

/// The thread of a dropped store closes the file a moment later: opening again waits for that lock.
fn reopen(dir: &std::path::Path) -> LocalStore {
    loop {
        match LocalStore::open(dir) {
            Ok(store) => return store,
            Err(error) if error.to_string().contains("in use") => std::thread::yield_now(),
            Err(error) => panic!("{error:#}"),
        }
    }
}
