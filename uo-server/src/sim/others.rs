//! What a sim knows of the other nodes: who is dead, who lives, and who can be reached.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use super::core::{News, SimCore};
use crate::identity::{BootId, Holder, NodeName};
use crate::limits::DEAD_KEPT_MAX;
use crate::store::ClaimRow;

/// Another node, as its row tells of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Peer {
    /// Who.
    pub holder: Holder,
    /// It has sessions.
    pub is_gateway: bool,
    /// It simulates, and takes characters over: it is neither starting, nor fenced, nor stopping.
    pub takes_over: bool,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Others {
    dead: BTreeSet<BootId>,
    members: BTreeSet<Peer>,
    linked: BTreeSet<NodeName>,
    /// Boots that the cluster core was asked about since the leases were read back last.
    suspected: BTreeSet<BootId>,
}

impl Others {
    /// That boot is proven dead.
    pub(super) fn is_dead_now(&mut self, boot: BootId) {
        self.members.retain(|member| member.holder.boot != boot);
        self.suspected.remove(&boot);
        if self.dead.len() >= DEAD_KEPT_MAX {
            // Whoever is forgotten is proven dead once more when a row names it.
            self.dead.pop_first();
        }
        self.dead.insert(boot);
    }

    pub(super) fn members_are(&mut self, members: Vec<Peer>) {
        self.members = members.into_iter().collect();
        self.members
            .retain(|member| !self.dead.contains(&member.holder.boot));
    }

    pub(super) fn linked_are(&mut self, nodes: Vec<NodeName>) {
        self.linked = nodes.into_iter().collect();
    }

    pub(super) fn link_lost(&mut self, node: &NodeName) {
        self.linked.remove(node);
    }

    /// Whether a boot is proven dead.
    pub fn is_dead(&self, boot: BootId) -> bool {
        self.dead.contains(&boot)
    }

    /// Whether messages to a node arrive.
    pub fn is_linked(&self, node: &NodeName) -> bool {
        self.linked.contains(node)
    }

    /// Whether a character may be offered to that sim.
    pub fn takes_over(&self, holder: &Holder) -> bool {
        let takes_it = |member: &Peer| member.holder == *holder && member.takes_over;
        self.is_linked(&holder.node) && self.members.iter().any(takes_it)
    }

    /// Gateways that can be reached.
    pub(super) fn gateways(&self) -> impl Iterator<Item = &NodeName> {
        self.reachable(|member| member.is_gateway)
    }

    /// Sims that can be reached.
    pub(super) fn sims(&self) -> impl Iterator<Item = &NodeName> {
        self.reachable(|member| member.takes_over)
    }

    fn reachable(&self, is_wanted: impl Fn(&Peer) -> bool) -> impl Iterator<Item = &NodeName> {
        let wanted = self.members.iter().filter(move |member| is_wanted(member));
        let names = wanted.map(|member| &member.holder.node);
        names.filter(|node| self.is_linked(node))
    }

    /// Whether the cluster core has to find out about a boot, and was not asked yet.
    fn suspect(&mut self, boot: BootId) -> bool {
        let is_alive = self.members.iter().any(|member| member.holder.boot == boot);
        !is_alive && !self.is_dead(boot) && self.suspected.insert(boot)
    }

    /// Whoever is still in doubt is asked about once more.
    pub(super) fn suspect_again(&mut self) {
        self.suspected.clear();
    }
}

impl SimCore {
    /// What it held may be claimed, and is held there no longer.
    pub(super) fn is_dead_now(&mut self, boot: BootId) {
        self.others.is_dead_now(boot);
        self.elsewhere.retain(|_, (_, holder)| holder.boot != boot);
        self.drain_to_dead(boot);
    }

    /// A claim was given up because of this row. If its holder should be dead, somebody has to prove it.
    pub(super) fn look_at_holder(&mut self, row: Option<&ClaimRow>) {
        let holder = row.and_then(|row| row.holder.as_ref());
        let boot = holder.map(|holder| holder.boot);
        if let Some(boot) = boot.filter(|&boot| boot != self.config.me.boot)
            && self.others.suspect(boot)
        {
            self.tell_cluster(News::Suspect { boot });
        }
    }
}
