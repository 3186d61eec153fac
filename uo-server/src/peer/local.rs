//! The transport inside one process: the inboxes of this node's own cores.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, TrySendError};

use super::{Message, ToGateway, Transport};
use crate::gateway::core::Input as GatewayInput;
use crate::gateway::mailbox::GatewayMail;
use crate::identity::{Holder, NodeName};
use crate::sim::mailbox::SimMail;
use crate::sim::member::Input as SimInput;

/// How long a message that may not be dropped waits for room. Both inboxes full for this long means that a core's thread
/// stands still, and then nothing that is queued for it matters.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How often a task looks whether there is room.
const WAIT_LOOK: Duration = Duration::from_millis(1);

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

    /// The node whose cores these are.
    pub fn me(&self) -> &NodeName {
        &self.me
    }

    /// Messages dropped so far because an inbox was full, or because they were for a node that does not exist.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    fn lost(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Delivers what another node says. While an inbox is full its link is not read on, so that in the end the other
    /// node waits.
    pub(super) async fn deliver(&self, from: Holder, message: Message) {
        let wait = match is_droppable(&message) {
            true => Duration::ZERO,
            false => WAIT_MAX,
        };
        let delivered = match message {
            Message::ToSim(message) => {
                let mail = SimMail::Input(SimInput::Peer { from, message });
                post(&self.sim, mail, wait).await
            }
            Message::ToGateway(message) => match &self.gateway {
                Some(gateway) => {
                    let mail = GatewayMail::Input(GatewayInput::Peer { from, message });
                    post(gateway, mail, wait).await
                }
                None => false,
            },
        };
        if !delivered {
            self.lost();
        }
    }

    /// Tells the cores which nodes are linked; as long as one of them is alive, it hears of it.
    pub(super) async fn linked(&self, nodes: Vec<NodeName>) {
        let mail = SimMail::Input(SimInput::Linked { nodes });
        post(&self.sim, mail, Duration::MAX).await;
    }

    /// Tells the cores that a link is gone, in the same way.
    pub(super) async fn peer_lost(&self, node: NodeName) {
        if let Some(gateway) = &self.gateway {
            let node = node.clone();
            let mail = GatewayMail::Input(GatewayInput::PeerLost { node });
            post(gateway, mail, Duration::MAX).await;
        }
        let mail = SimMail::Input(SimInput::PeerLost { node });
        post(&self.sim, mail, Duration::MAX).await;
    }
}

/// A gap in a feed is noticed and repaired by its subscriber.
fn is_droppable(message: &Message) -> bool {
    matches!(
        message,
        Message::ToGateway(ToGateway::FeedFull(_) | ToGateway::FeedDelta(_))
    )
}

/// Whether it could be put in, at the latest after `wait`.
async fn post<T>(inbox: &Sender<T>, mut mail: T, wait: Duration) -> bool {
    let begun = Instant::now();
    loop {
        match inbox.try_send(mail) {
            Ok(()) => return true,
            Err(TrySendError::Disconnected(_)) => return false,
            Err(TrySendError::Full(_)) if begun.elapsed() >= wait => return false,
            Err(TrySendError::Full(back)) => mail = back,
        }
        tokio::time::sleep(WAIT_LOOK).await;
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
        let droppable = is_droppable(&message);
        let delivered = match message {
            Message::ToSim(message) => {
                let mail = SimMail::Input(SimInput::Peer { from, message });
                self.sim.send_timeout(mail, WAIT_MAX).is_ok()
            }
            Message::ToGateway(message) => {
                let mail = GatewayMail::Input(GatewayInput::Peer { from, message });
                match self
                    .gateway
                    .as_ref()
                    .map(|gateway| (gateway, gateway.try_send(mail)))
                {
                    Some((_, Ok(()))) => true,
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
