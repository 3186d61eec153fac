//! What a sim does while it may not act: before its boot's life has begun, and while its fence is down.
//!
//! It answers whoever would wait for it, learns what is only knowledge, and keeps everything else for the thaw. The world
//! stands still, time included: what was due in a second is due in a second after it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::claims::Asked;
use super::core::{Input, News, SimCore, Ticket};
use crate::Millis;
use crate::identity::NodeName;
use crate::limits::FENCED_MESSAGES_MAX;
use crate::peer::message::{AttachRefusal, HandoffRefusal};
use crate::peer::{ToGateway, ToSim};
use crate::planted::PlantedBug;

/// Whether a core may act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// Not yet.
    Starting,
    /// It may.
    Acting,
    /// No longer.
    Fenced,
    /// Never again.
    Broken,
}

impl SimCore {
    pub(super) fn handle_fenced(&mut self, now: Millis, input: Input) {
        match input {
            Input::Fence { fallen: false } => self.thaw(now),
            Input::Fence { fallen: true } | Input::Tick { .. } => {}
            Input::Dead { .. } | Input::Members { .. } | Input::Linked { .. } => {
                self.dispatch(input);
            }
            // It waits for nothing, and its deadline begins when time goes on.
            Input::Stop => {
                self.dispatch(input);
                if self.standing == Standing::Starting {
                    self.stop_anyway(); // There is nothing to give up.
                }
            }
            Input::Take { region, .. } => self.tell_cluster(News::Gone { region, row: None }),
            Input::GiveUp => self.dispatch(input),
            // What is still wanted comes again.
            Input::Retire { .. }
            | Input::Drain { .. }
            | Input::ReadBack { .. }
            | Input::Release { .. } => {}
            Input::Peer {
                message: ToSim::Attach(attach),
                ..
            } => self.refuse_attach(&attach, AttachRefusal::NotNow),
            Input::Peer {
                message: ToSim::HandoffOffer(offer),
                ..
            } => self.refuse_offer(&offer, HandoffRefusal::Fenced),
            Input::Peer {
                message: ToSim::DrainOffer(offer),
                ..
            } => self.refuse_drain(&offer, "it is fenced"),
            Input::Peer { .. } if self.kept.len() >= FENCED_MESSAGES_MAX => {
                self.counters.messages_dropped_fenced += 1;
            }
            Input::Store { ticket, .. } if self.is_saved_unchecked(ticket) => self.dispatch(input),
            // There are no more of them than were asked for.
            Input::Peer { .. } | Input::Store { .. } => self.kept.push_back(input),
            Input::PeerLost { node } => {
                self.others.link_lost(&node);
                self.keep_loss(node);
            }
        }
    }

    /// The fault: an acknowledged checkpoint counts, whether or not we may act.
    fn is_saved_unchecked(&self, ticket: Ticket) -> bool {
        let is_checkpoint = matches!(self.asked.get(&ticket), Some(Asked::Checkpoint(_)));
        is_checkpoint && self.has_bug(PlantedBug::SavedWithoutCheck)
    }

    /// A link that breaks again and again is lost once, unless something came over it meanwhile.
    fn keep_loss(&mut self, node: NodeName) {
        let of_node = |input: &&Input| match input {
            Input::Peer { from, .. } => from.node == node,
            Input::PeerLost { node: lost } => *lost == node,
            _ => false,
        };
        let newest = self.kept.iter().rev().find(of_node);
        if !matches!(newest, Some(Input::PeerLost { .. })) {
            self.kept.push_back(Input::PeerLost { node });
        }
    }

    /// The fence of an acting core.
    pub(super) fn fence(&mut self, fallen: bool) {
        if !fallen {
            return;
        }
        self.standing = Standing::Fenced;
        // The last thing a boot does is to give up the right to act; that is no news to anybody.
        if !self.stopped {
            self.counters.fences += 1;
            self.tell_frozen(true);
        }
    }

    /// Each input that was kept is handled as if it came now: whoever thaws owns what it owned.
    fn thaw(&mut self, now: Millis) {
        let was_fenced = self.standing == Standing::Fenced;
        self.frozen_ms = now.saturating_sub(self.now);
        self.standing = Standing::Acting;
        if was_fenced {
            self.tell_frozen(false);
        }
        for input in std::mem::take(&mut self.kept) {
            match input {
                // There may be another link to that node by now.
                Input::PeerLost { node } => self.peer_lost(&node),
                input => self.dispatch(input),
            }
        }
    }

    /// Gateways tell their clients that this part of the world stands still, and hold orders back.
    ///
    /// Who was told that it stands still is told that it goes on, even one that is taken for gone meanwhile: it would hold
    /// orders back for ever.
    fn tell_frozen(&mut self, is_frozen: bool) {
        let mut concerned = std::mem::take(&mut self.told_frozen);
        concerned.extend(self.told());
        for node in concerned.clone() {
            self.send_gateway(node, ToGateway::Frozen { is_frozen });
        }
        if is_frozen {
            self.told_frozen = concerned;
        }
    }
}
