//! What an operator is told of a member's standing, one line for each change.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::member::{Counters, Member};
use crate::identity::Holder;

/// What is compared from one input to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Report {
    life: u64,
    panicked: Option<RegionId>,
    quarantined: u64,
    counters: Standing,
}

/// The counters that stand for something to act on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Standing {
    fence_falls: u64,
    thaws: u64,
    deaths_learned: u64,
    rebirths: u64,
}

impl From<Counters> for Standing {
    fn from(counters: Counters) -> Standing {
        Standing {
            fence_falls: counters.fence_falls,
            thaws: counters.thaws,
            deaths_learned: counters.deaths_learned,
            rebirths: counters.rebirths,
        }
    }
}

impl Report {
    pub(super) fn of(member: &Member) -> Report {
        Report {
            life: member.life(),
            panicked: member.panicked(),
            quarantined: member.sim_core().counters().regions_quarantined,
            counters: member.counters().into(),
        }
    }

    /// Logs what is new since `before`. `sick`: the regions that stand still.
    pub(super) fn log(&self, before: &Report, me: &Holder, sick: impl Iterator<Item = RegionId>) {
        let (now, before_counters) = (self.counters, before.counters);
        let (node, boot, life) = (&me.node, me.boot, self.life);
        if let (Some(region), None) = (self.panicked, before.panicked) {
            tracing::error!(%node, %boot, region = region.0, "the tick of a region panicked: this boot is declared dead, and the process ends");
        }
        if self.quarantined > before.quarantined {
            let regions: Vec<u32> = sick.map(|region| region.0).collect();
            tracing::error!(%node, ?regions, "regions that ended two boots are held and stand still; POST /release?region=N lets one go on");
        }
        if now.fence_falls > before_counters.fence_falls {
            tracing::warn!(%node, %boot, life, "the fence fell: no beat was acknowledged for too long; the world stands still");
        }
        if now.thaws > before_counters.thaws {
            tracing::info!(%node, %boot, life, "thawed: everything goes on where it stood");
        }
        if now.rebirths > before_counters.rebirths {
            tracing::warn!(%node, %boot, "this process was declared dead and starts over as another boot");
        }
        if now.deaths_learned > before_counters.deaths_learned {
            tracing::info!(%node, "another boot is dead: what it held is taken over");
        }
        if self.life == 1 && before.life == 0 {
            tracing::info!(%node, %boot, "this boot is alive");
        }
    }
}
