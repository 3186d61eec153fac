//! The sim core: what happens to it, what it wants done, and which handler sees to what.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uo_proto::{CharId, RegionId};
use uo_world::World;

use super::arrival::Arrival;
use super::attach::Entering;
use super::character::Character;
use super::claims::Asked;
use super::drain::Drain;
use super::fenced::Standing;
use super::gather::Gathering;
use super::handoff::{MovedTo, Outgoing};
use super::lease::Slot;
use super::leave::Leaving;
use super::others::{Others, Peer};
use super::state::Counters;
use super::timer::Timers;
use crate::Millis;
use crate::crossing::{Measured, Recorder};
use crate::identity::{BootId, Holder, NodeName, Nonces};
use crate::jitter::Jitter;
use crate::limits::{CHECKPOINT_MS, FORWARDS_MAX, LINGER_MS};
use crate::peer::{Message, ToGateway, ToSim};
use crate::planted::{Planted, PlantedBug};
use crate::store::{ClaimRow, Reply, Request, Stamp, StoreError};

/// Names a request to the store, so that its reply finds back to who asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// What happens to a sim core.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// Simulate 50 ms. `parallel`: on the shell's rayon pool; the result is the same. Given every 50 ms in every state of
    /// the core: its timers hang on it.
    Tick { parallel: bool },
    /// A message arrived. `from` is the sending node.
    Peer { from: Holder, message: ToSim },
    /// The store answered.
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// The link to a node is gone.
    PeerLost { node: NodeName },
    /// This boot may act no longer (true), or it may (false): for the first time, or again after a thaw.
    Fence { fallen: bool },
    /// That boot is proven dead: what it held may be claimed.
    Dead { boot: BootId },
    /// Every node that is not presumed gone, without this one; replaces what was said before.
    Members { members: Vec<Peer> },
    /// The other nodes to which there is a link; replaces what was said before.
    Linked { nodes: Vec<NodeName> },
    /// Take this region; its row as it was read last. Answered by [`News::Served`] or [`News::Gone`].
    Take {
        region: RegionId,
        row: Option<ClaimRow>,
    },
    /// Nobody needs this region: give it up, unless somebody came meanwhile. Answered by [`News::Released`], or by
    /// [`News::Served`] if it stays.
    Retire { region: RegionId },
    /// Hand this region, and everybody in it, to another node. Answered by [`News::Given`], or by [`News::Served`] if it
    /// stays, or by [`News::Gone`].
    Drain {
        region: RegionId,
        to: Holder,
        /// An operator wants it there.
        is_wished: bool,
    },
    /// An operator releases a region that stood still for its panics.
    Release { region: RegionId },
    /// Leases as they were read a moment ago.
    ReadBack { leases: Vec<(RegionId, ClaimRow)> },
    /// Stop in order: everything goes on until it is drained elsewhere, then [`News::Drained`].
    Stop,
    /// There is nobody to drain to: a sim that stops writes and releases what it still has.
    GiveUp,
}

/// What a sim core wants done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Send a message.
    Send { to: NodeName, message: Message },
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// For the cluster core.
    News(News),
}

/// What the cluster core is told.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum News {
    /// The region is held and served.
    Served { region: RegionId, epoch: u64 },
    /// It was not taken, or is held here no longer. The row that says so, as far as it is known.
    Gone {
        region: RegionId,
        row: Option<ClaimRow>,
    },
    /// It was given up, and its row has this number now.
    Released { region: RegionId, number: u64 },
    /// It was drained: another holds it now, as this row says.
    Given { region: RegionId, row: ClaimRow },
    /// An operator wanted the region here: it was just served.
    Stays { region: RegionId },
    /// A row names this boot, which is not known to be alive or dead.
    Suspect { boot: BootId },
    /// The regions in which players stand, or to which they are on their way.
    Demanded { regions: Vec<RegionId> },
    /// The stop is complete: nothing is held any more, or it took too long.
    Drained,
    /// The tick of this region panicked. Nothing follows.
    Panicked { region: RegionId },
}

/// What a sim core is started with.
#[derive(Clone)]
pub struct SimConfig {
    /// This node and its boot.
    pub me: Holder,
    /// The world it simulates.
    pub world: World,
    /// Gateways that are always told which regions are held here: the one of this process.
    pub told: Vec<NodeName>,
    /// How long a character stays in the world after its connection is gone.
    pub linger_ms: u64,
    /// How often a changed character is written.
    pub checkpoint_ms: u64,
    /// The last stamp of a generation; beyond it the next is claimed. Less than [`Stamp::N_MAX`] in tests only.
    pub stamps_max: u32,
    /// Seed of the jitter in retries.
    pub seed: u64,
    /// The rule that is left out.
    pub planted: Planted,
}

impl SimConfig {
    /// A sim with a gateway in its process.
    pub fn alone(me: Holder, world: World) -> SimConfig {
        SimConfig {
            told: vec![me.node.clone()],
            seed: me.boot.0 as u64,
            me,
            world,
            linger_ms: LINGER_MS,
            checkpoint_ms: CHECKPOINT_MS,
            stamps_max: Stamp::N_MAX,
            planted: Planted::NONE,
        }
    }
}

/// One node's regions and characters. A character is in exactly one of `entering`, `characters`, `outgoing`, `arrivals`
/// and `leaving`, but for one case: between two regions of this node it is outgoing here and arriving (or arrived) here
/// at the same time, under different generations.
pub struct SimCore {
    pub(super) config: SimConfig,
    pub(super) nonces: Nonces,
    /// The time of the input that is being handled. It stands still while the fence is down, and so does every deadline.
    pub(super) now: Millis,
    /// How long it has stood still so far.
    pub(super) frozen_ms: Millis,
    /// Gateways that were told so, and not yet that it goes on.
    pub(super) told_frozen: BTreeSet<NodeName>,
    /// What the input that is being handled leads to.
    pub(super) effects: Vec<Effect>,
    next_ticket: u64,
    /// Requests under way.
    pub(super) asked: BTreeMap<Ticket, Asked>,
    pub(super) timers: Timers,
    /// Ticks that are complete.
    pub(super) ticks: u64,
    pub(super) standing: Standing,
    /// Inputs that wait for the thaw.
    pub(super) kept: VecDeque<Input>,
    pub(super) stopping: bool,
    /// It stops, and others take what it has: until then that goes on.
    pub(super) evacuating: bool,
    pub(super) evacuate_until: Millis,
    pub(super) stopped: bool,
    /// Every region of the map, by id, and those of them that have a battle.
    pub(super) slots: Vec<Slot>,
    pub(super) open: BTreeSet<RegionId>,
    /// Who else holds which regions, as far as is known.
    pub(super) elsewhere: BTreeMap<RegionId, (u64, Holder)>,
    /// What is known of the other nodes.
    pub(super) others: Others,
    /// Regions that are still to be taken, with their rows; those that are being taken; and those being given up.
    pub(super) wanted: VecDeque<(RegionId, Option<ClaimRow>)>,
    pub(super) taking: BTreeSet<RegionId>,
    pub(super) retiring: BTreeSet<RegionId>,
    /// Regions on their way to others, and regions of others that wait for their players.
    pub(super) drains: BTreeMap<RegionId, Drain>,
    pub(super) gathering: BTreeMap<RegionId, Gathering>,
    /// What was told last of where players are.
    pub(super) demanded: Vec<RegionId>,
    /// Regions taken and released since that was told, with their new numbers.
    pub(super) untold: BTreeMap<RegionId, (u64, Option<Holder>)>,
    pub(super) entering: BTreeMap<CharId, Entering>,
    pub(super) characters: BTreeMap<CharId, Character>,
    pub(super) outgoing: BTreeMap<CharId, Outgoing>,
    pub(super) arrivals: BTreeMap<CharId, Arrival>,
    pub(super) leaving: BTreeMap<CharId, Leaving>,
    /// Where characters went that were here, and the same in the order in which they went.
    pub(super) moved: BTreeMap<CharId, MovedTo>,
    pub(super) moved_order: VecDeque<CharId>,
    /// What arrivals said before the tick in which the feed of the region they left shows what they said there.
    pub(super) unsaid: Vec<(CharId, String)>,
    pub(super) writes_under_way: usize,
    /// Owner rows that are being read back, and the character that was asked for last.
    pub(super) reads_under_way: usize,
    pub(super) read_back_last: Option<CharId>,
    pub(super) jitter: Jitter,
    /// Acknowledged checkpoints that wait for the object writes up to a tick.
    pub(super) unsaved: BTreeSet<(u64, CharId)>,
    pub(super) counters: Counters,
    pub(super) handoff_ms: Vec<u32>,
    pub(super) recorder: Recorder,
    pub(super) drain_ms: Vec<u32>,
    /// Characters without a battle that may be offered to others before the next tick.
    pub(super) forwards_left: usize,
}

impl SimCore {
    /// A core that holds nothing, and may not act yet: [`Input::Fence`] tells when.
    pub fn new(config: SimConfig) -> SimCore {
        let regions = RegionId::count(config.world.size());
        SimCore {
            nonces: Nonces::new(config.me.boot),
            jitter: Jitter::new(config.seed),
            config,
            now: 0,
            told_frozen: BTreeSet::new(),
            frozen_ms: 0,
            effects: Vec::new(),
            next_ticket: 0,
            asked: BTreeMap::new(),
            timers: Timers::default(),
            ticks: 0,
            standing: Standing::Starting,
            kept: VecDeque::new(),
            stopping: false,
            evacuating: false,
            evacuate_until: 0,
            stopped: false,
            slots: (0..regions).map(|_| Slot::default()).collect(),
            open: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
            others: Others::default(),
            wanted: VecDeque::new(),
            taking: BTreeSet::new(),
            retiring: BTreeSet::new(),
            drains: BTreeMap::new(),
            gathering: BTreeMap::new(),
            demanded: Vec::new(),
            untold: BTreeMap::new(),
            entering: BTreeMap::new(),
            characters: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            leaving: BTreeMap::new(),
            moved: BTreeMap::new(),
            moved_order: VecDeque::new(),
            unsaid: Vec::new(),
            writes_under_way: 0,
            reads_under_way: 0,
            read_back_last: None,
            unsaved: BTreeSet::new(),
            counters: Counters::default(),
            handoff_ms: Vec::new(),
            recorder: Recorder::default(),
            drain_ms: Vec::new(),
            forwards_left: FORWARDS_MAX,
        }
    }

    /// Goes on as the boot that follows on this one, which was declared dead. Nothing is kept of what was owned or under
    /// way. Its tickets go on where the old one's ended, so that late replies to the old one find nobody.
    pub fn reborn(&mut self, me: Holder) {
        let was = self.config.me.boot;
        let config = SimConfig {
            me,
            ..self.config.clone()
        };
        let old = std::mem::replace(self, SimCore::new(config));
        self.now = old.now;
        self.frozen_ms = old.frozen_ms;
        self.next_ticket = old.next_ticket;
        self.others = old.others;
        self.others.is_dead_now(was);
        self.ticks = old.ticks;
        self.counters = old.counters;
        self.recorder = old.recorder;
        if self.has_bug(PlantedBug::RebirthKeepsClaims) {
            self.asked = old.asked;
            self.taking = old.taking;
            self.slots = old.slots;
            let served = self.slots.iter_mut().filter(|slot| slot.is_served());
            served.for_each(|slot| *slot = Slot::default());
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        std::mem::swap(&mut self.effects, effects);
        match self.standing {
            Standing::Acting => {
                self.now = now.saturating_sub(self.frozen_ms);
                self.dispatch(input);
            }
            Standing::Starting | Standing::Fenced => self.handle_fenced(now, input),
            Standing::Broken => {}
        }
        std::mem::swap(&mut self.effects, effects);
    }

    pub(super) fn dispatch(&mut self, input: Input) {
        match input {
            Input::Tick { parallel } => self.tick(parallel),
            Input::Peer { from, message } => self.peer(from, message),
            Input::Store { ticket, reply } => {
                self.answered(ticket, reply);
                // An answer makes room for the next write or release.
                self.go_on_stopping();
            }
            Input::PeerLost { node } => {
                self.others.link_lost(&node);
                self.peer_lost(&node);
            }
            Input::Fence { fallen } => self.fence(fallen),
            Input::Dead { boot } => self.is_dead_now(boot),
            Input::Members { members } => self.others.members_are(members),
            Input::Linked { nodes } => self.others.linked_are(nodes),
            Input::Take { region, row } => self.take(region, row),
            Input::Retire { region } => self.retire(region),
            Input::Drain {
                region,
                to,
                is_wished,
            } => self.drain(region, to, is_wished),
            Input::ReadBack { leases } => self.leases_read_back(leases),
            Input::Release { region } => self.release_quarantine(region),
            Input::Stop => self.stop(),
            Input::GiveUp => self.give_up(),
        }
    }

    fn peer(&mut self, from: Holder, message: ToSim) {
        match message {
            ToSim::Attach(attach) => self.attach(attach),
            ToSim::Detach {
                char_id,
                attach,
                logout,
            } => self.detach(&from, char_id, attach, logout),
            ToSim::Order(order) => self.order(&from, order),
            ToSim::PlayerAck { char_id, private } => self.player_ack(&from, char_id, private),
            ToSim::Subscribe { region } => self.subscribe(from.node, region),
            ToSim::Unsubscribe { region } => self.unsubscribe(&from.node, region),
            ToSim::HandoffOffer(offer) => self.offered(*offer),
            ToSim::HandoffAccept {
                char_id,
                generation,
                flight,
            } => self.accepted(char_id, generation, flight.as_ref()),
            ToSim::HandoffRefuse {
                char_id,
                generation,
                ..
            } => self.refused(char_id, generation),
            ToSim::ObjectHits {
                region,
                epoch,
                hits,
            } => self.object_hits(region, epoch, &hits),
            ToSim::ObjectChanges {
                region,
                epoch,
                tick,
                full,
                objects,
            } => self.object_changes(region, (epoch, tick), full, &objects),
            ToSim::Leases(leases) => self.hear_leases(leases),
            ToSim::DrainOffer(offer) => self.drain_offered(&from, *offer),
            ToSim::DrainReady { region, epoch } => self.drain_ready(&from, region, epoch),
            ToSim::DrainAbort { region, epoch, .. } => self.drain_aborted(region, epoch),
        }
    }

    /// Whether it holds something to tick, wants nothing more, and is not about to end.
    pub fn is_settled(&self) -> bool {
        self.standing == Standing::Acting
            && !self.stopping
            && self.wanted.is_empty()
            && self.taking.is_empty()
    }

    /// Whether every region of the map is held and served here.
    pub fn holds_everything(&self) -> bool {
        self.is_settled() && self.slots.iter().all(Slot::is_served)
    }

    /// Whether it may not act, because the fence is down or because it never might yet.
    pub fn is_fenced(&self) -> bool {
        self.standing != Standing::Acting
    }

    /// Whether it was told that a boot is dead.
    pub fn knows_dead(&self, boot: BootId) -> bool {
        self.others.is_dead(boot)
    }

    /// Whether a stop is complete.
    pub fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// This node, and the boot that it acts for.
    pub fn me(&self) -> &Holder {
        &self.config.me
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How long the handoffs took that were completed since this was asked last, in milliseconds.
    pub fn take_handoff_ms(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.handoff_ms)
    }

    /// The durations that were noted of crossings since this was asked last.
    pub fn take_measured(&mut self) -> Vec<Measured> {
        self.recorder.take_measured()
    }

    /// What is remembered of crossings.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// How long the drains took that were completed since this was asked last, in milliseconds, without their players.
    pub fn take_drain_ms(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.drain_ms)
    }

    pub(super) fn send_gateway(&mut self, node: NodeName, message: ToGateway) {
        let message = Message::ToGateway(message);
        self.effects.push(Effect::Send { to: node, message });
    }

    /// Sends to a sim, if there is a link to it.
    pub(super) fn send_sim(&mut self, node: NodeName, message: ToSim) {
        if node != self.config.me.node && !self.others.is_linked(&node) {
            self.counters.messages_not_linked += 1;
            return;
        }
        let message = Message::ToSim(message);
        self.effects.push(Effect::Send { to: node, message });
    }

    /// Sends a request to the store; its answer goes to whom `asked` names.
    pub(super) fn ask(&mut self, request: Request, asked: Asked) -> Ticket {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.asked.insert(ticket, asked);
        self.effects.push(Effect::Store { ticket, request });
        ticket
    }

    pub(super) fn tell_cluster(&mut self, news: News) {
        self.effects.push(Effect::News(news));
    }

    pub(super) fn has_bug(&self, bug: PlantedBug) -> bool {
        self.config.planted.has(bug)
    }
}
