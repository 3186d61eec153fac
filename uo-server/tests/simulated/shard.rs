//! A shard in virtual time: the real cores, and between them a store and a network that a seed makes good or bad.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;
use uo_proto::{ClientMsg, Encoding};
use uo_server::Millis;
use uo_server::gateway::core::ConnId;
use uo_server::gateway::frames::Frames;
use uo_server::identity::{BootId, Holder};
use uo_server::peer::Message;
use uo_server::planted::Planted;
use uo_server::store::Right;
use uo_server::store::row::NodeState;
use uo_world::World;

use super::client::Client;
use super::counted::Counted;
use super::dice::Dice;
use super::ledger::Ledger;
use super::network::Network;
use super::node::{GATEWAYS_MAX, Machine, Node, SIMS_MAX, TWIN};
use super::nodes::{GatewayNode, SimNode};
use super::plan::{Fault, Plan, RECOVER_MS, SETTLE_MS};
use super::queue::{InOrder, Queue};
use super::season::Season;
use super::store::{Happening, ModelStore, Step};
use super::truth::Truth;
use super::watch::Watch;

/// A player that is not let in gives up after this long, and tries again.
pub(super) const PATIENCE_MS: Millis = 6_000;

/// What a client's side sends.
#[derive(Clone, Debug)]
pub enum Upward {
    Opened,
    Message(ClientMsg),
    Pong(u64),
    Gone,
}

/// What a gateway's side sends.
#[derive(Clone, Debug)]
pub enum Downward {
    Frames(Frames, Option<u64>),
    Closed(Frames, u16),
    Lost,
}

/// What happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node's clock has gone on by a tick, in this life of its process.
    Tick(Node, u32),
    /// An alarm of a gateway.
    Wake(usize, u32),
    Deliver {
        link: (Node, Node),
        /// Which life of that link; a broken one delivers nothing.
        life: u32,
        from: Holder,
        message: Message,
    },
    Store(Step),
    Up(ConnId, Upward),
    Down(ConnId, Downward),
    Writable(ConnId),
    Turn(usize),
    Fault(Fault),
    Start(Node),
    /// A node notices that its link to another is gone.
    Lost {
        at: Node,
        gone: Node,
    },
    /// A link may come about.
    Join(Node, Node),
    /// Nothing was heard of a stopped process for a while.
    Silence {
        node: Node,
        other: Node,
        pause: u32,
    },
    /// A stopped process goes on.
    GoOn {
        node: Node,
        pause: u32,
    },
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

/// What is done to a run that a plan does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tampering {
    pub season: Season,
    pub planted: Planted,
}

impl Tampering {
    /// The test that runs seeds like this.
    pub fn test(self) -> &'static str {
        match (self.planted == Planted::NONE, self.season) {
            (true, Season::Any) => "every_promise_is_kept",
            (true, Season::Crowd) => "every_promise_is_kept_in_a_crowd",
            (true, _) => "every_promise_is_kept_in_each_season",
            (false, _) => "--features planted-bugs THE_SAME_TEST",
        }
    }
}

/// The whole of it.
pub struct Shard {
    pub(super) plan: Plan,
    pub(super) tampering: Tampering,
    pub(super) world: World,
    /// The true time, which no node knows.
    pub(super) now: Millis,
    pub(super) queue: Queue<Event>,
    pub(super) dice: Dice,
    pub(super) store: ModelStore,
    pub(super) machines: BTreeMap<Node, Machine>,
    pub(super) sims: [Option<SimNode>; SIMS_MAX],
    pub(super) gateways: [Option<GatewayNode>; GATEWAYS_MAX],
    pub(super) network: Network,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) clients: Vec<Client>,
    pub(super) turns: Vec<Dice>,
    pub(super) ledger: Ledger,
    pub(super) watch: Watch,
    /// Boots whose process ended, or that were declared dead.
    pub(super) lost: BTreeSet<BootId>,
    /// A promise that was broken where nobody can say so at once.
    pub(super) broken: Option<String>,
    has_good_store: bool,
    pub(super) is_recovering: bool,
    /// From when on the sims may stand still.
    freezes_at: Option<Millis>,
    pub(super) is_frozen: bool,
    /// What there was when they did.
    pub(super) truth: Option<Truth>,
    is_over: bool,
    hasher: FxHasher,
    tracing: bool,
    pub(super) trace: Vec<String>,
    pub(super) counted: Counted,
    #[cfg(feature = "planted-bugs")]
    pub(super) sickness: Option<super::sickness::Sickness>,
}

impl Shard {
    pub fn new(plan: Plan, tampering: Tampering, world: World, tracing: bool) -> Shard {
        let dice = Dice::new(plan.seed).fork(1);
        let clients: Vec<Client> = (0..plan.players)
            .map(|n| Client::new(&format!("player{n}")))
            .collect();
        let clocks = plan.clocks.iter();
        let mut shard = Shard {
            store: ModelStore::new(dice.fork(2), plan.skews_ms, tampering.planted),
            turns: (0..plan.players as u64)
                .map(|n| dice.fork(100 + n))
                .collect(),
            dice,
            tampering,
            world,
            now: 0,
            queue: Queue::default(),
            machines: clocks
                .map(|&(node, clock)| (node, Machine::new(clock)))
                .collect(),
            sims: Default::default(),
            gateways: Default::default(),
            network: Network::default(),
            conns: BTreeMap::new(),
            clients,
            ledger: Ledger::default(),
            watch: Watch::default(),
            lost: BTreeSet::new(),
            broken: None,
            has_good_store: plan.has_good_store(),
            is_recovering: false,
            freezes_at: None,
            is_frozen: false,
            truth: None,
            is_over: false,
            hasher: FxHasher::default(),
            tracing,
            trace: Vec::new(),
            counted: Counted::default(),
            #[cfg(feature = "planted-bugs")]
            sickness: None,
            plan,
        };
        shard.set_out();
        shard
    }

    fn set_out(&mut self) {
        for node in self.plan.nodes() {
            let at = match node {
                Node::Sim(TWIN) => continue,
                Node::Sim(index) => self.plan.starts[index],
                Node::Gateway(_) => 0,
            };
            self.queue.push(at, Event::Start(node));
        }
        for player in 0..self.clients.len() {
            let at = self.dice.between(100, 1_500);
            self.queue.push(at, Event::Turn(player));
        }
        for (at, fault) in self.plan.faults.clone() {
            self.queue.push(at, Event::Fault(fault));
        }
        let play_ms = self.plan.play_ms;
        self.queue.push(play_ms, Event::Recover);
        self.queue.push(play_ms + RECOVER_MS, Event::Freeze);
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
        let mut hasher = self.hasher.clone();
        self.store.tables.hash(&mut hasher);
        Ok(hasher.finish())
    }

    pub fn now(&self) -> Millis {
        self.now
    }

    pub(super) fn fold(&mut self, value: &impl Hash) {
        value.hash(&mut self.hasher);
    }

    pub(super) fn note(&mut self, line: impl FnOnce() -> String) {
        if self.tracing {
            let line = format!("{:>6} {}", self.now, line());
            self.trace.push(line);
        }
    }

    pub(super) fn handle(&mut self, event: Event) -> Result<(), String> {
        if let Some((node, lane)) = self.lane(&event)
            && self.is_paused(node)
        {
            if let Event::Store(Step::Answer(id)) = event {
                self.store.arrived(id);
            }
            self.machine(node).hold(lane, event);
            return Ok(());
        }
        match event {
            Event::Tick(node, life) => self.tick(node, life)?,
            Event::Wake(index, life) => self.wake(index, life),
            Event::Deliver {
                link,
                life,
                from,
                message,
            } => self.deliver(link, life, from, message),
            Event::Store(Step::Apply(id)) => self.apply(id)?,
            Event::Store(Step::Answer(id)) => self.answer(id),
            Event::Up(conn, what) => self.up(conn, what),
            Event::Down(conn, what) => self.down(conn, what)?,
            Event::Writable(conn) => self.writable(conn),
            Event::Turn(player) => self.turn(player),
            Event::Fault(fault) => self.fault(fault),
            Event::Start(node) => self.start(node),
            Event::Lost { at, gone } => {
                self.tell_lost(at, gone);
                self.look_for(at, gone);
            }
            Event::Join(a, b) => self.join(a, b),
            Event::Silence { node, other, pause } => self.silence(node, other, pause),
            Event::GoOn { node, pause } => {
                if self.machine(node).pauses == pause {
                    self.go_on(node);
                }
            }
            Event::Recover => self.recover(),
            Event::Freeze => self.freezes_at = Some(self.now),
            Event::End => {
                self.is_over = true;
                #[cfg(feature = "planted-bugs")]
                self.is_well_again()?;
                self.compare_with_truth()?;
            }
        }
        Ok(())
    }

    /// A request takes effect.
    fn apply(&mut self, id: u64) -> Result<(), String> {
        self.fold(&id);
        match self.store.apply(self.now, id)? {
            Some(Happening::Died(boot, by)) => {
                self.note_loss(boot);
                self.look_into_death(boot, by)?;
            }
            Some(Happening::Claimed(Right::Character(char_id), holder)) => {
                // Claimed for somebody who is gone already: what the one before had in memory is gone with it.
                let is_lost = self.lost.contains(&holder.boot);
                let player = self.clients.iter().position(|it| it.char_id == char_id);
                if let (Some(player), true) = (player, is_lost) {
                    self.note_loss_of(player);
                }
            }
            Some(Happening::Claimed(Right::Region(_), _)) | None => {}
        }
        Ok(())
    }

    /// While the store is good, nobody is declared dead by others without a reason of its own: what hits all alike, an
    /// outage for example, freezes the world and ends no life.
    fn look_into_death(&self, boot: BootId, by: Node) -> Result<(), String> {
        let mut nodes = self.plan.nodes();
        let Some(node) = nodes.find(|&node| self.boot(node) == Some(boot)) else {
            return Ok(()); // Its process has ended.
        };
        let is_excused = self.now < self.machines[&node].excused_until;
        // A process that finds another of its name says that it ends, and then anybody may say so for it.
        let ends = self.state(node) == Some(NodeState::Done);
        if node == by || is_excused || ends || !self.has_good_store {
            return Ok(());
        }
        Err(format!(
            "{} declared {} dead, to which nothing had happened",
            by.name(),
            node.name()
        ))
    }

    fn recover(&mut self) {
        self.note(|| "the play is over: fair weather".into());
        self.is_recovering = true;
        self.plan.becalm();
        self.heal();
    }

    /// Whether it is time that everything stands still.
    pub(super) fn may_freeze(&self) -> Result<bool, String> {
        match self.freezes_at {
            Some(at) if self.now > at + RECOVER_MS => {
                Err("somebody is on the way for ever, or a region is not held".into())
            }
            Some(_) => Ok(!self.is_frozen),
            None => Ok(false),
        }
    }

    /// From now on no sim and no gateway ticks.
    pub(super) fn freeze(&mut self) {
        self.note(|| "the sims stand still".into());
        self.is_frozen = true;
        self.queue.push(self.now + SETTLE_MS, Event::End);
    }
}
