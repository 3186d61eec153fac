//! Every number, boot, nonce, stamp, value and deed that a state holds, one after the other: for those who rank them.

use uo_server::cluster::claim::{Attempt, Claim};
use uo_server::identity::{BootId, Holder, Nonce};
use uo_server::planted::Planted;
use uo_server::store::{ClaimRow, Stamp};

use super::state::{Answer, Message, Node, Slot, State, Write, holder};
use super::store::{Data, Deeds, Late};

impl State {
    pub fn each_number(&mut self, see: &mut dyn FnMut(&mut u64)) {
        if let Some(row) = &mut self.row {
            see(&mut row.number);
        }
        let cells = &mut self.cells;
        let stamps = [
            cells.tombstone.as_mut(),
            cells.main.as_mut().map(|(at, _)| at),
            cells.object.as_mut().map(|(at, _)| at),
        ];
        stamps
            .into_iter()
            .flatten()
            .for_each(|at| see(&mut at.number));
        for late in &mut self.air {
            match late {
                Late::Cas(attempt) => attempt.each_number(see),
                Late::Seal { number, .. } => see(number),
                Late::Main { stamp, .. } | Late::Object { stamp, .. } => see(&mut stamp.number),
            }
        }
        for message in &mut self.messages {
            match message {
                Message::Offer { seen, .. } => see(&mut seen.number),
                Message::Refuse { number, .. }
                | Message::Accept { number, .. }
                | Message::Given { number, .. } => see(number),
            }
        }
        for node in &mut self.nodes {
            if let Some(number) = &mut node.read_back {
                see(number);
            }
            for slot in &mut node.slots {
                slot.each_number(see);
            }
        }
    }

    pub fn each_stamp(&mut self, see: &mut dyn FnMut(u64, &mut u32)) {
        let mut stamp = |stamp: &mut Stamp| see(stamp.number, &mut stamp.n);
        if let Some((at, _)) = &mut self.cells.main {
            stamp(at);
        }
        if let Some((at, _)) = &mut self.cells.object {
            stamp(at);
        }
        for late in &mut self.air {
            if let Late::Main { stamp: at, .. } | Late::Object { stamp: at, .. } = late {
                stamp(at);
            }
        }
        for slot in self.nodes.iter_mut().flat_map(|node| &mut node.slots) {
            let number = slot.claim.number().unwrap_or(0);
            see(number, &mut slot.n);
            if let Some(Write::Main { n, .. } | Write::Object { n, .. }) = &mut slot.write {
                see(number, n);
            }
        }
    }

    /// Every value that may yet be loaded, sealed or written.
    pub fn each_value(&mut self, planted: Planted, see: &mut dyn FnMut(Data)) {
        see(self.cells.data());
        for late in &self.air {
            match late {
                Late::Seal { data, .. } => see(*data),
                Late::Main { deeds, .. } => see(Data {
                    deeds: *deeds,
                    object: false,
                }),
                Late::Cas(_) | Late::Object { .. } => {}
            }
        }
        for message in &self.messages {
            if let Message::Offer { data, .. } | Message::Given { data, .. } = message {
                see(*data);
            }
        }
        let now = self.number();
        for slot in self.nodes.iter().flat_map(|node| &node.slots) {
            if let Some(Answer::Loaded(data, _)) = &slot.kept {
                see(*data);
            }
            if slot.has_value(now) || planted != Planted::NONE {
                see(slot.value);
            }
            if let Some(Write::Main { deeds, .. }) = &slot.write {
                see(Data {
                    deeds: *deeds,
                    object: false,
                });
            }
        }
    }

    pub fn each_deeds(&mut self, see: &mut dyn FnMut(&mut Deeds)) {
        if let Some((_, deeds)) = &mut self.cells.main {
            see(deeds);
        }
        for late in &mut self.air {
            match late {
                Late::Seal { data, .. } => see(&mut data.deeds),
                Late::Main { deeds, .. } => see(deeds),
                Late::Cas(_) | Late::Object { .. } => {}
            }
        }
        for message in &mut self.messages {
            if let Message::Offer { data, .. } | Message::Given { data, .. } = message {
                see(&mut data.deeds);
            }
        }
        for slot in self.nodes.iter_mut().flat_map(|node| &mut node.slots) {
            if let Some(Answer::Loaded(data, _)) = &mut slot.kept {
                see(&mut data.deeds);
            }
            see(&mut slot.value.deeds);
            if let Some(Write::Main { deeds, .. }) = &mut slot.write {
                see(deeds);
            }
        }
    }

    /// Every deed that any value or promise knows of.
    pub fn all_deeds(&self) -> Deeds {
        let mut all = self.told;
        self.clone().each_deeds(&mut |deeds| all |= *deeds);
        all
    }

    pub fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId)) {
        if let Some(row) = &mut self.row {
            row.each_boot(see);
        }
        self.nodes.iter_mut().for_each(|node| node.each_boot(see));
        for late in &mut self.air {
            if let Late::Cas(attempt) = late {
                attempt.each_boot(see);
            }
        }
        self.messages.iter_mut().for_each(|it| it.each_boot(see));
    }

    pub fn each_nonce(&mut self, see: &mut dyn FnMut(&mut Nonce)) {
        if let Some(row) = &mut self.row {
            see(&mut row.nonce);
        }
        self.nodes.iter_mut().for_each(|node| node.each_nonce(see));
        for late in &mut self.air {
            if let Late::Cas(attempt) = late {
                see(&mut attempt.to.nonce);
            }
        }
    }
}

impl Slot {
    pub fn each_number(&mut self, see: &mut dyn FnMut(&mut u64)) {
        match &mut self.claim {
            Claim::Free | Claim::Reading => {}
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                attempt.each_number(see);
            }
            Claim::Loading { number }
            | Claim::Sealing { number }
            | Claim::Held { number }
            | Claim::Outgoing { number } => see(number),
        }
        if let Some(number) = &mut self.acts {
            see(number);
        }
        match &mut self.kept {
            Some(Answer::Row(Some(row)) | Answer::Refused(Some(row))) => see(&mut row.number),
            Some(Answer::Loaded(_, Some(number))) => see(number),
            _ => {}
        }
    }
}

impl Node {
    pub fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId)) {
        see(&mut self.boot);
        for slot in &mut self.slots {
            if let Some(source) = &mut slot.source {
                see(source);
            }
            if let Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } = &mut slot.claim
            {
                attempt.each_boot(see);
            }
            if let Some(Answer::Row(Some(row)) | Answer::Refused(Some(row))) = &mut slot.kept {
                row.each_boot(see);
            }
        }
    }

    pub fn each_nonce(&mut self, see: &mut dyn FnMut(&mut Nonce)) {
        for slot in &mut self.slots {
            if let Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } = &mut slot.claim
            {
                see(&mut attempt.to.nonce);
            }
            if let Some(Answer::Row(Some(row)) | Answer::Refused(Some(row))) = &mut slot.kept {
                see(&mut row.nonce);
            }
        }
    }
}

impl Message {
    pub fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId)) {
        match self {
            Message::Offer { to, seen, .. } => {
                see(to);
                see_holder(&mut seen.holder, see);
            }
            Message::Refuse { to, .. } | Message::Accept { to, .. } | Message::Given { to, .. } => {
                see(to);
            }
        }
    }
}

/// Ranks what an attempt or a row names.
pub trait Names {
    fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId));
}

impl Names for ClaimRow {
    fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId)) {
        see_holder(&mut self.holder, see);
    }
}

impl Names for Attempt {
    fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId)) {
        if let Some(seen) = &mut self.seen {
            see_holder(&mut seen.holder, see);
        }
        see_holder(&mut self.to.holder, see);
    }
}

/// Ranks the numbers of what an attempt names and puts there.
pub trait Numbered {
    fn each_number(&mut self, see: &mut dyn FnMut(&mut u64));
}

impl Numbered for Attempt {
    fn each_number(&mut self, see: &mut dyn FnMut(&mut u64)) {
        if let Some(seen) = &mut self.seen {
            see(&mut seen.number);
        }
        see(&mut self.to.number);
    }
}

pub fn see_holder(named: &mut Option<Holder>, see: &mut dyn FnMut(&mut BootId)) {
    if let Some(known) = named {
        let mut boot = known.boot;
        see(&mut boot);
        if boot != known.boot {
            *named = Some(holder(boot));
        }
    }
}
