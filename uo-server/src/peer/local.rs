//! The transport inside one process: the inboxes of this node's own cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_channel::{Sender, TrySendError};

use super::{Message, ToGateway, Transport};
use crate::gateway::mailbox::GatewayMail;
use crate::identity::{Holder, NodeName};
use crate::sim::mailbox::SimMail;

/// How long a message that may not be dropped waits for room. Both inboxes full for this long means that a core's thread
/// stands still, and then nothing that is queued for it matters.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// See the module.
pub struct LocalTransport {
    me: NodeName,
    sim: Sender<SimMail>,
    gateway: Option<Sender<GatewayMail>>,
    dropped: AtomicU64,
}

impl LocalTransport {
    /// Carries messages between the cores of `me`, which may have no gateway.
    pub fn new(
        me: NodeName,
        sim: Sender<SimMail>,
        gateway: Option<Sender<GatewayMail>>,
    ) -> LocalTransport {
        LocalTransport {
            me,
            sim,
            gateway,
            dropped: AtomicU64::new(0),
        }
    }

    /// Messages dropped so far because an inbox was full, or because they were for a node that does not exist.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn lost(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Transport for LocalTransport {
    fn send(&self, from: &Holder, to: &NodeName, message: Message) {
        if *to != self.me {
            self.lost();
            tracing::warn!(%to, "a message for an unknown node was dropped");
            return;
        }
        let from = from.clone();
        let delivered = match message {
            Message::ToSim(message) => {
                let mail = SimMail::Input(crate::sim::member::Input::Peer { from, message });
                self.sim.send_timeout(mail, WAIT_MAX).is_ok()
            }
            Message::ToGateway(message) => {
                let droppable = matches!(message, ToGateway::FeedFull(_) | ToGateway::FeedDelta(_));
                let mail = GatewayMail::Input(crate::gateway::core::Input::Peer { from, message });
                match self
                    .gateway
                    .as_ref()
                    .map(|gateway| (gateway, gateway.try_send(mail)))
                {
                    Some((_, Ok(()))) => true,
                    // A gap in a feed is noticed and repaired by its subscriber.
                    Some((_, Err(TrySendError::Full(_)))) if droppable => false,
                    Some((gateway, Err(TrySendError::Full(mail)))) => {
                        gateway.send_timeout(mail, WAIT_MAX).is_ok()
                    }
                    Some((_, Err(TrySendError::Disconnected(_)))) | None => false,
                }
            }
        };
        if !delivered {
            self.lost();
        }
    }
}
