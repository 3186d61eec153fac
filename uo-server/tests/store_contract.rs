//! The stores of one process, under the contract of all stores.

mod contract;

use std::path::Path;
use std::sync::Arc;

use contract::{a_boot, a_character, ask, cases, character, done};
use uo_server::store::local::LocalStore;
use uo_server::store::mem::MemStore;
use uo_server::store::{Life, Reply, Request, Stamp, Store};

async fn passes<S: Store>(store: S) {
    let store = Arc::new(store);
    let mut running = Vec::new();
    for (name, case) in cases() {
        // Side by side, because some of them wait for rows to expire.
        running.push((name, tokio::spawn(case(store.clone()))));
    }
    for (name, case) in running {
        if let Err(error) = case.await {
            panic!("{name}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mem_contract() {
    passes(MemStore::default()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_contract() {
    let dir = tempfile::tempdir().expect("a folder");
    passes(LocalStore::open(dir.path()).expect("it opens")).await;
}

/// Everything acknowledged is there after a restart, older boots are dead, and two servers never share a folder.
#[tokio::test]
async fn local_survives_a_restart() {
    let dir = tempfile::tempdir().expect("a folder");
    let (char_id, boot) = (a_character(), a_boot());
    {
        let store = LocalStore::open(dir.path()).expect("it opens");
        let second = LocalStore::open(dir.path());
        let error = second.err().expect("the folder is taken").to_string();
        assert!(error.contains("in use by another server"), "{error}");
        let begin = Request::LifeBegin {
            node: "all-1".into(),
            boot,
        };
        assert_eq!(ask(&store, begin).await, Reply::Life(Some(Life::Alive(1))));
        let write = Request::CharacterWrite {
            char_id,
            stamp: Stamp { number: 1, n: 1 },
            row: "kept".into(),
        };
        done(&store, write).await;
    }
    let store = reopen(dir.path());
    assert_eq!(character(&store, char_id).await, Some("kept".into()));
    assert_eq!(
        ask(&store, Request::LifeRead { boot }).await,
        Reply::Life(Some(Life::Dead))
    );
}

/// The thread of a dropped store closes the file a moment later: opening again waits for that lock.
fn reopen(dir: &Path) -> LocalStore {
    loop {
        match LocalStore::open(dir) {
            Ok(store) => return store,
            Err(error) if error.to_string().contains("in use") => std::thread::yield_now(),
            Err(error) => panic!("{error:#}"),
        }
    }
}
