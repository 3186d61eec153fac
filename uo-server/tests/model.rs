//! Every state that the real transition functions of `cluster/` can reach, within bounds.
//!
//! Reading order: `run` (explores and reports), `claim` (one right and its claims), `graph` (searches backwards), `limbo`
//! (regions, a character, and the way back from everything).
#![allow(missing_docs, reason = "a test")]

mod model {
    pub mod claim;
    pub mod graph;
    pub mod limbo;
    pub mod run;
}

use model::claim::ClaimModel;
use model::claim::bounds;
use model::graph::search;
use model::limbo::{self, LimboModel};
use model::run::{assert_everything_happened, at_least, explore, is_deep, is_wanted};
use uo_server::planted::Planted;

/// States at which a search backwards gives up, and fails.
const STATES_MAX: usize = 60_000_000;

#[test]
fn claims() {
    let bounds = match is_deep() {
        true => bounds::DEEP,
        false => bounds::USUAL,
    };
    for bounds in bounds.iter().filter(|bounds| is_wanted(bounds.name)) {
        explore(ClaimModel::new(bounds.clone(), Planted::NONE), at_least());
    }
}

#[test]
fn nothing_is_in_limbo() {
    let bounds = match is_deep() {
        true => limbo::DEEP,
        false => limbo::USUAL,
    };
    for bounds in bounds.iter().filter(|bounds| is_wanted(bounds.name)) {
        let model = LimboModel::new(bounds.clone(), Planted::NONE);
        let searched = search(&model, STATES_MAX);
        if let Some(stuck) = &searched.stuck {
            panic!("{}: no way back:\n{stuck}", bounds.name);
        }
        assert_everything_happened(&model);
        assert!(
            searched.states >= at_least(),
            "{}: too few states",
            bounds.name
        );
    }
}

/// Each rule that can be left out is missed: without it, a model breaks.
#[cfg(feature = "planted-bugs")]
mod planted {
    use super::*;
    use model::claim::bounds::Bounds;
    use model::run::find;
    use uo_server::planted::PlantedBug;

    fn claims_miss(bug: PlantedBug, change: fn(&mut Bounds)) {
        let mut bounds = bounds::SMALL;
        change(&mut bounds);
        find(ClaimModel::new(bounds, Planted::of(bug)), bug);
    }

    macro_rules! missed_by_claims {
        ($($name:ident $bug:ident $change:expr;)*) => {$(
            #[test]
            fn $name() {
                claims_miss(PlantedBug::$bug, $change);
            }
        )*};
    }

    missed_by_claims! {
        rebirth_keeps_claims RebirthKeepsClaims |_| {};
        cas_without_number CasWithoutNumber |_| {};
        reclaim_by_read ReclaimByRead |_| {};
        no_nonce NoNonce |_| {};
        new_nonce_on_repeat NewNonceOnRepeat |_| {};
        no_seal NoSeal |_| {};
        seal_without_tombstone SealWithoutTombstone |_| {};
        tombstone_stamped_like_rows TombstoneStampedLikeRows |_| {};
        claim_from_live_owner ClaimFromLiveOwner |_| {};
        saved_without_check SavedWithoutCheck |_| {};
        drain_by_source_cas DrainBySourceCas |_| {};
        released_before_stopped ReleasedBeforeStopped |_| {};
        lease_check_believes_older_row LeaseCheckBelievesOlderRow |it| it.lease_check = true;
    }

    #[test]
    fn no_forwarding() {
        let bug = PlantedBug::NoForwarding;
        let model = LimboModel::new(limbo::USUAL[0].clone(), Planted::of(bug));
        let stuck = search(&model, STATES_MAX)
            .stuck
            .expect("somebody is in limbo");
        println!("{bug:?} leaves no way back from here:\n{stuck}");
    }
}
