//! The model of fence, observer and life: every state that real cluster cores can reach with tiny times, within bounds.
//! (The claim machine has a model of its own, `model.rs`, and lends its explorer.)
//!
//! Reading order: `bounds` (what a model contains), `state` (nodes, store, and what is on its way), `action` (what may
//! happen), `store` (what the store does), `turn` (one step), `canonical` (which states are equal), `counts`,
//! `membership` (the model itself), `forms` (what is explored).
#![allow(missing_docs, reason = "a test")]

#[path = "model/graph.rs"]
mod graph;
#[path = "model/run.rs"]
mod run;

mod model_membership {
    pub mod action;
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
use model_membership::bounds::Bounds;
use model_membership::forms;
use model_membership::membership::Membership;
use run::{assert_everything_happened, at_least, explore, is_deep, is_wanted};

/// States at which a search backwards gives up, and fails.
const STATES_MAX: usize = 20_000_000;

/// The usual forms are many, and small.
fn states_min() -> usize {
    if is_deep() { at_least() } else { 10_000 }
}

#[test]
fn nobody_acts_who_is_dead() {
    for bounds in wanted(forms::usual(), forms::deep()) {
        explore(Membership::new(bounds), states_min());
    }
}

#[test]
fn nothing_is_in_limbo() {
    for bounds in wanted(forms::usual_limbo(), forms::deep_limbo()) {
        let model = Membership::new(bounds);
        let searched = search(&model, STATES_MAX);
        if let Some(stuck) = &searched.stuck {
            panic!("{}: no way back:\n{stuck}", model.bounds.name);
        }
        assert_everything_happened(&model);
        assert!(
            searched.states >= states_min(),
            "{}: too few states",
            model.bounds.name
        );
    }
}

fn wanted(usual: Vec<Bounds>, deep: Vec<Bounds>) -> impl Iterator<Item = Bounds> {
    let bounds = if is_deep() { deep } else { usual };
    bounds.into_iter().filter(|bounds| is_wanted(bounds.name))
}

/// Each rule that can be left out is missed: without it the model breaks.
#[cfg(feature = "planted-bugs")]
mod planted {
    use super::*;
    use forms::{holder, late_reads, newcomer, outage, restarted, short_ttl, unknown};
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
