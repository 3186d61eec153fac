//! A node that stops, or gives way: each of its regions goes to the best of the others that can be reached, those with
//! players first.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::{Demand, Hold, Move, Placement, Sim};
use crate::cluster::rank;
use crate::identity::{BootId, Holder};
use crate::limits::{DRAINS_PEOPLED_MAX, DRAINS_REFUSED_MAX, DRAINS_STOPPING_MAX};

/// Players wait for as long as their region is on its way, and all that are on their way share the same two nodes.
fn most_at_once(is_needed: bool) -> usize {
    match is_needed {
        true => DRAINS_PEOPLED_MAX,
        false => DRAINS_STOPPING_MAX,
    }
}

impl Placement {
    /// From now on everything is to go, or nothing is any more.
    pub fn set_evacuates(&mut self, evacuates: bool) {
        if evacuates == self.evacuates {
            return;
        }
        self.evacuates = evacuates;
        self.leaving.clear();
        self.refused.clear();
    }

    /// Whether everything is to go.
    pub fn evacuates(&self) -> bool {
        self.evacuates
    }

    /// Works out anew which regions are still to be handed on, if everything is to go.
    pub fn plan_evacuation(&mut self, demand: &Demand) {
        if !self.evacuates {
            return;
        }
        let of = |is_needed: bool| {
            let regions = self.held.iter().copied();
            let regions = regions.filter(move |region| demand.needs(*region) == is_needed);
            regions.map(move |region| (region, is_needed))
        };
        self.leaving = of(true).chain(of(false)).collect();
    }

    /// Which regions to hand on now, as far as the bound on what is under way allows.
    pub fn evacuate(&mut self) -> Vec<Move> {
        let mut moves = Vec::new();
        while let Some((region, _)) = self
            .leaving
            .pop_front_if(|(_, is_needed)| self.draining.len() < most_at_once(*is_needed))
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
