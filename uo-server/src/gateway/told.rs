//! Public events that never came here: whose area of interest they may have been in is told `missed`.
//!
//! What a feed shows is repaired by its next full state; what was told is not. A feed's count of public events says
//! whether there was any between the last frame that came and the one that comes now. Nobody knows where they happened,
//! so the number that a client missed is unknown.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::core::GatewayCore;
use super::interest::{Kind, look};
use crate::peer::message::{FeedDelta, FeedFull, Told};

/// Whether public events of a region may have been told before `full` that never came here. `known` is how many came.
pub(super) fn is_hole(known: Option<Told>, full: &FeedFull) -> bool {
    // A sim of the version before does not count.
    if full.told.since == 0 {
        return false;
    }
    let before = full.told.count.saturating_sub(full.events.len() as u64);
    match known {
        Some(known) if known.since == full.told.since => before > known.count,
        // Whoever had the region before crashed, or let go of it: the end of that feed may not have come here.
        Some(_) => true,
        None => full.told.since != full.epoch || before > 0,
    }
}

/// Whether a queue on the way here had no room for all that was told between the two ends of `delta`.
pub(super) fn has_hole(delta: &FeedDelta) -> bool {
    delta.told.saturating_sub(delta.base_told) > delta.events.len() as u64
}

impl GatewayCore {
    /// Tells everybody who may have been near what happened in a region that something was missed there.
    pub(super) fn tell_hole(&mut self, region: RegionId) {
        let map_size = self.config.world.size();
        let mut near = Vec::new();
        let sessions = |key| near.push(key);
        self.view
            .grid
            .each_around(Kind::Sessions, region, map_size, sessions);
        for key in near {
            if self.sessions[key].reliable.miss_public() {
                self.counters.publics_missed += 1;
                self.mark(key, look::EVENTS);
            }
        }
    }
}
