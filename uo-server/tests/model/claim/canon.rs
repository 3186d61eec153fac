//! One form for all states that differ in nothing that matters: numbers, nonces and boots are ranked, nodes sorted, and
//! what can no longer take effect is forgotten.

use std::hash::{DefaultHasher, Hash, Hasher};

use uo_server::cluster::claim::{Claim, Purpose};
use uo_server::identity::{BootId, Nonce};
use uo_server::planted::Planted;
use uo_server::store::{ClaimRow, Seen, Stamp};

use super::state::{Dirty, Message, Node, Role, Slot, State, Write};
use super::store::{Data, Deeds, Late};

/// Where the row's number is put.
const NUMBER: u64 = 16;
/// The first of the boots that are gone.
const GONE: u128 = 100;

impl State {
    pub fn canonical(mut self, planted: Planted) -> State {
        self.forget(planted);
        self.rank_numbers();
        self.rank_stamps();
        self.absorb_deeds(planted);
        self.sort_nodes();
        self.rank_boots();
        self.rank_nonces();
        self.air.sort_by_cached_key(hash_of);
        self.messages.sort_by_cached_key(hash_of);
        self
    }

    /// Drops requests and messages that change nothing whenever they come.
    fn forget(&mut self, planted: Planted) {
        let (row, cells) = (&self.row, &self.cells);
        let can_apply = |seen: &Option<Seen>| row.as_ref().map(ClaimRow::seen) == *seen;
        // A compare-and-set that does not name the number comes back to life.
        let keeps_cas = planted != Planted::NONE;
        self.air.retain(|late| match late {
            Late::Cas(attempt) => keeps_cas || can_apply(&attempt.seen),
            late => cells.can_change(late, planted),
        });
        let number = self.number();
        let nodes = &self.nodes;
        self.messages.retain(|message| match message {
            Message::Offer { seen, .. } => can_apply(&Some(seen.clone())),
            Message::Given { number: at, .. } => *at == number,
            Message::Refuse { to, number: at } => nodes.iter().any(|node| {
                let slot = node.slot(Role::Outgoing);
                node.boot == *to
                    && slot.is_some_and(|slot| slot.claim == Claim::Outgoing { number: *at })
            }),
            Message::Accept { to, number: at } => nodes.iter().any(|node| {
                let slot = node
                    .slot(Role::Outgoing)
                    .and_then(|slot| slot.claim.number());
                node.boot == *to && slot.is_some_and(|number| number < *at)
            }),
        });
        // Whoever hears that it was taken over does not ask under which number.
        for message in &mut self.messages {
            if let Message::Accept { number: at, .. } = message {
                *at = number;
            }
        }
        self.messages.sort_by_cached_key(hash_of);
        self.messages.dedup();
        if planted == Planted::NONE {
            self.forget_in_nodes();
        }
        self.forget_repeated_writes();
    }

    fn forget_in_nodes(&mut self) {
        let number = self.number();
        let nonce = self.row.as_ref().map(|row| row.nonce);
        let boots: Vec<BootId> = self.nodes.iter().map(|node| node.boot).collect();
        for node in &mut self.nodes {
            node.read_back.take_if(|_| node.slots.is_empty());
            let reads_back = node.read_back.is_some();
            for slot in &mut node.slots {
                slot.forget(number, nonce, reads_back);
                slot.source.take_if(|source| !boots.contains(source));
            }
        }
    }

    /// Of writes that say the same one after the other, only the newest matters.
    fn forget_repeated_writes(&mut self) {
        let mut known = Vec::new();
        known.extend(self.cells.main.map(|(at, _)| (false, at, None)));
        known.extend(self.cells.object.map(|(at, _)| (true, at, None)));
        for slot in self.nodes.iter().flat_map(|node| &node.slots) {
            let number = slot.claim.number().unwrap_or(0);
            known.extend(match slot.write {
                Some(Write::Main { n, deeds }) => Some((false, Stamp { number, n }, Some(deeds))),
                Some(Write::Object { n, there }) => {
                    Some((true, Stamp { number, n }, Some(there.into())))
                }
                None => None,
            });
        }
        known.extend(self.air.iter().filter_map(said));
        known.sort_unstable();
        self.air.retain(|late| {
            let Some((row, stamp, says)) = said(late) else {
                return true;
            };
            let mut later = known.iter().filter(|(of, at, _)| *of == row && *at > stamp);
            !later
                .next()
                .is_some_and(|(_, at, next)| at.number == stamp.number && *next == says)
        });
    }

    /// The row's number becomes `NUMBER`; lower ones are ranked below it, higher ones keep their distance.
    fn rank_numbers(&mut self) {
        let Some(now) = self.row.as_ref().map(|row| row.number) else {
            return; // Nobody has claimed it yet, so all numbers are 1.
        };
        let mut below = Vec::new();
        self.each_number(&mut |number| {
            if *number < now {
                below.push(*number);
            }
        });
        below.sort_unstable();
        below.dedup();
        let rank = |number: u64| match below.binary_search(&number) {
            Ok(at) => NUMBER - (below.len() - at) as u64,
            Err(_) => NUMBER + (number - now),
        };
        self.each_number(&mut |number| *number = rank(*number));
    }

    /// The counters within each number are ranked; 0 and 1 are the seal's.
    fn rank_stamps(&mut self) {
        let mut used = Vec::new();
        self.each_stamp(&mut |number, n| {
            if *n > 1 {
                used.push((number, *n));
            }
        });
        used.sort_unstable();
        used.dedup();
        self.each_stamp(&mut |number, n| {
            if *n > 1 {
                let at = used.partition_point(|known| *known < (number, *n));
                let first = used.partition_point(|(known, _)| *known < number);
                *n = 2 + (at - first) as u32;
            }
        });
    }

    /// A deed that every value has, or none, is in doubt no longer.
    fn absorb_deeds(&mut self, planted: Planted) {
        let (mut all, mut any) = (Deeds::MAX, 0);
        let mut see = |deeds: Deeds| {
            all &= deeds;
            any |= deeds;
        };
        self.each_value(planted, &mut |data| see(data.deeds));
        let in_doubt = any & !all;
        let told = self.told & in_doubt;
        // What was told and is nowhere stays, so that its loss is seen.
        let lost = self.told & !any;
        let (in_doubt, told) = (in_doubt | lost, told | lost);
        let mut bits = (0..Deeds::BITS)
            .filter(|bit| in_doubt & (1 << bit) != 0)
            .collect::<Vec<_>>();
        // Told ones first, then by who has them: the order is kept as it is, which is canonical enough.
        bits.sort_by_key(|bit| (told & (1 << bit) == 0, *bit));
        let map = |deeds: Deeds| {
            let each = bits.iter().enumerate();
            each.fold(0, |out, (rank, bit)| out | (deeds >> bit & 1) << rank)
        };
        self.told = map(told);
        self.each_deeds(&mut |deeds| *deeds = map(*deeds));
    }

    /// Nodes are alike: they are sorted by what they look like from outside.
    fn sort_nodes(&mut self) {
        let owner = self.owner();
        let nonce = self.row.as_ref().map(|row| row.nonce);
        let boots: Vec<BootId> = self.nodes.iter().map(|node| node.boot).collect();
        let look = |node: &Node| {
            let mut seen = node.clone();
            let me = node.boot;
            let mut boot = |boot: &mut BootId| {
                boot.0 = match *boot {
                    boot if boot == me => 1,
                    boot if Some(boot) == owner => 2,
                    boot if boots.contains(&boot) => 3,
                    _ => 4,
                };
            };
            seen.each_boot(&mut boot);
            seen.each_nonce(&mut |known| known.0 = u128::from(Some(*known) == nonce));
            let messages: Vec<u64> = self
                .messages
                .iter()
                .filter(|message| message.to() == me)
                .map(|message| {
                    let mut message = message.clone();
                    message.each_boot(&mut boot);
                    hash_of(&message)
                })
                .collect();
            let late = self.air.iter().filter(|late| match late {
                Late::Cas(attempt) => attempt.to.holder.as_ref().is_some_and(|it| it.boot == me),
                _ => false,
            });
            hash_of(&(
                seen,
                messages,
                owner == Some(me),
                self.is_dead(me),
                late.count(),
            ))
        };
        let mut keyed: Vec<(u64, Node)> = self
            .nodes
            .iter()
            .map(|node| (look(node), node.clone()))
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        self.nodes = keyed.into_iter().map(|(_, node)| node).collect();
    }

    /// Running boots are numbered as their nodes are sorted, those that are gone as they are met.
    fn rank_boots(&mut self) {
        let running: Vec<BootId> = self.nodes.iter().map(|node| node.boot).collect();
        let mut gone: Vec<BootId> = Vec::new();
        self.each_boot(&mut |boot| {
            if let Some(at) = running.iter().position(|known| known == boot) {
                boot.0 = at as u128 + 1;
            } else {
                let at = gone.iter().position(|known| known == boot);
                let at = at.unwrap_or_else(|| {
                    gone.push(*boot);
                    gone.len() - 1
                });
                boot.0 = GONE + at as u128;
            }
        });
        let ranked = |boot: &BootId| {
            let running = running.iter().position(|known| known == boot);
            let running = running.map(|at| at as u128 + 1);
            let gone = gone.iter().position(|known| known == boot);
            running.or(gone.map(|at| GONE + at as u128)).map(BootId)
        };
        self.dead = self.dead.iter().filter_map(ranked).collect();
        self.dead.sort_unstable();
    }

    fn rank_nonces(&mut self) {
        let mut known: Vec<Nonce> = vec![Nonce(0)];
        self.each_nonce(&mut |nonce| {
            let at = known.iter().position(|known| known == nonce);
            let at = at.unwrap_or_else(|| {
                known.push(*nonce);
                known.len() - 1
            });
            nonce.0 = at as u128;
        });
    }
}

impl Slot {
    /// Whether its value may yet be sealed, served or given away, seen from a row with the number `now`.
    pub fn has_value(&self, now: u64) -> bool {
        match &self.claim {
            Claim::Free | Claim::Reading | Claim::Loading { .. } | Claim::Releasing { .. } => false,
            Claim::Claiming {
                purpose: Purpose::Take,
                ..
            } => false,
            Claim::Claiming { attempt, .. } => {
                let seen = attempt.seen.as_ref().map_or(0, |seen| seen.number);
                seen + 1 >= now || self.kept.is_some()
            }
            // An older seal may take effect as long as no newer one did.
            Claim::Sealing { .. } => true,
            Claim::Held { number } | Claim::Outgoing { number } => *number >= now,
        }
    }

    /// What makes no difference from here on, seen from a row of this number and nonce.
    fn forget(&mut self, now: u64, nonce: Option<Nonce>, reads_back: bool) {
        if !self.has_value(now) {
            self.value = Data::default();
            self.dirty = Dirty::default();
        }
        let writes = matches!(self.claim, Claim::Held { number } | Claim::Outgoing { number } if number >= now);
        let writes = writes || self.write.is_some() || self.acts.is_some();
        if !writes {
            self.n = 1;
        }
        if reads_back || self.kept.is_some() || self.write.is_some() || now == 0 {
            return;
        }
        // How long ago it was overtaken makes no difference.
        let past = now - 1;
        match &mut self.claim {
            Claim::Held { number } | Claim::Outgoing { number } if *number < now => {
                *number = past;
                if let Some(acts) = &mut self.acts {
                    *acts = past;
                }
            }
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                let seen = attempt.seen.as_ref().map_or(0, |seen| seen.number);
                if seen < now && nonce != Some(attempt.to.nonce) {
                    attempt.seen = Some(Seen {
                        holder: None,
                        number: past,
                    });
                    attempt.to.number = past;
                }
            }
            _ => {}
        }
    }
}

/// Which row a late write is of (the object's or not), and what it says.
fn said(late: &Late) -> Option<(bool, Stamp, Option<Deeds>)> {
    match late {
        Late::Main { stamp, deeds } => Some((false, *stamp, Some(*deeds))),
        Late::Object { stamp, there } => Some((true, *stamp, Some((*there).into()))),
        Late::Cas(_) | Late::Seal { .. } => None,
    }
}

fn hash_of<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
