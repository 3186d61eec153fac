//! Nodes that are killed, paused and restarted under load: what was acknowledged survives, no compare-and-set wins
//! twice, every call ends in time, and with a quorum left the work goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use uo_proto::CharId;
use uo_server::limits::FENCE_MS;
use uo_server::store::scylla::ScyllaStore;
use uo_server::store::{ClaimRow, Reply, Request, Right, Stamp, Store};

use crate::contract::{a_character, character, claim, holder, row};
use crate::harness::{Bench, Case, Needs};
use crate::ring::Ring;

/// No request takes longer than the longest time-out, which is shorter than the fence lasts; nor than a machine is late
/// that does too much besides: see [`Log::stall_us`].
const CALL_TIME: Duration = Duration::from_millis(FENCE_MS);
/// Work goes on long before. It is no measure of speed: what does not go on by then never does.
const GOES_ON: Duration = Duration::from_secs(60);
const WRITERS: usize = 8;
const CLAIMERS: u128 = 4;
const RIGHTS: usize = 3;
/// Between two calls of one writer or claimer.
const PACE: Duration = Duration::from_millis(5);
/// The same while a node starts: on a machine that it shares with the load it hardly comes up otherwise.
const PACE_AT_START: Duration = Duration::from_millis(50);

pub fn cases() -> Vec<Case> {
    vec![
        Case::new("disturbed::killed", Needs::RingOfThree, |bench| {
            under_load(bench, "kill", "start", "db-2")
        }),
        Case::new("disturbed::paused", Needs::RingOfThree, |bench| {
            under_load(bench, "pause", "resume", "db-3")
        }),
        Case::new("disturbed::restarted", Needs::RingOfThree, |bench| {
            under_load(bench, "stop", "start", "db-1")
        }),
        Case::new("disturbed::all_paused", Needs::Ring, all_paused),
    ]
}

/// What the load did.
#[derive(Default)]
struct Log {
    over: AtomicBool,
    is_starting: AtomicBool,
    slowest_us: AtomicU64,
    /// How late this process was at most when it wanted to do something: no fault of the store.
    stall_us: AtomicU64,
    written: AtomicU32,
    claimed: AtomicU32,
    failed: AtomicU32,
    /// Who won each number of each right.
    winners: Mutex<BTreeMap<(Right, u64), Vec<u128>>>,
    /// For which somebody's attempt had no answer.
    in_doubt: Mutex<BTreeSet<(Right, u64)>>,
}

impl Log {
    async fn call(&self, store: &ScyllaStore, request: Request) -> Option<Reply> {
        let begun = Instant::now();
        let reply = store.call(request).await;
        let took = begun.elapsed().as_micros() as u64;
        self.slowest_us.fetch_max(took, Ordering::Relaxed);
        if reply.is_err() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        reply.ok()
    }

    async fn pace(&self) {
        let is_starting = self.is_starting.load(Ordering::Relaxed);
        let pace = if is_starting { PACE_AT_START } else { PACE };
        tokio::time::sleep(pace).await;
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn progress(&self) -> (u32, u32) {
        let read = |count: &AtomicU32| count.load(Ordering::Relaxed);
        (read(&self.written), read(&self.claimed))
    }
}

/// Writes one character again and again. The last stamp that was acknowledged.
async fn keep_writing(store: Arc<ScyllaStore>, log: Arc<Log>, char_id: CharId) -> u32 {
    let mut acknowledged = 0;
    for n in 2..Stamp::N_MAX {
        if log.is_over() {
            break;
        }
        let write = Request::CharacterWrite {
            char_id,
            stamp: Stamp { number: 1, n },
            row: n.to_be_bytes().to_vec(),
        };
        if log.call(&store, write).await.is_some() {
            acknowledged = n;
            log.written.fetch_add(1, Ordering::Relaxed);
        }
        log.pace().await;
    }
    acknowledged
}

/// Takes a right from whoever has it, again and again, each attempt repeated until it is final.
async fn keep_claiming(store: Arc<ScyllaStore>, log: Arc<Log>, right: Right, who: u128) {
    let mut there: Option<ClaimRow> = None;
    let mut count = 0;
    while !log.is_over() {
        let number = there.as_ref().map_or(0, |row| row.number) + 1;
        count += 1;
        let to = row(Some(holder("sim", who)), number, who << 64 | count);
        let seen = there.as_ref().map(ClaimRow::seen);
        // An attempt is followed to its end even when everything is over: it must be known who won.
        let won = loop {
            let request = Request::ClaimCas {
                right,
                seen: seen.clone(),
                to: to.clone(),
            };
            match log.call(&store, request).await {
                Some(Reply::ClaimCas { applied: true, .. }) => break true,
                Some(Reply::ClaimCas { row: Some(row), .. }) if row.nonce == to.nonce => {
                    break true;
                }
                Some(Reply::ClaimCas { row, .. }) if row.as_ref().map(ClaimRow::seen) != seen => {
                    there = row;
                    break false;
                }
                answer => {
                    if answer.is_none() {
                        let mut in_doubt = log.in_doubt.lock().expect("no panic holds it");
                        in_doubt.insert((right, number));
                    }
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        if won {
            log.claimed.fetch_add(1, Ordering::Relaxed);
            let mut winners = log.winners.lock().expect("no panic holds it");
            winners.entry((right, number)).or_default().push(who);
            there = Some(to);
        }
        log.pace().await;
    }
}

/// Notes how late it wakes, for as long as there is a load.
async fn watch_the_machine(log: Arc<Log>) {
    while !log.is_over() {
        let begun = Instant::now();
        tokio::time::sleep(PACE).await;
        let late = begun.elapsed().saturating_sub(PACE);
        log.stall_us
            .fetch_max(late.as_micros() as u64, Ordering::Relaxed);
    }
}

struct Load {
    log: Arc<Log>,
    writers: Vec<(CharId, JoinHandle<u32>)>,
    claimers: Vec<JoinHandle<()>>,
    rights: Vec<Right>,
}

impl Drop for Load {
    /// However the case ends, the next one begins without this load.
    fn drop(&mut self) {
        self.log.over.store(true, Ordering::Relaxed);
    }
}

impl Load {
    fn begin(store: &Arc<ScyllaStore>) -> Load {
        let log = Arc::new(Log::default());
        tokio::spawn(watch_the_machine(log.clone()));
        let writers = (0..WRITERS).map(|_| {
            let char_id = a_character();
            let writing = keep_writing(store.clone(), log.clone(), char_id);
            (char_id, tokio::spawn(writing))
        });
        let writers = writers.collect();
        let rights: Vec<_> = (0..RIGHTS)
            .map(|_| Right::Character(a_character()))
            .collect();
        let mut claimers = Vec::new();
        for right in &rights {
            for who in 1..=CLAIMERS {
                let claiming = keep_claiming(store.clone(), log.clone(), *right, who);
                claimers.push(tokio::spawn(claiming));
            }
        }
        Load {
            log,
            writers,
            claimers,
            rights,
        }
    }

    /// Waits until both kinds of work went on from here.
    async fn goes_on(&self, when: &str) -> Duration {
        let (begun, (written, claimed)) = (Instant::now(), self.log.progress());
        loop {
            let now = self.log.progress();
            if now.0 > written + 20 && now.1 > claimed + 5 {
                return begun.elapsed();
            }
            assert!(begun.elapsed() < GOES_ON, "nothing goes on {when}: {now:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends it, and checks what must have survived.
    async fn end(mut self, store: &ScyllaStore) {
        self.log.over.store(true, Ordering::Relaxed);
        for claimer in std::mem::take(&mut self.claimers) {
            claimer.await.expect("it ends");
        }
        for (char_id, writer) in std::mem::take(&mut self.writers) {
            let acknowledged = writer.await.expect("it ends");
            let row = character(store, char_id).await.expect("it was written");
            let there = u32::from_be_bytes(row.try_into().expect("four bytes"));
            assert!(there >= acknowledged, "{acknowledged} is lost: {there}");
        }
        let winners = self.log.winners.lock().expect("no panic holds it").clone();
        let in_doubt = self.log.in_doubt.lock().expect("no panic holds it").clone();
        for right in self.rights.iter().copied() {
            let last = claim(store, right).await.expect("it was claimed").number;
            for number in 1..=last {
                // Nobody knows that it won if its answer was lost and the next one followed before it could repeat.
                let won = winners.get(&(right, number));
                let least = usize::from(!in_doubt.contains(&(right, number)));
                let won_by = won.map_or(0, Vec::len);
                assert!(
                    (least..=1).contains(&won_by),
                    "{right:?} at {number}: {won:?}"
                );
            }
        }
        let slowest = Duration::from_micros(self.log.slowest_us.load(Ordering::Relaxed));
        let ((written, claimed), failed) = (self.log.progress(), &self.log.failed);
        println!(
            "  {written} writes, {claimed} claims, {failed:?} failed, the slowest call {slowest:?}"
        );
        let stall = Duration::from_micros(self.log.stall_us.load(Ordering::Relaxed));
        assert!(
            slowest < CALL_TIME + stall,
            "a call took {slowest:?}, and the machine was {stall:?} late at most"
        );
    }
}

fn ring(bench: &Bench) -> &Ring {
    bench.ring.as_ref().expect("the case needs one")
}

async fn under_load(bench: Arc<Bench>, harm: &'static str, heal: &'static str, node: &'static str) {
    let load = Load::begin(&bench.store);
    load.goes_on("at first").await;
    ring(&bench).order(harm, node).await;
    let without = load.goes_on("without a node").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    load.goes_on("ten seconds later").await;
    load.log.is_starting.store(true, Ordering::Relaxed);
    ring(&bench).order(heal, node).await;
    load.log.is_starting.store(false, Ordering::Relaxed);
    let with = load.goes_on("with the node back").await;
    println!("  work went on {without:?} after `{harm}`, {with:?} after `{heal}`");
    load.end(&bench.store).await;
}

/// Nothing is acknowledged, nothing is lost, and once the nodes are back so is the store.
async fn all_paused(bench: Arc<Bench>) {
    let load = Load::begin(&bench.store);
    load.goes_on("at first").await;
    for n in 1..=bench.nodes {
        ring(&bench).order("pause", &format!("db-{n}")).await;
    }
    tokio::time::sleep(Duration::from_secs(12)).await;
    for n in 1..=bench.nodes {
        ring(&bench).order("resume", &format!("db-{n}")).await;
    }
    let back = load.goes_on("with all back").await;
    println!("  work went on {back:?} after the last node was resumed");
    load.end(&bench.store).await;
}
