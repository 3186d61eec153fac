//! The processes of the nodes: started, given what happens at the time of their own clocks, and what they want carried out.

use std::sync::Arc;

use uo_proto::Limits;
use uo_server::Millis;
use uo_server::gateway::core::{self as gateway, GatewayCore};
use uo_server::identity::{BootId, Holder};
use uo_server::sim::core::{self as sim, SimConfig, SimCore};
use uo_server::store::{Request, Right};

use super::node::{GATEWAYS, Machine, Node};
use super::shard::{Event, Shard};
use super::store::Ticket;

const TICK_MS: Millis = 50;

/// The process of a sim.
pub struct SimNode {
    core: SimCore,
    me: Holder,
}

impl SimNode {
    pub fn core(&self) -> &SimCore {
        &self.core
    }

    pub fn me(&self) -> Holder {
        self.me.clone()
    }

    pub fn may_act(&self) -> bool {
        !self.core.is_fenced()
    }
}

/// The process of a gateway.
pub struct GatewayNode {
    core: GatewayCore,
    me: Holder,
    wake_at: Millis,
}

impl Shard {
    pub(super) fn machine(&mut self, node: Node) -> &mut Machine {
        self.machines.get_mut(&node).expect("every node has one")
    }

    pub(super) fn life(&self, node: Node) -> u32 {
        self.machines[&node].life
    }

    pub(super) fn is_up(&self, node: Node) -> bool {
        match node {
            Node::Sim(index) => self.sims[index].is_some(),
            Node::Gateway(index) => self.gateways[index].is_some(),
        }
    }

    pub(super) fn is_paused(&self, node: Node) -> bool {
        self.machines[&node].paused_since.is_some()
    }

    /// Which boot of a node there is now.
    pub(super) fn boot(&self, node: Node) -> Option<BootId> {
        match node {
            Node::Sim(index) => self.sims[index].as_ref().map(|sim| sim.me().boot),
            Node::Gateway(index) => self.gateways[index].as_ref().map(|it| it.me.boot),
        }
    }

    /// What a node's clock shows.
    fn clock(&self, node: Node) -> Millis {
        self.machines[&node].clock.read(self.now)
    }

    /// When a node's clock will have gone on by so much.
    fn after(&self, node: Node, ms: Millis) -> Millis {
        let clock = &self.machines[&node].clock;
        clock.when(clock.read(self.now) + ms)
    }

    /// Starts a node, with a boot of its own.
    pub(super) fn start(&mut self, node: Node) {
        if self.is_up(node) {
            return;
        }
        self.machine(node).life += 1;
        let life = self.life(node);
        let me = Holder {
            node: node.name(),
            boot: self.new_boot(),
        };
        self.note(|| format!("{} starts, life {life}", me.node));
        match node {
            Node::Sim(index) => self.start_sim(index, me),
            Node::Gateway(index) => self.start_gateway(index, me),
        }
        let first = self.after(node, TICK_MS);
        self.queue.push(first, Event::Tick(node, life));
        self.dial_all(node);
    }

    fn new_boot(&mut self) -> BootId {
        BootId(u128::from(self.dice.next()) << 64 | u128::from(self.dice.next()))
    }

    fn start_sim(&mut self, index: usize, me: Holder) {
        let mut config = SimConfig::alone(me.clone(), self.world.clone());
        config.told = (0..GATEWAYS)
            .map(|index| Node::Gateway(index).name())
            .collect();
        config.linger_ms = self.plan.linger_ms;
        config.checkpoint_ms = self.plan.checkpoint_ms;
        config.stamps_max = self.plan.stamps_max;
        config.planted = self.tampering.planted;
        let core = SimCore::new(config);
        self.sims[index] = Some(SimNode { core, me });
        self.give_sim(index, sim::Input::Fence { fallen: false });
        let life = self.life(Node::Sim(index));
        for region in self.world.clone().regions() {
            self.queue.push(self.now, Event::Take(index, life, region));
        }
    }

    /// The only sim there is takes every region, and everybody before it is dead.
    pub(super) fn take(&mut self, index: usize, life: u32, region: uo_proto::RegionId) {
        if self.life(Node::Sim(index)) == life {
            let row = self.store.claim(Right::Region(region));
            self.give_sim(index, sim::Input::Take { region, row });
        }
    }

    fn hear(&mut self, index: usize, news: sim::News) {
        let life = self.life(Node::Sim(index));
        match news {
            sim::News::Gone { region, .. } => {
                let again = self.now + TICK_MS;
                self.queue.push(again, Event::Take(index, life, region));
            }
            sim::News::Suspect { boot } => {
                let found_out = self.now + TICK_MS;
                self.queue.push(found_out, Event::Dead(index, life, boot));
            }
            sim::News::Drained => self.stopped(Node::Sim(index)),
            _ => {}
        }
    }

    fn start_gateway(&mut self, index: usize, me: Holder) {
        let core = GatewayCore::new(gateway::Config {
            me: me.clone(),
            world: Arc::new(self.world.clone()),
            members: Vec::new(),
            gateways: Vec::new(),
            spells: uo_combat::table::spells(),
            limits: Limits {
                messages_per_s: 20,
                messages_burst: 40,
                message_bytes: 4096,
                say_bytes: 256,
            },
            seed: self.dice.next(),
        });
        self.gateways[index] = Some(GatewayNode {
            core,
            me,
            wake_at: 0,
        });
        let life = self.life(Node::Gateway(index));
        self.queue.push(self.now, Event::Wake(index, life));
    }

    /// A node's clock has gone on by a tick.
    pub(super) fn tick(&mut self, node: Node, life: u32) -> Result<(), String> {
        if self.life(node) != life || !self.is_up(node) || self.is_frozen {
            return Ok(());
        }
        let next = self.after(node, TICK_MS);
        self.queue.push(next, Event::Tick(node, life));
        let Node::Sim(index) = node else {
            return Ok(());
        };
        self.give_sim(index, sim::Input::Tick { parallel: false });
        self.watch_sim(index)?;
        self.try_to_freeze()
    }

    /// Once nobody is on the way between two battles, the feeds of one more tick of each sim show everything: nothing moves
    /// after it.
    fn try_to_freeze(&mut self) -> Result<(), String> {
        if !self.may_freeze()? || !self.is_everybody_placed() {
            return Ok(());
        }
        for index in 0..self.plan.sims {
            self.give_sim(index, sim::Input::Tick { parallel: false });
            self.watch_sim(index)?;
        }
        if self.is_everybody_placed() {
            self.truth = Some(self.truth()?);
            self.freeze();
        }
        Ok(())
    }

    /// Gives a sim an input and carries out what it wants.
    pub(super) fn give_sim(&mut self, index: usize, input: sim::Input) {
        let now = self.clock(Node::Sim(index));
        let Some(node) = &mut self.sims[index] else {
            return;
        };
        let mut effects = Vec::new();
        node.core.handle(now, input, &mut effects);
        let me = node.me.clone();
        for effect in effects {
            match effect {
                sim::Effect::Send { to, message } => {
                    if let Err(why) = self.note_saved(index, &message) {
                        self.broken.get_or_insert(why);
                    }
                    self.send(Node::Sim(index), &me, &to, message);
                }
                sim::Effect::Store { ticket, request } => {
                    if let Err(why) = self.note_seal(index, &request) {
                        self.broken.get_or_insert(why);
                    }
                    self.ask(Node::Sim(index), Ticket::Core(ticket), request);
                }
                sim::Effect::News(news) => self.hear(index, news),
            }
        }
    }

    /// Gives a gateway an input and carries out what it wants.
    pub(super) fn give_gateway(&mut self, index: usize, input: gateway::Input) {
        let now = self.clock(Node::Gateway(index));
        let Some(node) = &mut self.gateways[index] else {
            return;
        };
        let mut effects = Vec::new();
        node.core.handle(now, input, &mut effects);
        let me = node.me.clone();
        for effect in effects {
            match effect {
                gateway::Effect::Send { to, message } => {
                    self.send(Node::Gateway(index), &me, &to, message);
                }
                gateway::Effect::Store { ticket, request } => {
                    self.ask(Node::Gateway(index), Ticket::Core(ticket), request);
                }
                gateway::Effect::Write { conn, frames, ping } => self.write(conn, frames, ping),
                gateway::Effect::Close {
                    conn, last, code, ..
                } => self.close(conn, last, code),
                gateway::Effect::WantEntropy { tokens } => {
                    let tokens = (0..tokens).map(|_| self.token()).collect();
                    self.give_gateway(index, gateway::Input::Entropy { tokens });
                }
                gateway::Effect::Stopped => self.stopped(Node::Gateway(index)),
            }
        }
        self.set_alarm(index);
    }

    fn token(&mut self) -> [u8; 24] {
        let mut token = [0; 24];
        for chunk in token.chunks_mut(8) {
            chunk.copy_from_slice(&self.dice.next().to_be_bytes());
        }
        token
    }

    fn set_alarm(&mut self, index: usize) {
        let node = Node::Gateway(index);
        let life = self.life(node);
        let clock = self.machines[&node].clock;
        if let Some(gateway) = &mut self.gateways[index] {
            let at = gateway.core.wake_at();
            if at != gateway.wake_at && at != Millis::MAX {
                gateway.wake_at = at;
                let at = clock.when(at).max(self.now);
                self.queue.push(at, Event::Wake(index, life));
            }
        }
    }

    pub(super) fn wake(&mut self, index: usize, life: u32) {
        if life != self.life(Node::Gateway(index)) {
            return;
        }
        let now = self.clock(Node::Gateway(index));
        let node = self.gateways[index].as_ref();
        if node.is_some_and(|node| node.core.wake_at() <= now) {
            self.give_gateway(index, gateway::Input::Timer);
        } else {
            self.set_alarm(index);
        }
    }

    /// A node is told whom it is linked to.
    pub(super) fn tell_linked(&mut self, node: Node) {
        let Node::Gateway(index) = node else { return };
        let alive = self.linked(node).into_iter();
        let alive = alive.filter_map(|sim| match sim {
            Node::Sim(sim) => self.sims[sim].as_ref().map(SimNode::me),
            Node::Gateway(_) => None,
        });
        let alive = alive.collect();
        self.give_gateway(index, gateway::Input::Members { alive });
    }

    fn ask(&mut self, node: Node, ticket: Ticket, request: Request) {
        self.fold(&request);
        let asker = (node, self.life(node));
        self.note(|| format!("{} asks {request:?}", node.name()));
        if let Err(why) = self.store.inspect(&request) {
            self.broken.get_or_insert(why);
        }
        let steps = self.store.ask(self.now, &self.plan, asker, ticket, request);
        for (at, step) in steps {
            self.queue.push(at, Event::Store(step));
        }
    }

    pub(super) fn answer(&mut self, id: u64) {
        let ((node, life), ticket, reply) = match self.store.answer(self.now, id) {
            Some(Ok(answered)) => answered,
            Some(Err(later)) => {
                let answer = Event::Store(super::store::Step::Answer(id));
                return self.queue.push(later, answer);
            }
            None => return,
        };
        if life != self.life(node) {
            return;
        }
        self.note(|| format!("{} is answered {reply:?}", node.name()));
        match (node, ticket) {
            (Node::Sim(index), Ticket::Core(ticket)) => {
                self.give_sim(index, sim::Input::Store { ticket, reply });
            }
            (Node::Gateway(index), Ticket::Core(ticket)) => {
                self.give_gateway(index, gateway::Input::Store { ticket, reply });
            }
        }
    }
}
