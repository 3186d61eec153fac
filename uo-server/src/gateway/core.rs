//! The gateway core: its configuration, inputs and effects, and the one match that hands each input to its place.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uo_proto::{CharId, ClientMsg, Encoding, Limits, RegionId, SpellInfo};
use uo_world::World;

use super::connections::Connections;
use super::counters::Counters;
use super::flush::Scratch;
use super::frames::Frames;
use super::pulse::Pulse;

use super::session::Sessions;
use super::subscribe::{Hint, Subscription};
use super::token::Stock;
use super::view::View;
use crate::Millis;
use crate::crossing::Recorder;
use crate::identity::{BootId, Holder, NodeName};
use crate::jitter::Jitter;
use crate::limits::REGIONS_ALWAYS_RUNNING_MAX;
use crate::peer::message::AttachId;
use crate::peer::{Message, ToGateway, ToSim};
use crate::sim::core::Ticket;
use crate::store::{Reply, Request, StoreError};

/// A WebSocket connection of this gateway. Never used twice in a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnId(pub u64);

/// What a gateway core is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// This gateway and its boot.
    pub me: Holder,
    /// The world: its map for `welcome`, its spawn points for new names.
    pub world: Arc<World>,
    /// Sims believed alive at the start; later [`Input::Members`].
    pub members: Vec<Holder>,
    /// Public addresses of this gateway, for `welcome`.
    pub gateways: Vec<String>,
    /// For `welcome`.
    pub spells: Vec<SpellInfo>,
    /// For `welcome`; the shell enforces them, and the core what is said.
    pub limits: Limits,
    /// Reliable messages queued for one connection, and public ones kept for a resume.
    pub reliable_lane_max: usize,
    /// Seed of the jitter in retries.
    pub seed: u64,
}

/// What happens to a gateway core.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Input {
    /// A WebSocket handshake is complete.
    Opened { conn: ConnId, encoding: Encoding },
    /// A client's message, decoded and validated by the shell (a pure function on its bytes).
    Client { conn: ConnId, message: ClientMsg },
    /// A message that does not parse or validate: answered with `invalid`. `seq` is the order it would have been.
    Invalid {
        conn: ConnId,
        reason: String,
        seq: Option<u64>,
    },
    /// A WebSocket pong whose payload is 8 bytes, big-endian; pongs with other payloads are the shell's own.
    Pong { conn: ConnId, payload: u64 },
    /// The connection is gone, whoever closed it. Given once for every [`Input::Opened`], and nothing of that
    /// connection after it.
    Closed { conn: ConnId },
    /// The one [`Effect::Write`] under way on each of these connections is with the system: they can take the next.
    Writable { conns: Vec<ConnId> },
    /// A message arrived.
    Peer { from: Holder, message: ToGateway },
    /// The store answered.
    Store {
        ticket: Ticket,
        reply: Result<Reply, StoreError>,
    },
    /// The sims whose boots are believed alive and which can be reached; replaces what was said before.
    Members { alive: Vec<Holder> },
    /// Public addresses of the other gateways, for `welcome` and `goodbye`; replaces what was said before.
    Gateways { others: Vec<String> },
    /// The link to a node is gone; it counts as unreachable until [`Input::Members`] names it again.
    PeerLost { node: NodeName },
    /// Time passed: deadlines, and the flush when it is due. Given when the core's `wake_at` is reached.
    Timer,
    /// Entropy for the tokens that the core will hand out, 24 bytes each.
    Entropy { tokens: Vec<[u8; 24]> },
    /// Stop in order: say goodbye, close, then [`Effect::Stopped`].
    Stop,
}

/// What a gateway core wants done.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Effect {
    /// Send a message.
    Send { to: NodeName, message: Message },
    /// Ask the store.
    Store { ticket: Ticket, request: Request },
    /// Write frames to a connection, in order, then a WebSocket ping whose payload is `ping` as 8 bytes, big-endian.
    /// There is never more than one under way on a connection: the next comes after [`Input::Writable`].
    Write {
        conn: ConnId,
        frames: Frames,
        ping: Option<u64>,
    },
    /// Close a connection after what is under way and after these last frames, without waiting long for either.
    Close {
        conn: ConnId,
        last: Frames,
        code: u16,
        reason: &'static str,
    },
    /// Give entropy for so many tokens.
    WantEntropy { tokens: usize },
    /// The stop is complete.
    Stopped,
}

/// Who asked the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// A session that is being located.
    Locate(u32),
    /// A region that needs its holder.
    Region(RegionId),
    /// A connection that resumes a session which is not here.
    Resume(ConnId),
}

/// What happens at a time. Whoever it is about looks whether it still means anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Alarm {
    /// The first message of a connection is due.
    Login(ConnId),
    /// The phase of a session ends.
    Session(u32),
    /// The snapshot of a session has waited long enough.
    Snapshot(u32),
    /// A subscription is to be tried again.
    Region(RegionId),
    /// Everything that needs looking after once a second.
    Sweep,
    /// A stop has waited long enough.
    Stop,
}

/// How often what has no alarm of its own is looked after.
pub(super) const SWEEP_MS: u64 = 1_000;

/// The gateway's sessions and views. Everything it does follows from the inputs and their times.
#[derive(Debug)]
pub struct GatewayCore {
    pub(super) config: Config,
    pub(super) now: Millis,
    pub(super) conns: Connections,
    pub(super) sessions: Sessions,
    pub(super) view: View,
    pub(super) regions: BTreeMap<RegionId, Subscription>,
    pub(super) hints: BTreeMap<RegionId, Hint>,
    pub(super) members: BTreeSet<Holder>,
    /// Where clients can connect besides.
    pub(super) other_gateways: Vec<String>,
    /// Regions run only while somebody needs them.
    pub(super) demand_driven: bool,
    /// Sims at which everything stands still.
    pub(super) frozen: BTreeMap<NodeName, BootId>,
    /// When something was heard last of each sim.
    pub(super) heard: BTreeMap<NodeName, Millis>,
    pub(super) recorder: Recorder,
    pub(super) tokens: Stock,
    pub(super) pulse: Pulse,
    pub(super) jitter: Jitter,
    pub(super) counters: Counters,
    /// Sessions to look at in the next flush.
    pub(super) queue: Vec<u32>,
    /// Connections that have something which does not wait for a flush.
    pub(super) urgent: Vec<u32>,
    /// Sessions whose `welcome` waits for entropy.
    pub(super) tokenless: Vec<u32>,
    /// Sessions whose snapshot waits for regions.
    pub(super) unsnapped: BTreeSet<u32>,
    /// Sessions that wait for a region to be held.
    pub(super) awaiting: BTreeSet<(RegionId, u32)>,
    pub(super) scratch: Scratch,
    pub(super) touched: Vec<CharId>,
    pub(super) stopping: bool,
    pub(super) is_stopped: bool,
    pub(super) out: Vec<Effect>,
    asked: BTreeMap<Ticket, Asked>,
    tickets: u64,
    attaches: AttachId,
    alarms: BTreeSet<(Millis, Alarm)>,
}

impl GatewayCore {
    /// A gateway without sessions.
    pub fn new(config: Config) -> GatewayCore {
        GatewayCore {
            now: 0,
            conns: Connections::default(),
            sessions: Sessions::default(),
            view: View::new(Arc::clone(&config.world)),
            regions: BTreeMap::new(),
            hints: BTreeMap::new(),
            members: config.members.iter().cloned().collect(),
            other_gateways: Vec::new(),
            demand_driven: RegionId::count(config.world.size()) > REGIONS_ALWAYS_RUNNING_MAX,
            frozen: BTreeMap::new(),
            heard: BTreeMap::new(),
            recorder: Recorder::default(),
            tokens: Stock::default(),
            pulse: Pulse::default(),
            jitter: Jitter::new(config.seed),
            counters: Counters::default(),
            queue: Vec::new(),
            urgent: Vec::new(),
            tokenless: Vec::new(),
            unsnapped: BTreeSet::new(),
            awaiting: BTreeSet::new(),
            scratch: Scratch::default(),
            touched: Vec::new(),
            stopping: false,
            is_stopped: false,
            out: Vec::new(),
            asked: BTreeMap::new(),
            tickets: 0,
            attaches: 0,
            alarms: BTreeSet::from([(0, Alarm::Sweep)]),
            config,
        }
    }

    /// Takes an input at `now`, which never goes back, and appends what is to be done.
    pub fn handle(&mut self, now: Millis, input: Input, effects: &mut Vec<Effect>) {
        std::mem::swap(&mut self.out, effects);
        self.now = self.now.max(now);
        self.dispatch(input);
        self.run_alarms();
        self.view.expire(self.now);
        self.follow_touched();
        if self.flush_at().is_some_and(|at| at <= self.now) {
            self.flush();
        }
        self.serve_urgent();
        if let Some(tokens) = self.tokens.wants() {
            self.out.push(Effect::WantEntropy { tokens });
        }
        std::mem::swap(&mut self.out, effects);
    }

    /// When [`Input::Timer`] is wanted, if nothing else comes before.
    pub fn wake_at(&self) -> Millis {
        let alarm = self.alarms.first().map(|&(at, _)| at);
        let times = [alarm, self.flush_at(), self.view.expires_at()];
        times.into_iter().flatten().min().unwrap_or(Millis::MAX)
    }

    fn dispatch(&mut self, input: Input) {
        match input {
            Input::Opened { conn, encoding } => self.opened(conn, encoding),
            Input::Client { conn, message } => self.client(conn, message),
            Input::Invalid { conn, reason, seq } => self.invalid(conn, reason, seq),
            Input::Pong { conn, payload } => self.pong(conn, payload),
            Input::Closed { conn } => self.closed(conn),
            Input::Writable { conns } => conns.into_iter().for_each(|conn| self.writable(conn)),
            Input::Peer { from, message } => self.peer(from, message),
            Input::Store { ticket, reply } => self.store_answered(ticket, reply),
            Input::Members { alive } => self.members_are(alive),
            Input::Gateways { others } => self.other_gateways = others,
            Input::PeerLost { node } => self.peer_lost(&node),
            Input::Timer => {}
            Input::Entropy { tokens } => self.entropy(tokens),
            Input::Stop => self.stop(),
        }
    }

    fn peer(&mut self, from: Holder, message: ToGateway) {
        self.hear(&from);
        match message {
            ToGateway::Attached(attached) => self.attached(from, attached),
            ToGateway::AttachRefused {
                char_id,
                attach,
                reason,
            } => self.attach_refused(char_id, attach, reason),
            ToGateway::ToPlayer {
                char_id,
                generation,
                message,
            } => self.private_message(char_id, generation, message),
            ToGateway::PrivateLost {
                char_id,
                generation,
                through,
            } => self.private_lost(char_id, generation, through),
            ToGateway::Saved {
                char_id,
                generation,
                seq,
                inventory,
            } => self.saved(char_id, generation, seq, inventory),
            ToGateway::Moved {
                char_id,
                generation,
                region: _,
                owner,
                flight,
            } => self.moved(&from, char_id, generation, owner, flight),
            ToGateway::Superseded { char_id, attach } => self.superseded(char_id, attach),
            ToGateway::FeedFull(full) => self.feed_full(from, &full),
            ToGateway::FeedDelta(delta) => self.feed_delta(from, &delta),
            ToGateway::FeedEnd { region, epoch } => self.feed_end(&from, region, epoch),
            ToGateway::FeedsDone => self.pulse.done(&from.node),
            ToGateway::Leases(leases) => self.leases(leases),
            ToGateway::Lost {
                char_id,
                generation,
            } => self.owner_lost(&from, char_id, generation),
            ToGateway::Frozen { is_frozen } => self.freeze(from, is_frozen),
        }
    }

    fn store_answered(&mut self, ticket: Ticket, reply: Result<Reply, StoreError>) {
        match self.asked.remove(&ticket) {
            Some(Asked::Locate(session)) => self.located(session, ticket, reply),
            Some(Asked::Region(region)) => self.region_read(region, ticket, reply),
            Some(Asked::Resume(conn)) => self.session_read(conn, ticket, reply),
            None => {}
        }
    }

    fn run_alarms(&mut self) {
        while let Some(&(at, alarm)) = self.alarms.first().filter(|&&(at, _)| at <= self.now) {
            self.alarms.remove(&(at, alarm));
            match alarm {
                Alarm::Login(conn) => self.login_overdue(conn),
                Alarm::Session(session) => self.phase_over(session),
                Alarm::Snapshot(session) => self.try_snapshot(session),
                Alarm::Region(region) => self.region_overdue(region),
                Alarm::Sweep => self.sweep(),
                Alarm::Stop => self.finish_stop(),
            }
        }
    }

    /// What has no alarm of its own, once a second.
    fn sweep(&mut self) {
        self.set_alarm(self.now + SWEEP_MS, Alarm::Sweep);
        self.sweep_connections();
        self.sweep_sessions();
        self.sweep_regions();
    }

    pub(super) fn set_alarm(&mut self, at: Millis, alarm: Alarm) {
        self.alarms.insert((at, alarm));
    }

    /// Asks the store something whose answer does not matter.
    pub(super) fn tell_store(&mut self, request: Request) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.out.push(Effect::Store { ticket, request });
    }

    /// Asks the store something.
    pub(super) fn ask_store(&mut self, who: Asked, request: Request) -> Ticket {
        self.tell_store(request);
        let ticket = Ticket(self.tickets);
        self.asked.insert(ticket, who);
        ticket
    }

    pub(super) fn send(&mut self, to: &NodeName, message: ToSim) {
        self.out.push(Effect::Send {
            to: to.clone(),
            message: Message::ToSim(message),
        });
    }

    pub(super) fn next_attach(&mut self) -> AttachId {
        self.attaches += 1;
        self.attaches
    }
}
