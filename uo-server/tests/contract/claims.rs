//! Claims: leases of regions and ownership of characters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use uo_server::store::{Reply, Request, Right, Seen, Store};

use super::{a_character, a_region, ask, cas, cas_until_final, claim, holder, row};

/// How many race.
pub const RACERS: u128 = 32;

/// A claim is replaced only by who names holder, boot and number of what is there; a refusal shows the whole row.
pub async fn change_by_what_was_seen<S: Store>(store: Arc<S>) {
    for right in [Right::Region(a_region()), Right::Character(a_character())] {
        let (first, second) = (holder("sim-1", 1), holder("sim-1", 2));
        let taken = row(Some(first.clone()), 1, 10);
        assert_eq!(claim(&*store, right).await, None);
        let seen = |holder, number| Some(Seen { holder, number });
        // No row is no row, and a condition on it is refused.
        let to = row(Some(first.clone()), 1, 9);
        let refused = cas(&*store, right, seen(None, 0), to).await;
        assert_eq!(refused, (false, None));
        let to = row(Some(first.clone()), 2, 9);
        let refused = cas(&*store, right, seen(Some(first.clone()), 1), to).await;
        assert_eq!(refused, (false, None));

        assert_eq!(cas(&*store, right, None, taken.clone()).await, (true, None));
        let shown = (false, Some(taken.clone()));
        let other = row(Some(second.clone()), 1, 11);
        assert_eq!(cas(&*store, right, None, other).await, shown);
        for stale in [
            seen(Some(first.clone()), 2),
            seen(Some(first.clone()), 0),
            seen(Some(second.clone()), 1),
            seen(Some(holder("sim-2", 1)), 1),
            seen(None, 1),
        ] {
            assert_eq!(cas(&*store, right, stale, row(None, 3, 12)).await, shown);
        }
        let released = row(None, 2, 13);
        let done = cas(&*store, right, Some(taken.seen()), released.clone()).await;
        assert_eq!(done, (true, None));
        assert_eq!(claim(&*store, right).await, Some(released.clone()));
        let serial = false;
        assert_eq!(
            ask(&*store, Request::ClaimRead { right, serial }).await,
            Reply::Claim(Some(released.clone()))
        );
        let to = row(Some(first.clone()), 3, 14);
        let refused = cas(&*store, right, Some(taken.seen()), to.clone()).await;
        assert_eq!(refused, (false, Some(released.clone())));
        let retaken = cas(&*store, right, Some(released.seen()), to).await;
        assert_eq!(retaken, (true, None));
    }
}

/// Of many who race for one row, one wins each round.
pub async fn races_have_one_winner<S: Store>(store: Arc<S>) {
    let right = Right::Region(a_region());
    let mut seen = None;
    for round in 1..=10_u64 {
        let winners = Arc::new(AtomicU32::new(0));
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (store, winners, seen) = (store.clone(), winners.clone(), seen.clone());
                tokio::spawn(async move {
                    let nonce = u128::from(round) << 64 | racer;
                    let to = row(Some(holder("sim", racer)), round, nonce);
                    if cas_until_final(&*store, right, seen, to).await {
                        winners.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for racer in racers {
            racer.await.expect("a racer ends");
        }
        assert_eq!(winners.load(Ordering::Relaxed), 1, "round {round}");
        let won = claim(&*store, right).await.expect("somebody holds it");
        assert_eq!(won.number, round);
        seen = Some(won.seen());
    }
}

/// However many there are.
pub async fn every_lease_is_listed<S: Store>(store: Arc<S>) {
    let mut expected = Vec::new();
    for n in 1..=20 {
        let region = a_region();
        let row = row((n % 2 == 0).then(|| holder("sim-1", n)), 1, n);
        cas(&*store, Right::Region(region), None, row.clone()).await;
        expected.push((region, row));
    }
    let Reply::Leases(leases) = ask(&*store, Request::LeasesRead).await else {
        panic!("not leases")
    };
    assert!(leases.is_sorted_by_key(|(region, _)| *region));
    for lease in expected {
        assert!(leases.contains(&lease), "{lease:?}");
    }
}

/// The answer was lost, the same again is refused, and the refusal shows that it was ours.
pub async fn a_repeated_attempt_finds_its_nonce<S: Store>(store: Arc<S>) {
    let right = Right::Character(a_character());
    let me = holder("sim-1", 5);
    let first = row(Some(me.clone()), 1, 50);
    let second = row(Some(me), 2, 51);
    for (seen, to) in [(None, &first), (Some(first.seen()), &second)] {
        let applied = cas(&*store, right, seen.clone(), to.clone()).await;
        assert_eq!(applied, (true, None));
        let again = cas(&*store, right, seen, to.clone()).await;
        assert_eq!(again, (false, Some(to.clone())));
    }
}
