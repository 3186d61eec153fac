//! The model of fence, observer and life: every state that real cluster cores can reach with tiny times, within bounds.
//! (The claim machine has a model of its own, `model.rs`, and lends its explorer.)
//!
//! Reading order: `bounds` (what a model contains), `state` (nodes, store, and what is on its way), `store` (what the
//! store does), `turn` (one step), `canonical` (which states are equal), `counts`, `membership` (the model itself),
//! `forms` (what is explored).
#![allow(missing_docs, reason = "a test")]

#[path = "model/graph.rs"]
mod graph;
#[path = "model/run.rs"]
mod run;

mod model_membership {
    pub mod bounds;
    pub mod canonical;
    pub mod counts;
    pub mod forms;
    pub mod membership;
    pub mod state;
    pub mod store;
    pub mod turn;
}

use graph::search;
use model_membership::forms;
use model_membership::membership::Membership;
use run::{assert_everything_happened, at_least, explore, is_deep, is_wanted};

/// States at which a search backwards gives up, and fails.
const STATES_MAX: usize = 20_000_000;

#[test]
fn nobody_acts_who_is_dead() {
    let _ = (is_deep(), at_least());
    for bounds in forms::usual() {
        if is_wanted(bounds.name) {
            let r = std::panic::catch_unwind(|| explore(Membership::new(bounds), 1));
            if r.is_err() {
                println!("FAILED");
            }
        }
    }
}

#[test]
fn nothing_is_in_limbo() {
    for bounds in forms::limbo() {
        if is_wanted(bounds.name) {
            let model = Membership::new(bounds);
            let searched = search(&model, STATES_MAX);
            if let Some(stuck) = &searched.stuck {
                panic!("{}: no way back:\n{stuck}", model.bounds.name);
            }
            assert_everything_happened(&model);
        }
    }
}

/// Each rule that can be left out is missed: without it the model breaks.
#[cfg(feature = "planted-bugs")]
mod planted {
    use super::*;
    use model_membership::bounds::Bounds;
    use forms::planted::{late_reads, short_ttl};
    use forms::{holder, newcomer, outage, restarted, unknown};
    use run::find;
    use uo_server::planted::{Planted, PlantedBug};

    fn missed(bug: PlantedBug, form: fn() -> Bounds) {
        let mut bounds = form();
        bounds.planted = Planted::of(bug);
        find(Membership::new(bounds), bug);
    }

    macro_rules! missed {
        ($($name:ident $bug:ident $form:ident;)*) => {$(
            #[test]
            fn $name() {
                missed(PlantedBug::$bug, $form);
            }
        )*};
    }

    missed! {
        thaw_by_refusal ThawByRefusal unknown;
        life_cas_without_dead LifeCasWithoutDead holder;
        fenced_kills_at_once FencedKillsAtOnce outage;
        fenced_kills_any_life FencedKillsAnyLife holder;
        absent_window_before_lease AbsentWindowBeforeLease newcomer;
        starting_says_fenced StartingSaysFenced newcomer;
        outage_by_reads_alone OutageByReadsAlone outage;
        no_fence NoFence holder;
        fence_not_a_latch FenceNotALatch holder;
        fence_from_acknowledgement FenceFromAcknowledgement holder;
        presence_by_ttl PresenceByTtl short_ttl;
        unchanged_receipt_to_receipt UnchangedReceiptToReceipt late_reads;
        unchanged_without_fresh_read UnchangedWithoutFreshRead holder;
        one_row_per_name OneRowPerName restarted;
        thaw_by_serial_read ThawBySerialRead holder;
        life_read_after_evidence LifeReadAfterEvidence holder;
    }
}
