//! The model of fence, observer and life: every state that the real machines of `cluster/{fence,observer,life}.rs` can
//! reach as `cluster/core/` drives them, within bounds. (The claim machine has a model of its own, `model.rs`.)
#![allow(missing_docs, reason = "a test")]

use uo_server::cluster::fence::Fence;
use uo_server::cluster::timing::Timing;
use uo_server::planted::Planted;

#[test]
fn the_fence_falls_in_time() {
    let timing = Timing::default();
    let mut fence = Fence::new(Planted::NONE);
    fence.beat_sent();
    fence.acknowledged(&timing);
    assert!(fence.may_act());
    fence.elapse(timing.fence_ms, &timing);
    assert!(!fence.may_act());
}
