//! A member against an in-memory store, in virtual time.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::{CharId, NumberedOrder, Order, RegionId, TICK_MS};
use uo_world::World;

use super::*;
use crate::cluster::timing::Timing;
use crate::peer::message::{Attach, RoutedOrder};
use crate::peer::{PeerAddress, ToGateway};
use crate::planted::Planted;
use crate::store::tables::Tables;
use crate::store::{ClaimRow, Life, Right};

const MAP: u16 = 128;
const REGIONS: u32 = 4;

/// What becomes of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Store {
    /// They are carried out and answered at once.
    Up,
    /// They are lost; beats are given up after 400 ms, all others after two seconds.
    Down,
}

/// A member and its world.
struct Rig {
    member: Member,
    tables: Tables,
    store: Store,
    now: Millis,
    boots: u128,
    /// Requests that were lost, until whoever asked is told.
    lost: BTreeMap<(Millis, Ticket), ()>,
    /// Seals of regions that the test answers, if it wants to.
    kept: Option<Vec<(Ticket, Request)>>,
    mail: Vec<(Holder, ToGateway)>,
    alive: Vec<Holder>,
    peers: Vec<PeerAddress>,
    exit: Option<ExitReason>,
}

fn holder(name: &str, boot: u128) -> Holder {
    Holder {
        node: name.into(),
        boot: BootId(boot << 64),
    }
}

impl Rig {
    fn new(tables: Tables, name: &str, boot: u128) -> Rig {
        Rig::with(tables, name, boot, |_| {})
    }

    fn with(
        tables: Tables,
        name: &str,
        boot: u128,
        change: impl FnOnce(&mut ClusterConfig),
    ) -> Rig {
        let me = holder(name, boot);
        let world = World::new(7, MAP).expect("the size is good");
        let mut cluster = ClusterConfig {
            me: me.clone(),
            role: Role::All,
            regions: REGIONS,
            demand_driven: false,
            others_are_dead: false,
            peer: None,
            clients: Vec::new(),
            timing: Timing::default(),
            planted: Planted::NONE,
        };
        change(&mut cluster);
        Rig {
            member: Member::new(cluster, SimConfig::alone(me, world), 0),
            tables,
            store: Store::Up,
            now: 1_000,
            boots: boot,
            lost: BTreeMap::new(),
            kept: None,
            mail: Vec::new(),
            alive: Vec::new(),
            peers: Vec::new(),
            exit: None,
        }
    }

    /// A member that holds every region.
    fn running() -> Rig {
        let mut rig = Rig::new(Tables::default(), "one", 1);
        rig.pass(1_000);
        assert!(rig.member.sim_core().holds_everything());
        rig
    }

    fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.member.handle(self.now, input, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut queue = VecDeque::from(effects);
        while let Some(effect) = queue.pop_front() {
            let mut next = Vec::new();
            match effect {
                Effect::Store {
                    ticket,
                    request: request @ Request::ObjectsSeal { .. },
                } if self.kept.is_some() => self.kept.iter_mut().for_each(|kept| {
                    kept.push((ticket, request.clone()));
                }),
                Effect::Store { ticket, request } if self.store == Store::Up => {
                    let reply = self.tables.apply(self.now, &request);
                    let answer = Input::Store { ticket, reply };
                    self.member.handle(self.now, answer, &mut next);
                }
                Effect::Store { ticket, request } => {
                    let is_beat = matches!(request, Request::NodeBeat { .. });
                    let wait = if is_beat { 400 } else { 2_000 };
                    self.lost.insert((self.now + wait, ticket), ());
                }
                Effect::Send {
                    from,
                    message: Message::ToGateway(message),
                    ..
                } => self.mail.push((from, message)),
                Effect::Send { .. } => {}
                Effect::Reach(reach) => self.alive = reach.sims,
                Effect::Peers { peers } => self.peers = peers,
                Effect::WantBoot => {
                    self.boots += 1;
                    let boot = BootId(self.boots << 64);
                    let input = Input::NewBoot { boot };
                    self.member.handle(self.now, input, &mut next);
                }
                Effect::Exit { why } => self.exit = Some(why),
            }
            queue.extend(next);
        }
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms / TICK_MS {
            self.now += TICK_MS;
            self.tell_lost();
            self.input(Input::Tick { parallel: false });
        }
    }

    fn tell_lost(&mut self) {
        while let Some((&(at, ticket), ())) = self.lost.first_key_value()
            && at <= self.now
        {
            self.lost.pop_first();
            let reply = Err(StoreError::Unknown("by the test".into()));
            self.input(Input::Store { ticket, reply });
        }
    }

    fn attach(&mut self, name: &str) {
        let gateway = holder("gate", 77);
        let message = ToSim::Attach(Attach {
            char_id: CharId::of_name(name),
            name: name.into(),
            session: None,
            attach: 1,
            gateway: gateway.clone(),
            last_private: 0,
        });
        self.input(Input::Peer {
            from: gateway,
            message,
        });
    }

    fn order(&mut self, name: &str, seq: u64) {
        let order = NumberedOrder {
            seq,
            order: Order::Inventory,
        };
        let message = ToSim::Order(RoutedOrder {
            char_id: CharId::of_name(name),
            generation: 0,
            session: 1,
            order,
            target_region: None,
        });
        let from = holder("gate", 77);
        self.input(Input::Peer { from, message });
    }

    fn is_told(&self, is_it: impl Fn(&ToGateway) -> bool) -> bool {
        self.mail.iter().any(|(_, message)| is_it(message))
    }

    fn life_of(&mut self, boot: BootId) -> Option<Life> {
        match self.tables.apply(self.now, &Request::LifeRead { boot }) {
            Ok(Reply::Life(life)) => life,
            other => panic!("a life is read: {other:?}"),
        }
    }

    fn leases(&mut self) -> Vec<(RegionId, ClaimRow)> {
        match self.tables.apply(self.now, &Request::LeasesRead) {
            Ok(Reply::Leases(leases)) => leases,
            other => panic!("the leases are read: {other:?}"),
        }
    }

    fn ticks(&self) -> u64 {
        let regions = self.member.sim_core().region_states();
        regions.iter().map(|region| region.ticks).sum()
    }
}

#[test]
fn a_lone_member_begins_its_life_and_holds_everything_at_once() {
    let mut rig = Rig::new(Tables::default(), "one", 1);
    rig.pass(100);
    assert!(rig.member.sim_core().holds_everything());
    let me = holder("one", 1);
    assert_eq!(rig.life_of(me.boot), Some(Life::Alive(1)));
    assert_eq!(rig.alive, [me]);
    assert_eq!(rig.member.life(), 1);
}

#[test]
fn it_tells_where_the_others_can_be_reached() {
    let mut one = Rig::with(Tables::default(), "one", 1, |config| {
        config.peer = Some("h:1".into());
    });
    one.pass(1_000);
    assert_eq!(one.peers, []);
    let mut two = Rig::new(std::mem::take(&mut one.tables), "two", 2);
    two.pass(1_000);
    let expected = PeerAddress {
        holder: holder("one", 1),
        role: Role::All,
        address: Some("h:1".into()),
    };
    assert_eq!(two.peers, [expected]);
}

#[test]
fn a_restart_takes_everything_from_its_dead_predecessor_at_once() {
    let tables = Rig::running().tables;
    let mut rig = Rig::with(tables, "one", 2, |config| config.others_are_dead = true);
    rig.pass(100);
    assert!(rig.member.sim_core().holds_everything());
    assert_eq!(rig.member.counters().takeovers, u64::from(REGIONS));
    assert_eq!(rig.member.counters().regions_gone, 0);
}

#[test]
fn it_is_ready_when_it_holds_what_it_should() {
    let mut rig = Rig::new(Tables::default(), "one", 1);
    rig.kept = Some(Vec::new());
    rig.pass(100);
    assert!(!rig.member.is_ready(), "its seals are not answered yet");
    for (ticket, request) in rig.kept.take().unwrap_or_default() {
        let reply = rig.tables.apply(rig.now, &request);
        rig.input(Input::Store { ticket, reply });
    }
    assert!(rig.member.is_ready());
    rig.store = Store::Down;
    rig.pass(4_000);
    assert!(!rig.member.is_ready(), "the world stands still");
}

// Goes red when `handle` gives the sim core its input before the cluster core has heard that time passed.
#[test]
fn a_fence_that_has_fallen_is_noticed_before_anything_is_done() {
    let mut rig = Rig::running();
    rig.attach("Anna");
    assert!(rig.is_told(|it| matches!(it, ToGateway::Attached(_))));
    // Nothing wakes the process for three seconds, and the first thing it hears is an order.
    rig.store = Store::Down;
    rig.now += 3_000;
    rig.mail.clear();
    rig.order("Anna", 1);
    assert!(!rig.is_told(|it| matches!(it, ToGateway::ToPlayer { .. })));
    assert!(rig.is_told(|it| *it == ToGateway::Frozen { is_frozen: true }));
}

#[test]
fn an_outage_freezes_the_world_and_it_goes_on_where_it_stood() {
    let mut rig = Rig::running();
    rig.attach("Anna");
    rig.order("Anna", 1);
    rig.store = Store::Down;
    rig.pass(3_000);
    let stood = rig.ticks();
    let before = rig.member.sim_core().character_states();
    rig.pass(30_000);
    assert_eq!(rig.ticks(), stood);
    rig.order("Anna", 2);
    rig.store = Store::Up;
    rig.mail.clear();
    rig.pass(1_500);
    assert!(rig.ticks() > stood);
    assert!(rig.is_told(|it| *it == ToGateway::Frozen { is_frozen: false }));
    assert!(rig.is_told(|it| matches!(it, ToGateway::ToPlayer { .. })));
    let boot = rig.member.me().boot;
    assert_eq!(rig.life_of(boot), Some(Life::Alive(2)));
    assert_eq!(rig.member.life(), 2);
    let after = rig.member.sim_core().character_states();
    assert_eq!(before[0].generation, after[0].generation);
    assert_eq!((before[0].x, before[0].y), (after[0].x, after[0].y));
}

#[test]
fn whoever_was_declared_dead_starts_over_as_another_boot() {
    let mut rig = Rig::running();
    rig.attach("Anna");
    let was = rig.member.me().clone();
    let other = holder("two", 500);
    rig.store = Store::Down;
    rig.pass(4_000);
    // Another declares it dead and takes a region and the character.
    let death = Request::LifeCas {
        boot: was.boot,
        from: Some(Life::Alive(1)),
        to: Life::Dead,
    };
    rig.tables.apply(rig.now, &death).expect("it is written");
    let begin = Request::LifeBegin {
        node: other.node.clone(),
        boot: other.boot,
    };
    rig.tables.apply(rig.now, &begin).expect("it is written");
    let (region, row) = rig.leases()[0].clone();
    let taken = Request::ClaimCas {
        right: Right::Region(region),
        seen: Some(row.seen()),
        to: ClaimRow {
            holder: Some(other.clone()),
            number: row.number + 1,
            nonce: crate::identity::Nonce(9),
        },
    };
    rig.tables.apply(rig.now, &taken).expect("it is written");
    rig.store = Store::Up;
    rig.mail.clear();
    rig.pass(2_500);

    let me = rig.member.me().clone();
    assert_ne!(me.boot, was.boot);
    assert_eq!(me.node, was.node);
    assert_eq!(rig.life_of(me.boot), Some(Life::Alive(1)));
    assert_eq!(rig.alive, std::slice::from_ref(&me));
    let held: Vec<RegionId> = rig
        .leases()
        .into_iter()
        .filter(|(_, row)| row.holder.as_ref() == Some(&me))
        .map(|(region, _)| region)
        .collect();
    assert_eq!(held.len(), REGIONS as usize - 1, "the other lives, for now");
    let served = rig.member.sim_core().region_states();
    let served: Vec<RegionId> = served.iter().map(|region| region.id).collect();
    assert_eq!(served, held);
    assert_eq!(rig.member.sim_core().character_states(), []);
    // What it says now it says as the new boot.
    assert!(rig.mail.iter().all(|(from, _)| *from == me));
    assert!(!rig.mail.is_empty());
}

#[test]
fn a_stop_releases_everything_and_ends_the_life() {
    let mut rig = Rig::running();
    rig.attach("Anna");
    rig.input(Input::Stop);
    rig.pass(2_000);
    assert_eq!(rig.exit, Some(ExitReason::Stopped));
    assert!(rig.leases().iter().all(|(_, row)| row.holder.is_none()));
    assert_eq!(rig.life_of(holder("one", 1).boot), Some(Life::Dead));
}

#[test]
fn a_stop_before_the_first_beat_ends_at_once() {
    let mut rig = Rig::new(Tables::default(), "one", 1);
    rig.store = Store::Down;
    rig.pass(500);
    rig.input(Input::Stop);
    rig.pass(100);
    assert!(rig.exit.is_some() || !rig.lost.is_empty());
}

#[test]
fn a_second_process_of_a_name_leaves() {
    let mut rig = Rig::running();
    let mut newcomer = Rig::new(Tables::default(), "one", 2);
    for _ in 0..60 {
        rig.pass(TICK_MS);
        std::mem::swap(&mut rig.tables, &mut newcomer.tables);
        newcomer.now = rig.now - TICK_MS;
        newcomer.pass(TICK_MS);
        std::mem::swap(&mut rig.tables, &mut newcomer.tables);
    }
    let other = holder("one", 1).boot;
    assert_eq!(newcomer.exit, Some(ExitReason::NameTaken { other }));
    assert_eq!(rig.exit, None);
}

#[test]
fn a_region_that_ends_its_node_is_written_down_and_the_node_ends() {
    let mut rig = Rig::running();
    rig.attach("Anna");
    let boot = rig.member.me().boot;
    let region = RegionId(2);
    let mut effects = Vec::new();
    let mut turn = Turn {
        now: rig.now,
        steps: VecDeque::new(),
        effects: &mut effects,
    };
    let mut gone = Vec::new();
    rig.member.sim.break_down_at(region, &mut gone);
    rig.member.break_down(region, &mut turn);
    rig.member.settle(&mut turn);
    // Red when it is declared dead at once: somebody could take the region before it is known what it does.
    let dies = |effect: &Effect| {
        matches!(
            effect,
            Effect::Store {
                request: Request::LifeCas { .. },
                ..
            }
        )
    };
    assert!(!effects.iter().any(dies), "first the report");
    rig.carry_out(effects);
    rig.mail.clear();
    rig.order("Anna", 1);
    rig.pass(200);
    assert_eq!(rig.exit, Some(ExitReason::Died));
    assert_eq!(rig.life_of(boot), Some(Life::Dead));
    assert!(rig.mail.is_empty(), "nothing of it is done any more");
    let fault = rig.tables.apply(rig.now, &Request::FaultRead { region });
    let Ok(Reply::Fault(Some(row))) = fault else {
        panic!("the row is there: {fault:?}");
    };
    assert_eq!(row.panics, [boot]);
    assert!(!row.quarantined, "it was the first");
}

#[test]
fn a_node_does_not_wait_for_ever_to_write_down_what_ended_it() {
    let mut report = fault::FaultReport::new(RegionId(1), BootId(7), 1_000);
    assert!(matches!(report.read(), Request::FaultRead { .. }));
    assert!(!report.is_over(1_999));
    assert!(report.is_over(2_000));
}

#[test]
fn a_report_is_repeated_until_the_row_has_it() {
    use crate::store::FaultRow;
    let region = RegionId(1);
    let mut report = fault::FaultReport::new(region, BootId(7), 0);
    report.read();
    let unknown = || Err(StoreError::Unknown("by the test".into()));
    assert_eq!(
        report.answered(unknown()),
        Some(Request::FaultRead { region })
    );
    let Some(Request::FaultCas { seen, .. }) = report.answered(Ok(Reply::Fault(None))) else {
        panic!("it is written");
    };
    assert_eq!(seen, None);
    // Another was faster: the two of them are enough for a quarantine.
    let other = FaultRow {
        panics: vec![BootId(3)],
        quarantined: false,
    };
    let refused = Reply::FaultCas {
        applied: false,
        row: Some(other.clone()),
    };
    let Some(Request::FaultCas { seen, to, .. }) = report.answered(Ok(refused)) else {
        panic!("it is written again");
    };
    assert_eq!(seen, Some(other));
    assert_eq!(to.panics, [BootId(3), BootId(7)]);
    assert!(to.quarantined);
    // Nobody knows whether that arrived; the row tells.
    report.answered(unknown());
    assert_eq!(report.answered(Ok(Reply::Fault(Some(to)))), None);
    assert!(report.is_over(0));
}
