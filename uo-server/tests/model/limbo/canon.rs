//! One form for all states that differ in nothing that matters.

use std::hash::{DefaultHasher, Hash, Hasher};

use uo_server::cluster::claim::{Attempt, Claim};
use uo_server::identity::{BootId, Nonce};
use uo_server::store::{ClaimRow, Seen};

use super::state::{Message, Node, RIGHTS, Register, Right, Slot, State};
use crate::model::claim::visit::{Names, Numbered, see_holder};

/// Where each row's number is put.
const NUMBER: u64 = 16;
/// The first of the boots that are gone.
const GONE: u128 = 100;

impl State {
    pub fn canonical(mut self) -> State {
        for right in 0..RIGHTS {
            self.forget(right);
            self.rank_numbers(right);
            self.rank_nonces(right);
        }
        self.sort_nodes();
        self.rank_boots();
        for register in &mut self.registers {
            register.air.sort_by_cached_key(hash_of);
            register.messages.sort_by_cached_key(hash_of);
        }
        self
    }

    /// Drops what changes nothing whenever it comes, and what makes no difference about what was overtaken.
    fn forget(&mut self, right: Right) {
        let register = &mut self.registers[right];
        let (number, row) = (register.number(), register.row.clone());
        let can_apply = |seen: &Option<Seen>| row.as_ref().map(ClaimRow::seen) == *seen;
        register.air.retain(|attempt| can_apply(&attempt.seen));
        let boots: Vec<BootId> = self.nodes.iter().map(|node| node.boot).collect();
        let nodes = &self.nodes;
        let slots_of = |boot: BootId| {
            let node = nodes.iter().filter(move |node| node.boot == boot);
            node.flat_map(|node| &node.slots[right])
        };
        register.messages.retain(|message| match message {
            Message::Offer { seen, .. } => can_apply(&Some(seen.clone())),
            Message::Refuse { to, number } => {
                slots_of(*to).any(|slot| slot.claim == Claim::Outgoing { number: *number })
            }
            Message::Accept { to, number } => slots_of(*to).any(|slot| {
                let known = slot.claim.number();
                !matches!(slot.claim, Claim::Held { .. }) && known.is_some_and(|it| it < *number)
            }),
        });
        for message in &mut register.messages {
            if let Message::Accept { number: at, .. } = message {
                *at = number;
            }
        }
        register.messages.sort_by_cached_key(hash_of);
        register.messages.dedup();
        for node in &mut self.nodes {
            for slot in &mut node.slots[right] {
                slot.source.take_if(|source| !boots.contains(source));
                slot.forget(number, row.as_ref().map(|row| row.nonce));
            }
        }
    }

    fn rank_numbers(&mut self, right: Right) {
        let Some(now) = self.registers[right].row.as_ref().map(|row| row.number) else {
            return;
        };
        let mut below = Vec::new();
        self.each_number(right, &mut |number| {
            if *number < now {
                below.push(*number);
            }
        });
        below.sort_unstable();
        below.dedup();
        self.each_number(right, &mut |number| {
            *number = match below.binary_search(number) {
                Ok(at) => NUMBER - (below.len() - at) as u64,
                Err(_) => NUMBER + (*number - now),
            };
        });
    }

    fn rank_nonces(&mut self, right: Right) {
        let mut known: Vec<Nonce> = Vec::new();
        let mut see = |nonce: &mut Nonce| {
            let at = known.iter().position(|known| known == nonce);
            let at = at.unwrap_or_else(|| {
                known.push(*nonce);
                known.len() - 1
            });
            nonce.0 = at as u128 + 1;
        };
        let register = &mut self.registers[right];
        if let Some(row) = &mut register.row {
            see(&mut row.nonce);
        }
        // By what they are besides, so that the order of nodes does not matter.
        for node in &mut self.nodes {
            for attempt in node.slots[right].iter_mut().filter_map(Slot::attempt_mut) {
                see(&mut attempt.to.nonce);
            }
        }
        register
            .air
            .sort_by_cached_key(|attempt| hash_of(&attempt.seen));
        for attempt in &mut register.air {
            see(&mut attempt.to.nonce);
        }
    }

    fn sort_nodes(&mut self) {
        let owners: Vec<Option<BootId>> = self.registers.iter().map(Register::owner).collect();
        let look = |node: &Node| {
            let me = node.boot;
            let mut seen = node.clone();
            seen.each_boot(&mut |boot| boot.0 = u128::from(*boot != me));
            for right in 0..RIGHTS {
                let nonce = self.registers[right].row.as_ref().map(|row| row.nonce);
                for attempt in seen.slots[right].iter_mut().filter_map(Slot::attempt_mut) {
                    attempt.to.nonce.0 = u128::from(Some(attempt.to.nonce) == nonce);
                }
            }
            let owns: Vec<bool> = owners.iter().map(|owner| *owner == Some(me)).collect();
            let is_of_me =
                |attempt: &&Attempt| attempt.to.holder.as_ref().is_some_and(|it| it.boot == me);
            let about: Vec<(usize, usize)> = self
                .registers
                .iter()
                .map(|register| {
                    let messages = register.messages.iter().filter(|it| it.to() == me);
                    (
                        messages.count(),
                        register.air.iter().filter(is_of_me).count(),
                    )
                })
                .collect();
            hash_of(&(seen, owns, about, self.is_dead(me)))
        };
        let mut keyed: Vec<(u64, Node)> = self
            .nodes
            .iter()
            .map(|node| (look(node), node.clone()))
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        self.nodes = keyed.into_iter().map(|(_, node)| node).collect();
        // The nonces of those that changed places are ranked as they stand now.
        for right in 0..RIGHTS {
            self.rank_nonces(right);
        }
    }

    fn rank_boots(&mut self) {
        let running: Vec<BootId> = self.nodes.iter().map(|node| node.boot).collect();
        let mut gone: Vec<BootId> = Vec::new();
        let mut see = |boot: &mut BootId| {
            if let Some(at) = running.iter().position(|known| known == boot) {
                boot.0 = at as u128 + 1;
                return;
            }
            let at = gone.iter().position(|known| known == boot);
            let at = at.unwrap_or_else(|| {
                gone.push(*boot);
                gone.len() - 1
            });
            boot.0 = GONE + at as u128;
        };
        for register in &mut self.registers {
            if let Some(row) = &mut register.row {
                row.each_boot(&mut see);
            }
            register
                .air
                .sort_by_cached_key(|attempt| hash_of(&(&attempt.seen, attempt.to.nonce)));
            register
                .air
                .iter_mut()
                .for_each(|it| it.each_boot(&mut see));
            for message in &mut register.messages {
                see(message.to_mut());
                if let Message::Offer { seen, .. } = message {
                    see_holder(&mut seen.holder, &mut see);
                }
            }
        }
        self.nodes
            .iter_mut()
            .for_each(|node| node.each_boot(&mut see));
        let ranked = |boot: &BootId| {
            let running = running.iter().position(|known| known == boot);
            let running = running.map(|at| at as u128 + 1);
            let gone = gone.iter().position(|known| known == boot);
            running.or(gone.map(|at| GONE + at as u128)).map(BootId)
        };
        self.dead = self.dead.iter().filter_map(ranked).collect();
        self.dead.sort_unstable();
    }

    fn each_number(&mut self, right: Right, see: &mut dyn FnMut(&mut u64)) {
        let register = &mut self.registers[right];
        if let Some(row) = &mut register.row {
            see(&mut row.number);
        }
        register
            .air
            .iter_mut()
            .for_each(|attempt| attempt.each_number(see));
        for message in &mut register.messages {
            match message {
                Message::Offer { seen, .. } => see(&mut seen.number),
                Message::Refuse { number, .. } | Message::Accept { number, .. } => see(number),
            }
        }
        for slot in self
            .nodes
            .iter_mut()
            .flat_map(|node| &mut node.slots[right])
        {
            match &mut slot.claim {
                Claim::Free | Claim::Reading => {}
                Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                    attempt.each_number(see);
                }
                Claim::Loading { number }
                | Claim::Sealing { number }
                | Claim::Held { number }
                | Claim::Outgoing { number } => see(number),
            }
        }
    }
}

impl Slot {
    fn attempt_mut(&mut self) -> Option<&mut Attempt> {
        match &mut self.claim {
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => Some(attempt),
            _ => None,
        }
    }

    /// How long ago it was overtaken makes no difference.
    fn forget(&mut self, now: u64, nonce: Option<Nonce>) {
        let Some(past) = now.checked_sub(1) else {
            return;
        };
        if let Claim::Held { number } | Claim::Outgoing { number } = &mut self.claim
            && *number < now
        {
            *number = past;
        }
        if let Some(attempt) = self.attempt_mut() {
            let seen = attempt.seen.as_ref().map_or(0, |seen| seen.number);
            if seen < now && nonce != Some(attempt.to.nonce) {
                attempt.seen = Some(Seen {
                    holder: None,
                    number: past,
                });
                attempt.to.number = past;
            }
        }
    }
}

impl Node {
    fn each_boot(&mut self, see: &mut dyn FnMut(&mut BootId)) {
        see(&mut self.boot);
        for slot in self.slots.iter_mut().flatten() {
            if let Some(source) = &mut slot.source {
                see(source);
            }
            if let Some(attempt) = slot.attempt_mut() {
                attempt.each_boot(see);
            }
        }
    }
}

fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
