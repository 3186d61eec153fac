//! The sim core against an in-memory store, in virtual time: what the store answers and when, and which messages arrive,
//! is each test's decision.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod attach;
mod checkpoint;
mod drain;
mod handoff;
mod lifecycle;
mod order;
mod pair;
mod regions;

use std::collections::{BTreeMap, VecDeque};

use uo_combat::Fighter;
use uo_proto::{CharId, NumberedOrder, Order, Pos, RegionId, ServerMsg, TICK_MS};
use uo_world::World;

use super::core::{Effect, Input, News, SimConfig, SimCore, Ticket};
use crate::Millis;
use crate::identity::{BootId, Holder, NodeName, Nonce};
use crate::peer::message::{Attach, AttachId, AttachRefusal, Attached, RoutedOrder};
use crate::peer::{Message, ToGateway, ToSim};
use crate::store::row::{self, CharacterRow};
use crate::store::tables::Tables;
use crate::store::{ClaimRow, Reply, Request, Right, StoreError};

const MAP: u16 = 128;
const WEST: RegionId = RegionId(0);
const EAST: RegionId = RegionId(1);

/// What becomes of a request or a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    /// It is carried out, and answered at once.
    Done,
    /// It is carried out, and nobody is told.
    DoneUnknown,
    /// It is lost, and nobody is told.
    LostUnknown,
    /// It waits until the test lets it go on.
    Kept,
}

/// A one-process shard without its shells.
struct Shard {
    core: SimCore,
    tables: Tables,
    now: Millis,
    me: Holder,
    gateway: Holder,
    /// Everything the gateway was sent, oldest first; feeds left out.
    mail: Vec<ToGateway>,
    /// What the test decides about requests and messages.
    fate_of_request: Box<dyn FnMut(&Request) -> Fate>,
    fate_of_message: Box<dyn FnMut(&ToSim) -> Fate>,
    kept_requests: VecDeque<(Ticket, Request)>,
    kept_messages: VecDeque<ToSim>,
    /// Every request, for tests that look at them.
    requests: Vec<Request>,
    /// What was sent to other sims.
    posted: Vec<(NodeName, ToSim)>,
    /// What the cluster core was told.
    news: Vec<News>,
    /// Every other boot is dead, and whoever is suspected is proven so at once.
    others_are_dead: bool,
    stopped: bool,
}

impl Shard {
    /// A shard on which nothing has happened yet.
    fn cold(tables: Tables, boot: u128) -> Shard {
        Shard::with_config(tables, boot, |_| {})
    }

    fn with_config(tables: Tables, boot: u128, change: impl FnOnce(&mut SimConfig)) -> Shard {
        let me = holder("one", boot);
        let world = World::new(7, MAP).expect("the size is good");
        let mut config = SimConfig::alone(me.clone(), world);
        change(&mut config);
        Shard {
            core: SimCore::new(config),
            tables,
            now: 1_000,
            me,
            gateway: holder("gate", 77),
            mail: Vec::new(),
            fate_of_request: Box::new(|_| Fate::Done),
            fate_of_message: Box::new(|_| Fate::Done),
            kept_requests: VecDeque::new(),
            kept_messages: VecDeque::new(),
            requests: Vec::new(),
            posted: Vec::new(),
            news: Vec::new(),
            others_are_dead: true,
            stopped: false,
        }
    }

    /// A shard that holds every region.
    fn running() -> Shard {
        let mut shard = Shard::cold(Tables::default(), 1);
        shard.begin();
        assert!(
            shard.core.holds_everything(),
            "every region is held at once"
        );
        shard
    }

    /// What a cluster core does for the only node there is: it may act, and takes every region.
    fn begin(&mut self) {
        self.input(Input::Fence { fallen: false });
        let nodes = vec![self.gateway.node.clone()];
        self.input(Input::Linked { nodes });
        let Ok(Reply::Leases(leases)) = self.tables.apply(self.now, &Request::LeasesRead) else {
            panic!("the leases are read");
        };
        let mut rows: BTreeMap<RegionId, ClaimRow> = leases.into_iter().collect();
        for holder in rows.values().filter_map(|row| row.holder.clone()) {
            self.input(Input::Dead { boot: holder.boot });
        }
        for region in self.core.config.world.clone().regions() {
            let row = rows.remove(&region);
            self.input(Input::Take { region, row });
        }
        self.tick();
    }

    fn hear(&mut self, news: News, next: &mut Vec<Effect>) {
        match &news {
            News::Drained => self.stopped = true,
            &News::Suspect { boot } if self.others_are_dead => {
                self.core.handle(self.now, Input::Dead { boot }, next);
            }
            _ => {}
        }
        self.news.push(news);
    }

    /// The same store under a new boot, the old one being dead.
    fn restarted(self) -> Shard {
        let boot = self.me.boot.0 + 1_000_000;
        let mut shard = Shard::cold(self.tables, boot);
        shard.begin();
        assert!(shard.core.holds_everything());
        shard
    }

    /// What a cluster core does for the last node there is: it stops, and nobody takes what it has.
    fn stop(&mut self) {
        self.input(Input::Stop);
        self.input(Input::GiveUp);
    }

    fn input(&mut self, input: Input) {
        self.run(|core, now, effects| core.handle(now, input, effects));
    }

    /// Calls into the core, and carries out what follows until nothing is left to do.
    fn run(&mut self, call: impl FnOnce(&mut SimCore, Millis, &mut Vec<Effect>)) {
        let mut effects = Vec::new();
        call(&mut self.core, self.now, &mut effects);
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut next = Vec::new();
            match effect {
                Effect::News(news) => self.hear(news, &mut next),
                Effect::Store { ticket, request } => {
                    self.requests.push(request.clone());
                    match (self.fate_of_request)(&request) {
                        Fate::Kept => self.kept_requests.push_back((ticket, request)),
                        fate => self.serve(ticket, &request, fate, &mut next),
                    }
                }
                Effect::Send {
                    message: Message::ToGateway(message),
                    ..
                } => {
                    let is_feed = matches!(
                        message,
                        ToGateway::FeedDelta(_) | ToGateway::FeedFull(_) | ToGateway::FeedsDone
                    );
                    if !is_feed {
                        self.mail.push(message);
                    }
                }
                Effect::Send {
                    message: Message::ToSim(message),
                    to,
                } => {
                    if to != self.me.node {
                        self.posted.push((to, message));
                        continue;
                    }
                    match (self.fate_of_message)(&message) {
                        Fate::Kept => self.kept_messages.push_back(message),
                        Fate::Done | Fate::DoneUnknown => {
                            let from = self.me.clone();
                            let input = Input::Peer { from, message };
                            self.core.handle(self.now, input, &mut next);
                        }
                        Fate::LostUnknown => {}
                    }
                }
            }
            queue.extend(next);
        }
    }

    fn serve(&mut self, ticket: Ticket, request: &Request, fate: Fate, next: &mut Vec<Effect>) {
        let lost = Err(StoreError::Unknown("by the test".into()));
        let reply = match fate {
            Fate::LostUnknown => lost,
            Fate::DoneUnknown => self.tables.apply(self.now, request).and(lost),
            Fate::Done | Fate::Kept => self.tables.apply(self.now, request),
        };
        self.core
            .handle(self.now, Input::Store { ticket, reply }, next);
    }

    /// Carries out the requests that were kept, in order.
    fn release_requests(&mut self) {
        for (ticket, request) in std::mem::take(&mut self.kept_requests) {
            let reply = self.tables.apply(self.now, &request);
            self.input(Input::Store { ticket, reply });
        }
    }

    fn release_messages(&mut self) {
        for message in std::mem::take(&mut self.kept_messages) {
            let from = self.me.clone();
            self.input(Input::Peer { from, message });
        }
    }

    fn requests_are(&mut self, fate: impl FnMut(&Request) -> Fate + 'static) {
        self.fate_of_request = Box::new(fate);
    }

    fn messages_are(&mut self, fate: impl FnMut(&ToSim) -> Fate + 'static) {
        self.fate_of_message = Box::new(fate);
    }

    fn tick(&mut self) {
        self.now += TICK_MS;
        self.input(Input::Tick { parallel: false });
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(TICK_MS) {
            self.tick();
        }
    }

    fn send(&mut self, message: ToSim) {
        let from = self.gateway.clone();
        self.input(Input::Peer { from, message });
    }

    fn attach(&mut self, name: &str, attach: AttachId, session: Option<u64>, last_private: u64) {
        let message = ToSim::Attach(Attach {
            char_id: CharId::of_name(name),
            name: name.into(),
            session,
            attach,
            gateway: self.gateway.clone(),
            last_private,
        });
        self.send(message);
    }

    /// Logs in and gives what the gateway is told.
    fn login(&mut self, name: &str, attach: AttachId) -> Attached {
        self.attach(name, attach, None, 0);
        self.attached().expect("the login is answered")
    }

    fn detach(&mut self, name: &str, attach: AttachId, logout: bool) {
        let char_id = CharId::of_name(name);
        self.send(ToSim::Detach {
            char_id,
            attach,
            logout,
        });
    }

    fn order(&mut self, name: &str, session: u64, seq: u64, order: Order) {
        self.order_at(name, session, seq, order, None);
    }

    fn order_at(
        &mut self,
        name: &str,
        session: u64,
        seq: u64,
        order: Order,
        target_region: Option<RegionId>,
    ) {
        self.send(ToSim::Order(RoutedOrder {
            char_id: CharId::of_name(name),
            generation: 0,
            session,
            order: NumberedOrder { seq, order },
            target_region,
        }));
    }

    /// Puts a character at rest into the store.
    fn put_character(&mut self, name: &str, pos: Pos) -> CharId {
        put_character(&mut self.tables, name, pos)
    }

    /// A character of `name` logged in on the western side of the border with the east, where both arenas reach.
    fn login_at_border(&mut self, name: &str) -> CharId {
        let pos = (0..64)
            .map(|y| Pos::new(63, y))
            .find(|&pos| is_open(self.core.config.world.clone(), pos))
            .expect("some tile at the border is open");
        let id = self.put_character(name, pos);
        let attached = self.login(name, 1);
        assert_eq!(attached.region, WEST);
        id
    }

    /// Takes the newest `Attached` out of the mail.
    fn attached(&mut self) -> Option<Attached> {
        let at = self
            .mail
            .iter()
            .rposition(|it| matches!(it, ToGateway::Attached(_)))?;
        match self.mail.remove(at) {
            ToGateway::Attached(attached) => Some(attached),
            _ => None,
        }
    }

    fn attach_refusals(&self) -> Vec<AttachRefusal> {
        let reasons = self.mail.iter().filter_map(|it| match it {
            ToGateway::AttachRefused { reason, .. } => Some(reason.clone()),
            _ => None,
        });
        reasons.collect()
    }

    fn privates(&self) -> Vec<ServerMsg> {
        let messages = self.mail.iter().filter_map(|it| match it {
            ToGateway::ToPlayer { message, .. } => Some(message.clone()),
            _ => None,
        });
        messages.collect()
    }

    fn suspects(&self) -> Vec<BootId> {
        let boots = self.news.iter().filter_map(|news| match news {
            News::Suspect { boot } => Some(*boot),
            _ => None,
        });
        boots.collect()
    }

    fn private_numbers(&self) -> Vec<u64> {
        self.privates()
            .iter()
            .filter_map(ServerMsg::private)
            .collect()
    }

    /// The order numbers that were promised to be durable.
    fn saved(&self) -> Vec<u64> {
        let seqs = self.mail.iter().filter_map(|it| match it {
            ToGateway::Saved { seq, .. } => Some(*seq),
            _ => None,
        });
        seqs.collect()
    }

    fn owner(&mut self, id: CharId) -> Option<ClaimRow> {
        self.claim_row(Right::Character(id))
    }

    fn claim_row(&mut self, right: Right) -> Option<ClaimRow> {
        let request = Request::ClaimRead {
            right,
            serial: true,
        };
        match self.tables.apply(self.now, &request) {
            Ok(Reply::Claim(row)) => row,
            other => panic!("a claim is read: {other:?}"),
        }
    }

    fn row(&mut self, id: CharId) -> Option<CharacterRow> {
        let request = Request::CharacterRead { char_id: id };
        match self.tables.apply(self.now, &request) {
            Ok(Reply::Character(row)) => row.map(|row| row::decode(&row).expect("it decodes")),
            other => panic!("a character is read: {other:?}"),
        }
    }

    fn region_of(&self, id: CharId) -> Option<RegionId> {
        let character = self.core.characters.get(&id)?;
        // In the battle that its owner believes it to be in, and in no other.
        let battles: Vec<RegionId> = self
            .core
            .slots
            .iter()
            .filter_map(|slot| slot.region.as_ref())
            .filter(|region| region.contains(id))
            .map(|region| region.id())
            .collect();
        assert_eq!(battles, [character.region]);
        Some(character.region)
    }

    fn generation_of(&self, id: CharId) -> Option<u64> {
        Some(self.core.characters.get(&id)?.generation)
    }

    fn last_order_of(&self, id: CharId) -> Option<u64> {
        Some(self.core.characters.get(&id)?.last_order)
    }
}

/// Puts a character at rest into a store.
fn put_character(tables: &mut Tables, name: &str, pos: Pos) -> CharId {
    let char_id = CharId::of_name(name);
    let row = CharacterRow {
        generation: 1,
        fighter: Fighter::new(char_id, name, pos),
        session: 0,
        last_order: 0,
        last_private: 0,
        privates: Vec::new(),
    };
    let write = Request::CharacterSeal {
        char_id,
        number: 1,
        row: Some(row::encode(&row)),
    };
    let own = Request::ClaimCas {
        right: Right::Character(char_id),
        seen: None,
        to: ClaimRow {
            holder: None,
            number: 1,
            nonce: Nonce(1),
        },
    };
    for request in [write, own] {
        tables.apply(0, &request).expect("the tables take it");
    }
    char_id
}

fn is_open(world: World, pos: Pos) -> bool {
    let objects = &world.content(world.region_at(pos)).objects;
    world.tile(pos).terrain.is_walkable() && objects.iter().all(|it| it.pos() != pos)
}

fn holder(name: &str, boot: u128) -> Holder {
    Holder {
        node: NodeName::from(name),
        boot: BootId(boot << 64),
    }
}

fn is_cas(request: &Request) -> bool {
    matches!(request, Request::ClaimCas { .. })
}

/// A compare-and-set that takes a character for somebody (not a release).
fn is_character_claim(request: &Request) -> bool {
    match request {
        Request::ClaimCas {
            right: Right::Character(_),
            to,
            ..
        } => to.holder.is_some(),
        _ => false,
    }
}

fn is_character_write(request: &Request) -> bool {
    matches!(request, Request::CharacterWrite { .. })
}

fn look_around() -> Order {
    Order::Inventory
}
