//! A shard in virtual time: the real cores, and between them a store and a network that a seed makes good or bad.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use rustc_hash::FxHasher;
use uo_proto::{ClientMsg, Encoding, Limits, RegionId};
use uo_server::Millis;
use uo_server::gateway::core::{self as gateway, ConnId, GatewayCore};
use uo_server::gateway::frames::Frames;
use uo_server::identity::{BootId, Holder, NodeName};
use uo_server::peer::Message;
use uo_server::planted::Planted;
use uo_server::sim::core::{self as sim, SimConfig, SimCore};
use uo_server::store::Right;
use uo_world::World;

use super::client::Client;
use super::dice::Dice;
use super::ledger::Ledger;
use super::plan::{Fault, PLAY_MS, Plan, RECOVER_MS, SETTLE_MS};
use super::queue::{InOrder, Queue};
use super::store::{ModelStore, Step};
use super::watch::Watch;

/// How many gateways there are.
pub const GATEWAYS: usize = 2;
const TICK_MS: Millis = 50;
/// A player that is not let in gives up after this long, and tries again.
pub(super) const PATIENCE_MS: Millis = 6_000;

/// A node of the shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Node {
    Sim,
    Gateway(usize),
}

impl Node {
    pub fn name(self) -> NodeName {
        match self {
            Node::Sim => "sim-1".into(),
            Node::Gateway(index) => NodeName(format!("gw-{}", index + 1).into()),
        }
    }

    fn of_name(name: &NodeName) -> Option<Node> {
        let gateways = (0..GATEWAYS).map(Node::Gateway);
        std::iter::once(Node::Sim)
            .chain(gateways)
            .find(|node| node.name() == *name)
    }
}

/// What a client's side sends.
#[derive(Clone, Debug)]
pub(super) enum Upward {
    Opened,
    Message(ClientMsg),
    Pong(u64),
    Gone,
}

/// What a gateway's side sends.
#[derive(Clone, Debug)]
pub(super) enum Downward {
    Frames(Frames, Option<u64>),
    Closed(Frames, u16),
    Lost,
}

/// What happens.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Tick(u32),
    Take(u32, RegionId),
    Dead(u32, BootId),
    Deliver {
        link: (Node, Node),
        /// Which life of that link; a broken one delivers nothing.
        life: u32,
        from: Holder,
        message: Message,
    },
    Wake(usize, u32),
    Store(Step),
    Up(ConnId, Upward),
    Down(ConnId, Downward),
    Writable(ConnId),
    Turn(usize),
    Fault(Fault),
    Start(Node),
    /// A node is told that another is gone, if that is still so.
    Lost {
        at: Node,
        gone: Node,
    },
    Relink(usize),
    Recover,
    Freeze,
    End,
}

/// A connection, as both sides have it.
pub(super) struct Conn {
    pub(super) player: usize,
    pub(super) gateway: usize,
    pub(super) life: u32,
    pub(super) encoding: Encoding,
    pub(super) up: InOrder,
    pub(super) down: InOrder,
    /// The gateway was told that it is gone.
    pub(super) is_gone: bool,
}

pub(super) struct SimNode {
    pub core: SimCore,
    pub me: Holder,
}

pub(super) struct GatewayNode {
    pub core: GatewayCore,
    pub me: Holder,
    wake_at: Millis,
}

/// What is done to a run that a plan does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tampering {
    pub planted: Planted,
}

/// The whole of it.
pub struct Shard {
    pub(super) plan: Plan,
    pub(super) tampering: Tampering,
    pub(super) world: World,
    pub(super) now: Millis,
    pub(super) queue: Queue<Event>,
    pub(super) dice: Dice,
    pub(super) store: ModelStore,
    pub(super) sim: Option<SimNode>,
    pub(super) gateways: [Option<GatewayNode>; GATEWAYS],
    /// Which start of a node it is.
    pub(super) lives: BTreeMap<Node, u32>,
    /// Messages between nodes by direction; a link's life grows when it breaks.
    pub(super) links: BTreeMap<(Node, Node), InOrder>,
    pub(super) link_lives: BTreeMap<(Node, Node), u32>,
    pub(super) is_cut: [bool; GATEWAYS],
    pub(super) stalled_until: Millis,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) clients: Vec<Client>,
    pub(super) turns: Vec<Dice>,
    pub(super) ledger: Ledger,
    pub(super) watch: Watch,
    /// A promise that was broken where nobody can say so at once.
    pub(super) broken: Option<String>,
    pub(super) is_recovering: bool,
    /// From when on the sim may stand still.
    freezes_at: Option<Millis>,
    pub(super) is_frozen: bool,
    pub(super) is_over: bool,
    pub(super) hasher: FxHasher,
    pub(super) tracing: bool,
    pub(super) trace: Vec<String>,
    pub(super) counted: Counted,
}

/// What happened to the shard in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counted {
    pub crashes: u64,
    pub stops: u64,
    pub handoffs: u64,
    pub reclaims: u64,
    pub pins: u64,
    pub duplicates: u64,
    pub renewals: u64,
    pub unknowns: u64,
}

impl Shard {
    pub fn new(plan: Plan, tampering: Tampering, world: World, tracing: bool) -> Shard {
        let dice = Dice::new(plan.seed).fork(1);
        let clients: Vec<Client> = (0..plan.players)
            .map(|n| Client::new(&format!("player{n}")))
            .collect();
        let mut shard = Shard {
            store: ModelStore::new(dice.fork(2)),
            turns: (0..plan.players as u64)
                .map(|n| dice.fork(100 + n))
                .collect(),
            dice,
            plan,
            tampering,
            world,
            now: 0,
            queue: Queue::default(),
            sim: None,
            gateways: [None, None],
            lives: BTreeMap::new(),
            links: BTreeMap::new(),
            link_lives: BTreeMap::new(),
            is_cut: [false; GATEWAYS],
            stalled_until: 0,
            conns: BTreeMap::new(),
            clients,
            ledger: Ledger::default(),
            watch: Watch::default(),
            broken: None,
            is_recovering: false,
            freezes_at: None,
            is_frozen: false,
            is_over: false,
            hasher: FxHasher::default(),
            tracing,
            trace: Vec::new(),
            counted: Counted::default(),
        };
        shard.start(Node::Sim);
        (0..GATEWAYS).for_each(|index| shard.start(Node::Gateway(index)));
        for player in 0..shard.clients.len() {
            let at = shard.dice.between(100, 1_500);
            shard.queue.push(at, Event::Turn(player));
        }
        for (at, fault) in shard.plan.faults.clone() {
            shard.queue.push(at, Event::Fault(fault));
        }
        shard.queue.push(PLAY_MS, Event::Recover);
        shard.queue.push(PLAY_MS + RECOVER_MS, Event::Freeze);
        shard
    }

    /// Runs to the end, or to the first broken promise.
    pub fn run(&mut self) -> Result<u64, String> {
        while !self.is_over {
            let Some((at, event)) = self.queue.pop() else {
                return Err("nothing happens any more".into());
            };
            self.now = at;
            self.fold(&at);
            self.handle(event)?;
            if let Some(why) = self.broken.take() {
                return Err(why);
            }
        }
        self.fold_tables();
        self.counted.unknowns = self.store.unknowns;
        Ok(self.hasher.finish())
    }

    pub fn now(&self) -> Millis {
        self.now
    }

    pub(super) fn fold(&mut self, value: &impl Hash) {
        value.hash(&mut self.hasher);
    }

    fn fold_tables(&mut self) {
        self.store.tables.hash(&mut self.hasher);
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.tracing {
            let line = format!("{:>6} {}", self.now, line());
            self.trace.push(line);
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Tick(life) => self.tick(life)?,
            Event::Take(life, region) => self.take(life, region),
            Event::Dead(life, boot) => {
                if self.life(Node::Sim) == life {
                    self.give_sim(sim::Input::Dead { boot });
                }
            }
            Event::Deliver {
                link,
                life,
                from,
                message,
            } => self.deliver(link, life, from, message),
            Event::Wake(index, life) => self.wake(index, life),
            Event::Store(Step::Apply(id)) => {
                self.fold(&id);
                self.store.apply(self.now, id)?;
            }
            Event::Store(Step::Answer(id)) => self.answer(id),
            Event::Up(conn, what) => self.up(conn, what),
            Event::Down(conn, what) => self.down(conn, what)?,
            Event::Writable(conn) => self.writable(conn),
            Event::Turn(player) => self.turn(player),
            Event::Fault(fault) => self.fault(fault),
            Event::Start(node) => self.start(node),
            Event::Lost { at, gone } => self.tell_lost(at, gone),
            Event::Relink(index) => self.relink(index),
            Event::Recover => {
                self.note(|| "the play is over: fair weather".into());
                self.is_recovering = true;
                self.plan.becalm();
            }
            Event::Freeze => self.freezes_at = Some(self.now),
            Event::End => {
                self.is_over = true;
                self.compare_with_truth()?;
            }
        }
        Ok(())
    }

    pub(super) fn life(&self, node: Node) -> u32 {
        self.lives.get(&node).copied().unwrap_or_default()
    }

    pub(super) fn is_up(&self, node: Node) -> bool {
        match node {
            Node::Sim => self.sim.is_some(),
            Node::Gateway(index) => self.gateways[index].is_some(),
        }
    }

    /// Starts a node, with a boot of its own.
    fn start(&mut self, node: Node) {
        if self.is_up(node) {
            return;
        }
        let life = self.lives.entry(node).or_default();
        *life += 1;
        let life = *life;
        let boot = u128::from(self.dice.next()) << 64 | u128::from(self.dice.next());
        let me = Holder {
            node: node.name(),
            boot: BootId(boot),
        };
        self.note(|| format!("{} starts, life {life}", me.node));
        match node {
            Node::Sim => self.start_sim(me, life),
            Node::Gateway(index) => self.start_gateway(index, me, life),
        }
    }

    fn start_sim(&mut self, me: Holder, life: u32) {
        let mut config = SimConfig::alone(me.clone(), self.world.clone());
        config.told = (0..GATEWAYS)
            .map(|index| Node::Gateway(index).name())
            .collect();
        config.linger_ms = self.plan.linger_ms;
        config.checkpoint_ms = self.plan.checkpoint_ms;
        config.stamps_max = self.plan.stamps_max;
        config.planted = self.tampering.planted;
        self.sim = Some(SimNode {
            core: SimCore::new(config),
            me,
        });
        self.queue.push(self.now + TICK_MS, Event::Tick(life));
        self.give_sim(sim::Input::Fence { fallen: false });
        for region in self.world.clone().regions() {
            self.queue.push(self.now, Event::Take(life, region));
        }
        for index in 0..GATEWAYS {
            if !self.is_cut[index] {
                self.queue.push(self.now + 20, Event::Relink(index));
            }
        }
    }

    /// The only sim there is takes every region, and everybody before it is dead.
    fn take(&mut self, life: u32, region: RegionId) {
        if self.life(Node::Sim) == life {
            let row = self.store.claim(Right::Region(region));
            self.give_sim(sim::Input::Take { region, row });
        }
    }

    fn hear(&mut self, news: sim::News) {
        let life = self.life(Node::Sim);
        match news {
            sim::News::Gone { region, .. } => {
                let again = self.now + TICK_MS;
                self.queue.push(again, Event::Take(life, region));
            }
            sim::News::Suspect { boot } => {
                let found_out = self.now + TICK_MS;
                self.queue.push(found_out, Event::Dead(life, boot));
            }
            sim::News::Drained => self.sim_stopped(),
            _ => {}
        }
    }

    fn start_gateway(&mut self, index: usize, me: Holder, life: u32) {
        let is_linked = !self.is_cut[index];
        let sim = self.sim.as_ref().filter(|_| is_linked);
        let core = GatewayCore::new(gateway::Config {
            me: me.clone(),
            world: Arc::new(self.world.clone()),
            members: sim.map(|sim| sim.me.clone()).into_iter().collect(),
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
        self.queue.push(self.now, Event::Wake(index, life));
    }

    fn tick(&mut self, life: u32) -> Result<(), String> {
        if self.life(Node::Sim) != life || self.sim.is_none() || self.is_frozen {
            return Ok(());
        }
        self.queue.push(self.now + TICK_MS, Event::Tick(life));
        self.give_sim(sim::Input::Tick { parallel: false });
        self.watch_sim()?;
        self.try_to_freeze()
    }

    /// Once nobody is on the way between two battles, the feeds of this tick show everything: nothing moves after it.
    fn try_to_freeze(&mut self) -> Result<(), String> {
        let Some(freezes_at) = self.freezes_at else {
            return Ok(());
        };
        if self.now > freezes_at + RECOVER_MS {
            return Err("somebody is on the way for ever".into());
        }
        if self.is_everybody_placed() {
            self.note(|| "the sim stands still".into());
            self.is_frozen = true;
            self.queue.push(self.now + SETTLE_MS, Event::End);
        }
        Ok(())
    }

    /// Gives the sim an input and carries out what it wants.
    pub(super) fn give_sim(&mut self, input: sim::Input) {
        let Some(node) = &mut self.sim else { return };
        let mut effects = Vec::new();
        node.core.handle(self.now, input, &mut effects);
        let me = node.me.clone();
        for effect in effects {
            match effect {
                sim::Effect::Send { to, message } => {
                    self.note_saved(&message);
                    self.send(Node::Sim, &me, &to, message);
                }
                sim::Effect::Store { ticket, request } => self.ask(Node::Sim, ticket, request),
                sim::Effect::News(news) => self.hear(news),
            }
        }
    }

    /// Gives a gateway an input and carries out what it wants.
    pub(super) fn give_gateway(&mut self, index: usize, input: gateway::Input) {
        let Some(node) = &mut self.gateways[index] else {
            return;
        };
        let mut effects = Vec::new();
        node.core.handle(self.now, input, &mut effects);
        let me = node.me.clone();
        for effect in effects {
            match effect {
                gateway::Effect::Send { to, message } => {
                    self.send(Node::Gateway(index), &me, &to, message);
                }
                gateway::Effect::Store { ticket, request } => {
                    self.ask(Node::Gateway(index), ticket, request);
                }
                gateway::Effect::Write { conn, frames, ping } => self.write(conn, frames, ping),
                gateway::Effect::Close {
                    conn, last, code, ..
                } => self.close(conn, last, code),
                gateway::Effect::WantEntropy { tokens } => {
                    let tokens = (0..tokens).map(|_| self.token()).collect();
                    self.give_gateway(index, gateway::Input::Entropy { tokens });
                }
                gateway::Effect::Stopped => self.gateway_stopped(index),
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
        let life = self.life(Node::Gateway(index));
        if let Some(node) = &mut self.gateways[index] {
            let at = node.core.wake_at();
            if at != node.wake_at && at != Millis::MAX {
                node.wake_at = at;
                self.queue.push(at.max(self.now), Event::Wake(index, life));
            }
        }
    }

    fn wake(&mut self, index: usize, life: u32) {
        let node = self.gateways[index].as_mut();
        let is_due = node.is_some_and(|node| node.core.wake_at() <= self.now);
        if life != self.life(Node::Gateway(index)) {
            return;
        }
        if is_due {
            self.give_gateway(index, gateway::Input::Timer);
        } else {
            self.set_alarm(index);
        }
    }

    fn ask(&mut self, node: Node, ticket: sim::Ticket, request: uo_server::store::Request) {
        self.fold(&request);
        let asker = (node, self.life(node));
        self.note(|| format!("{} asks {request:?}", node.name()));
        let inspected = self.store.inspect(&request);
        if let Err(why) = inspected.and_then(|()| self.note_seal(&request)) {
            self.broken.get_or_insert(why);
        }
        let steps = self.store.ask(self.now, &self.plan, asker, ticket, request);
        for (at, step) in steps {
            self.queue.push(at, Event::Store(step));
        }
    }

    fn answer(&mut self, id: u64) {
        let Some(((node, life), ticket, reply)) = self.store.answer(id) else {
            return;
        };
        if life != self.life(node) {
            return;
        }
        self.note(|| format!("{} is answered {reply:?}", node.name()));
        match node {
            Node::Sim => self.give_sim(sim::Input::Store { ticket, reply }),
            Node::Gateway(index) => {
                self.give_gateway(index, gateway::Input::Store { ticket, reply });
            }
        }
    }

    /// Sends a message between nodes. One over a broken link, or to a node that is down, is lost.
    fn send(&mut self, from: Node, me: &Holder, to: &NodeName, message: Message) {
        let Some(to) = Node::of_name(to) else { return };
        let is_cut = |node| matches!(node, Node::Gateway(index) if self.is_cut[index]);
        if !self.is_up(to) || is_cut(from) || is_cut(to) {
            return;
        }
        let link = (from, to);
        let delay = if from == to {
            self.plan.own_link
        } else {
            self.plan.link
        };
        let stall = self.stalled_until.saturating_sub(self.now);
        let delay = delay.draw(&mut self.dice) + stall;
        let at = self.links.entry(link).or_default().arrival(self.now, delay);
        let life = self.link_life(link);
        let from = me.clone();
        self.queue.push(
            at,
            Event::Deliver {
                link,
                life,
                from,
                message,
            },
        );
    }

    fn link_life(&self, link: (Node, Node)) -> u32 {
        self.link_lives.get(&link).copied().unwrap_or_default()
    }

    /// Whatever is under way to and from `node` (from and to `other` only, if given) never arrives.
    pub(super) fn break_links(&mut self, node: Node, other: Option<Node>) {
        let all = std::iter::once(Node::Sim).chain((0..GATEWAYS).map(Node::Gateway));
        for end in all.filter(|&end| other.is_none_or(|other| end == other)) {
            for link in [(node, end), (end, node)] {
                *self.link_lives.entry(link).or_default() += 1;
                self.links.remove(&link);
            }
        }
    }

    fn deliver(&mut self, link: (Node, Node), life: u32, from: Holder, message: Message) {
        if life != self.link_life(link) {
            return;
        }
        match (link.1, message) {
            (Node::Sim, Message::ToSim(message)) => {
                self.note(|| format!("{} -> sim: {message:?}", from.node));
                self.give_sim(sim::Input::Peer { from, message });
            }
            (Node::Gateway(index), Message::ToGateway(message)) => {
                self.note(|| format!("sim -> gw-{}: {message:?}", index + 1));
                self.give_gateway(index, gateway::Input::Peer { from, message });
            }
            _ => {}
        }
    }
}
