//! Time: what a request takes, what it may take at most, and that many do not delay the few that keep a node alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use uo_server::identity::BootId;
use uo_server::limits::{
    BEAT_MS, BEAT_TIMEOUT_MS, FENCE_MS, STORE_BULK_IN_FLIGHT_MAX, STORE_CAS_TIMEOUT_MS,
    STORE_PLAIN_TIMEOUT_MS,
};
use uo_server::store::{Request, Right, Stamp, Store, StoreError};

use crate::contract::{a_boot, a_character, a_region, ask, done, holder, row};
use crate::harness::{Bench, Case, Needs};
use crate::unknown::through_a_proxy;

/// What a busy machine adds to a time-out.
const SLACK: Duration = Duration::from_millis(300);

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("pace::latencies", Needs::Database, latencies),
        Case::new(
            "pace::a_flood_delays_no_beat",
            Needs::Database,
            a_flood_delays_no_beat,
        ),
        Case::new(
            "pace::silence_ends_in_time_and_is_left_behind",
            Needs::OneNode,
            silence,
        ),
    ]
}

fn beat(boot: BootId, beat: u64) -> Request {
    Request::NodeBeat {
        node: "sim-1".into(),
        boot,
        beat,
        row: vec![7; 200],
        ttl_s: 3_600,
    }
}

fn write(n: u32, bytes: usize) -> Request {
    Request::CharacterWrite {
        char_id: a_character(),
        stamp: Stamp { number: 1, n },
        row: vec![1; bytes],
    }
}

/// Not judged, but told: so many of each, one after the other, then the compare-and-sets all at once.
async fn latencies(bench: Arc<Bench>) {
    const TIMES: u32 = 200;
    let store = &*bench.store;
    let (boot, char_id) = (a_boot(), a_character());
    let tell = |what: &str, times: &Histogram<u64>| {
        let ms = |quantile| times.value_at_quantile(quantile) as f64 / 1e3;
        println!(
            "  {what:16} p50 {:6.1} ms   p99 {:6.1} ms   max {:6.1} ms",
            ms(0.5),
            ms(0.99),
            times.max() as f64 / 1e3
        );
    };
    let each = async |what: &str, request: &(dyn Fn(u32) -> Request + Sync)| {
        let mut times = Histogram::new(3).expect("three digits");
        for n in 1..=TIMES {
            let begun = Instant::now();
            ask(store, request(n)).await;
            times += begun.elapsed().as_micros() as u64;
        }
        tell(what, &times);
    };
    each("beat", &|n| beat(boot, n.into())).await;
    each("read of nodes", &|_| Request::NodesRead).await;
    each("stamped write", &|n| write(n + 1, 1_000)).await;
    each("read", &|_| Request::CharacterRead { char_id }).await;
    each("seal", &|_| Request::CharacterSeal {
        char_id: a_character(),
        number: 1,
        row: Some(vec![1; 1_000]),
    })
    .await;
    let insert = |nonce| Request::ClaimCas {
        right: Right::Character(a_character()),
        seen: None,
        to: row(Some(holder("sim-1", 1)), 1, nonce),
    };
    each("compare-and-set", &|n| insert(n.into())).await;
    let right = Right::Character(a_character());
    let serial = true;
    each("serial read", &|_| Request::ClaimRead { right, serial }).await;
    let begun = Instant::now();
    let mut times = Histogram::new(3).expect("three digits");
    let at_once: Vec<_> = (0..256)
        .map(|n| {
            let (store, request) = (bench.store.clone(), insert(1_000 + n));
            tokio::spawn(async move { (store.call(request).await.is_ok(), begun.elapsed()) })
        })
        .collect();
    let mut answered = 0;
    for one in at_once {
        let (ok, took) = one.await.expect("it ends");
        answered += u32::from(ok);
        times += took.as_micros() as u64;
    }
    tell("256 at once", &times);
    println!("  of those 256, {answered} were answered in time");
}

/// Far more checkpoints than the database can take are under way all the time, and the fence of a node that beats beside
/// them does not fall: never is it longer than that since a beat was sent that was acknowledged. (On a machine that the
/// database shares with everything else a beat may be late; two in a row may be lost.)
async fn a_flood_delays_no_beat(bench: Arc<Bench>) {
    let over = Arc::new(AtomicBool::new(false));
    let flood: Vec<_> = (0..2 * STORE_BULK_IN_FLIGHT_MAX)
        .map(|_| {
            let (store, over) = (bench.store.clone(), over.clone());
            tokio::spawn(async move {
                let mut outcomes = [0_u32; 2];
                while !over.load(Ordering::Relaxed) {
                    let written = store.call(write(2, 2_000)).await;
                    outcomes[usize::from(written.is_err())] += 1;
                }
                outcomes
            })
        })
        .collect();
    let boot = a_boot();
    let fence = Duration::from_millis(FENCE_MS);
    let (mut held, mut oldest, mut lost) = (Instant::now(), Duration::ZERO, 0);
    for number in 1..=20 {
        let sent = Instant::now();
        match bench.store.call(beat(boot, number)).await {
            Ok(_) => {
                oldest = oldest.max(held.elapsed());
                held = sent;
            }
            Err(_) => lost += 1,
        }
        let beat_time = Duration::from_millis(BEAT_MS);
        tokio::time::sleep(beat_time.saturating_sub(sent.elapsed())).await;
    }
    over.store(true, Ordering::Relaxed);
    let (mut written, mut failed) = (0, 0);
    for one in flood {
        let [ok, err] = one.await.expect("it ends");
        written += ok;
        failed += err;
    }
    println!(
        "  {lost} of 20 beats lost, the fence {oldest:?} old at most, beside {written} writes of 2 kB and {failed} that failed"
    );
    assert!(oldest < fence && held.elapsed() < fence, "the fence fell");
}

/// A database that takes everything and says nothing: each request ends at its time, no compare-and-set is called
/// refused that was sent; and once the database speaks again, so does the store, within a few seconds.
async fn silence(bench: Arc<Bench>) {
    let (proxy, store) = through_a_proxy(&bench).await;
    let (boot, region) = (a_boot(), a_region());
    done(&*store, beat(boot, 1)).await;
    proxy.be_silent(true);
    let claim = Request::ClaimCas {
        right: Right::Region(region),
        seen: None,
        to: row(Some(holder("sim-1", 1)), 1, 1),
    };
    let bounds = [
        (claim.clone(), STORE_CAS_TIMEOUT_MS),
        (beat(boot, 2), BEAT_TIMEOUT_MS),
        (write(2, 10), STORE_PLAIN_TIMEOUT_MS),
        (Request::NodesRead, STORE_PLAIN_TIMEOUT_MS),
    ];
    for (request, limit_ms) in bounds {
        let begun = Instant::now();
        let outcome = store.call(request.clone()).await;
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(limit_ms) + SLACK, "{took:?}");
        let first = request == claim;
        let unknown = matches!(outcome, Err(StoreError::Unknown(_)));
        assert!(unknown || (!first && outcome.is_err()), "{outcome:?}");
    }
    // Long enough that every connection was given up.
    tokio::time::sleep(Duration::from_secs(12)).await;
    proxy.be_silent(false);
    let begun = Instant::now();
    let mut number = 3;
    while store.call(beat(boot, number)).await.is_err() {
        number += 1;
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "it never came back"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("  a beat again {:?} after the silence", begun.elapsed());
}
