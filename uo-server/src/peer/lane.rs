//! The way from the cores' threads to the task that writes to one peer, and what is counted of all of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, mpsc};

use super::Message;
use super::connection::{Ended, Proven, Skipped};
use super::outbound::{Bounds, Outbound, Pushed};
use super::wire::{self, Packet};
use crate::identity::BootId;
use crate::limits::{PEER_FRAME_BYTES_MAX, PEER_WRITE_BYTES};

/// What was counted of all links of a node.
#[derive(Debug, Default)]
pub struct Counts {
    /// Messages sent.
    pub sent: AtomicU64,
    /// Messages received.
    pub received: AtomicU64,
    /// Bytes written.
    pub bytes_out: AtomicU64,
    /// Bytes read.
    pub bytes_in: AtomicU64,
    /// Messages that were combined with one that waited.
    pub combined: AtomicU64,
    /// Messages that were dropped by the rule of their kind.
    pub dropped: AtomicU64,
    /// Messages for a node to which there was no link, or whose link was lost while they waited.
    pub not_linked: AtomicU64,
    /// Messages that the receiver's version does not know.
    pub too_new: AtomicU64,
    /// Messages that are longer than a frame may be.
    pub too_long: AtomicU64,
    /// Links cut because their node did not read.
    pub overflows: AtomicU64,
    /// Frames of kinds that this build does not know.
    pub unknown: AtomicU64,
    /// Frames of kinds that it knows, but cannot read.
    pub unreadable: AtomicU64,
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl Counts {
    /// Takes over what a connection skipped since `before`.
    pub(super) fn skipped(&self, before: Skipped, now: Skipped) {
        add(&self.unknown, now.unknown - before.unknown);
        add(&self.unreadable, now.unreadable - before.unreadable);
    }
}

/// See the module.
#[derive(Debug)]
pub struct Lane {
    queue: Mutex<Outbound>,
    /// Rung when there is something to write.
    bell: Notify,
    /// Its peer knows that this is the link: messages may be written.
    open: AtomicBool,
    closer: mpsc::Sender<Ended>,
    /// Who it leads to, once that is proven.
    peer: OnceLock<Proven>,
}

impl Lane {
    /// A lane that nothing leaves yet. What `closer` is sent ends the connection.
    pub fn new(bounds: Bounds, closer: mpsc::Sender<Ended>) -> Lane {
        Lane {
            queue: Mutex::new(Outbound::new(bounds)),
            bell: Notify::new(),
            open: AtomicBool::new(false),
            closer,
            peer: OnceLock::new(),
        }
    }

    /// Queues `message`, which this boot sends. Never waits.
    pub fn push(&self, from: BootId, message: Message, counts: &Counts) {
        match self.queue().push(from, message) {
            Pushed::Queued => {}
            Pushed::Combined => add(&counts.combined, 1),
            Pushed::Dropped => return add(&counts.dropped, 1),
            Pushed::Overflow => {
                add(&counts.not_linked, 1);
                if self.close(Ended::Overflow) {
                    add(&counts.overflows, 1);
                }
                return;
            }
        }
        self.bell.notify_one();
    }

    /// It leads to this peer.
    pub(super) fn leads_to(&self, peer: Proven) {
        // It does so for ever.
        let _ = self.peer.set(peer);
    }

    /// Who it leads to; none before it is linked.
    pub fn peer(&self) -> Option<&Proven> {
        self.peer.get()
    }

    /// Ends its connection, for the first reason that was given; whether this was the first.
    pub fn close(&self, why: Ended) -> bool {
        self.closer.try_send(why).is_ok()
    }

    /// Messages that wait.
    pub fn len(&self) -> usize {
        self.queue().len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    pub(super) fn open(&self) {
        self.open.store(true, Ordering::Release);
        self.bell.notify_one();
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    pub(super) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// Appends frames of what waits, about as many bytes as are written at once.
    pub(super) fn fill(&self, out: &mut Vec<u8>, counts: &Counts) {
        while out.len() < PEER_WRITE_BYTES {
            // Encoding takes a while; the cores' threads do not wait for that.
            let Some((boot, message)) = self.queue().pop() else {
                return;
            };
            let packet = Packet::Carry { boot, message };
            match wire::write(&packet, PEER_FRAME_BYTES_MAX, out) {
                Ok(()) => add(&counts.sent, 1),
                Err(error) => {
                    add(&counts.too_long, 1);
                    tracing::error!(%error, "a message is too long for its link and was dropped");
                }
            }
        }
    }

    fn queue(&self) -> MutexGuard<'_, Outbound> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
