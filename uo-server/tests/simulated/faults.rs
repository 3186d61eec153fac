//! What breaks, and what then starts again.

use uo_server::gateway::core as gateway;
use uo_server::sim::core as sim;

use super::plan::Fault;
use super::shard::{Event, GATEWAYS, Node, Shard};

impl Shard {
    pub(super) fn fault(&mut self, fault: Fault) {
        self.note(|| format!("fault: {fault:?}"));
        match fault {
            Fault::KillAll => {
                self.kill(Node::Sim);
                (0..GATEWAYS).for_each(|index| self.kill(Node::Gateway(index)));
            }
            Fault::KillSim => self.kill(Node::Sim),
            Fault::KillGateway(index) => self.kill(Node::Gateway(index)),
            Fault::StopSim => self.give_sim(sim::Input::Stop),
            Fault::StopGateway(index) => self.give_gateway(index, gateway::Input::Stop),
            Fault::CutLink(index, length) => self.cut(index, length),
            Fault::Outage(length) => self.store.go_out(self.now + length),
            Fault::Stall(length) => self.stalled_until = self.now + length,
        }
    }

    /// A process dies with everything it knew, and is started again.
    fn kill(&mut self, node: Node) {
        if !self.is_up(node) {
            return;
        }
        self.down_with(node);
        if node == Node::Sim {
            self.counted.crashes += 1;
            for client in &mut self.clients {
                client.note_crash(self.now, &mut self.ledger);
            }
        }
    }

    pub(super) fn sim_stopped(&mut self) {
        self.counted.stops += 1;
        self.down_with(Node::Sim);
    }

    pub(super) fn gateway_stopped(&mut self, index: usize) {
        self.down_with(Node::Gateway(index));
    }

    fn down_with(&mut self, node: Node) {
        self.note(|| format!("{} is down", node.name()));
        self.collect_counters(node);
        self.store.forget((node, self.life(node)));
        match node {
            Node::Sim => {
                self.sim = None;
                self.watch.sim_is_down();
            }
            Node::Gateway(index) => {
                self.lose_conns(index);
                self.gateways[index] = None;
            }
        }
        self.break_links(node, None);
        let others = std::iter::once(Node::Sim).chain((0..GATEWAYS).map(Node::Gateway));
        for at in others.filter(|&other| other != node) {
            let noticed = self.now + self.dice.below(150);
            self.queue.push(noticed, Event::Lost { at, gone: node });
        }
        let again = self.now + self.dice.between(200, 1_500);
        self.queue.push(again, Event::Start(node));
    }

    pub(super) fn tell_lost(&mut self, at: Node, gone: Node) {
        let node = gone.name();
        match at {
            Node::Sim => self.give_sim(sim::Input::PeerLost { node }),
            Node::Gateway(index) => self.give_gateway(index, gateway::Input::PeerLost { node }),
        }
    }

    fn cut(&mut self, index: usize, length: u64) {
        if self.is_cut[index] {
            return;
        }
        self.is_cut[index] = true;
        let gateway = Node::Gateway(index);
        self.break_links(gateway, Some(Node::Sim));
        for (at, gone) in [(Node::Sim, gateway), (gateway, Node::Sim)] {
            let noticed = self.now + self.dice.below(150);
            self.queue.push(noticed, Event::Lost { at, gone });
        }
        self.queue.push(self.now + length, Event::Relink(index));
    }

    /// The sim and a gateway can reach each other (again).
    pub(super) fn relink(&mut self, index: usize) {
        self.is_cut[index] = false;
        if let Some(sim) = &self.sim {
            let alive = vec![sim.me.clone()];
            self.note(|| format!("gw-{} reaches the sim", index + 1));
            self.give_gateway(index, gateway::Input::Members { alive });
        }
    }
}
