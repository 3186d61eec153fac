//! Runs of seeds, and how to run a failed one again.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use uo_world::World;

use super::counted::{Counted, Stats, StoreCounts};
use super::plan::Plan;
use super::shard::{Shard, Tampering};

/// What need not happen.
const RARE: [&str; 2] = ["missed", "unauthorised"];
/// Lines of a replayed run that are printed at most.
const TRACE_LINES_MAX: usize = 20_000;

/// What one run came to.
#[derive(Debug)]
pub struct Outcome {
    pub hash: u64,
    pub stats: Stats,
    pub counted: Counted,
    pub store: StoreCounts,
    pub failure: Option<String>,
}

/// What many came to.
#[derive(Debug, Default)]
pub struct Summary {
    pub runs: u64,
    pub stats: Stats,
    pub counted: Counted,
    pub store: StoreCounts,
    /// That of the lowest seed that failed.
    pub failure: Option<String>,
    pub failures: u64,
}

/// The seeds to run: `UO_SEED`, or `UO_SEEDS` many from `UO_FROM` on, or the usual number.
pub fn seeds(usual: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("UO_SEED") {
        Some(seed) => seed..seed + 1,
        None => {
            let from = number("UO_FROM").unwrap_or(0);
            from..from + number("UO_SEEDS").unwrap_or(usual)
        }
    }
}

/// The worlds of all runs: what was generated once need not be again.
fn world(plan: &Plan) -> World {
    static WORLDS: Mutex<BTreeMap<(u64, u16), World>> = Mutex::new(BTreeMap::new());
    let mut worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
    let world = worlds
        .entry((plan.world, plan.map_size))
        .or_insert_with(|| {
            let world = World::new(11 + plan.world, plan.map_size);
            world.expect("a good size")
        });
    world.clone()
}

/// Runs one seed.
pub fn run(seed: u64, tampering: Tampering, tracing: bool) -> Outcome {
    let mut plan = Plan::of(seed);
    tampering.season.shape(&mut plan);
    let mut shard = Shard::new(plan.clone(), tampering, world(&plan), tracing);
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| shard.run()));
    let mut stats = Stats::default();
    for client in &shard.clients {
        stats += client.stats;
    }
    let failure = match &result {
        Ok(Ok(_)) => None,
        Ok(Err(why)) => Some(why.clone()),
        Err(panic) => Some(format!("panic: {}", words_of(panic.as_ref()))),
    };
    if tracing {
        let first = shard.trace.len().saturating_sub(TRACE_LINES_MAX);
        shard.trace[first..]
            .iter()
            .for_each(|line| println!("{line}"));
        println!("{plan:#?}");
    }
    Outcome {
        hash: result.ok().and_then(Result::ok).unwrap_or_default(),
        stats,
        counted: shard.counted,
        store: shard.store.counts,
        failure: failure.map(|why| {
            format!(
                "seed {seed}, at {} ms: {why}\nreplay: UO_SEED={seed} cargo test -p uo-server --test simulated {} -- \
                 --nocapture",
                shard.now(),
                tampering.test(),
            )
        }),
    }
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "without words".to_owned())
}

/// Runs seeds on all cores, until one fails, or to their end with `UO_GO_ON`, telling of each that fails.
pub fn run_seeds(seeds: Range<u64>, tampering: Tampering) -> Summary {
    let tracing = seeds.end - seeds.start == 1;
    let goes_on = std::env::var_os("UO_GO_ON").is_some();
    let next = AtomicU64::new(seeds.start);
    let summary = Mutex::new((Summary::default(), u64::MAX));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let outcome = run(seed, tampering, tracing);
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            let (total, failed) = &mut *summary;
            total.runs += 1;
            total.stats += outcome.stats;
            total.counted += outcome.counted;
            total.store += outcome.store;
            if let Some(failure) = &outcome.failure {
                total.failures += 1;
                if goes_on {
                    println!("{failure}");
                } else {
                    next.store(seeds.end, Ordering::Relaxed);
                }
                if seed < *failed {
                    *failed = seed;
                    total.failure = outcome.failure;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (1..cores).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let (summary, _) = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    summary
}

impl Summary {
    /// Everything that can go wrong was at least tried.
    pub fn demand_that_something_happened(&self) {
        let mut counts = self.stats.named();
        counts.extend(self.counted.named());
        counts.extend(self.store.named());
        for (what, count) in counts {
            assert!(
                count > 0 || RARE.contains(&what),
                "no {what} in {} runs",
                self.runs
            );
        }
    }
}
