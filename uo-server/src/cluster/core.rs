//! The cluster core: what happens to it, what it wants done, and which loop sees to what.
//!
//! - `own`: beats, fence and life of this boot, from its first look around to its end;
//! - `nodes`: reading who else beats: members, and two processes under one name;
//! - `deaths`: presumption made a fact;
//! - `reach`: whether the gateways can reach this sim;
//! - `regions`: leases, placement and demand; [`wish`]: what operators want of them;
//! - [`canonical`]: for model checkers.
//!
//! Each loop has its own request under way, so none waits for another's answer.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uo_proto::RegionId;

use self::asking::{Asked, Asking};
use self::deaths::Dying;
use self::nodes::Peer;
use self::own::Phase;
use self::reach::Reach;
use self::regions::Regions;
use super::age::Age;
use super::fence::Fence;
use super::life::OwnLife;
use super::observer::Observer;
use super::timing::Timing;
use crate::Millis;
use crate::identity::{BootId, Holder, NodeName};
use crate::peer::message::Leases;
use crate::planted::Planted;
use crate::store::row::{NodeLoad, NodeState, Role};
use crate::store::{ClaimRow, Reply, Request, StoreError};

mod asking;
pub mod canonical;
mod deaths;
mod nodes;
mod observe;
mod own;
mod reach;
mod regions;
mod wish;

pub use self::observe::ClusterState;
pub use self::wish::DrainRefusal;

/// Names a request to the store, so that its reply finds back to who asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// What a cluster core is started with.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClusterConfig {
    /// This node and its boot.
    pub me: Holder,
    /// What this process does.
    pub role: Role,
    /// Regions of the map.
    pub regions: u32,
    /// Regions run only while somebody needs them.
    pub demand_driven: bool,
    /// Every other boot is dead: the lock of a one-process store proves it. The core starts without the watch.
    pub others_are_dead: bool,
    /// Where other nodes reach this one.
    pub peer: Option<String>,
    /// Where clients reach it.
    pub clients: Vec<String>,
    /// The times, checked.
    pub timing: Timing,
    /// The rule that is left out.
    pub planted: Planted,
}

/// What happens to a cluster core. Whatever it is, time passes first, and the fence is looked at before anything else.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// Nothing but that time passes. Given at least every 50 ms.
    Tick,
    /// The store answered. The shell answers for a store that does not: beats after
    /// [`Timing::beat_timeout_ms`], others after two seconds, as [`StoreError::Unknown`].
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// A row names this boot: is it dead? Answered by [`Effect::Dead`], if it is or once it is.
    Suspect { boot: BootId },
    /// The region is held and served here. Also a region that was taken back after a drain.
    Served { region: RegionId, epoch: u64 },
    /// The region is not ours (any more): this row stood against it, if one is known.
    Gone {
        region: RegionId,
        row: Option<ClaimRow>,
    },
    /// The region is released; its row went to this number.
    Released { region: RegionId, number: u64 },
    /// An operator wanted the region here, although another sim may be better for it.
    Stays { region: RegionId },
    /// Other sims tell which regions they took and gave up.
    Leases(Leases),
    /// Where players of this node stand or are looked for: all such regions, in place of what was told before.
    Demanded { regions: Vec<RegionId> },
    /// How busy this node is.
    Load(NodeLoad),
    /// The boot that [`Effect::WantBoot`] asked for: random, never used before.
    NewBoot(BootId),
    /// The nodes that this one has a link to now.
    Linked { nodes: Vec<NodeName> },
    /// Stop in order: say so, take nothing. [`Input::Drained`] ends it.
    Stop,
    /// Nothing is held here any more: declare this boot dead and exit.
    Drained,
    /// This node can do no more: declare this boot dead, latch first, and exit.
    Dying,
}

/// What a cluster core wants done.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// The first beat is acknowledged and the life has begun: this boot may act from now.
    Alive,
    /// The fence fell (true) or was lifted by a thaw (false).
    Fence { fallen: bool },
    /// That boot is dead for ever: its leases and characters may be taken.
    Dead { boot: BootId },
    /// Take this region; its row, as far as it is known (none: there is none). Answered by [`Input::Served`] or
    /// [`Input::Gone`].
    Take {
        region: RegionId,
        row: Option<ClaimRow>,
    },
    /// Nobody needs this region: stop, flush, release it, unless a player is in it or on the way.
    Retire { region: RegionId },
    /// Hand this region to that node: it is better, or this one stops. Answered by [`Input::Gone`], or by [`Input::Served`]
    /// if it stays.
    Drain {
        region: RegionId,
        to: Holder,
        /// An operator wants it there.
        is_wished: bool,
    },
    /// This node stops, and nobody takes what it still holds: write and release it.
    GiveUp,
    /// The leases were read at quorum. These are new here, or stand against what is held: whoever holds a region under a
    /// lower number drops it. Told after each read, also when there are none.
    ReadBack { leases: Vec<(RegionId, ClaimRow)> },
    /// Everyone that is not presumed gone, by node and boot. Told when it changes.
    Members(Vec<Member>),
    /// A random boot is needed. Answered by [`Input::NewBoot`].
    WantBoot,
    /// This process goes on as another boot: everything of the old one is to be dropped first.
    Reborn { me: Holder },
    /// The end.
    Exit { why: ExitReason },
}

/// Somebody in the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Member {
    /// Who.
    pub holder: Holder,
    /// What it does.
    pub role: Role,
    /// What may be expected of it.
    pub state: NodeState,
    /// Where other nodes reach it.
    pub peer: Option<String>,
    /// Where clients reach it.
    pub clients: Vec<String>,
}

/// Why a process ends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum ExitReason {
    /// It was asked to, and holds nothing any more.
    #[error("it stopped in order")]
    Stopped,
    /// It could do no more, and declared itself dead.
    #[error("it failed, and declared itself dead")]
    Died,
    /// Another process beats under its name.
    #[error(
        "another process with the same node name is running (boot {other}); give this one another --node, or stop that one"
    )]
    NameTaken {
        /// That one.
        other: BootId,
    },
}

/// Decides about membership, life and death, and which regions this node takes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClusterCore {
    config: ClusterConfig,
    /// The time of the input before. Only differences are taken of it.
    now: Millis,
    /// What the input that is being handled leads to.
    effects: Vec<Effect>,
    next_ticket: u64,
    asked: BTreeMap<Ticket, Asked>,

    phase: Phase,
    stopping: bool,
    /// Nobody takes what is still held here.
    gave_up: bool,
    fence: Fence,
    life: OwnLife,
    own_life: Asking,
    beat: Asking,
    /// Since the newest beat was sent.
    since_beat: Age,
    /// The number of the newest beat.
    beats: u64,
    /// Since this boot began.
    up: Age,
    /// Starts of this name, as far as one knows.
    starts: u32,
    load: NodeLoad,
    /// The boots that this process was before.
    past: BTreeSet<BootId>,
    told_alive: bool,
    told_fallen: bool,

    observer: Observer,
    nodes: Asking,
    /// Since the newest read of `nodes` was sent.
    since_nodes: Age,
    /// The rows of all others, as read last.
    peers: BTreeMap<BootId, Peer>,
    members: Vec<Member>,
    linked: BTreeSet<NodeName>,
    reach: Reach,

    deaths: BTreeMap<BootId, Dying>,
    dead: BTreeSet<BootId>,
    /// The same, in the order in which it was learned.
    dead_order: VecDeque<BootId>,

    regions: Regions,
}

impl ClusterCore {
    /// A core that begins with its first input.
    pub fn new(config: ClusterConfig, now: Millis) -> ClusterCore {
        let timing = &config.timing;
        ClusterCore {
            now,
            effects: Vec::new(),
            next_ticket: 0,
            asked: BTreeMap::new(),
            phase: Phase::Watching,
            stopping: false,
            gave_up: false,
            fence: Fence::new(config.planted),
            life: OwnLife::new(config.planted),
            own_life: Asking::default(),
            beat: Asking::default(),
            since_beat: Age::of(timing.beat_ms),
            beats: 0,
            up: Age::ZERO,
            starts: 1,
            load: NodeLoad::default(),
            past: BTreeSet::new(),
            told_alive: false,
            told_fallen: false,
            observer: Observer::new(config.planted),
            nodes: Asking::default(),
            since_nodes: Age::of(timing.read_ms),
            peers: BTreeMap::new(),
            members: Vec::new(),
            linked: BTreeSet::new(),
            reach: Reach::default(),
            deaths: BTreeMap::new(),
            dead: BTreeSet::new(),
            dead_order: VecDeque::new(),
            regions: Regions::new(config.regions, config.demand_driven, config.planted),
            config,
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        if self.phase == Phase::Ended {
            return;
        }
        std::mem::swap(&mut self.effects, effects);
        let passed_ms = now.saturating_sub(self.now);
        self.now = self.now.max(now);
        self.elapse(passed_ms);
        self.dispatch(input);
        self.tell_fence();
        self.drive();
        self.tell_fence();
        std::mem::swap(&mut self.effects, effects);
    }

    fn elapse(&mut self, ms: u64) {
        let timing = &self.config.timing;
        self.fence.elapse(ms, timing);
        self.life.note(self.fence.is_fresh(timing));
        let presumed = self.observer.elapse(ms, timing);
        self.since_beat.elapse(ms, timing.beat_ms);
        self.since_nodes.elapse(ms, timing.read_ms);
        self.up.elapse(ms, timing.starts_window_ms);
        self.own_life.elapse(ms, timing.cas_retry_ms);
        for dying in self.deaths.values_mut() {
            dying.elapse(ms, timing.cas_retry_ms);
        }
        self.regions.elapse(ms, timing);
        self.elapse_reach(ms);
        self.tell_fence();
        for evidence in presumed {
            self.presume(evidence);
        }
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Tick => self.look_at_suspects(),
            Input::Store { ticket, reply } => self.answered(ticket, reply),
            Input::Suspect { boot } => self.suspect(boot),
            Input::Served { region, epoch } => self.region_served(region, epoch),
            Input::Gone { region, row } => self.region_gone(region, row),
            Input::Released { region, number } => self.region_released(region, number),
            Input::Stays { region } => self.stays(region),
            Input::Leases(leases) => self.hear_leases(leases),
            Input::Demanded { regions } => self.demanded(regions),
            Input::Load(load) => self.load = load,
            Input::NewBoot(boot) => self.reborn(boot),
            Input::Linked { nodes } => self.linked = nodes.into_iter().collect(),
            Input::Stop => {
                self.stopping = true;
                self.regions.evacuate();
            }
            Input::Drained => self.end(ExitReason::Stopped),
            Input::Dying => self.end(ExitReason::Died),
        }
    }

    /// Sends whatever is due.
    fn drive(&mut self) {
        self.drive_nodes();
        self.drive_own();
        self.drive_deaths();
        self.drive_regions();
    }

    fn answered(&mut self, ticket: Ticket, reply: Result<Reply, StoreError>) {
        // Whoever asked may be gone, or have asked something else since.
        match self.asked.remove(&ticket) {
            Some(Asked::Beat) => self.beat_answered(reply.is_ok()),
            Some(Asked::Nodes) => self.nodes_answered(reply),
            Some(Asked::OwnLife) => self.own_life_answered(reply),
            Some(Asked::Death(boot)) => self.death_answered(boot, reply),
            Some(Asked::Leases) => self.leases_answered(reply),
            Some(Asked::DemandWrite) => self.demand_written(reply.is_ok()),
            Some(Asked::DemandRead) => self.demand_read(reply),
            None => {}
        }
    }

    fn ask(&mut self, request: Request, asked: Asked) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.asked.insert(ticket, asked);
        self.effects.push(Effect::Store { ticket, request });
        ticket
    }

    /// Whether this boot may simulate and acknowledge. A gateway never may.
    pub fn may_act(&self) -> bool {
        self.has_life() && self.phase == Phase::Living && self.fence.may_act()
    }

    /// Whether that boot is dead for ever.
    pub fn is_dead(&self, boot: BootId) -> bool {
        self.dead.contains(&boot) || (self.config.others_are_dead && boot != self.config.me.boot)
    }

    /// Who this is now.
    pub fn me(&self) -> &Holder {
        &self.config.me
    }

    /// Whether it may act, and every region that it should take is held.
    pub fn is_ready(&self) -> bool {
        self.may_act() && self.regions.placement.is_settled()
    }

    /// Its life; 0: none yet.
    pub fn life(&self) -> u64 {
        self.life.life()
    }

    /// Who is not presumed gone, as last told.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    fn has_life(&self) -> bool {
        self.config.role != Role::Gateway
    }
}

#[cfg(test)]
mod explore;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod world;
