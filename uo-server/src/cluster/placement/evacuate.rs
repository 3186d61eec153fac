//! A node that stops: each of its regions goes to the best of the others that can be reached, those with players first.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::RegionId;

use super::{Demand, Hold, Move, Placement, Sim};
use crate::cluster::rank;
use crate::identity::{BootId, Holder};
use crate::limits::{DRAINS_REFUSED_MAX, DRAINS_STOPPING_MAX};

impl Placement {
    /// From now on everything is to go.
    pub fn begin_evacuation(&mut self) {
        self.evacuates = true;
    }

    /// Works out anew which regions are still to be handed on.
    pub fn plan_evacuation(&mut self, demand: &Demand) {
        let (needed, others): (VecDeque<RegionId>, VecDeque<RegionId>) =
            self.held.iter().partition(|region| demand.needs(**region));
        self.leaving = needed;
        self.leaving.extend(others);
    }

    /// Which regions to hand on now, as far as the bound on what is under way allows.
    pub fn evacuate(&mut self) -> Vec<Move> {
        let mut moves = Vec::new();
        while self.draining.len() < DRAINS_STOPPING_MAX
            && let Some(region) = self.leaving.pop_front()
        {
            let Hold::Held { epoch } = self.slots[region.0 as usize].hold else {
                continue;
            };
            let Some(to) = self.successor(region) else {
                continue;
            };
            self.begin_drain(region, epoch, to.boot);
            moves.push(Move::Drain(region, to));
        }
        moves
    }

    /// Whether something is held here that nobody takes, and nothing is under way that could change that.
    pub fn is_stranded(&self) -> bool {
        let is_still = self.draining.is_empty() && self.taking.is_empty();
        is_still && self.leaving.is_empty() && !self.held.is_empty()
    }

    /// The best sim for a region among those that can be reached and did not refuse: one that is settled, if there is any.
    fn successor(&self, region: RegionId) -> Option<Holder> {
        let takes = |sim: &&Sim| {
            let refused = |boot: BootId| self.refused.iter().filter(move |(_, by)| *by == boot);
            let boot = sim.holder.boot;
            sim.is_linked
                && !self.refused.contains(&(region, boot))
                && refused(boot).count() < DRAINS_REFUSED_MAX
        };
        let linked: Vec<&Sim> = self.sims.iter().filter(takes).collect();
        let settled: Vec<&Sim> = linked
            .iter()
            .copied()
            .filter(|sim| sim.is_settled)
            .collect();
        let among = match settled.is_empty() {
            true => linked,
            false => settled,
        };
        let keys: Vec<_> = among.iter().map(|sim| sim.key).collect();
        Some(among[rank::best(region, &keys)?].holder.clone())
    }
}
