//! The whole shard in one thread and in virtual time: the real sim and gateway cores, a store that lies, a network that
//! delays, things that break, and players who speak the protocol and believe nothing.
//!
//! Everything in a run follows from its seed. `UO_SEEDS=1000` runs so many, `UO_SEED=17` replays one and prints what
//! happened in it.
//!
//! Reading order: `plan` (what a seed makes of a run), `shard` (the loop), `wires` (the players' connections), `store`, `faults`, `client` and `script` (the
//! players), `watch` and `truth` (what must hold).
#![allow(missing_docs, reason = "a test")]

mod simulated {
    pub mod client;
    pub mod counted;
    pub mod dice;
    pub mod faults;
    pub mod ledger;
    pub mod lies;
    pub mod network;
    pub mod node;
    pub mod nodes;
    pub mod plan;
    pub mod promises;
    pub mod queue;
    pub mod run;
    pub mod script;
    pub mod shard;
    pub mod store;
    pub mod truth;
    pub mod watch;
    pub mod wires;
}

use simulated::run::{run, run_seeds, seeds};
use simulated::shard::Tampering;

#[test]
fn every_promise_is_kept() {
    let summary = run_seeds(seeds(200), Tampering::default());
    println!("{summary:#?}");
    if let Some(failure) = &summary.failure {
        panic!("{failure}");
    }
    if summary.runs >= 100 {
        summary.demand_that_something_happened();
    }
}

#[test]
fn one_seed_is_one_run() {
    for seed in [3, 4] {
        let first = run(seed, Tampering::default(), false);
        let second = run(seed, Tampering::default(), false);
        assert!(first.failure.is_none(), "{:?}", first.failure);
        assert_eq!(first.hash, second.hash, "seed {seed}");
    }
}

/// Each rule of the core that can be left out is missed: without it, some seed fails.
#[cfg(feature = "planted-bugs")]
mod planted {
    use super::*;
    use uo_server::planted::{Planted, PlantedBug};

    fn is_found(bug: PlantedBug) {
        let tampering = Tampering {
            planted: Planted::of(bug),
        };
        let summary = run_seeds(0..200, tampering);
        let failure = summary.failure.expect("a run that fails");
        println!("{bug:?}: {failure}");
    }

    #[test]
    fn orders_applied_twice_are_found() {
        is_found(PlantedBug::NoDuplicateSuppression);
    }

    #[test]
    fn a_promise_before_its_write_is_found() {
        is_found(PlantedBug::SavedBeforeAcknowledged);
    }

    #[test]
    fn going_on_without_a_reclaim_is_found() {
        is_found(PlantedBug::ReclaimWithoutClaim);
    }
}
