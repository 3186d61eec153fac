//! What a tick costs a gateway: 1,000 sessions that each see 10 others move, all of them moving every tick.
//!
//! `feeds` is taking in what the sims send, `flush` is everything from the last feed to the last write, `writable` is
//! hearing that the sockets took it. `standing` is a flush in which one of 1,000 moves. All of it in processor time, so
//! that a busy machine gives the same figures as an idle one.
#![allow(missing_docs, reason = "benchmarks")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use rustix::time::{ClockId, clock_gettime};
use uo_proto::{
    Action, CharId, Class, ClientMsg, Dir, Encoding, EntityInfo, EntityKind, EntityState, Limits,
    Login, Pos, RegionId,
};
use uo_server::gateway::core::{Config, ConnId, Effect, GatewayCore, Input};
use uo_server::identity::{BootId, Holder, Nonce};
use uo_server::peer::message::{Attached, FeedDelta, FeedEntity, FeedFull, Told};
use uo_server::peer::{Message, ToGateway, ToSim};
use uo_server::store::{ClaimRow, Reply, Request};
use uo_world::World;

const MAP: u16 = 1024;
const SESSIONS: usize = 1_000;
/// Who sees each other: one and its ten.
const GROUP: usize = 11;
/// Tiles between groups, so that none sees another.
const SPACING: u16 = 50;

/// A gateway full of sessions, and the sim on its other side.
struct Bench {
    core: GatewayCore,
    now: u64,
    tick: u64,
    sim: Holder,
    states: Vec<EntityState>,
    feeds: BTreeMap<RegionId, u64>,
    effects: Vec<Effect>,
}

impl Bench {
    fn new(encoding: Encoding) -> Bench {
        let holder = |node: &str| Holder {
            node: node.into(),
            boot: BootId(1),
        };
        let sim = holder("sim-1");
        let config = Config {
            me: holder("gw-1"),
            world: Arc::new(World::new(7, MAP).expect("a good size")),
            members: vec![sim.clone()],
            gateways: Vec::new(),
            spells: Vec::new(),
            limits: Limits {
                messages_per_s: 40,
                messages_burst: 120,
                message_bytes: 65_536,
                say_bytes: 256,
            },
            reliable_lane_max: uo_server::limits::RELIABLE_LANE_MAX,
            seed: 1,
        };
        let mut bench = Bench {
            core: GatewayCore::new(config),
            now: 1_000,
            tick: 1,
            sim,
            states: (0..SESSIONS).map(state).collect(),
            feeds: BTreeMap::new(),
            effects: Vec::new(),
        };
        let tokens = vec![[7; 24]; 512];
        for index in 0..SESSIONS {
            let conn = ConnId(index as u64);
            bench.input(Input::Opened { conn, encoding });
            let login = Login {
                name: name(index),
                password: None,
                version: uo_proto::PROTOCOL_VERSION,
            };
            let message = ClientMsg::Login(login);
            bench.input(Input::Client { conn, message });
            bench.settle();
            let tokens = tokens.iter().enumerate().map(|(n, token)| {
                let mut token = *token;
                token[..8].copy_from_slice(&((index * 512 + n) as u64).to_be_bytes());
                token
            });
            let tokens = tokens.collect();
            bench.input(Input::Entropy { tokens });
            bench.settle();
        }
        for region in bench.feeds.keys().copied().collect::<Vec<_>>() {
            let full = bench.full(region);
            bench.peer(ToGateway::FeedFull(Arc::new(full)));
        }
        bench.peer(ToGateway::FeedsDone);
        for _ in 0..3 {
            bench.now += 500;
            bench.input(Input::Timer);
            bench.settle();
        }
        assert_eq!(bench.core.state().sessions_attached, SESSIONS);
        assert_eq!(bench.core.counters().snapshots, SESSIONS as u64);
        bench
    }

    fn input(&mut self, input: Input) {
        self.core.handle(self.now, input, &mut self.effects);
    }

    fn peer(&mut self, message: ToGateway) {
        let from = self.sim.clone();
        self.input(Input::Peer { from, message });
    }

    /// Answers everything that the core asked for.
    fn settle(&mut self) {
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Store { ticket, request } => {
                        let reply = Ok(match request {
                            Request::ClaimRead { .. } => Reply::Claim(Some(ClaimRow {
                                holder: Some(self.sim.clone()),
                                number: 1,
                                nonce: Nonce(0),
                            })),
                            _ => Reply::Done,
                        });
                        self.input(Input::Store { ticket, reply });
                    }
                    Effect::Send { message, .. } => self.answer(message),
                    Effect::Write { conn, .. } => self.input(Input::Writable { conns: vec![conn] }),
                    _ => {}
                }
            }
        }
    }

    fn answer(&mut self, message: Message) {
        match message {
            Message::ToSim(ToSim::Attach(attach)) => {
                let state = self
                    .states
                    .iter()
                    .find(|state| state.id == attach.char_id.entity());
                let pos = state.expect("one of ours").pos();
                self.peer(ToGateway::Attached(Attached {
                    char_id: attach.char_id,
                    attach: attach.attach,
                    generation: 1,
                    session: 1,
                    region: RegionId::at(MAP, pos),
                    pos,
                    last_order: 0,
                }));
            }
            Message::ToSim(ToSim::Subscribe { region }) => {
                self.feeds.insert(region, self.tick);
            }
            _ => {}
        }
    }

    fn full(&self, region: RegionId) -> FeedFull {
        let here = |state: &&EntityState| RegionId::at(MAP, state.pos()) == region;
        FeedFull {
            region,
            epoch: 1,
            tick: self.tick,
            told: Told::default(),
            entities: self.states.iter().filter(here).map(entity).collect(),
            objects: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The feeds of a tick in which the first `movers` take a step.
    fn step(&mut self, movers: usize) -> Vec<ToGateway> {
        self.tick += 1;
        let mut by_region: BTreeMap<RegionId, Vec<FeedEntity>> = BTreeMap::new();
        for (index, state) in self.states.iter_mut().enumerate().take(movers) {
            // Back and forth, without leaving the region.
            let home = place(index);
            state.x = home.x + ((self.tick as usize + index) % 4) as u16;
            let mut entity = entity(state);
            entity.info = None;
            by_region
                .entry(RegionId::at(MAP, home))
                .or_default()
                .push(entity);
        }
        let feeds = by_region.into_iter().map(|(region, upserts)| {
            let base_tick = self.feeds.insert(region, self.tick).expect("subscribed");
            ToGateway::FeedDelta(Arc::new(FeedDelta {
                region,
                epoch: 1,
                tick: self.tick,
                base_tick,
                told: 0,
                base_told: 0,
                upserts,
                removes: Vec::new(),
                objects: Vec::new(),
                events: Vec::new(),
            }))
        });
        feeds.collect()
    }

    /// One tick: the time taken by its feeds, its flush, and the notices that all was written.
    fn tick(&mut self, movers: usize) -> [Duration; 3] {
        let feeds = self.step(movers);
        self.now += 50;
        let start = processor_time();
        for feed in feeds {
            self.peer(feed);
        }
        let fed = processor_time();
        self.peer(ToGateway::FeedsDone);
        let flushed = processor_time();
        let effects = black_box(std::mem::take(&mut self.effects));
        let conns = effects.iter().filter_map(|effect| match effect {
            Effect::Write { conn, .. } => Some(*conn),
            _ => None,
        });
        let conns: Vec<_> = conns.collect();
        let seen = movers.min(GROUP);
        assert!(conns.len() >= seen, "{} writes", conns.len());
        let answered = processor_time();
        self.input(Input::Writable { conns });
        let done = processor_time();
        assert!(self.effects.is_empty(), "everything was in the first write");
        [fed - start, flushed - fed, done - answered]
    }
}

/// What this thread has used so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn name(index: usize) -> String {
    format!("walker-{index}")
}

/// Groups in rows, their members in two rows.
fn place(index: usize) -> Pos {
    let per_row = usize::from(MAP / SPACING);
    let (group, member) = (index / GROUP, index % GROUP);
    let corner = |at: usize| at as u16 * SPACING + 4;
    let (x, y) = (corner(group % per_row), corner(group / per_row));
    // Steps must not cross a region's border here: the scene has no handoffs.
    let x = x + member as u16;
    let x = if x % 64 > 60 { x - 4 } else { x };
    Pos::new(x, y)
}

fn state(index: usize) -> EntityState {
    let pos = place(index);
    EntityState {
        id: CharId::of_name(&name(index)).entity(),
        x: pos.x,
        y: pos.y,
        heading: Dir::E,
        hits: 120,
        action: Action::Walk,
        target: None,
    }
}

fn entity(state: &EntityState) -> FeedEntity {
    FeedEntity {
        number: 1,
        info: Some(Arc::new(EntityInfo {
            kind: EntityKind::Player,
            class: Class::Warrior,
            name: "a walker".into(),
            look: 1,
            hits_max: 220,
        })),
        state: *state,
        ack: 0,
    }
}

fn flush(criterion: &mut Criterion) {
    for (encoding, label) in [(Encoding::Json, "json"), (Encoding::MessagePack, "msgpack")] {
        let mut bench = Bench::new(encoding);
        bench.tick(SESSIONS);
        let mut group = criterion.benchmark_group(format!("gateway/1000 sessions/{label}"));
        for (part, name) in ["feeds", "flush", "writable"].into_iter().enumerate() {
            group.bench_function(name, |bencher| {
                bencher.iter_custom(|times| (0..times).map(|_| bench.tick(SESSIONS)[part]).sum());
            });
        }
        group.bench_function("standing", |bencher| {
            bencher.iter_custom(|times| (0..times).map(|_| bench.tick(1)[1]).sum());
        });
        group.finish();
        let counters = bench.core.counters();
        let per_delta = counters.fragments as f64 / counters.deltas as f64;
        println!("{label}: {per_delta:.2} fragments encoded for each delta");
    }
}

criterion_group!(benches, flush);
criterion_main!(benches);
