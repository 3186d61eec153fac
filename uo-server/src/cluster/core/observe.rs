//! What operators see of the cluster core.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::Serialize;

use super::ClusterCore;
use super::own::Phase;
use crate::identity::{BootId, NodeName};
use crate::store::row::{NodeState, Role};

/// A cluster core, for `/state` and tests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClusterState {
    /// This node.
    pub node: NodeName,
    /// Its boot now.
    pub boot: BootId,
    /// What it says of itself.
    pub state: NodeState,
    /// It still looks whether another beats under its name.
    pub watching: bool,
    /// Its life; 0: none yet.
    pub life: u64,
    /// Whether it may simulate and acknowledge.
    pub may_act: bool,
    /// Time since its newest acknowledged beat was sent, up to the fence, in milliseconds.
    pub fence_age_ms: Option<u64>,
    /// It can hardly read or write the store, or could not until just now.
    pub outage: bool,
    /// Most gateways cannot reach it.
    pub cut_off: bool,
    /// How often this process was declared dead and started over.
    pub rebirths: usize,
    /// Who is not presumed gone.
    pub members: Vec<MemberState>,
    /// Boots known to be dead.
    pub dead: usize,
    /// Boots that stand still, or that no row shows.
    pub suspects: Vec<BootId>,
    /// Regions held here.
    pub regions_held: usize,
    /// Regions being taken.
    pub regions_taking: usize,
    /// Regions that nobody holds, as far as is known here.
    pub regions_open: usize,
    /// Whether the leases were read.
    pub leases_known: bool,
}

/// One member.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemberState {
    /// Its name.
    pub node: NodeName,
    /// Its boot.
    pub boot: BootId,
    /// What it does.
    pub role: Role,
    /// What it says of itself.
    pub state: NodeState,
}

impl ClusterCore {
    /// What there is to see now.
    pub fn observe(&self) -> ClusterState {
        ClusterState {
            node: self.config.me.node.clone(),
            boot: self.config.me.boot,
            state: self.own_state(),
            watching: self.phase == Phase::Watching,
            life: self.life.life(),
            may_act: self.may_act(),
            fence_age_ms: self.fence.age_ms(),
            outage: self.observer.is_outage(),
            cut_off: self.is_cut_off(),
            rebirths: self.past.len(),
            members: self
                .members
                .iter()
                .map(|member| MemberState {
                    node: member.holder.node.clone(),
                    boot: member.holder.boot,
                    role: member.role,
                    state: member.state,
                })
                .collect(),
            dead: self.dead.len(),
            suspects: self.deaths.keys().copied().collect(),
            regions_held: self.regions.placement.held().len(),
            regions_taking: self.regions.placement.taking(),
            regions_open: self.regions.placement.open(),
            leases_known: self.regions.placement.is_known(),
        }
    }
}
