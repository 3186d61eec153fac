//! Sims at which everything stands still, because they cannot reach the store: their players keep their sessions, are told,
//! and their orders wait.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::WorldStatus;

use super::core::GatewayCore;
use super::session::Phase;
use crate::identity::NodeName;

impl GatewayCore {
    /// A sim stands still, or goes on.
    pub(super) fn freeze(&mut self, node: NodeName, is_frozen: bool) {
        let world = if is_frozen {
            self.frozen.insert(node.clone());
            WorldStatus::Frozen
        } else {
            self.frozen.remove(&node);
            WorldStatus::Ok
        };
        for key in self.sessions.keys() {
            let session = &self.sessions[key];
            let is_there = session.owner.as_ref().is_some_and(|it| it.node == node);
            if is_there && session.phase == Phase::Attached {
                self.note_freeze(key, is_frozen);
                self.tell_world(key, world);
                self.send_orders(key);
            }
        }
    }
}
