//! Until when this sim may act: a latch over the age of its newest acknowledged beat.
//!
//! The age counts from the *sending* of that beat, because others count from when they could first see it. Once it has
//! reached the fence the latch has fallen, and no acknowledgement lifts it, however soon it comes: somebody may have
//! presumed this boot gone in between. Only a thaw lifts it ([`life`](super::life)).
//!
//! Before the first acknowledgement the age counts from the first beat ever sent. Others may have seen that one, and
//! presumed this boot gone long before an acknowledgement reaches it: then it begins with a thaw.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::age::Age;
use super::timing::Timing;
use crate::planted::{Planted, PlantedBug};

/// The fence of one boot. At most one beat is under way at a time; its caller ends it by [`Fence::acknowledged`] or
/// [`Fence::beat_failed`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Fence {
    /// Since the newest acknowledged beat was sent; before there is one, since the first beat was sent; before that, none.
    age: Option<Age>,
    /// Since the beat under way was sent.
    beat: Option<Age>,
    acknowledged: bool,
    fallen: bool,
    planted: Planted,
}

impl Fence {
    /// The fence of a boot that has not sent a beat.
    pub fn new(planted: Planted) -> Fence {
        Fence {
            age: None,
            beat: None,
            acknowledged: false,
            fallen: false,
            planted,
        }
    }

    /// `ms` pass. Whether the latch fell just now. To be called before anything else that happens is looked at.
    pub fn elapse(&mut self, ms: u64, timing: &Timing) -> bool {
        if let Some(beat) = &mut self.beat {
            beat.elapse(ms, timing.fence_ms);
        }
        let Some(age) = &mut self.age else {
            return false;
        };
        age.elapse(ms, timing.fence_ms);
        let lapsed = age.reached(timing.fence_ms) && !self.planted.has(PlantedBug::NoFence);
        let fell = lapsed && !self.fallen;
        self.fallen |= lapsed;
        fell
    }

    /// A beat goes out.
    pub fn beat_sent(&mut self) {
        self.beat = Some(Age::ZERO);
        self.age.get_or_insert(Age::ZERO);
    }

    /// The beat under way was acknowledged. Without one it changes nothing: that is an answer that came too late.
    pub fn acknowledged(&mut self, timing: &Timing) {
        let Some(mut sent) = self.beat.take() else {
            return;
        };
        if self.planted.has(PlantedBug::FenceFromAcknowledgement) {
            sent = Age::ZERO;
        }
        self.age = Some(sent);
        self.acknowledged = true;
        if self.planted.has(PlantedBug::FenceNotALatch) && self.is_fresh(timing) {
            self.fallen = false;
        }
    }

    /// The beat under way failed, or nobody knows.
    pub fn beat_failed(&mut self) {
        self.beat = None;
    }

    /// Whether this boot may simulate and acknowledge.
    pub fn may_act(&self) -> bool {
        self.acknowledged && !self.fallen
    }

    /// Whether no beat was acknowledged yet: such a boot acts on nothing, and never says `fenced`.
    pub fn is_starting(&self) -> bool {
        !self.acknowledged
    }

    /// Whether the latch has fallen.
    pub fn is_fallen(&self) -> bool {
        self.fallen
    }

    /// Whether a beat that was sent within the fence is acknowledged: what permits a thaw, and must last through it.
    pub fn is_fresh(&self, timing: &Timing) -> bool {
        self.acknowledged && self.age.is_some_and(|age| !age.reached(timing.fence_ms))
    }

    /// Lets the latch fall: this boot will act no more.
    pub fn latch(&mut self) {
        self.fallen = true;
    }

    /// A thaw succeeded: the only way to lift the latch.
    pub fn thawed(&mut self) {
        self.fallen = false;
    }

    /// Milliseconds since the newest acknowledged beat was sent, for operators; none: there is none.
    pub fn age_ms(&self) -> Option<u64> {
        self.age.filter(|_| self.acknowledged).map(Age::ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beating() -> (Fence, Timing) {
        let timing = Timing::default();
        let mut fence = Fence::new(Planted::NONE);
        fence.beat_sent();
        fence.acknowledged(&timing);
        (fence, timing)
    }

    #[test]
    fn it_acts_from_the_first_acknowledgement() {
        let timing = Timing::default();
        let mut fence = Fence::new(Planted::NONE);
        assert!(!fence.elapse(60_000, &timing), "nothing can lapse yet");
        assert!(!fence.may_act() && fence.is_starting());
        fence.beat_sent();
        assert!(!fence.may_act());
        fence.acknowledged(&timing);
        assert!(fence.may_act() && !fence.is_starting());
    }

    #[test]
    fn it_falls_when_the_sending_of_the_newest_beat_is_too_long_ago() {
        let (mut fence, timing) = beating();
        assert!(!fence.elapse(1_700, &timing));
        fence.beat_sent();
        assert!(!fence.elapse(299, &timing));
        fence.acknowledged(&timing);
        // Counted from the acknowledgement it would have 299 ms more. (`sent` replaced by zero: red.)
        assert!(!fence.elapse(1_700, &timing));
        assert!(fence.may_act());
        assert!(fence.elapse(1, &timing), "it falls once");
        assert!(!fence.elapse(1, &timing), "and says so once");
        assert!(!fence.may_act());
    }

    #[test]
    fn no_acknowledgement_lifts_it() {
        let (mut fence, timing) = beating();
        fence.elapse(1_900, &timing);
        fence.beat_sent();
        assert!(fence.elapse(100, &timing));
        fence.acknowledged(&timing);
        assert!(fence.is_fresh(&timing) && !fence.may_act());
        fence.thawed();
        assert!(fence.may_act());
    }

    #[test]
    fn an_answer_to_a_beat_that_failed_changes_nothing() {
        let (mut fence, timing) = beating();
        fence.elapse(1_000, &timing);
        fence.beat_sent();
        fence.beat_failed();
        fence.acknowledged(&timing);
        assert!(fence.elapse(1_000, &timing), "the old beat still counts");
    }

    #[test]
    fn a_beat_that_is_acknowledged_too_late_is_not_fresh() {
        let (mut fence, timing) = beating();
        fence.beat_sent();
        assert!(fence.elapse(2_000, &timing));
        fence.acknowledged(&timing);
        assert!(!fence.is_fresh(&timing));
    }

    #[test]
    fn a_boot_whose_first_beat_others_saw_long_ago_begins_with_a_thaw() {
        let timing = Timing::default();
        let mut fence = Fence::new(Planted::NONE);
        fence.beat_sent();
        fence.elapse(400, &timing);
        fence.beat_failed();
        fence.elapse(1_500, &timing);
        fence.beat_sent();
        fence.elapse(200, &timing);
        fence.acknowledged(&timing);
        // Without counting from the first beat it would act here, perhaps under a life that is about to end.
        assert!(fence.is_fresh(&timing) && fence.is_fallen() && !fence.may_act());
    }
}
