//! Reading who else beats: members, and two processes under one name.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::asking::Asked;
use super::own::Phase;
use super::{Age, ClusterCore, Effect, ExitReason, Member};
use crate::cluster::observer::{Says, Sighting};
use crate::identity::{BootId, Holder, NodeName};
use crate::limits::NAMESAKE_MOVES;
use crate::store::row::{self, NodeRow, NodeState, Role};
use crate::store::{Reply, Request, StoreError};

/// The row of another boot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Peer {
    pub(super) node: NodeName,
    /// As it was read, to see whether it moves.
    pub(super) bytes: Vec<u8>,
    /// None: a newer build wrote it. Such a boot lives and dies like any other, but nothing else is known of it.
    pub(super) row: Option<NodeRow>,
    /// Grows whenever the row changes. The row's own beat would do, if every row could be read.
    moves: u64,
}

impl Peer {
    fn says(&self) -> Says {
        match &self.row {
            Some(row) if row.state == NodeState::Fenced => Says::Fenced { life: row.life },
            Some(row) if row.state == NodeState::Done => Says::Done { life: row.life },
            _ => Says::Nothing,
        }
    }

    pub(super) fn has_life(&self) -> bool {
        self.row
            .as_ref()
            .is_none_or(|row| row.role != Role::Gateway)
    }

    /// How often it moved is forgotten. For model checkers.
    pub(super) fn stands_still(&mut self) {
        self.moves = 0;
    }

    fn is_done(&self) -> bool {
        self.row
            .as_ref()
            .is_some_and(|row| row.state == NodeState::Done)
    }
}

impl ClusterCore {
    pub(super) fn drive_nodes(&mut self) {
        let is_due = self.since_nodes.reached(self.config.timing.read_ms);
        if !is_due || !self.nodes.is_idle() {
            return;
        }
        if let Phase::Ending { .. } | Phase::Ended = self.phase {
            return;
        }
        let ticket = self.ask(Request::NodesRead, Asked::Nodes);
        self.nodes.sent(ticket);
        self.since_nodes = Age::ZERO;
        self.observer.read_sent(&self.config.timing);
        for dying in self.deaths.values_mut() {
            dying.death.read_sent();
        }
    }

    pub(super) fn nodes_answered(&mut self, reply: Result<Reply, StoreError>) {
        self.nodes.answered();
        let Ok(Reply::Nodes(rows)) = reply else {
            return self.observer.read_failed();
        };
        let before = std::mem::take(&mut self.peers);
        self.peers = self.read_rows(rows, &before);
        let sightings: Vec<Sighting> = self
            .peers
            .iter()
            .map(|(boot, peer)| Sighting {
                boot: *boot,
                beat: peer.moves,
                says: peer.says(),
            })
            .collect();
        let evidence = self.observer.read_received(&sightings, &self.config.timing);
        self.forget_gateways(&before);
        self.look_for_namesakes(&before);
        for evidence in evidence {
            self.presume(evidence);
        }
        self.tell_members();
    }

    /// The rows of others that are not known to be dead.
    fn read_rows(
        &self,
        rows: Vec<(NodeName, BootId, Vec<u8>)>,
        before: &BTreeMap<BootId, Peer>,
    ) -> BTreeMap<BootId, Peer> {
        let mut peers = BTreeMap::new();
        for (node, boot, bytes) in rows {
            if boot == self.config.me.boot || self.past.contains(&boot) || self.is_dead(boot) {
                continue;
            }
            let peer = match before.get(&boot) {
                Some(known) if known.bytes == bytes => known.clone(),
                known => Peer {
                    node,
                    row: row::decode(&bytes).ok(),
                    bytes,
                    moves: known.map_or(0, |known| known.moves + 1),
                },
            };
            peers.insert(boot, peer);
        }
        peers
    }

    /// A gateway whose row is gone is of no interest: it has no life and holds nothing.
    fn forget_gateways(&mut self, before: &BTreeMap<BootId, Peer>) {
        for (boot, peer) in before {
            if !peer.has_life() && !self.peers.contains_key(boot) {
                self.observer.forget(*boot);
            }
        }
    }

    /// Two processes under one name: the newcomer exits if the other beats; of two that began together, the higher boot.
    fn look_for_namesakes(&mut self, before: &BTreeMap<BootId, Peer>) {
        if self.config.others_are_dead {
            return;
        }
        let namesakes: Vec<(BootId, &Peer)> = self
            .peers
            .iter()
            .filter(|(_, peer)| peer.node == self.config.me.node && !peer.is_done())
            .map(|(boot, peer)| (*boot, peer))
            .collect();
        let moved = |boot: &BootId, peer: &Peer| {
            before
                .get(boot)
                .is_some_and(|known| known.moves != peer.moves)
        };
        if self.phase == Phase::Watching {
            // Of a process that was killed a beat may still be on its way; one that lives goes on beating.
            let lives = |peer: &Peer| peer.moves >= NAMESAKE_MOVES;
            if let Some((other, _)) = namesakes.iter().find(|(_, peer)| lives(peer)) {
                let other = *other;
                return self.finish(ExitReason::NameTaken { other });
            }
            let starts = namesakes.iter().filter_map(|(_, peer)| peer.row.as_ref());
            let starts = starts.map(|row| row.starts).max().unwrap_or(0);
            self.starts = self.starts.max(starts.saturating_add(1));
            if namesakes
                .iter()
                .all(|(boot, _)| self.observer.is_gone(*boot))
            {
                self.start_living();
            }
            return;
        }
        let other = namesakes.iter().find(|(boot, peer)| {
            let appeared = !before.contains_key(boot);
            *boot < self.config.me.boot && (appeared || moved(boot, peer))
        });
        if self.beats > 0
            && let Some((other, _)) = other
        {
            let other = *other;
            self.end(ExitReason::NameTaken { other });
        }
    }

    /// Tells who is not presumed gone, if that has changed.
    pub(super) fn tell_members(&mut self) {
        let mut members: Vec<Member> = self
            .peers
            .iter()
            .filter(|(boot, peer)| !self.observer.is_gone(**boot) && !peer.is_done())
            .filter_map(|(boot, peer)| {
                let holder = Holder {
                    node: peer.node.clone(),
                    boot: *boot,
                };
                Some(member(holder, peer.row.as_ref()?))
            })
            .collect();
        if self.told_alive {
            members.push(member(self.config.me.clone(), &self.own_row()));
        }
        members.sort_by(|a, b| a.holder.cmp(&b.holder));
        if members != self.members {
            self.members = members.clone();
            self.effects.push(Effect::Members(members));
            self.regions.look_soon();
        }
    }
}

fn member(holder: Holder, row: &NodeRow) -> Member {
    Member {
        holder,
        role: row.role,
        state: row.state,
        peer: row.peer.clone(),
        clients: row.clients.clone(),
    }
}
