//! The sim core: what happens to it, what it wants done, and which handler sees to what.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uo_proto::{CharId, RegionId};
use uo_world::World;

use super::arrival::Arrival;
use super::attach::Entering;
use super::character::Character;
use super::claims::Asked;
use super::handoff::{MovedTo, Outgoing};
use super::lease::Slot;
use super::leave::Leaving;
use super::state::Counters;
use super::timer::{Timer, Timers};
use crate::Millis;
use crate::identity::{BootId, Holder, NodeName, Nonces};
use crate::limits::{CHECKPOINT_MS, FENCED_MESSAGES_MAX, LINGER_MS};
use crate::peer::message::{AttachRefusal, HandoffRefusal};
use crate::peer::{Message, ToGateway, ToSim};
use crate::planted::{Planted, PlantedBug};
use crate::store::{Reply, Request, Stamp, StoreError};

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
    /// The fence fell (true) or was lifted by a thaw (false).
    Fence { fallen: bool },
    /// Stop in order: checkpoint, hand over or release, then [`Effect::Stopped`].
    Stop,
}

/// What a sim core wants done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Send a message.
    Send { to: NodeName, message: Message },
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// The stop is complete.
    Stopped,
}

/// What a sim core is started with.
#[derive(Clone)]
pub struct SimConfig {
    /// This node and its boot.
    pub me: Holder,
    /// The world it simulates.
    pub world: World,
    /// Every other boot is dead: the lock of a one-process store proves it.
    pub others_are_dead: bool,
    /// Who is told which regions are held here.
    pub told: Vec<NodeName>,
    /// How long a character stays in the world after its connection is gone.
    pub linger_ms: u64,
    /// How often a changed character is written.
    pub checkpoint_ms: u64,
    /// The last stamp of a generation; beyond it the next is claimed. Less than [`Stamp::N_MAX`] in tests only.
    pub stamps_max: u32,
    /// The rule that is left out.
    pub planted: Planted,
}

impl SimConfig {
    /// The only node of a shard: every other boot is dead, and everybody to be told is `me`.
    pub fn alone(me: Holder, world: World) -> SimConfig {
        SimConfig {
            told: vec![me.node.clone()],
            me,
            world,
            others_are_dead: true,
            linger_ms: LINGER_MS,
            checkpoint_ms: CHECKPOINT_MS,
            stamps_max: Stamp::N_MAX,
            planted: Planted::NONE,
        }
    }

    /// Whether that boot is proven dead.
    pub(super) fn is_dead(&self, boot: BootId) -> bool {
        self.others_are_dead && boot != self.me.boot
    }
}

/// One node's regions and characters. A character is in exactly one of `entering`, `characters`, `outgoing`, `arrivals`
/// and `leaving`, but for one case: between two regions of this node it is outgoing here and arriving (or arrived) here
/// at the same time, under different generations.
pub struct SimCore {
    pub(super) config: SimConfig,
    pub(super) nonces: Nonces,
    /// The time of the input that is being handled.
    pub(super) now: Millis,
    /// What the input that is being handled leads to.
    pub(super) effects: Vec<Effect>,
    next_ticket: u64,
    /// Requests under way.
    pub(super) asked: BTreeMap<Ticket, Asked>,
    pub(super) timers: Timers,
    /// Ticks that are complete.
    pub(super) ticks: u64,
    pub(super) fenced: bool,
    /// Inputs that wait for the thaw.
    kept: VecDeque<Input>,
    pub(super) stopping: bool,
    pub(super) stopped: bool,
    /// Every region of the map, by id.
    pub(super) slots: Vec<Slot>,
    /// Who else holds which regions, as far as is known.
    pub(super) elsewhere: BTreeMap<RegionId, (u64, Holder)>,
    /// Regions that are still to be taken, and those that are being taken; none: the leases are not read yet.
    pub(super) wanted: Option<VecDeque<RegionId>>,
    pub(super) taking: BTreeSet<RegionId>,
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
    /// Acknowledged checkpoints that wait for the object writes up to a tick.
    pub(super) unsaved: BTreeSet<(u64, CharId)>,
    pub(super) counters: Counters,
    pub(super) handoff_ms: Vec<u32>,
}

impl SimCore {
    /// A core that begins to take its regions with its first input.
    pub fn new(config: SimConfig) -> SimCore {
        let regions = RegionId::count(config.world.size());
        let mut timers = Timers::default();
        timers.add(0, Timer::Leases);
        SimCore {
            nonces: Nonces::new(config.me.boot),
            config,
            now: 0,
            effects: Vec::new(),
            next_ticket: 0,
            asked: BTreeMap::new(),
            timers,
            ticks: 0,
            fenced: false,
            kept: VecDeque::new(),
            stopping: false,
            stopped: false,
            slots: (0..regions).map(|_| Slot::default()).collect(),
            elsewhere: BTreeMap::new(),
            wanted: None,
            taking: BTreeSet::new(),
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
            unsaved: BTreeSet::new(),
            counters: Counters::default(),
            handoff_ms: Vec::new(),
        }
    }

    /// Takes in what happened at `now`, and appends what is to be done to `effects`.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        self.now = now;
        std::mem::swap(&mut self.effects, effects);
        if self.fenced {
            self.handle_fenced(input);
        } else {
            self.dispatch(input);
        }
        std::mem::swap(&mut self.effects, effects);
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Tick { parallel } => self.tick(parallel),
            Input::Peer { from, message } => self.peer(from, message),
            Input::Store { ticket, reply } => {
                self.answered(ticket, reply);
                // An answer makes room for the next write or release.
                self.go_on_stopping();
            }
            Input::PeerLost { node } => self.peer_lost(&node),
            Input::Fence { fallen } => self.fence(fallen),
            Input::Stop => self.stop(),
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
            } => self.accepted(char_id, generation),
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
            // Nobody drains yet; a node that offers one gets no answer but its time-out, and reclaims.
            ToSim::DrainOffer(_) | ToSim::DrainReady { .. } | ToSim::DrainAbort { .. } => {
                self.counters.messages_not_understood += 1;
            }
        }
    }

    /// A fenced core answers whoever would wait for it, and keeps everything else for the thaw.
    fn handle_fenced(&mut self, input: Input) {
        match input {
            Input::Fence { fallen } => self.fence(fallen),
            Input::Tick { .. } => {}
            Input::Peer {
                message: ToSim::Attach(attach),
                ..
            } => self.refuse_attach(&attach, AttachRefusal::NotNow),
            Input::Peer {
                message: ToSim::HandoffOffer(offer),
                ..
            } => self.refuse_offer(&offer, HandoffRefusal::Fenced),
            Input::Peer { .. } if self.kept.len() >= FENCED_MESSAGES_MAX => {
                self.counters.messages_dropped_fenced += 1;
            }
            Input::Peer { .. } | Input::Store { .. } | Input::PeerLost { .. } | Input::Stop => {
                self.kept.push_back(input);
            }
        }
    }

    fn fence(&mut self, fallen: bool) {
        self.fenced = fallen;
        if fallen {
            self.counters.fences += 1;
        } else {
            // Each is handled as if it came now: whoever thaws owns what it owned.
            for input in std::mem::take(&mut self.kept) {
                self.dispatch(input);
            }
        }
    }

    /// Whether every region is held and served.
    pub fn ready(&self) -> bool {
        !self.stopping && self.slots.iter().all(Slot::is_served)
    }

    /// Whether it is fenced.
    pub fn is_fenced(&self) -> bool {
        self.fenced
    }

    /// What was counted since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How long the handoffs took that were completed since this was asked last, in milliseconds.
    pub fn take_handoff_ms(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.handoff_ms)
    }

    pub(super) fn send_gateway(&mut self, node: NodeName, message: ToGateway) {
        let message = Message::ToGateway(message);
        self.effects.push(Effect::Send { to: node, message });
    }

    pub(super) fn send_sim(&mut self, node: NodeName, message: ToSim) {
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

    pub(super) fn has_bug(&self, bug: PlantedBug) -> bool {
        self.config.planted.has(bug)
    }
}
