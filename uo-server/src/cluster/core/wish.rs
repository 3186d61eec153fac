//! An operator wants a region somewhere else.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::{ClusterCore, Effect};
use crate::cluster::placement::Sim;
use crate::cluster::rank;
use crate::identity::{Holder, NodeName};

/// Why a region is not handed on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DrainRefusal {
    /// The map has no such region.
    #[error("there is no region {0}")]
    NoSuchRegion(u32),
    /// No such sim is known.
    #[error("there is no sim of the name {0} that runs")]
    NoSuchNode(NodeName),
    /// It is another's.
    #[error("the region is held by {0}: ask that node")]
    HeldBy(NodeName),
    /// It is nobody's, as far as is known here.
    #[error("nobody holds the region, as far as is known here")]
    NotHeld,
    /// It is where it is wanted.
    #[error("the region is held here")]
    IsHere,
    /// There is no link to whom it is to go to.
    #[error("there is no link to {0}")]
    NotLinked(NodeName),
    /// There is nobody else.
    #[error("no other sim can be reached")]
    NobodyElse,
    /// It is being handed on, or given up, already.
    #[error("the region is on its way already")]
    UnderWay,
    /// This node simulates nothing.
    #[error("this node is a gateway, which holds no regions: ask a sim")]
    IsGateway,
    /// This node may do nothing at this moment.
    #[error("this node is starting, fenced or stopping")]
    NotNow,
}

impl ClusterCore {
    /// Hands `region` to `to` (none: to the best of the others), as [`Effect::Drain`] says.
    pub fn wish(
        &mut self,
        region: RegionId,
        to: Option<&NodeName>,
        effects: &mut Vec<Effect>,
    ) -> Result<Holder, DrainRefusal> {
        if region.0 >= self.config.regions {
            return Err(DrainRefusal::NoSuchRegion(region.0));
        }
        if !self.may_act() || self.stopping {
            return Err(DrainRefusal::NotNow);
        }
        if !self.regions.placement.held().contains(&region) {
            let holder = self.regions.placement.holder(region);
            let other = holder.filter(|holder| **holder != self.config.me);
            return Err(match other {
                Some(holder) => DrainRefusal::HeldBy(holder.node.clone()),
                None => DrainRefusal::NotHeld,
            });
        }
        let to = self.wished(region, to)?;
        if !self.regions.placement.hand_on(region, to.boot) {
            return Err(DrainRefusal::UnderWay);
        }
        effects.push(Effect::Drain {
            region,
            to: to.clone(),
            is_wished: true,
        });
        Ok(to)
    }

    fn wished(&self, region: RegionId, to: Option<&NodeName>) -> Result<Holder, DrainRefusal> {
        let me = &self.config.me;
        let sims = self.sims();
        let Some(node) = to else {
            let others: Vec<&Sim> = sims
                .iter()
                .filter(|sim| sim.holder != *me && sim.is_linked)
                .collect();
            let keys: Vec<_> = others.iter().map(|sim| sim.key).collect();
            let best = rank::best(region, &keys).ok_or(DrainRefusal::NobodyElse)?;
            return Ok(others[best].holder.clone());
        };
        let sim = sims.iter().find(|sim| sim.holder.node == *node);
        match sim {
            None => Err(DrainRefusal::NoSuchNode(node.clone())),
            Some(sim) if sim.holder == *me => Err(DrainRefusal::IsHere),
            Some(sim) if !sim.is_linked => Err(DrainRefusal::NotLinked(node.clone())),
            Some(sim) => Ok(sim.holder.clone()),
        }
    }

    /// An operator wanted it here: it stays for a while, whoever would be better for it.
    pub(super) fn stays(&mut self, region: RegionId) {
        self.regions.placement.stay(region);
    }
}
