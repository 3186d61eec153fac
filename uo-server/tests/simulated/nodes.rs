//! The processes of the nodes: started, given what happens at the time of their own clocks, and what they want carried out.

use std::sync::Arc;

use uo_proto::{Limits, RegionId};
use uo_server::Millis;
use uo_server::cluster::core::{self as cluster, ClusterConfig, ClusterCore, ExitReason};
use uo_server::cluster::timing::Timing;
use uo_server::gateway::core::{self as gateway, GatewayCore};
use uo_server::identity::{BootId, Holder, NodeName};
use uo_server::planted::PlantedBug;
use uo_server::sim::core::{SimConfig, SimCore};
use uo_server::sim::member::{self, Member};
use uo_server::store::row::{NodeState, Role};
use uo_server::store::{Life, Reply, Request};

use super::node::{Machine, Node, SIMS_MAX};
use super::shard::{Event, Shard};
use super::store::{Step, Ticket};

const TICK_MS: Millis = 50;
/// How far apart the times of day of two starts are at most.
const TIME_OF_DAY_MS: Millis = 10_000;
/// How long after a process ended because its name was taken somebody looks at it, and starts it again: in the end only if
/// the other is gone.
const LOOKED_AFTER_MS: Millis = 5_000;

/// The process of a sim.
pub struct SimNode {
    pub(super) member: Member,
}

impl SimNode {
    pub fn core(&self) -> &SimCore {
        self.member.sim_core()
    }

    pub fn counters(&self) -> member::Counters {
        self.member.counters()
    }

    pub fn me(&self) -> Holder {
        self.member.me().clone()
    }

    /// As of what it was given last.
    pub fn may_act(&self) -> bool {
        self.member.cluster_core().may_act()
    }
}

/// The process of a gateway.
pub struct GatewayNode {
    core: GatewayCore,
    cluster: ClusterCore,
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

    /// What a sim says of itself.
    pub(super) fn state(&self, node: Node) -> Option<NodeState> {
        let Node::Sim(index) = node else { return None };
        let sim = self.sims[index].as_ref()?;
        Some(sim.member.cluster_core().observe().state)
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
        if self.is_up(node) || self.is_frozen {
            return;
        }
        if self.is_recovering && self.is_name_taken(node) {
            let later = self.now + LOOKED_AFTER_MS;
            return self.queue.push(later, Event::Start(node));
        }
        let time_of_day = self.dice.below(TIME_OF_DAY_MS);
        let machine = self.machine(node);
        machine.time_of_day = time_of_day;
        machine.life += 1;
        let life = self.life(node);
        let me = Holder {
            node: node.name(),
            boot: self.new_boot(),
        };
        self.note(|| format!("{} starts, life {life}", me.node));
        self.excuse(node, 0);
        match node {
            Node::Sim(index) => self.start_sim(index, me),
            Node::Gateway(index) => self.start_gateway(index, me),
        }
        let first = self.after(node, TICK_MS);
        self.queue.push(first, Event::Tick(node, life));
        self.dial_all(node);
    }

    /// Whether another process goes by its name.
    fn is_name_taken(&self, node: Node) -> bool {
        self.plan
            .nodes()
            .any(|other| other != node && other.name() == node.name() && self.is_up(other))
    }

    fn new_boot(&mut self) -> BootId {
        BootId(u128::from(self.dice.next()) << 64 | u128::from(self.dice.next()))
    }

    fn cluster_config(&self, me: &Holder, role: Role) -> ClusterConfig {
        ClusterConfig {
            me: me.clone(),
            role,
            regions: RegionId::count(self.world.size()),
            demand_driven: false,
            others_are_dead: false,
            peer: None,
            clients: Vec::new(),
            timing: self.timing(),
            planted: self.tampering.planted,
        }
    }

    fn timing(&self) -> Timing {
        let mut timing = Timing::default();
        if self.tampering.planted.has(PlantedBug::PresenceByTtl) {
            // Whoever takes expiry for a death lets rows expire soon.
            timing.node_ttl_s = 3;
        }
        timing
    }

    fn start_sim(&mut self, index: usize, me: Holder) {
        let cluster = self.cluster_config(&me, Role::Sim);
        let mut config = SimConfig::alone(me, self.world.clone());
        config.told = Vec::new();
        config.linger_ms = self.plan.linger_ms;
        config.checkpoint_ms = self.plan.checkpoint_ms;
        config.stamps_max = self.plan.stamps_max;
        config.planted = self.tampering.planted;
        let now = self.clock(Node::Sim(index));
        let member = Member::new(cluster, config, now);
        self.sims[index] = Some(SimNode { member });
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
            reliable_lane_max: uo_server::limits::RELIABLE_LANE_MAX,
            seed: self.dice.next(),
        });
        let config = self.cluster_config(&me, Role::Gateway);
        let now = self.clock(Node::Gateway(index));
        self.gateways[index] = Some(GatewayNode {
            core,
            cluster: ClusterCore::new(config, now),
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
        match node {
            Node::Gateway(index) => self.give_observer(index, cluster::Input::Tick),
            Node::Sim(index) => {
                #[cfg(feature = "planted-bugs")]
                self.spoil_tick(index);
                self.give_sim(index, member::Input::Tick { parallel: false });
                self.watch_sim(index)?;
                self.try_to_freeze()?;
            }
        }
        Ok(())
    }

    /// Once nobody is on the way between two battles, the feeds of one more tick of each sim show everything: nothing moves
    /// after it.
    fn try_to_freeze(&mut self) -> Result<(), String> {
        if !self.may_freeze()? || !self.is_everybody_placed() {
            return Ok(());
        }
        for index in 0..SIMS_MAX {
            self.give_sim(index, member::Input::Tick { parallel: false });
            self.watch_sim(index)?;
        }
        if self.is_everybody_placed() {
            self.truth = Some(self.truth()?);
            self.freeze();
        }
        Ok(())
    }

    /// Gives a sim an input and carries out what it wants.
    pub(super) fn give_sim(&mut self, index: usize, input: member::Input) {
        let node = Node::Sim(index);
        let now = self.clock(node);
        let Some(sim) = &mut self.sims[index] else {
            return;
        };
        let mut effects = Vec::new();
        sim.member.handle(now, input, &mut effects);
        for effect in effects {
            match effect {
                member::Effect::Send { from, to, message } => {
                    if let Err(why) = self.note_saved(index, &message) {
                        self.broken.get_or_insert(why);
                    }
                    self.note_said(index, &message);
                    self.send(node, &from, &to, message);
                }
                member::Effect::Store { ticket, request } => {
                    if let Err(why) = self.note_seal(index, &request) {
                        self.broken.get_or_insert(why);
                    }
                    self.ask(node, Ticket::Member(ticket), request);
                }
                member::Effect::Reach(_) => {} // For a gateway of the same process.
                member::Effect::Peers { .. } => {} // The simulated network links whom it wants.
                member::Effect::WantBoot => {
                    let boot = self.new_boot();
                    self.note(|| format!("{} goes on as {boot:?}", node.name()));
                    self.give_sim(index, member::Input::NewBoot { boot });
                }
                member::Effect::Exit { why } => self.exited(node, why),
            }
        }
    }

    /// A sim ended by itself.
    fn exited(&mut self, node: Node, why: ExitReason) {
        self.note(|| format!("{}: {why}", node.name()));
        if let ExitReason::NameTaken { .. } = &why {
            self.counted.names_taken += 1;
            self.machine(node).starts_after = LOOKED_AFTER_MS;
        }
        #[cfg(feature = "planted-bugs")]
        if let (Node::Sim(index), ExitReason::Died) = (node, &why) {
            self.has_ended(index);
        }
        self.stopped(node);
    }

    /// The shell of a sim that can do no more declares its boot dead.
    pub(super) fn declare_dead(&mut self, index: usize) {
        let Some(sim) = &self.sims[index] else {
            return;
        };
        let (boot, life) = (sim.me().boot, sim.member.cluster_core().observe().life);
        if life > 0 {
            let death = Request::LifeCas {
                boot,
                from: Some(Life::Alive(life)),
                to: Life::Dead,
            };
            self.ask(Node::Sim(index), Ticket::Nobody, death);
        }
    }

    /// Gives the part of a gateway that watches the others an input.
    fn give_observer(&mut self, index: usize, input: cluster::Input) {
        let node = Node::Gateway(index);
        let now = self.clock(node);
        let Some(gateway) = &mut self.gateways[index] else {
            return;
        };
        let mut effects = Vec::new();
        gateway.cluster.handle(now, input, &mut effects);
        for effect in effects {
            match effect {
                cluster::Effect::Store { ticket, request } => {
                    self.ask(node, Ticket::Cluster(ticket), request);
                }
                cluster::Effect::Members(_) => self.tell_members(index),
                cluster::Effect::Exit { why } => self.exited(node, why),
                // A gateway acts on nobody's behalf.
                _ => {}
            }
        }
    }

    /// A gateway is told which sims it may ask: those that are not presumed gone and to which there is a link.
    fn tell_members(&mut self, index: usize) {
        let linked = self.linked(Node::Gateway(index));
        let linked: Vec<NodeName> = linked.into_iter().map(Node::name).collect();
        let Some(gateway) = &self.gateways[index] else {
            return;
        };
        let members = gateway.cluster.members().iter();
        let alive = members
            .filter(|it| it.role != Role::Gateway && linked.contains(&it.holder.node))
            .map(|member| member.holder.clone())
            .collect();
        self.give_gateway(index, gateway::Input::Members { alive });
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
                    self.ask(Node::Gateway(index), Ticket::Gateway(ticket), request);
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
        match node {
            Node::Sim(index) => {
                let linked = self.linked(node);
                let nodes = linked.into_iter().map(Node::name).collect();
                self.give_sim(index, member::Input::Linked { nodes });
            }
            Node::Gateway(index) => self.tell_members(index),
        }
    }

    fn ask(&mut self, node: Node, ticket: Ticket, request: Request) {
        self.fold(&request);
        let asker = (node, self.life(node));
        let time_of_day = self.machines[&node].time_of_day;
        self.note(|| format!("{} asks {request:?}", node.name()));
        if let Err(why) = self.store.inspect(&request) {
            self.broken.get_or_insert(why);
        }
        let asker = (asker, time_of_day);
        let steps = self.store.ask(self.now, &self.plan, asker, ticket, request);
        for (at, step) in steps {
            self.queue.push(at, Event::Store(step));
        }
    }

    pub(super) fn answer(&mut self, id: u64) {
        let region = self.store.region_read(id);
        let ((node, life), ticket, reply) = match self.store.answer(self.now, id) {
            Some(Ok(answered)) => answered,
            Some(Err(later)) => {
                let answer = Event::Store(Step::Answer(id));
                return self.queue.push(later, answer);
            }
            None => return,
        };
        if life != self.life(node) {
            return;
        }
        self.note(|| format!("{} is answered {reply:?}", node.name()));
        match (node, ticket) {
            (Node::Sim(index), Ticket::Member(ticket)) => {
                if let (Some(region), Ok(Reply::Objects(rows))) = (region, &reply)
                    && let Err(why) = self.note_load(index, region, rows)
                {
                    self.broken.get_or_insert(why);
                }
                self.give_sim(index, member::Input::Store { ticket, reply });
            }
            (Node::Gateway(index), Ticket::Gateway(ticket)) => {
                self.give_gateway(index, gateway::Input::Store { ticket, reply });
            }
            (Node::Gateway(index), Ticket::Cluster(ticket)) => {
                self.give_observer(index, cluster::Input::Store { ticket, reply });
            }
            _ => {}
        }
    }
}
