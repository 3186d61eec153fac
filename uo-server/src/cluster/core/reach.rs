//! Whether the gateways can reach this sim.
//!
//! A sim that most gateways cannot reach beats like any other, so nobody replaces it, and yet hardly a player is served by
//! it. It says so in its row. While there is a sim that is better off, it counts for placement no more than one that
//! stops: it takes nothing, and hands on what it has.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use super::nodes::Peer;
use super::{Age, ClusterCore};
use crate::identity::{BootId, NodeName};
use crate::store::row::{NodeState, Role};

/// What became of the links to gateways.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Reach {
    is_cut_off: bool,
    /// Since when the links say otherwise. One that flaps changes nothing.
    otherwise: Age,
}

impl Reach {
    fn elapse(&mut self, ms: u64, looks_cut_off: bool, wait_ms: u64) {
        if looks_cut_off == self.is_cut_off {
            self.otherwise = Age::ZERO;
            return;
        }
        self.otherwise.elapse(ms, wait_ms);
        if self.otherwise.reached(wait_ms) {
            *self = Reach {
                is_cut_off: looks_cut_off,
                otherwise: Age::ZERO,
            };
        }
    }
}

impl ClusterCore {
    pub(super) fn elapse_reach(&mut self, ms: u64) {
        let looks_cut_off = self.has_life() && self.is_unlinked_from_most();
        let wait_ms = self.config.timing.cut_off_ms;
        let before = self.reach.is_cut_off;
        self.reach.elapse(ms, looks_cut_off, wait_ms);
        if self.reach.is_cut_off != before {
            self.regions.look_soon();
        }
    }

    /// Of the gateways that run, fewer than half are linked. A process that is both reaches its own.
    fn is_unlinked_from_most(&self) -> bool {
        let is_gateway = |(boot, peer): &(&BootId, &Peer)| {
            let says_so = peer
                .row
                .as_ref()
                .is_some_and(|row| row.role != Role::Sim && row.state == NodeState::Running);
            says_so && !self.observer.is_gone(**boot)
        };
        let others = self.peers.iter().filter(is_gateway);
        let mut gateways: BTreeSet<&NodeName> = others.map(|(_, peer)| &peer.node).collect();
        let linked = gateways.iter().filter(|node| self.linked.contains(**node));
        let mut reached = linked.count();
        if self.config.role == Role::All && gateways.insert(&self.config.me.node) {
            reached += 1;
        }
        2 * reached < gateways.len()
    }

    /// Most gateways cannot reach this sim, and could not for a while.
    pub(super) fn is_cut_off(&self) -> bool {
        self.reach.is_cut_off
    }

    /// Whether this sim hands on what it has: it stops, or another is better off.
    pub(super) fn gives_way(&self) -> bool {
        self.stopping
            || (self.is_cut_off() && self.sims().iter().all(|sim| sim.holder != self.config.me))
    }
}
