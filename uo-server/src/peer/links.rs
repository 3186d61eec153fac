//! All links of a node: whom to dial and when, and which connection is the one link of its pair.
//!
//! - Of two nodes the one with the smaller name dials, unless both are gateways, which have nothing to say to each other.
//! - A newer connection takes the place of an older one, which is ended first, and whose loss is told first. The dialer
//!   opens one only when it has none, so an older one at the acceptor is half open.
//! - Boots are random and have no order of their own. The newer is the one that came later: once a boot's link was taken by
//!   another boot of its name, it gets none any more.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::connection::{Ended, Proven};
use crate::Millis;
use crate::identity::{BootId, Holder, NodeName};
use crate::jitter::Jitter;
use crate::limits::{
    PEER_BOOTS_REPLACED_MAX, PEER_HANDSHAKES_MAX, PEER_REFUSALS_TOLD_MAX, PEERS_MAX,
};
use crate::store::row::Role;

/// Names a connection of this process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u64);

/// A boot that is in the cluster, and where it can be reached.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PeerAddress {
    /// Who.
    pub holder: Holder,
    /// What it does.
    pub role: Role,
    /// Where, as host:port; none: it has no address for others.
    pub address: Option<String>,
}

/// What happens to the links.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// Time passes.
    Tick,
    /// Everybody who is in the cluster, as its rows tell.
    Peers(Vec<PeerAddress>),
    /// Somebody calls.
    Called { from: String },
    /// The peer of a connection knows the secret.
    Proven { conn: ConnId, peer: Proven },
    /// A connection has ended, and nothing more comes of it; one that was never opened, too.
    Ended { conn: ConnId, why: Ended },
}

/// What the links want done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Open a connection to that node.
    Dial {
        conn: ConnId,
        node: NodeName,
        address: String,
    },
    /// Greet the caller of [`Input::Called`].
    Greet { conn: ConnId },
    /// Hang up on the caller of [`Input::Called`].
    TurnAway,
    /// The connection is the link to its peer from now on.
    Admit { conn: ConnId, peer: Proven },
    /// End this connection. Answered by [`Input::Ended`].
    Close { conn: ConnId, why: Ended },
    /// The nodes to which there is a link now.
    Linked { nodes: Vec<NodeName> },
    /// The link to a node is gone. Told before [`Effect::Linked`].
    Lost { node: NodeName },
    /// Worth a line in the log, once.
    Report { whom: String, why: Ended },
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Connections that this node tried to open.
    pub dialed: u64,
    /// Connections that others opened.
    pub accepted: u64,
    /// Links made.
    pub linked: u64,
    /// Links lost.
    pub lost: u64,
    /// Connections that came to nothing.
    pub refused: u64,
}

/// What is known of one node.
#[derive(Clone, PartialEq, Debug, Default)]
struct Pair {
    /// Where its boots can be reached.
    addresses: Vec<(BootId, String)>,
    link: Option<Link>,
    /// What becomes the link once that is gone.
    next: Option<Link>,
    dialing: Option<ConnId>,
    /// When to dial, after a failure.
    dial_at: Millis,
    failed: u32,
    /// Boots whose link was taken by another, oldest first.
    replaced: VecDeque<BootId>,
}

#[derive(Clone, PartialEq, Debug)]
struct Link {
    conn: ConnId,
    peer: Proven,
    /// Where the node could be reached when it was linked. Another address since then is that of a newer boot.
    known: Vec<String>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Links {
    me: NodeName,
    role: Role,
    jitter: Jitter,
    now: Millis,
    next_conn: u64,
    pairs: BTreeMap<NodeName, Pair>,
    /// Connections that have not proven themselves, and with whom.
    unproven: BTreeMap<ConnId, String>,
    /// Of those, the ones that others opened.
    greeted: BTreeSet<ConnId>,
    told: BTreeSet<(String, String)>,
    counters: Counters,
    effects: Vec<Effect>,
}

impl Links {
    /// No links yet.
    pub fn new(me: NodeName, role: Role, seed: u64) -> Links {
        Links {
            me,
            role,
            jitter: Jitter::new(seed),
            now: 0,
            next_conn: 0,
            pairs: BTreeMap::new(),
            unproven: BTreeMap::new(),
            greeted: BTreeSet::new(),
            told: BTreeSet::new(),
            counters: Counters::default(),
            effects: Vec::new(),
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        self.now = self.now.max(now);
        std::mem::swap(&mut self.effects, effects);
        match input {
            Input::Tick => {}
            Input::Peers(peers) => self.peers_are(peers),
            Input::Called { from } => self.called(from),
            Input::Proven { conn, peer } => self.proven(conn, peer),
            Input::Ended { conn, why } => self.ended(conn, why),
        }
        self.dial();
        std::mem::swap(&mut self.effects, effects);
    }

    /// When [`Input::Tick`] is wanted, if nothing else comes before.
    pub fn wake_at(&self) -> Millis {
        let wanting = self.pairs.iter().filter(|(node, _)| self.wants(node));
        let times = wanting.map(|(_, pair)| pair.dial_at);
        times.min().unwrap_or(Millis::MAX)
    }

    /// The nodes to which there is a link, with the boot of each and the version that is spoken.
    pub fn linked(&self) -> impl Iterator<Item = &Proven> {
        let links = self.pairs.values().filter_map(|pair| pair.link.as_ref());
        links.map(|link| &link.peer)
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn peers_are(&mut self, peers: Vec<PeerAddress>) {
        for pair in self.pairs.values_mut() {
            pair.addresses.clear();
        }
        for peer in peers {
            let node = peer.holder.node;
            let is_idle = peer.role == Role::Gateway && self.role == Role::Gateway;
            // Only what may have to be dialed is of interest.
            if node <= self.me || is_idle {
                continue;
            }
            let is_known = self.pairs.contains_key(&node);
            let Some(address) = peer.address.filter(|_| is_known || self.has_room()) else {
                continue;
            };
            let pair = self.pairs.entry(node).or_default();
            pair.addresses.push((peer.holder.boot, address));
        }
        self.pairs.retain(|_, pair| {
            let is_used = pair.link.is_some() || pair.next.is_some() || pair.dialing.is_some();
            // Who was replaced is remembered for as long as the name is in use.
            is_used || !pair.addresses.is_empty() || !pair.replaced.is_empty()
        });
    }

    fn has_room(&self) -> bool {
        self.pairs.len() < PEERS_MAX
    }

    fn called(&mut self, from: String) {
        self.counters.accepted += 1;
        if self.greeted.len() >= PEER_HANDSHAKES_MAX {
            self.counters.refused += 1;
            self.report(from, Ended::TooMany);
            return self.effects.push(Effect::TurnAway);
        }
        let conn = self.conn();
        self.greeted.insert(conn);
        self.unproven.insert(conn, from);
        self.effects.push(Effect::Greet { conn });
    }

    fn conn(&mut self) -> ConnId {
        self.next_conn += 1;
        ConnId(self.next_conn)
    }

    fn proven(&mut self, conn: ConnId, peer: Proven) {
        let node = peer.holder.node.clone();
        let is_known = self.pairs.contains_key(&node);
        let refusal = if node == self.me {
            Some(Ended::SameName)
        } else if !is_known && !self.has_room() {
            Some(Ended::TooMany)
        } else {
            let pair = self.pairs.entry(node.clone()).or_default();
            let is_older = pair.replaced.contains(&peer.holder.boot);
            is_older.then_some(Ended::OlderBoot)
        };
        if let Some(why) = refusal {
            return self.effects.push(Effect::Close { conn, why });
        }
        self.unproven.remove(&conn);
        self.greeted.remove(&conn);
        let pair = self.pairs.get_mut(&node).expect("it was made");
        if pair.dialing == Some(conn) {
            pair.dialing = None;
        }
        let known = pair.addresses.iter().map(|(_, address)| address.clone());
        let known = known.collect();
        let newer = Link { conn, peer, known };
        let Some(older) = &pair.link else {
            return self.admit(&node, newer);
        };
        let before = older.peer.holder.boot;
        let mut to_close = Some(older.conn);
        let mut boots = vec![before];
        if let Some(waiting) = pair.next.replace(newer.clone()) {
            // The link was told to close before; the one that waited for it was too slow.
            to_close = Some(waiting.conn);
            boots.push(waiting.peer.holder.boot);
        }
        for boot in boots {
            if boot != newer.peer.holder.boot && !pair.replaced.contains(&boot) {
                pair.replaced.push_back(boot);
            }
        }
        let excess = pair.replaced.len().saturating_sub(PEER_BOOTS_REPLACED_MAX);
        pair.replaced.drain(..excess);
        let why = Ended::Replaced;
        self.effects
            .extend(to_close.map(|conn| Effect::Close { conn, why }));
    }

    fn admit(&mut self, node: &NodeName, link: Link) {
        self.counters.linked += 1;
        let pair = self.pairs.get_mut(node).expect("it is known");
        pair.failed = 0;
        let (conn, peer) = (link.conn, link.peer.clone());
        pair.link = Some(link);
        // If it is lost, or refused later, that is news again.
        self.told.retain(|(whom, _)| *whom != *node.0);
        self.effects.push(Effect::Admit { conn, peer });
        self.tell_linked();
    }

    fn tell_linked(&mut self) {
        let linked = self.pairs.iter().filter(|(_, pair)| pair.link.is_some());
        let nodes = linked.map(|(node, _)| node.clone()).collect();
        self.effects.push(Effect::Linked { nodes });
    }

    fn ended(&mut self, conn: ConnId, why: Ended) {
        self.greeted.remove(&conn);
        let whom = self.unproven.remove(&conn);
        let of_conn = |link: &Option<Link>| link.as_ref().is_some_and(|link| link.conn == conn);
        let found = self.pairs.iter().find(|(_, pair)| {
            pair.dialing == Some(conn) || of_conn(&pair.link) || of_conn(&pair.next)
        });
        let Some(node) = found.map(|(node, _)| node.clone()) else {
            // Whoever was proven and waited for its turn was told to go.
            let Some(whom) = whom else { return };
            self.counters.refused += 1;
            return self.report(whom, why);
        };
        let pair = self.pairs.get_mut(&node).expect("it was found");
        if pair.dialing == Some(conn) {
            pair.dialing = None;
            self.counters.refused += 1;
            self.put_off(&node);
            return self.report(node.to_string(), why);
        }
        if of_conn(&pair.next) {
            pair.next = None;
            return;
        }
        pair.link = None;
        let next = pair.next.take();
        self.counters.lost += 1;
        self.put_off(&node);
        self.effects.push(Effect::Lost { node: node.clone() });
        self.report(node.to_string(), why);
        match next {
            Some(next) => self.admit(&node, next),
            None => self.tell_linked(),
        }
    }

    /// The next try waits, and longer each time. After a link that was up it is the shortest wait, which differs all the
    /// same: a node that dies is dialed by all the others.
    fn put_off(&mut self, node: &NodeName) {
        let pair = self.pairs.get_mut(node).expect("it is known");
        pair.failed += 1;
        pair.dial_at = self.now + self.jitter.wait_ms(pair.failed);
        // The next try is at another of its addresses, if there is one.
        if !pair.addresses.is_empty() {
            pair.addresses.rotate_left(1);
        }
    }

    fn report(&mut self, whom: String, why: Ended) {
        if self.told.len() >= PEER_REFUSALS_TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert((whom.clone(), why.to_string())) {
            self.effects.push(Effect::Report { whom, why });
        }
    }

    /// Whether a connection to that node is to be opened, as soon as its time has come.
    fn wants(&self, node: &NodeName) -> bool {
        let pair = &self.pairs[node];
        pair.dialing.is_none() && pair.next.is_none() && pair.candidate().is_some()
    }

    fn dial(&mut self) {
        let due = self.pairs.iter();
        let due = due.filter(|(node, pair)| pair.dial_at <= self.now && self.wants(node));
        let due: Vec<NodeName> = due.map(|(node, _)| node.clone()).collect();
        for node in due {
            let conn = self.conn();
            let pair = self.pairs.get_mut(&node).expect("it is known");
            let address = pair.candidate().expect("it is wanted").to_owned();
            pair.dialing = Some(conn);
            self.counters.dialed += 1;
            self.unproven.insert(conn, node.to_string());
            self.effects.push(Effect::Dial {
                conn,
                node,
                address,
            });
        }
    }
}

impl Pair {
    /// Where to dial: anywhere, without a link; with one, only where nobody was when it was made.
    fn candidate(&self) -> Option<&str> {
        let is_newer = |address: &String| match &self.link {
            Some(link) => !link.known.contains(address),
            None => true,
        };
        let addresses = self.addresses.iter();
        let mut wanted =
            addresses.filter(|(boot, address)| !self.replaced.contains(boot) && is_newer(address));
        wanted.next().map(|(_, address)| address.as_str())
    }
}

#[cfg(test)]
mod tests;
