//! Requests to the store: who asked, and when one that failed may be sent again.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::super::age::Age;
use super::Ticket;
use crate::identity::BootId;

/// Who waits for an answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Asked {
    Beat,
    Nodes,
    OwnLife,
    Death(BootId),
    Leases,
    DemandWrite,
    DemandRead,
}

impl Asked {
    pub(super) fn is_about_regions(self) -> bool {
        matches!(self, Asked::Leases | Asked::DemandWrite | Asked::DemandRead)
    }
}

/// One request under way at most, and a pause after one that failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Asking {
    under_way: Option<Ticket>,
    pause: Option<Age>,
}

impl Asking {
    /// Nothing is under way, and no pause is due.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_none() && self.pause.is_none()
    }

    pub(super) fn sent(&mut self, ticket: Ticket) {
        self.under_way = Some(ticket);
        self.pause = None;
    }

    pub(super) fn answered(&mut self) {
        self.under_way = None;
    }

    /// The next one waits for the pause.
    pub(super) fn failed(&mut self) {
        self.under_way = None;
        self.pause = Some(Age::ZERO);
    }

    pub(super) fn elapse(&mut self, ms: u64, pause_ms: u64) {
        if let Some(pause) = &mut self.pause {
            pause.elapse(ms, pause_ms);
            if pause.reached(pause_ms) {
                self.pause = None;
            }
        }
    }

    /// The answer under way is not waited for any more; its ticket.
    pub(super) fn dropped(&mut self) -> Option<Ticket> {
        self.pause = None;
        self.under_way.take()
    }

    /// Its request goes by another ticket from now. For model checkers.
    pub(super) fn rename(&mut self, renamed: &BTreeMap<Ticket, Ticket>) {
        if let Some(ticket) = &mut self.under_way
            && let Some(new) = renamed.get(ticket)
        {
            *ticket = *new;
        }
    }
}
