//! A sim as one machine: the cluster core says what this node may do, and the sim core does it.
//!
//! Whatever happens, the cluster core hears of it first, if only that time has passed: a fence that has fallen is noticed
//! before anything else is done. What it wants done is done in the same turn, and so is what the sim core tells of it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use serde_json::{Value, json};
use uo_proto::RegionId;

use self::fault::FaultReport;
use super::core::{self as sim, News, SimConfig, SimCore};
use super::others::Peer;
use super::state::Detail;
use crate::Millis;
use crate::cluster::core::{self as cluster, ClusterConfig, ClusterCore, DrainRefusal, ExitReason};
use crate::cluster::directory::{Directory, Reach};
use crate::crossing::Measured;
use crate::identity::{BootId, Holder, NodeName};
use crate::peer::{Message, PeerAddress, ToSim};
use crate::store::row::{NodeLoad, NodeState, Role};
use crate::store::{Reply, Request, StoreError};

/// What happens to a member.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// Simulate 50 ms, if that may be. See [`sim::Input::Tick`].
    Tick { parallel: bool },
    /// A message arrived. `from` is the sending node.
    Peer { from: Holder, message: ToSim },
    /// The link to a node is gone.
    PeerLost { node: NodeName },
    /// The other nodes to which there is a link; replaces what was said before.
    Linked { nodes: Vec<NodeName> },
    /// The store answered.
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// The random boot that [`Effect::WantBoot`] asked for.
    NewBoot { boot: BootId },
    /// How busy the node is.
    Load(NodeLoad),
    /// An operator releases a region that stands still for its panics; it is held here.
    Release { region: RegionId },
    /// Stop in order, then [`Effect::Exit`].
    Stop,
}

/// What a member wants done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Send a message, in the name of the boot that this is now.
    Send {
        from: Holder,
        to: NodeName,
        message: Message,
    },
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// What the gateway of this process can reach.
    Reach(Reach),
    /// The other nodes that are there, for whoever keeps the links to them.
    Peers { peers: Vec<PeerAddress> },
    /// Give a random boot.
    WantBoot,
    /// The end.
    Exit { why: ExitReason },
}

/// Whose request it was, and which.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Ticket {
    /// The cluster core's.
    Cluster(cluster::Ticket),
    /// The sim core's. Those of one boot are never used again by the next.
    Sim(sim::Ticket),
    /// The report that a region ended this boot.
    Fault,
}

/// See the module.
pub struct Member {
    cluster: ClusterCore,
    sim: SimCore,
    /// The time of the input before.
    now: Option<Millis>,
    directory: Directory,
    /// A region ended this boot: that is to be written down before it exits, and then why it does.
    fault: Option<FaultReport>,
    exit: Option<ExitReason>,
    /// Thaws, deaths and rebirths, for `/metrics`.
    counters: Counters,
}

/// What was counted of this node's standing since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Counters {
    /// Times the fence fell.
    pub fence_falls: u64,
    /// Times it was lifted again.
    pub thaws: u64,
    /// Other boots that were found dead.
    pub deaths_learned: u64,
    /// Times this process was declared dead and started over.
    pub rebirths: u64,
    /// Beats sent.
    pub beats: u64,
    /// Regions that were to be taken.
    pub takes: u64,
    /// Regions that were not got, or lost.
    pub regions_gone: u64,
    /// Of those taken, the ones that a dead boot had held.
    pub takeovers: u64,
}

/// What is still to be handed from one core to the other.
enum Step {
    Do(cluster::Effect),
    Tell(News),
}

impl Member {
    /// A member that begins with its first input.
    pub fn new(cluster: ClusterConfig, sim: SimConfig, now: Millis) -> Member {
        debug_assert_eq!(cluster.me, sim.me);
        Member {
            cluster: ClusterCore::new(cluster, now),
            sim: SimCore::new(sim),
            now: None,
            directory: Directory::default(),
            fault: None,
            exit: None,
            counters: Counters::default(),
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        let mut turn = Turn {
            now,
            steps: VecDeque::new(),
            effects,
        };
        // Nothing can have changed in no time.
        if self.now != Some(now) {
            self.cluster(cluster::Input::Tick, &mut turn);
            self.now = Some(now);
        }
        self.dispatch(input, &mut turn);
        self.end_when_reported(&mut turn);
        turn.effects
            .extend(self.exit.take().map(|why| Effect::Exit { why }));
    }

    /// An operator wants `region` at `to` (none: at the best of the others). Says to whom it goes; what becomes of that is
    /// seen in `/state`.
    pub fn wish(
        &mut self,
        now: Millis,
        region: RegionId,
        to: Option<&NodeName>,
        effects: &mut Vec<Effect>,
    ) -> Result<Holder, DrainRefusal> {
        let mut wanted = Vec::new();
        let holder = self.cluster.wish(region, to, &mut wanted)?;
        let mut turn = Turn {
            now,
            steps: wanted.into_iter().map(Step::Do).collect(),
            effects,
        };
        self.settle(&mut turn);
        Ok(holder)
    }

    fn dispatch(&mut self, input: Input, turn: &mut Turn<'_>) {
        match input {
            Input::Tick { parallel } => self.sim(sim::Input::Tick { parallel }, turn),
            Input::Peer { from, message } => {
                if let ToSim::Leases(leases) = &message {
                    self.cluster(cluster::Input::Leases(leases.clone()), turn);
                }
                self.sim(sim::Input::Peer { from, message }, turn);
            }
            Input::PeerLost { node } => {
                self.directory.link_lost(&node);
                self.links_changed(turn);
                self.sim(sim::Input::PeerLost { node }, turn);
            }
            Input::Linked { nodes } => {
                self.directory.linked_are(nodes);
                self.links_changed(turn);
            }
            Input::Store { ticket, reply } => match ticket {
                Ticket::Cluster(ticket) => {
                    self.cluster(cluster::Input::Store { ticket, reply }, turn);
                }
                Ticket::Sim(ticket) => self.sim(sim::Input::Store { ticket, reply }, turn),
                Ticket::Fault => {
                    let next = self.fault.as_mut().and_then(|fault| fault.answered(reply));
                    self.ask_about_fault(next, turn);
                }
            },
            Input::NewBoot { boot } => self.cluster(cluster::Input::NewBoot(boot), turn),
            Input::Release { region } => self.sim(sim::Input::Release { region }, turn),
            Input::Load(load) => self.cluster(cluster::Input::Load(load), turn),
            Input::Stop => {
                // Whoever is told where its regions go is to know that it stops.
                self.sim(sim::Input::Stop, turn);
                self.cluster(cluster::Input::Stop, turn);
            }
        }
    }

    fn links_changed(&mut self, turn: &mut Turn<'_>) {
        let nodes = self.directory.linked().to_vec();
        self.cluster(cluster::Input::Linked { nodes }, turn);
        let nodes = self.directory.linked().to_vec();
        self.sim(sim::Input::Linked { nodes }, turn);
        self.tell_reach(turn);
    }

    /// Gives the cluster core an input, and carries through what follows from it in both.
    fn cluster(&mut self, input: cluster::Input, turn: &mut Turn<'_>) {
        let mut effects = Vec::new();
        self.cluster.handle(turn.now, input, &mut effects);
        turn.steps.extend(effects.into_iter().map(Step::Do));
        self.settle(turn);
    }

    /// Gives the sim core an input, and carries through what follows from it in both.
    fn sim(&mut self, input: sim::Input, turn: &mut Turn<'_>) {
        self.give_sim(input, turn);
        self.settle(turn);
    }

    fn give_sim(&mut self, input: sim::Input, turn: &mut Turn<'_>) {
        let mut effects = Vec::new();
        self.sim.handle(turn.now, input, &mut effects);
        for effect in effects {
            match effect {
                sim::Effect::Send { to, message } => turn.effects.push(Effect::Send {
                    from: self.sim.me().clone(),
                    to,
                    message,
                }),
                sim::Effect::Store { ticket, request } => turn.effects.push(Effect::Store {
                    ticket: Ticket::Sim(ticket),
                    request,
                }),
                sim::Effect::News(news) => turn.steps.push_back(Step::Tell(news)),
            }
        }
    }

    fn settle(&mut self, turn: &mut Turn<'_>) {
        while let Some(step) = turn.steps.pop_front() {
            match step {
                Step::Do(effect) => self.carry_out(effect, turn),
                Step::Tell(News::Panicked { region }) => self.break_down(region, turn),
                Step::Tell(news) => {
                    let input = self.hear(news);
                    let mut effects = Vec::new();
                    self.cluster.handle(turn.now, input, &mut effects);
                    turn.steps.extend(effects.into_iter().map(Step::Do));
                }
            }
        }
    }

    fn carry_out(&mut self, effect: cluster::Effect, turn: &mut Turn<'_>) {
        match effect {
            cluster::Effect::Store { ticket, request } => {
                self.counters.beats += u64::from(matches!(request, Request::NodeBeat { .. }));
                turn.effects.push(Effect::Store {
                    ticket: Ticket::Cluster(ticket),
                    request,
                });
            }
            cluster::Effect::Alive => self.give_sim(sim::Input::Fence { fallen: false }, turn),
            cluster::Effect::Fence { fallen } => {
                // A boot that ends gives up its right to act; that is no news.
                let counts = u64::from(!self.sim.has_stopped() && self.fault.is_none());
                match fallen {
                    true => self.counters.fence_falls += counts,
                    false => self.counters.thaws += counts,
                }
                self.give_sim(sim::Input::Fence { fallen }, turn);
            }
            cluster::Effect::Dead { boot } => {
                self.counters.deaths_learned += 1;
                self.give_sim(sim::Input::Dead { boot }, turn);
            }
            cluster::Effect::Take { region, row } => {
                self.counters.takes += 1;
                let holder = row.as_ref().and_then(|row| row.holder.as_ref());
                if let Some(boot) = holder.map(|holder| holder.boot) {
                    self.counters.takeovers += 1;
                    // The lock of a store proves every other boot dead without a word.
                    if self.cluster.is_dead(boot) && !self.sim.knows_dead(boot) {
                        self.give_sim(sim::Input::Dead { boot }, turn);
                    }
                }
                self.give_sim(sim::Input::Take { region, row }, turn);
            }
            cluster::Effect::Retire { region } => {
                self.give_sim(sim::Input::Retire { region }, turn);
            }
            cluster::Effect::Drain {
                region,
                to,
                is_wished,
            } => {
                let drain = sim::Input::Drain {
                    region,
                    to,
                    is_wished,
                };
                self.give_sim(drain, turn);
            }
            cluster::Effect::GiveUp => self.give_sim(sim::Input::GiveUp, turn),
            cluster::Effect::ReadBack { leases } => {
                self.give_sim(sim::Input::ReadBack { leases }, turn);
            }
            cluster::Effect::Members(members) => {
                self.directory.members_are(members);
                let members = self.peers();
                self.give_sim(sim::Input::Members { members }, turn);
                let peers = self.directory.addresses(self.cluster.me());
                turn.effects.push(Effect::Peers { peers });
                self.tell_reach(turn);
            }
            cluster::Effect::WantBoot => turn.effects.push(Effect::WantBoot),
            cluster::Effect::Reborn { me } => self.be_reborn(me, turn),
            cluster::Effect::Exit { why } => self.exit = Some(why),
        }
    }

    /// What the cluster core is to know of the sim core's news.
    fn hear(&mut self, news: News) -> cluster::Input {
        match news {
            News::Served { region, epoch } => cluster::Input::Served { region, epoch },
            News::Gone { region, row } => {
                self.counters.regions_gone += 1;
                cluster::Input::Gone { region, row }
            }
            News::Released { region, number } => cluster::Input::Released { region, number },
            News::Stays { region } => cluster::Input::Stays { region },
            News::Given { region, row } => {
                let row = Some(row);
                cluster::Input::Gone { region, row }
            }
            News::Suspect { boot } => cluster::Input::Suspect { boot },
            News::Demanded { regions } => cluster::Input::Demanded { regions },
            News::Drained => cluster::Input::Drained,
            News::Panicked { .. } => cluster::Input::Dying,
        }
    }

    /// A region has ended this boot, which does nothing any more. The others are to know why.
    fn break_down(&mut self, region: RegionId, turn: &mut Turn<'_>) {
        let mut fault = FaultReport::new(region, self.cluster.me().boot, turn.now);
        let read = fault.read();
        self.fault = Some(fault);
        self.ask_about_fault(Some(read), turn);
    }

    fn ask_about_fault(&mut self, request: Option<Request>, turn: &mut Turn<'_>) {
        let ticket = Ticket::Fault;
        let store = request.map(|request| Effect::Store { ticket, request });
        turn.effects.extend(store);
    }

    /// First the report, then the end of this boot: whoever may take the region is to find what it has done.
    fn end_when_reported(&mut self, turn: &mut Turn<'_>) {
        if let Some(fault) = &mut self.fault
            && fault.ends_boot(turn.now)
        {
            self.cluster(cluster::Input::Dying, turn);
        }
    }

    /// Everything of the old boot is dropped; what is known of the others is not.
    fn be_reborn(&mut self, me: Holder, turn: &mut Turn<'_>) {
        self.counters.rebirths += 1;
        self.sim.reborn(me);
        let members = self.peers();
        self.give_sim(sim::Input::Members { members }, turn);
        self.tell_reach(turn);
    }

    /// The other nodes, as the sim core has to know them.
    fn peers(&self) -> Vec<Peer> {
        let me = self.cluster.me();
        let others = self.directory.members().iter();
        let others = others.filter(|it| it.holder != *me);
        others
            .map(|member| Peer {
                holder: member.holder.clone(),
                is_gateway: member.role != Role::Sim,
                takes_over: member.role != Role::Gateway && member.state == NodeState::Running,
            })
            .collect()
    }

    /// Tells the gateway of this process where it can turn to, if that has changed.
    fn tell_reach(&mut self, turn: &mut Turn<'_>) {
        let news = self.directory.news(self.cluster.me());
        turn.effects.extend(news.map(Effect::Reach));
    }

    /// Who this is now.
    pub fn me(&self) -> &Holder {
        self.cluster.me()
    }

    /// Its life; 0: it has none yet.
    pub fn life(&self) -> u64 {
        self.cluster.life()
    }

    /// The part that can still end the life of this boot when the other has failed.
    pub fn into_cluster(self) -> ClusterCore {
        self.cluster
    }

    /// The sim core.
    pub fn sim_core(&self) -> &SimCore {
        &self.sim
    }

    /// The cluster core.
    pub fn cluster_core(&self) -> &ClusterCore {
        &self.cluster
    }

    /// The region that ended this boot.
    pub fn panicked(&self) -> Option<RegionId> {
        self.fault.as_ref().map(|fault| fault.region)
    }

    /// Has the next tick of a region panic, if it is held here.
    #[cfg(feature = "planted-bugs")]
    pub fn plant_panic(&mut self, region: RegionId) {
        self.sim.plant_panic(region);
    }

    /// What was counted.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether it has what it should: it may act, and takes nothing more.
    pub fn is_ready(&self) -> bool {
        self.cluster.is_ready() && self.sim.is_settled()
    }

    /// Itself, for `/state` and `/metrics`; see [`SimCore::observe`].
    pub fn observe(&self, detail: Detail) -> Value {
        let cluster = self.cluster.observe();
        let mut state = json!({
            "ready": self.is_ready(),
            "fenced": self.sim.is_fenced(),
            "boot": cluster.boot,
            "life": cluster.life,
            "sim": self.sim.observe(detail),
            "cluster": cluster,
        });
        state["cluster"]["counters"] = json!(self.counters);
        state["cluster"]["gauges"] = json!({
            "life": cluster.life,
            "fenced": u64::from(self.sim.is_fenced()),
            "members": cluster.members.len(),
        });
        state
    }

    /// See [`SimCore::take_measured`].
    pub fn take_measured(&mut self) -> Vec<Measured> {
        self.sim.take_measured()
    }

    /// See [`SimCore::take_drain_ms`].
    pub fn take_drain_ms(&mut self) -> Vec<u32> {
        self.sim.take_drain_ms()
    }

    /// See [`SimCore::take_handoff_ms`].
    pub fn take_handoff_ms(&mut self) -> Vec<u32> {
        self.sim.take_handoff_ms()
    }
}

/// What one input leads to.
struct Turn<'a> {
    now: Millis,
    steps: VecDeque<Step>,
    effects: &'a mut Vec<Effect>,
}

mod fault;
#[cfg(test)]
mod tests;
