//! Every state that the real transition functions of `cluster/` can reach, within bounds.
//!
//! Reading order: `run` (explores and reports), `claim` (one right and its claims).
#![allow(missing_docs, reason = "a test")]

mod model {
    pub mod claim;
    pub mod run;
}

use model::claim::{self, ClaimModel};
use model::run::{at_least, explore, is_deep, is_wanted};
use uo_server::planted::Planted;

#[test]
fn claims() {
    let bounds = match is_deep() {
        true => claim::DEEP,
        false => claim::USUAL,
    };
    for bounds in bounds.iter().filter(|bounds| is_wanted(bounds.name)) {
        explore(ClaimModel::new(bounds.clone(), Planted::NONE), at_least());
    }
}

/// Each rule that can be left out is missed: without it, a model breaks.
#[cfg(feature = "planted-bugs")]
mod planted {
    use super::*;
    use model::claim::Bounds;
    use model::run::find;
    use uo_server::planted::PlantedBug;

    fn claims_miss(bug: PlantedBug, change: fn(&mut Bounds)) {
        let mut bounds = claim::SMALL;
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
}
