//! Faults that the simulator plants to show that it finds them. Compiled only with the feature `planted-bugs`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// A rule that is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlantedBug {
    /// Orders are applied as often as they arrive.
    NoDuplicateSuppression,
    /// `saved` is told for writes that are not acknowledged yet.
    SavedBeforeAcknowledged,
    /// A source that gets no answer goes on under the old generation instead of reclaiming by compare-and-set.
    ReclaimWithoutClaim,
}
