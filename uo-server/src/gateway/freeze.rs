//! Sims at which everything stands still, because they cannot reach the store: their players keep their sessions, are told,
//! and their orders wait.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::WorldStatus;

use super::core::GatewayCore;
use super::session::Phase;
use crate::identity::Holder;

impl GatewayCore {
    /// Whether everything stands still there. It is said of a boot: one that dies fenced never says that it goes on, and
    /// its successor has no reason to.
    pub(super) fn is_frozen(&self, sim: &Holder) -> bool {
        self.frozen.get(&sim.node) == Some(&sim.boot)
    }

    /// A sim stands still, or goes on.
    pub(super) fn freeze(&mut self, sim: Holder, is_frozen: bool) {
        let world = if is_frozen {
            self.frozen.insert(sim.node.clone(), sim.boot);
            WorldStatus::Frozen
        } else {
            self.frozen.remove(&sim.node);
            WorldStatus::Ok
        };
        for key in self.sessions.keys() {
            let session = &self.sessions[key];
            let is_there = session.owner.as_ref() == Some(&sim);
            if is_there && session.phase == Phase::Attached {
                self.note_freeze(key, is_frozen);
                self.tell_world(key, world);
                self.send_orders(key);
            }
        }
    }
}
