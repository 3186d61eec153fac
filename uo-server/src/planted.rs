//! Faults that the model checker and the simulator plant, to show that they find them.
//!
//! Each is one rule of a core that is left out. A core asks [`Planted::has`], which is a constant `false` unless the crate
//! was built with the feature `planted-bugs`: a release cannot be told to leave anything out.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// A rule that is left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PlantedBug {
    /// Orders are applied as often as they arrive.
    NoDuplicateSuppression,
    /// `saved` is told for writes that are not acknowledged yet.
    SavedBeforeAcknowledged,
    /// A source that gets no answer goes on under the old generation instead of reclaiming by compare-and-set.
    ReclaimWithoutClaim,

    /// A refused thaw counts, although the fence lapsed since its first attempt was sent.
    ThawByRefusal,
    /// A compare-and-set on a life does not demand that it is not dead.
    LifeCasWithoutDead,
    /// A row that says `fenced` is taken for a death without waiting.
    FencedKillsAtOnce,
    /// A row that says `fenced` kills whatever life is current, not the one that it names.
    FencedKillsAnyLife,
    /// The window of a boot that is absent begins before the row that names it was read.
    AbsentWindowBeforeLease,
    /// A boot that has no acknowledged beat yet says `fenced`.
    StartingSaysFenced,
    /// Only reads that fail make an outage, beats that fail do not.
    OutageByReadsAlone,
    /// A boot that was declared dead keeps its claims under way when it starts over.
    RebirthKeepsClaims,
    /// A compare-and-set on a claim does not name the number.
    CasWithoutNumber,
    /// Nothing is fenced.
    NoFence,
    /// A late acknowledgement lifts a fence that has fallen.
    FenceNotALatch,
    /// The fence counts from the receipt of the acknowledgement.
    FenceFromAcknowledgement,
    /// A boot is presumed gone when its row expires.
    PresenceByTtl,
    /// "Unchanged" is measured from the receipt of one read to the receipt of another.
    UnchangedReceiptToReceipt,
    /// "Unchanged" is concluded as time passes, without a read that was sent after it.
    UnchangedWithoutFreshRead,
    /// Boots of one name share a row, and the newer one's clock is behind.
    OneRowPerName,
    /// A read that shows one's life alive thaws.
    ThawBySerialRead,
    /// A taker reads the life after its evidence.
    LifeReadAfterEvidence,
    /// A read that shows one's own row is taken for a reclaim.
    ReclaimByRead,
    /// Attempts carry no nonce of their own.
    NoNonce,
    /// A repeated compare-and-set carries a new nonce.
    NewNonceOnRepeat,
    /// What was loaded is served without a seal.
    NoSeal,
    /// A seal writes rows without a tombstone under them.
    SealWithoutTombstone,
    /// A seal's tombstone carries the stamp of its rows.
    TombstoneStampedLikeRows,
    /// A claim is taken from an owner who is alive.
    ClaimFromLiveOwner,
    /// `saved` is told without looking at the ownership again after the write.
    SavedWithoutCheck,
    /// The source of a drain writes the target's name into the lease.
    DrainBySourceCas,
    /// A right is released before what it covers has stopped.
    ReleasedBeforeStopped,
    /// What a read shows is believed although its number is lower than one's own.
    LeaseCheckBelievesOlderRow,
    /// An owner that does not hold the region of its character keeps it.
    NoForwarding,
}

/// Which rule is left out: none, unless the crate was built to leave one out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "planted-bugs")]
    bug: Option<PlantedBug>,
}

impl Planted {
    /// Every rule is kept.
    pub const NONE: Planted = Planted {
        #[cfg(feature = "planted-bugs")]
        bug: None,
    };

    /// Leaves out `bug`.
    #[cfg(feature = "planted-bugs")]
    pub fn of(bug: PlantedBug) -> Planted {
        Planted { bug: Some(bug) }
    }

    /// Whether `bug` is planted.
    #[cfg(feature = "planted-bugs")]
    pub fn has(self, bug: PlantedBug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether `bug` is planted: never in this build.
    #[cfg(not(feature = "planted-bugs"))]
    pub fn has(self, _bug: PlantedBug) -> bool {
        false
    }
}
