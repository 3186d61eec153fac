//! A cluster for tests: cluster cores with small sims around one store, in virtual time from one seed.
//!
//! The store is the real tables; requests take their time, and what a script asks for goes wrong with them. After every
//! step it is checked that nobody acts whose boot is dead, and that no region is served by two who act.

use std::collections::BTreeMap;

use uo_proto::RegionId;

use super::*;
use crate::identity::{Nonce, Nonces};
use crate::store::tables::Tables;
use crate::store::{Life, Right};

/// What a region of a node is going through.
#[derive(Clone, Debug)]
enum Lease {
    /// To this row, which replaces that one.
    Taking(Request, u64),
    Held(u64),
    /// To nobody.
    Releasing(Request, u64),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Who {
    Core(Ticket),
    Region(RegionId, u64),
}

#[derive(Clone, Debug)]
enum Event {
    Tick(usize),
    /// The request reaches the store; the answer goes back unless it is lost.
    Apply(usize, Who, Request, bool),
    Answer(usize, Who, Result<Reply, StoreError>),
    /// A region's compare-and-set is sent again.
    Again(usize, RegionId, u64),
    /// A random boot for who asked for one.
    Boot(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Runs {
    Well,
    Paused,
    Not,
}

pub(super) struct Node {
    pub(super) core: ClusterCore,
    pub(super) runs: Runs,
    /// It does not reach the store.
    pub(super) cut: bool,
    /// Its clock, in thousandths of the true one.
    rate: u64,
    origin: u64,
    handled: u64,
    leases: BTreeMap<RegionId, Lease>,
    nonces: Nonces,
    waits: BTreeSet<Who>,
    /// What came while it was paused.
    inbox: VecDeque<Event>,
    pub(super) exit: Option<ExitReason>,
    pub(super) fenced: u32,
    pub(super) rebirths: u32,
    /// What it was to hand on, and to whom. Nothing ever comes of it.
    pub(super) drains: Vec<(RegionId, NodeName)>,
    /// It was told to stop, or to die.
    pub(super) ends: bool,
}

/// How well the store and the way to it work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// One way, at most.
    pub(super) delay_ms: u64,
    /// Requests that are lost on their way, in thousandths.
    pub(super) lost: u64,
    /// Answers that are lost, in thousandths.
    pub(super) unanswered: u64,
    /// Requests that arrive up to six seconds late, in thousandths.
    pub(super) late: u64,
}

pub(super) const FAIR: Weather = Weather {
    delay_ms: 15,
    lost: 0,
    unanswered: 0,
    late: 0,
};

pub(super) struct World {
    pub(super) now: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) tables: Tables,
    pub(super) weather: Weather,
    /// Nobody reaches the store.
    pub(super) outage: bool,
    /// The store can be read, but writes do not get through.
    pub(super) read_only: bool,
    pub(super) regions: u32,
    pub(super) planted: Planted,
    pub(super) timing: Timing,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    random: u64,
    /// When each boot was declared dead.
    pub(super) deaths: BTreeMap<BootId, u64>,
    /// How often all leases were read.
    pub(super) lease_reads: u32,
    /// What must never happen, and did.
    pub(super) violation: Option<String>,
}

impl World {
    pub(super) fn new(seed: u64, regions: u32) -> World {
        World {
            now: 0,
            nodes: Vec::new(),
            tables: Tables::default(),
            weather: FAIR,
            outage: false,
            read_only: false,
            regions,
            planted: Planted::NONE,
            timing: Timing::default(),
            queue: BTreeMap::new(),
            sequence: 0,
            random: seed,
            deaths: BTreeMap::new(),
            lease_reads: 0,
            violation: None,
        }
    }

    pub(super) fn random(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    fn boot(&mut self) -> BootId {
        let high = u128::from(self.random(u64::MAX));
        BootId(high << 64 | u128::from(self.random(u64::MAX)))
    }

    /// Starts a sim of this name. Its clock may be wrong by a hundredth.
    pub(super) fn start(&mut self, name: &str) -> usize {
        let role = Role::Sim;
        self.start_as(name, role, |_| {})
    }

    pub(super) fn start_as(
        &mut self,
        name: &str,
        role: Role,
        change: impl FnOnce(&mut ClusterConfig),
    ) -> usize {
        let boot = self.boot();
        let rate = 990 + self.random(21);
        let origin = self.random(1 << 40);
        let mut config = ClusterConfig {
            me: Holder {
                node: NodeName::from(name),
                boot,
            },
            role,
            regions: self.regions,
            demand_driven: false,
            others_are_dead: false,
            peer: None,
            clients: Vec::new(),
            timing: self.timing.clone(),
            planted: self.planted,
        };
        change(&mut config);
        let handled = origin + self.now * rate / 1000;
        self.nodes.push(Node {
            core: ClusterCore::new(config, handled),
            runs: Runs::Well,
            cut: false,
            rate,
            origin,
            handled,
            leases: BTreeMap::new(),
            nonces: Nonces::new(boot),
            waits: BTreeSet::new(),
            inbox: VecDeque::new(),
            exit: None,
            fenced: 0,
            rebirths: 0,
            drains: Vec::new(),
            ends: false,
        });
        let id = self.nodes.len() - 1;
        self.after(0, Event::Tick(id));
        id
    }

    fn after(&mut self, ms: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + ms, self.sequence), event);
    }

    /// Lets `ms` pass.
    pub(super) fn run(&mut self, ms: u64) {
        let until = self.now + ms;
        while let Some(entry) = self.queue.first_entry() {
            if entry.key().0 > until || self.violation.is_some() {
                break;
            }
            self.now = entry.key().0;
            let event = entry.remove();
            self.happen(event);
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        let id = match &event {
            Event::Tick(id) | Event::Answer(id, ..) | Event::Again(id, ..) | Event::Boot(id) => *id,
            Event::Apply(id, who, request, answered) => {
                return self.apply(*id, *who, request, *answered);
            }
        };
        match self.nodes[id].runs {
            Runs::Not => {}
            // Whoever wakes has missed ticks, not stored them up.
            Runs::Paused => {
                let node = &mut self.nodes[id];
                let has_tick = node.inbox.iter().any(|it| matches!(it, Event::Tick(_)));
                if !(has_tick && matches!(event, Event::Tick(_))) {
                    node.inbox.push_back(event);
                }
            }
            Runs::Well => self.take_in(id, event),
        }
    }

    fn take_in(&mut self, id: usize, event: Event) {
        match event {
            Event::Tick(_) => {
                self.after(50, Event::Tick(id));
                self.give(id, Input::Tick);
            }
            Event::Answer(_, who, reply) => {
                // The shell answers once: the store's answer, or the time-out.
                if !self.nodes[id].waits.remove(&who) {
                    return;
                }
                match who {
                    Who::Core(ticket) => self.give(id, Input::Store { ticket, reply }),
                    Who::Region(region, attempt) => self.lease_answered(id, region, attempt, reply),
                }
            }
            Event::Again(_, region, number) => {
                if let Some(Lease::Taking(request, at) | Lease::Releasing(request, at)) =
                    self.nodes[id].leases.get(&region)
                    && *at == number
                {
                    let request = request.clone();
                    self.ask_lease(id, region, request);
                }
            }
            Event::Boot(_) => {
                let boot = self.boot();
                self.give(id, Input::NewBoot(boot));
            }
            Event::Apply(..) => {}
        }
        self.check(id);
    }

    pub(super) fn local(&self, id: usize) -> u64 {
        let node = &self.nodes[id];
        node.origin + self.now * node.rate / 1000
    }

    pub(super) fn give(&mut self, id: usize, input: Input) {
        let now = self.local(id);
        let mut effects = Vec::new();
        let node = &mut self.nodes[id];
        node.handled = now;
        node.core.handle(now, input, &mut effects);
        for effect in effects {
            self.carry_out(id, effect);
        }
    }

    fn carry_out(&mut self, id: usize, effect: Effect) {
        match effect {
            Effect::Store { ticket, request } => self.send(id, Who::Core(ticket), request),
            Effect::Fence { fallen } => self.nodes[id].fenced += u32::from(fallen),
            Effect::Take { region, row } => self.take(id, region, row),
            Effect::ReadBack { leases } => {
                for (region, row) in leases {
                    self.lost(id, region, &row);
                }
            }
            Effect::WantBoot => self.after(1, Event::Boot(id)),
            Effect::Reborn { me } => {
                let node = &mut self.nodes[id];
                node.rebirths += 1;
                node.leases.clear();
                node.nonces = Nonces::new(me.boot);
            }
            Effect::Exit { why } => {
                self.nodes[id].exit = Some(why);
                self.nodes[id].runs = Runs::Not;
            }
            Effect::Retire { region } => self.retire(id, region),
            Effect::Drain { region, to, .. } => self.nodes[id].drains.push((region, to.node)),
            Effect::Alive | Effect::Dead { .. } | Effect::GiveUp | Effect::Members(_) => {}
        }
    }

    fn send(&mut self, id: usize, who: Who, request: Request) {
        self.nodes[id].waits.insert(who);
        let timeout_ms = match &request {
            Request::NodeBeat { .. } => 400,
            _ => 2_000,
        };
        let unknown = Err(StoreError::Unknown("time-out".into()));
        self.after(timeout_ms, Event::Answer(id, who, unknown));
        let Weather {
            delay_ms,
            lost,
            unanswered,
            late,
        } = self.weather;
        let is_read = matches!(
            request,
            Request::NodesRead
                | Request::LeasesRead
                | Request::LifeRead { .. }
                | Request::DemandRead
        );
        let unreachable = self.outage || self.nodes[id].cut || (self.read_only && !is_read);
        // Some of what does not get through lies in a queue, and does later.
        if self.random(1000) < lost || (unreachable && self.random(8) > 0) {
            return;
        }
        let mut delay = 1 + self.random(delay_ms);
        if unreachable || self.random(1000) < late {
            delay += self.random(6_000);
        }
        let answered = !unreachable && self.random(1000) >= unanswered;
        self.after(delay, Event::Apply(id, who, request, answered));
    }

    fn apply(&mut self, id: usize, who: Who, request: &Request, answered: bool) {
        let reply = self.tables.apply(self.now, request);
        self.lease_reads += u32::from(*request == Request::LeasesRead);
        if let (
            Request::LifeCas {
                boot,
                to: Life::Dead,
                ..
            },
            Ok(Reply::LifeCas { applied: true, .. }),
        ) = (request, &reply)
        {
            self.deaths.insert(*boot, self.now);
            self.check_death(*boot);
        }
        if answered {
            let delay = 1 + self.random(self.weather.delay_ms);
            self.after(delay, Event::Answer(id, who, reply));
        }
    }

    // The small sim: takes leases as it is told, and drops them when it is told.

    fn take(&mut self, id: usize, region: RegionId, row: Option<ClaimRow>) {
        let me = self.nodes[id].core.me().clone();
        let node = &mut self.nodes[id];
        if let Some(Lease::Held(epoch)) = node.leases.get(&region) {
            let epoch = *epoch;
            return self.give(id, Input::Served { region, epoch });
        }
        let holder = row.as_ref().and_then(|row| row.holder.clone());
        let takable = holder.is_none_or(|holder| holder == me || node.core.is_dead(holder.boot));
        if !takable {
            return self.give(id, Input::Gone { region, row });
        }
        let number = row.as_ref().map_or(0, |row| row.number) + 1;
        let request = Request::ClaimCas {
            right: Right::Region(region),
            seen: row.as_ref().map(ClaimRow::seen),
            to: ClaimRow {
                holder: Some(me),
                number,
                nonce: node.nonces.fresh(),
            },
        };
        node.leases
            .insert(region, Lease::Taking(request.clone(), number));
        self.ask_lease(id, region, request);
    }

    fn retire(&mut self, id: usize, region: RegionId) {
        let me = self.nodes[id].core.me().clone();
        let node = &mut self.nodes[id];
        let Some(Lease::Held(epoch)) = node.leases.get(&region) else {
            return;
        };
        let number = epoch + 1;
        let request = Request::ClaimCas {
            right: Right::Region(region),
            seen: Some(crate::store::Seen {
                holder: Some(me),
                number: *epoch,
            }),
            to: ClaimRow {
                holder: None,
                number,
                nonce: node.nonces.fresh(),
            },
        };
        let releasing = Lease::Releasing(request.clone(), number);
        node.leases.insert(region, releasing);
        self.ask_lease(id, region, request);
    }

    fn ask_lease(&mut self, id: usize, region: RegionId, request: Request) {
        self.sequence += 1;
        let who = Who::Region(region, self.sequence);
        self.send(id, who, request);
    }

    fn lease_answered(
        &mut self,
        id: usize,
        region: RegionId,
        _attempt: u64,
        reply: Result<Reply, StoreError>,
    ) {
        let (request, number, releases) = match self.nodes[id].leases.get(&region).cloned() {
            Some(Lease::Taking(request, number)) => (request, number, false),
            Some(Lease::Releasing(request, number)) => (request, number, true),
            Some(Lease::Held(_)) | None => return,
        };
        let Request::ClaimCas { seen, to, .. } = request else {
            return;
        };
        let nonce_of = |row: &Option<ClaimRow>| row.as_ref().map_or(Nonce(0), |row| row.nonce);
        match reply {
            Ok(Reply::ClaimCas { applied, row })
                if releases && (applied || row.as_ref().map(ClaimRow::seen) != seen) =>
            {
                self.nodes[id].leases.remove(&region);
                self.give(id, Input::Released { region, number });
            }
            Ok(Reply::ClaimCas { applied, row }) if applied || nonce_of(&row) == to.nonce => {
                self.nodes[id].leases.insert(region, Lease::Held(number));
                self.give(
                    id,
                    Input::Served {
                        region,
                        epoch: number,
                    },
                );
            }
            Ok(Reply::ClaimCas { row, .. }) if row.as_ref().map(ClaimRow::seen) != seen => {
                self.nodes[id].leases.remove(&region);
                self.give(id, Input::Gone { region, row });
            }
            _ => self.after(200, Event::Again(id, region, number)),
        }
    }

    fn lost(&mut self, id: usize, region: RegionId, row: &ClaimRow) {
        if let Some(Lease::Held(epoch)) = self.nodes[id].leases.get(&region)
            && row.number > *epoch
        {
            self.nodes[id].leases.remove(&region);
            let row = Some(row.clone());
            self.give(id, Input::Gone { region, row });
        }
    }

    /// Releases everything, as a sim does that stops.
    pub(super) fn stop(&mut self, id: usize) {
        self.give(id, Input::Stop);
        self.nodes[id].leases.clear();
        self.nodes[id].ends = true;
        self.give(id, Input::Drained);
    }

    /// Declares itself dead, as a sim does that can do no more.
    pub(super) fn die(&mut self, id: usize) {
        self.nodes[id].ends = true;
        self.give(id, Input::Dying);
    }

    pub(super) fn wake(&mut self, id: usize) {
        if self.nodes[id].runs == Runs::Paused {
            self.nodes[id].runs = Runs::Well;
            while let Some(event) = self.nodes[id].inbox.pop_front() {
                self.happen(event);
            }
        }
    }

    /// Everybody who stopped for a while goes on, and whatever was broken works.
    pub(super) fn mend(&mut self) {
        self.weather = FAIR;
        self.outage = false;
        self.read_only = false;
        for id in 0..self.nodes.len() {
            self.nodes[id].cut = false;
            self.wake(id);
        }
    }

    // What must never happen.

    /// Whether this node may act now, also when nothing has come to it for a while.
    pub(super) fn acts(&self, id: usize) -> bool {
        let node = &self.nodes[id];
        let since = self.local(id) - node.handled;
        let age = node.core.observe().fence_age_ms.unwrap_or(u64::MAX);
        node.runs == Runs::Well
            && node.core.may_act()
            && age.saturating_add(since) < node.core.config.timing.fence_ms
    }

    fn is_dead(&mut self, boot: BootId) -> bool {
        self.deaths.contains_key(&boot)
    }

    fn check_death(&mut self, boot: BootId) {
        let found = (0..self.nodes.len()).find(|id| self.nodes[*id].core.me().boot == boot);
        if let Some(id) = found
            && self.acts(id)
        {
            self.violation = Some(format!("{boot:?} was declared dead while it may act"));
        }
    }

    fn check(&mut self, id: usize) {
        if !self.acts(id) {
            return;
        }
        let boot = self.nodes[id].core.me().boot;
        if self.is_dead(boot) {
            self.violation = Some(format!("{boot:?} acts although it is dead"));
        }
        for region in self.served(id) {
            let others = (0..self.nodes.len()).filter(|other| *other != id && self.acts(*other));
            for other in others.collect::<Vec<_>>() {
                if self.served(other).contains(&region) {
                    self.violation = Some(format!("{region:?} is served by {id} and {other}"));
                }
            }
        }
    }

    /// The regions that a node serves, if it may act.
    pub(super) fn served(&self, id: usize) -> Vec<RegionId> {
        let held = self.nodes[id].leases.iter();
        held.filter(|(_, lease)| matches!(lease, Lease::Held(_)))
            .map(|(region, _)| *region)
            .collect()
    }

    /// The regions that nobody serves.
    pub(super) fn unserved(&self) -> Vec<RegionId> {
        let acting = (0..self.nodes.len()).filter(|id| self.acts(*id));
        let served: BTreeSet<RegionId> = acting.flat_map(|id| self.served(id)).collect();
        (0..self.regions)
            .map(RegionId)
            .filter(|region| !served.contains(region))
            .collect()
    }
}
