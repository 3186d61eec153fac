//! What is between nodes: one link per pair, in order while it lasts, with nothing on it when it breaks.

use std::collections::{BTreeMap, BTreeSet};

use uo_server::Millis;
use uo_server::gateway::core as gateway;
use uo_server::identity::{Holder, NodeName};
use uo_server::peer::{Message, ToSim};
use uo_server::sim::member;

use super::node::Node;
use super::queue::InOrder;
use super::shard::{Event, Shard};

/// How long it takes at most until the end of a link is noticed, if a process was there to say so.
const NOTICE_MS: Millis = 150;
/// How long it takes at most until two nodes that can reach each other are linked.
const DIAL_MS: Millis = 200;

/// Links, and what keeps nodes apart.
#[derive(Debug, Default)]
pub struct Network {
    /// Messages by direction.
    orders: BTreeMap<(Node, Node), InOrder>,
    /// A direction's life grows when its link breaks: what was on it never arrives.
    lives: BTreeMap<(Node, Node), u32>,
    joined: BTreeSet<(Node, Node)>,
    /// Until when two nodes cannot reach each other.
    cuts: BTreeMap<(Node, Node), Millis>,
    /// Who was not told yet that its link to whom is gone.
    unnoticed: BTreeSet<(Node, Node)>,
    pub stalled_until: Millis,
}

fn pair(a: Node, b: Node) -> (Node, Node) {
    (a.min(b), a.max(b))
}

impl Network {
    fn life(&self, link: (Node, Node)) -> u32 {
        self.lives.get(&link).copied().unwrap_or_default()
    }

    fn is_joined(&self, a: Node, b: Node) -> bool {
        self.joined.contains(&pair(a, b))
    }

    fn is_cut(&self, a: Node, b: Node, now: Millis) -> bool {
        self.cuts.get(&pair(a, b)).is_some_and(|&until| now < until)
    }

    /// Whatever is under way on the link never arrives.
    fn drop_messages(&mut self, a: Node, b: Node) {
        for link in [(a, b), (b, a)] {
            *self.lives.entry(link).or_default() += 1;
            self.orders.remove(&link);
        }
    }

    /// Nothing is cut and nothing stands still any more.
    pub fn heal(&mut self) {
        self.cuts.clear();
        self.stalled_until = 0;
    }
}

impl Shard {
    /// Sends a message between nodes. One to a node that is not linked is lost.
    pub(super) fn send(&mut self, from: Node, me: &Holder, to: &NodeName, message: Message) {
        let mut nodes = self.plan.nodes().filter(|node| node.name() == *to);
        let network = &self.network;
        let Some(to) = nodes.find(|&to| to == from || network.is_joined(from, to)) else {
            return;
        };
        let link = (from, to);
        let delay = if from == to {
            self.plan.own_link
        } else {
            self.plan.link
        };
        if let Message::ToSim(ToSim::DrainOffer(offer)) = &message {
            self.store.offered(offer.region, offer.epoch, to.name());
        }
        let stall = self.network.stalled_until.saturating_sub(self.now);
        let delay = delay.draw(&mut self.dice) + stall;
        let order = self.network.orders.entry(link).or_default();
        let at = order.arrival(self.now, delay);
        let life = self.network.life(link);
        let from = me.clone();
        let delivery = Event::Deliver {
            link,
            life,
            from,
            message,
        };
        self.queue.push(at, delivery);
    }

    pub(super) fn deliver(
        &mut self,
        link: (Node, Node),
        life: u32,
        from: Holder,
        message: Message,
    ) {
        if life != self.network.life(link) {
            return;
        }
        match (link.1, message) {
            (Node::Sim(index), Message::ToSim(message)) => {
                self.note(|| format!("{} -> sim-{}: {message:?}", from.node, index + 1));
                self.give_sim(index, member::Input::Peer { from, message });
            }
            (Node::Gateway(index), Message::ToGateway(message)) => {
                self.note(|| format!("{} -> gw-{}: {message:?}", from.node, index + 1));
                self.give_gateway(index, gateway::Input::Peer { from, message });
            }
            _ => {}
        }
    }

    /// Every other node that `node` has to do with.
    pub(super) fn others(&self, node: Node) -> Vec<Node> {
        let is_gateway = |node| matches!(node, Node::Gateway(_));
        self.plan
            .nodes()
            .filter(|&other| other.name() != node.name())
            .filter(|&other| !(is_gateway(other) && is_gateway(node)))
            .collect()
    }

    /// Those that a node is linked to, as far as it knows.
    pub(super) fn linked(&self, node: Node) -> Vec<Node> {
        let network = &self.network;
        let mut others = self.others(node);
        others.retain(|&other| {
            network.is_joined(node, other) || network.unnoticed.contains(&(node, other))
        });
        others
    }

    /// Two nodes try to reach each other.
    pub(super) fn dial(&mut self, a: Node, b: Node) {
        let at = self.now + self.dice.between(20, DIAL_MS);
        self.queue.push(at, Event::Join(a, b));
    }

    /// A node tries to reach everybody.
    pub(super) fn dial_all(&mut self, node: Node) {
        for other in self.others(node) {
            self.dial(node, other);
        }
    }

    /// Two nodes are linked, if nothing keeps them apart.
    pub(super) fn join(&mut self, a: Node, b: Node) {
        let can = |node| self.is_up(node) && !self.is_paused(node);
        let network = &self.network;
        if !can(a) || !can(b) || network.is_cut(a, b, self.now) || network.is_joined(a, b) {
            return;
        }
        self.replace_link(a, b);
        self.replace_link(b, a);
        self.network.joined.insert(pair(a, b));
        self.note(|| format!("{} and {} are linked", a.name(), b.name()));
        self.tell_linked(a);
        self.tell_linked(b);
    }

    /// There is one link to a name. A new one tells that the old one is gone, if `at` did not know.
    fn replace_link(&mut self, at: Node, to: Node) {
        for old in self.plan.nodes().filter(|old| old.name() == to.name()) {
            if old != to {
                self.part(at, old);
            }
            self.tell_lost(at, old);
        }
    }

    /// The link between two nodes is gone; each notices by itself.
    pub(super) fn part(&mut self, a: Node, b: Node) {
        self.network.drop_messages(a, b);
        if !self.network.joined.remove(&pair(a, b)) {
            return;
        }
        for (at, gone) in [(a, b), (b, a)] {
            if self.is_up(at) {
                self.network.unnoticed.insert((at, gone));
                let noticed = self.now + self.dice.below(NOTICE_MS);
                self.queue.push(noticed, Event::Lost { at, gone });
            }
        }
    }

    /// A process is gone, and its links with it.
    pub(super) fn part_all(&mut self, node: Node) {
        self.network.drop_messages(node, node);
        self.network.unnoticed.retain(|&(at, _)| at != node);
        for other in self.others(node) {
            self.part(node, other);
        }
    }

    pub(super) fn cut(&mut self, a: Node, b: Node, length: Millis) {
        let until = self.now + length;
        self.network.cuts.insert(pair(a, b), until);
        self.part(a, b);
        self.queue.push(until, Event::Join(a, b));
    }

    /// A node notices that its link to another is gone, unless it knows.
    pub(super) fn tell_lost(&mut self, at: Node, gone: Node) {
        if !self.network.unnoticed.remove(&(at, gone)) {
            return;
        }
        let node = gone.name();
        match at {
            Node::Sim(index) => self.give_sim(index, member::Input::PeerLost { node }),
            Node::Gateway(index) => self.give_gateway(index, gateway::Input::PeerLost { node }),
        }
        self.tell_linked(at);
    }

    /// A node looks for whoever else goes by the name of one that it lost, or is back meanwhile.
    pub(super) fn look_for(&mut self, at: Node, gone: Node) {
        for other in self.others(at) {
            let is_replaced =
                self.is_joined_to_name(at, other) || self.is_joined_to_name(other, at);
            if other.name() == gone.name() && !is_replaced {
                self.dial(at, other);
            }
        }
    }

    /// Whether it is linked to anybody of the other's name.
    fn is_joined_to_name(&self, node: Node, other: Node) -> bool {
        self.plan
            .nodes()
            .any(|it| it.name() == other.name() && self.network.is_joined(node, it))
    }
}
