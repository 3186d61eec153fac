//! Lives of boots.

use std::sync::Arc;

use uo_server::identity::BootId;
use uo_server::store::{Life, Reply, Request, Store};

use super::{a_boot, ask};

async fn life(store: &impl Store, boot: BootId) -> Option<Life> {
    match ask(store, Request::LifeRead { boot }).await {
        Reply::Life(life) => life,
        other => panic!("not a life: {other:?}"),
    }
}

async fn set(
    store: &impl Store,
    boot: BootId,
    from: Option<Life>,
    to: Life,
) -> (bool, Option<Life>) {
    match ask(store, Request::LifeCas { boot, from, to }).await {
        Reply::LifeCas { applied, row } => (applied, row),
        other => panic!("not an answer to a compare-and-set: {other:?}"),
    }
}

fn begin(boot: BootId) -> Request {
    Request::LifeBegin {
        node: "sim-1".into(),
        boot,
    }
}

/// A life is left only by who names it, and death not at all.
pub async fn dead_is_final<S: Store>(store: Arc<S>) {
    let (boot, ghost, nobody) = (a_boot(), a_boot(), a_boot());
    let alive = |n| Some(Life::Alive(n));
    let store = &*store;
    assert_eq!(life(store, boot).await, None);
    assert_eq!(ask(store, begin(boot)).await, Reply::Life(alive(1)));
    assert_eq!(
        ask(store, begin(boot)).await,
        Reply::Life(alive(1)),
        "begun again, it is what it was"
    );
    // Red without `life = n` among the conditions.
    assert_eq!(
        set(store, boot, alive(2), Life::Dead).await,
        (false, alive(1))
    );
    assert_eq!(
        set(store, boot, None, Life::Dead).await,
        (false, alive(1)),
        "who saw no row says nothing about one"
    );
    assert_eq!(
        set(store, boot, alive(1), Life::Alive(2)).await,
        (true, None)
    );
    assert_eq!(life(store, boot).await, alive(2));
    assert_eq!(set(store, boot, alive(2), Life::Dead).await, (true, None));
    // Red without `dead = false` among the conditions.
    let dead = Some(Life::Dead);
    for from in [alive(2), dead, alive(1)] {
        for to in [Life::Alive(3), Life::Dead] {
            assert_eq!(set(store, boot, from, to).await, (false, dead));
        }
    }
    assert_eq!(ask(store, begin(boot)).await, Reply::Life(dead));

    // A boot that was buried before it began never begins.
    assert_eq!(set(store, ghost, None, Life::Alive(1)).await, (false, None));
    assert_eq!(set(store, ghost, None, Life::Dead).await, (true, None));
    assert_eq!(ask(store, begin(ghost)).await, Reply::Life(dead));
    assert_eq!(life(store, ghost).await, dead);

    assert_eq!(
        set(store, nobody, alive(1), Life::Alive(2)).await,
        (false, None)
    );
    assert_eq!(
        set(store, nobody, alive(1), Life::Dead).await,
        (false, None)
    );
    assert_eq!(life(store, nobody).await, None, "nothing came of it");
}

/// Thaws against deaths: of all who name one life, one has its way; and nobody who comes after a death.
pub async fn races_have_one_winner<S: Store>(store: Arc<S>) {
    for round in 0..4 {
        let boot = a_boot();
        ask(&*store, begin(boot)).await;
        let mut now = 1;
        loop {
            let racers: Vec<_> = (0..16)
                .map(|racer| {
                    let to = match racer % 4 == round {
                        true => Life::Dead,
                        false => Life::Alive(now + 1),
                    };
                    let store = store.clone();
                    let from = Some(Life::Alive(now));
                    tokio::spawn(async move {
                        match store.call(Request::LifeCas { boot, from, to }).await {
                            Ok(Reply::LifeCas { applied: true, .. }) => Some(to),
                            Ok(_) | Err(_) => None,
                        }
                    })
                })
                .collect();
            let mut won = Vec::new();
            for racer in racers {
                won.extend(racer.await.expect("a racer ends"));
            }
            assert!(won.len() <= 1, "{won:?} all had their way");
            match (life(&*store, boot).await, won.first()) {
                (Some(Life::Dead), None | Some(Life::Dead)) => break,
                (Some(Life::Alive(n)), None | Some(Life::Alive(_))) if n == now + 1 => now = n,
                // Everybody's outcome is unknown, and nothing came of it (yet): the same again.
                (Some(Life::Alive(n)), None) if n == now => {}
                (there, won) => panic!("{won:?} won and it is {there:?}"),
            }
            if now > 20 {
                break;
            }
        }
    }
}
