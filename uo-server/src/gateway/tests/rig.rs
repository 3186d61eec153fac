//! The rig: a gateway core between scripted clients, a scripted sim and a store in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uo_proto::{
    Action, CharId, ClientMsg, Dir, Encoding, EntityId, EntityInfo, EntityKind, EntityState,
    Limits, Login, NumberedOrder, ObjectKey, ObjectState, Order, Pos, RegionId, Resume,
};
use uo_world::World;

use super::client::Client;
use crate::Millis;
use crate::gateway::core::{Config, ConnId, Effect, GatewayCore, Input};
use crate::identity::{BootId, Holder, NodeName, Nonce};
use crate::peer::message::{
    AttachRefusal, Attached, FeedDelta, FeedEntity, FeedEvent, FeedFull, Told,
};
use crate::peer::{Message, ToGateway, ToSim};
use crate::store::{ClaimRow, Reply, Request, Right, SessionRow, TokenHash};

pub const MAP: u16 = 256;

/// A character or mob of the scripted sim.
#[derive(Clone, Debug)]
pub struct Body {
    pub state: EntityState,
    pub number: u64,
    pub region: RegionId,
    pub ack: u64,
    pub session: u64,
}

/// Who was touched in a region since its last feed, and who left it under which number.
type Changed = (BTreeSet<EntityId>, Vec<(EntityId, u64)>);

pub struct Rig {
    pub core: GatewayCore,
    pub now: Millis,
    pub world: Arc<World>,
    pub sim: Holder,
    pub clients: BTreeMap<ConnId, Client>,
    /// What the sim was sent and the test has not looked at.
    pub sent: Vec<ToSim>,
    /// Who holds the regions, by the store.
    pub leases: BTreeMap<RegionId, ClaimRow>,
    /// Who owns the characters, by the store.
    pub owners: BTreeMap<CharId, ClaimRow>,
    pub rows: BTreeMap<TokenHash, SessionRow>,
    /// Regions that were said to be needed.
    pub demanded: BTreeSet<RegionId>,
    pub bodies: BTreeMap<EntityId, Body>,
    /// Whether the sim answers an attach.
    pub answers: bool,
    /// Instead of an answer to the next attach.
    pub refusals: Vec<AttachRefusal>,
    pub is_stopped: bool,
    /// Public events that each feed had.
    pub told: BTreeMap<RegionId, u64>,
    fulls_due: BTreeSet<RegionId>,
    pub watched: BTreeMap<RegionId, u64>,
    changed: BTreeMap<RegionId, Changed>,
    pub events: Vec<FeedEvent>,
    pub objects: BTreeMap<ObjectKey, ObjectState>,
    objects_changed: Vec<ObjectState>,
    tick: u64,
    entropy: u64,
    next_conn: u64,
}

pub fn holder(name: &str, boot: u128) -> Holder {
    Holder {
        node: NodeName::from(name),
        boot: BootId(boot),
    }
}

pub fn info(name: &str) -> EntityInfo {
    EntityInfo {
        kind: EntityKind::Player,
        class: uo_proto::Class::Warrior,
        name: name.into(),
        look: 1,
        hits_max: 100,
    }
}

impl Rig {
    pub fn new() -> Rig {
        let world = Arc::new(World::new(7, MAP).expect("a good size"));
        let sim = holder("sim-1", 1);
        let config = Config {
            me: holder("gw-1", 2),
            world: Arc::clone(&world),
            members: vec![sim.clone()],
            gateways: vec!["ws://gw-2".into()],
            spells: Vec::new(),
            limits: Limits {
                messages_per_s: 40,
                messages_burst: 120,
                message_bytes: 65_536,
                say_bytes: 256,
            },
            reliable_lane_max: crate::limits::RELIABLE_LANE_MAX,
            seed: 1,
        };
        let row = |_| ClaimRow {
            holder: Some(sim.clone()),
            number: 1,
            nonce: Nonce(0),
        };
        Rig {
            core: GatewayCore::new(config),
            now: 1_000,
            leases: world
                .regions()
                .map(|region| (region, row(region)))
                .collect(),
            world,
            sim,
            clients: BTreeMap::new(),
            sent: Vec::new(),
            owners: BTreeMap::new(),
            rows: BTreeMap::new(),
            demanded: BTreeSet::new(),
            bodies: BTreeMap::new(),
            answers: true,
            refusals: Vec::new(),
            is_stopped: false,
            told: BTreeMap::new(),
            fulls_due: BTreeSet::new(),
            watched: BTreeMap::new(),
            changed: BTreeMap::new(),
            events: Vec::new(),
            objects: BTreeMap::new(),
            objects_changed: Vec::new(),
            tick: 0,
            entropy: 0,
            next_conn: 0,
        }
    }

    /// A gateway that knows nothing, over the same store.
    pub fn restart_gateway(&mut self) {
        self.core = Rig::new().core;
        self.watched.clear();
    }

    /// Hands the core an input, and carries out what it wants done.
    pub fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.core.handle(self.now, input, &mut effects);
        for effect in effects {
            self.carry_out(effect);
        }
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Send { to, message } => {
                let Message::ToSim(message) = message else {
                    panic!("a gateway talks to sims: {message:?}");
                };
                if to == self.sim.node {
                    self.sim_hears(message);
                }
            }
            Effect::Store { ticket, request } => {
                let reply = Ok(self.stored(request));
                self.input(Input::Store { ticket, reply });
            }
            Effect::Write { conn, frames, ping } => {
                let client = self.clients.get_mut(&conn).expect("an open connection");
                assert_eq!(client.closed, None, "a write after the close");
                client.bytes += frames.bytes.len();
                for frame in frames.iter() {
                    let message = client.encoding.decode_server(frame).expect("a message");
                    client.take(message);
                }
                if !client.is_deaf {
                    self.input(Input::Writable { conns: vec![conn] });
                    if let Some(payload) = ping {
                        self.input(Input::Pong { conn, payload });
                    }
                }
            }
            Effect::Close {
                conn, last, code, ..
            } => {
                let client = self.clients.get_mut(&conn).expect("an open connection");
                for frame in last.iter() {
                    let message = client.encoding.decode_server(frame).expect("a message");
                    client.take(message);
                }
                client.closed = Some(code);
                self.input(Input::Closed { conn });
            }
            Effect::WantEntropy { tokens } => {
                let tokens = (0..tokens).map(|_| self.entropy()).collect();
                self.input(Input::Entropy { tokens });
            }
            Effect::Stopped => self.is_stopped = true,
        }
    }

    fn entropy(&mut self) -> [u8; 24] {
        self.entropy += 1;
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.entropy.to_be_bytes());
        bytes
    }

    fn stored(&mut self, request: Request) -> Reply {
        match request {
            Request::ClaimRead { right, .. } => Reply::Claim(match right {
                Right::Region(region) => self.leases.get(&region).cloned(),
                Right::Character(id) => self.owners.get(&id).cloned(),
            }),
            Request::CharacterRead { .. } => Reply::Character(None),
            Request::SessionPut { token, row, ttl_s } => {
                assert_eq!(ttl_s, 1_800);
                self.rows.insert(token, row);
                Reply::Done
            }
            Request::DemandPut { regions, .. } => {
                self.demanded.extend(regions);
                Reply::Done
            }
            Request::SessionRead { token } => Reply::Session(self.rows.get(&token).cloned()),
            Request::SessionDelete { token } => {
                self.rows.remove(&token);
                Reply::Done
            }
            other => panic!("not a gateway's question: {other:?}"),
        }
    }

    fn sim_hears(&mut self, message: ToSim) {
        self.sent.push(message.clone());
        match message {
            ToSim::Attach(attach) if !self.refusals.is_empty() => {
                let reason = self.refusals.remove(0);
                self.peer(ToGateway::AttachRefused {
                    char_id: attach.char_id,
                    attach: attach.attach,
                    reason,
                });
            }
            ToSim::Attach(attach) if self.answers => {
                let id = attach.char_id.entity();
                let body = self.bodies.get_mut(&id).expect("the test placed it");
                if attach.session.is_none() {
                    body.session += 1;
                    body.ack = 0;
                }
                let attached = Attached {
                    char_id: attach.char_id,
                    attach: attach.attach,
                    generation: body.number,
                    session: body.session,
                    region: body.region,
                    pos: body.state.pos(),
                    last_order: body.ack,
                };
                let region = body.region;
                self.touch(region, id);
                self.peer(ToGateway::Attached(attached));
            }
            ToSim::Subscribe { region } => {
                self.fulls_due.insert(region);
            }
            ToSim::Unsubscribe { region } => {
                self.watched.remove(&region);
                self.fulls_due.remove(&region);
            }
            _ => {}
        }
    }

    /// The sim says something.
    pub fn peer(&mut self, message: ToGateway) {
        let from = self.sim.clone();
        self.input(Input::Peer { from, message });
    }

    /// Lets time pass, waking the core when it wants.
    pub fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.core.wake_at() <= end {
            let wake = self.core.wake_at();
            assert!(
                wake >= self.now || wake + 60 >= self.now,
                "woken for the past"
            );
            self.now = self.now.max(wake);
            self.input(Input::Timer);
            assert!(self.core.wake_at() > self.now, "a loop without progress");
        }
        self.now = end;
    }

    /// Puts somebody somewhere.
    pub fn place(&mut self, name: &str, x: u16, y: u16) -> EntityId {
        let id = CharId::of_name(name).entity();
        let pos = Pos::new(x, y);
        let region = self.world.region_at(pos);
        let state = EntityState {
            id,
            x,
            y,
            heading: Dir::S,
            hits: 100,
            action: Action::Idle,
            target: None,
        };
        let body = Body {
            state,
            number: 1,
            region,
            ack: 0,
            session: 0,
        };
        self.bodies.insert(id, body);
        self.touch(region, id);
        id
    }

    pub fn body(&mut self, id: EntityId) -> &mut Body {
        self.bodies.get_mut(&id).expect("a body")
    }

    /// The sim's feed shows this entity again.
    pub fn touch(&mut self, region: RegionId, id: EntityId) {
        self.changed.entry(region).or_default().0.insert(id);
    }

    /// Moves somebody; into another region by a handoff in one tick.
    pub fn walk(&mut self, id: EntityId, x: u16, y: u16) {
        self.walk_out(id, x, y);
        let to = self.bodies[&id].region;
        self.touch(to, id);
    }

    /// The same, but the new region does not show it yet.
    pub fn walk_out(&mut self, id: EntityId, x: u16, y: u16) {
        let to = self.world.region_at(Pos::new(x, y));
        let body = self.body(id);
        (body.state.x, body.state.y) = (x, y);
        let (from, number) = (body.region, body.number);
        if from != to {
            body.region = to;
            body.number += 1;
            let changed = self.changed.entry(from).or_default();
            changed.0.remove(&id);
            changed.1.push((id, number));
        }
    }

    pub fn object(&mut self, state: ObjectState) {
        self.objects.insert(state.key, state);
        self.objects_changed.push(state);
    }

    /// The battle takes an order.
    pub fn apply_order(&mut self, id: EntityId, seq: u64) {
        let body = self.body(id);
        body.ack = seq;
        let region = body.region;
        self.touch(region, id);
    }

    fn feed_entity(&self, id: EntityId) -> Option<FeedEntity> {
        let body = self.bodies.get(&id)?;
        Some(FeedEntity {
            number: body.number,
            info: Some(Arc::new(info(&format!("n{id}")))),
            state: body.state,
            ack: body.ack,
        })
    }

    /// The full state of a region.
    pub fn full(&self, region: RegionId) -> FeedFull {
        let here = self.bodies.values().filter(|body| body.region == region);
        FeedFull {
            region,
            epoch: 1,
            tick: self.tick,
            told: Told {
                since: 1,
                count: self.told.get(&region).copied().unwrap_or_default(),
            },
            entities: here
                .filter_map(|body| self.feed_entity(body.state.id))
                .collect(),
            objects: self
                .objects
                .values()
                .filter(|o| o.key.region() == region)
                .copied()
                .collect(),
            events: Vec::new(),
        }
    }

    /// A frame with so many events is on its way here, and is lost.
    pub fn lose_frame(&mut self, region: RegionId, events: u64) {
        self.tick += 1;
        *self.told.entry(region).or_default() += events;
        self.watched.insert(region, self.tick);
    }

    fn events_of(&self, region: RegionId, events: &[FeedEvent]) -> Vec<FeedEvent> {
        let here = |event: &&FeedEvent| self.world.region_at(event.at) == region;
        events.iter().filter(here).cloned().collect()
    }

    /// A frame of changes in which nothing changed.
    pub fn delta(&self, region: RegionId) -> FeedDelta {
        let (tick, told) = (self.watched[&region], self.told.get(&region));
        let told = told.copied().unwrap_or_default();
        FeedDelta {
            region,
            epoch: 1,
            tick,
            base_tick: tick,
            told,
            base_told: told,
            upserts: Vec::new(),
            removes: Vec::new(),
            objects: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Between two ticks, the sim tells what was said.
    pub fn speak(&mut self, event: FeedEvent) {
        let region = self.world.region_at(event.at);
        *self.told.entry(region).or_default() += 1;
        let mut delta = self.delta(region);
        delta.base_told -= 1;
        delta.events = vec![event];
        self.peer(ToGateway::FeedDelta(Arc::new(delta)));
    }

    /// 50 ms pass, and the sim sends what changed.
    pub fn tick(&mut self) {
        self.tick_after(50);
    }

    /// So much time passes, and the sim sends what changed.
    pub fn tick_after(&mut self, ms: u64) {
        self.pass(ms);
        self.tick += 1;
        let changed = std::mem::take(&mut self.changed);
        let events = std::mem::take(&mut self.events);
        let objects = std::mem::take(&mut self.objects_changed);
        let mut messages = Vec::new();
        for region in std::mem::take(&mut self.fulls_due) {
            let events = self.events_of(region, &events);
            *self.told.entry(region).or_default() += events.len() as u64;
            let full = FeedFull {
                events,
                ..self.full(region)
            };
            messages.push(ToGateway::FeedFull(Arc::new(full)));
            self.watched.insert(region, self.tick);
        }
        for (&region, last) in &mut self.watched {
            let (upserts, removes) = changed.get(&region).cloned().unwrap_or_default();
            let here = |event: &&FeedEvent| self.world.region_at(event.at) == region;
            let events: Vec<FeedEvent> = events.iter().filter(here).cloned().collect();
            let objects: Vec<ObjectState> = objects
                .iter()
                .filter(|o| o.key.region() == region)
                .copied()
                .collect();
            let is_empty =
                upserts.is_empty() && removes.is_empty() && events.is_empty() && objects.is_empty();
            if *last == self.tick || is_empty {
                continue;
            }
            let base_tick = std::mem::replace(last, self.tick);
            let told = self.told.entry(region).or_default();
            let base_told = std::mem::replace(told, *told + events.len() as u64);
            let told = *told;
            messages.push(ToGateway::FeedDelta(Arc::new(FeedDelta {
                region,
                epoch: 1,
                tick: self.tick,
                base_tick,
                told,
                base_told,
                upserts: Vec::new(),
                removes,
                objects,
                events,
            })));
            let Some(ToGateway::FeedDelta(delta)) = messages.last_mut() else {
                unreachable!("it was just pushed");
            };
            let delta = Arc::get_mut(delta).expect("nobody else has it");
            for id in upserts {
                let body = self.bodies.get(&id).filter(|body| body.region == region);
                delta.upserts.extend(body.map(|body| FeedEntity {
                    number: body.number,
                    info: Some(Arc::new(info(&format!("n{id}")))),
                    state: body.state,
                    ack: body.ack,
                }));
            }
        }
        if !messages.is_empty() {
            messages.push(ToGateway::FeedsDone);
        }
        messages.into_iter().for_each(|message| self.peer(message));
    }

    /// A new connection.
    pub fn open(&mut self, encoding: Encoding) -> ConnId {
        self.next_conn += 1;
        let conn = ConnId(self.next_conn);
        let client = Client {
            encoding,
            ..Client::default()
        };
        self.clients.insert(conn, client);
        self.input(Input::Opened { conn, encoding });
        conn
    }

    pub fn client(&mut self, conn: ConnId) -> &mut Client {
        self.clients.get_mut(&conn).expect("a client")
    }

    pub fn say(&mut self, conn: ConnId, message: ClientMsg) {
        self.input(Input::Client { conn, message });
    }

    /// Opens a connection and logs in.
    pub fn login(&mut self, name: &str) -> ConnId {
        let conn = self.open(Encoding::Json);
        self.login_on(conn, name);
        conn
    }

    pub fn login_on(&mut self, conn: ConnId, name: &str) {
        let login = Login {
            name: name.into(),
            password: None,
            version: uo_proto::PROTOCOL_VERSION,
        };
        self.say(conn, ClientMsg::Login(login));
    }

    /// Logs in, and lets the first feeds come.
    pub fn enter(&mut self, name: &str) -> ConnId {
        let conn = self.login(name);
        self.tick();
        conn
    }

    pub fn resume(&mut self, token: &str, last_seq: u64, last_private: u64) -> ConnId {
        let conn = self.open(Encoding::Json);
        let resume = Resume {
            token: token.into(),
            last_seq,
            last_private,
        };
        self.say(conn, ClientMsg::Resume(resume));
        conn
    }

    pub fn order(&mut self, conn: ConnId, seq: u64, order: Order) {
        self.say(conn, ClientMsg::Order(NumberedOrder { seq, order }));
    }

    /// The socket of a client is gone.
    pub fn drop_client(&mut self, conn: ConnId) {
        self.input(Input::Closed { conn });
    }

    /// The socket of a client that was deaf takes everything again.
    pub fn hear_again(&mut self, conn: ConnId) {
        self.client(conn).is_deaf = false;
        self.input(Input::Writable { conns: vec![conn] });
    }

    /// The orders that the sim was sent, by number.
    pub fn orders_sent(&mut self) -> Vec<u64> {
        let seq = |message| match message {
            ToSim::Order(order) => Some(order.order.seq),
            _ => None,
        };
        self.sent.drain(..).filter_map(seq).collect()
    }
}
