//! What is said, in one line and in bounded time, of a database that is of no use.

use std::sync::Arc;
use std::time::{Duration, Instant};

use uo_server::store::scylla::{Access, OpenError, Place, ScyllaStore, create};

use crate::harness::{Bench, Case, Needs, a_keyspace};

pub fn cases() -> Vec<Case> {
    vec![
        Case::new(
            "opening::says_what_is_wrong",
            Needs::Database,
            says_what_is_wrong,
        ),
        Case::new(
            "opening::makes_what_is_missing",
            Needs::Database,
            makes_what_is_missing,
        ),
    ]
}

async fn refusal(access: &Access) -> OpenError {
    let begun = Instant::now();
    let Err(error) = ScyllaStore::open(access.clone()).await else {
        panic!("it opened")
    };
    println!("  {error}");
    assert_eq!(error.to_string().lines().count(), 1, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(35), "{error}");
    error
}

fn at(bench: &Bench, keyspace: &str) -> Access {
    let mut access = bench.access.clone();
    access.place.keyspace = keyspace.into();
    access
}

async fn says_what_is_wrong(bench: Arc<Bench>) {
    // A port that was just given back: nothing listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let nowhere = Access {
        place: Place::parse(&free.expect("a port").to_string()).expect("a place"),
        login: None,
        translate: Vec::new(),
    };
    assert!(matches!(
        refusal(&nowhere).await,
        OpenError::Unreachable(..)
    ));

    // A port that takes connections and says nothing.
    let mute = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let mute_at = mute.local_addr().expect("its address").to_string();
    let access = Access {
        place: Place::parse(&mute_at).expect("a place"),
        login: None,
        translate: Vec::new(),
    };
    assert!(matches!(refusal(&access).await, OpenError::Unreachable(..)));

    let missing = at(&bench, &a_keyspace());
    let error = refusal(&missing).await;
    assert!(matches!(error, OpenError::NoKeyspace(_)));
    assert!(error.to_string().contains("uo-server schema --store"));

    let again = create(&bench.access, 1).await.expect("nothing is made");
    assert_eq!((again.keyspace, again.tables), (false, vec![]));
}

/// One keyspace, made, damaged, mended, and damaged again.
async fn makes_what_is_missing(bench: Arc<Bench>) {
    let access = at(&bench, &a_keyspace());
    let keyspace = access.place.keyspace.clone();
    let change = async |text: String| {
        let changed = bench.session.query_unpaged(text, ()).await;
        changed.expect("it is changed");
    };
    let first = create(&access, bench.replicas).await.expect("it is made");
    assert_eq!((first.keyspace, first.tables.len()), (true, 11));

    change(format!("DROP TABLE {keyspace}.sessions")).await;
    let error = refusal(&access).await;
    assert!(matches!(error, OpenError::NoTables(_, missing) if missing == "sessions"));
    let second = create(&access, bench.replicas).await.expect("it is made");
    assert_eq!((second.keyspace, second.tables), (false, vec!["sessions"]));
    ScyllaStore::open(access.clone()).await.expect("it opens");

    // A keyspace of its own: Cassandra changes no factor while a node is down.
    let spread = at(&bench, &a_keyspace());
    let replicas = u8::try_from(bench.nodes * 2 + 1).expect("a test has few nodes");
    let made = create(&spread, replicas).await;
    made.expect("more replicas than nodes are only warned of");
    let error = refusal(&spread).await;
    assert!(matches!(error, OpenError::TooFewNodes { .. }));
    bench.drop_keyspace(&spread.place.keyspace).await;

    change(format!("ALTER TABLE {keyspace}.objects DROP row")).await;
    let error = refusal(&access).await;
    assert!(matches!(error, OpenError::OtherTables(_, why) if why.contains("row")));
    bench.drop_keyspace(&keyspace).await;
}
