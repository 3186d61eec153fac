//! A store that is slow, loses answers and applies late, of which each machine has another time: the real tables behind
//! it, and every change of a register watched.

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::RegionId;
use uo_server::Millis;
use uo_server::cluster::core as cluster;
use uo_server::identity::{BootId, Holder, NodeName};
use uo_server::planted::Planted;
use uo_server::sim::core as sim;
use uo_server::sim::member;
#[cfg(feature = "planted-bugs")]
use uo_server::store::FaultRow;
use uo_server::store::tables::Tables;
use uo_server::store::{ClaimRow, Life, Reply, Request, Right, Stamp, StoreError};

use super::counted::StoreCounts;
use super::dice::Dice;
use super::lies::{Lies, read_claim};
use super::node::Node;
use super::plan::{COORDINATORS, Lost, Outage, Plan};

/// How long a caller waits for an answer.
const TIMEOUT_MS: Millis = 2_000;
/// And for that to a beat.
const BEAT_TIMEOUT_MS: Millis = 400;
/// What the slowest coordinator's clock shows when a run begins.
const BEGIN_MS: Millis = 1 << 40;

/// Who asked: a node, and which start of it.
pub type Asker = (Node, u32);

/// Which part of a node asked, and what it calls its question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ticket {
    Member(member::Ticket),
    Gateway(sim::Ticket),
    Cluster(cluster::Ticket),
    /// Nobody waits for the answer.
    Nobody,
}

/// What an answer comes to.
pub type Answer = Result<Reply, StoreError>;

/// A request under way.
#[derive(Debug)]
struct Call {
    asker: Asker,
    ticket: Ticket,
    request: Request,
    coordinator: usize,
    /// The time of day at its asker, which only a planted fault looks at.
    stamp: Millis,
    gives_up_at: Millis,
    /// What will be answered, once that is known.
    answer: Option<Answer>,
    is_answered: bool,
}

/// What is to happen to a call, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It takes effect.
    Apply(u64),
    /// Its answer arrives.
    Answer(u64),
}

/// What an effect means to others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Happening {
    /// A right went to somebody.
    Claimed(Right, Holder),
    /// A boot is dead, by that node's request.
    Died(BootId, Node),
}

impl Outage {
    fn hits(&self, node: Node, request: &Request) -> bool {
        let is_taken = match self.lost {
            Lost::Requests | Lost::Answers => true,
            Lost::AnswersOfLives => matches!(request, Request::LifeCas { .. }),
            Lost::Writes => !is_read(request),
        };
        is_taken && self.of.is_none_or(|of| of == node)
    }
}

fn is_read(request: &Request) -> bool {
    matches!(
        request,
        Request::LifeRead { .. }
            | Request::ClaimRead { .. }
            | Request::LeasesRead
            | Request::CharacterRead { .. }
            | Request::ObjectsRead { .. }
            | Request::SessionRead { .. }
            | Request::NodesRead
            | Request::DemandRead
            | Request::FaultRead { .. }
    )
}

fn is_cas(request: &Request) -> bool {
    matches!(
        request,
        Request::LifeBegin { .. }
            | Request::LifeCas { .. }
            | Request::ClaimCas { .. }
            | Request::FaultCas { .. }
            | Request::WorldPin { .. }
    )
}

/// The store.
#[derive(Debug)]
pub struct ModelStore {
    pub tables: Tables,
    lies: Lies,
    dice: Dice,
    skews_ms: [u64; COORDINATORS],
    calls: BTreeMap<u64, Call>,
    next: u64,
    /// Until when somebody cannot reach it, and how.
    outages: Vec<(Millis, Outage)>,
    /// Until when, and how much later than usual, reads of the nodes are answered.
    late: (Millis, Millis),
    /// The highest number each right was ever seen with.
    numbers: BTreeMap<Right, u64>,
    /// How often each right changed hands.
    changes: BTreeMap<Right, u64>,
    /// Under which epochs regions were offered, and to whom.
    offers: BTreeSet<(RegionId, u64, NodeName)>,
    lives: BTreeMap<BootId, Life>,
    /// What each stamp was used for: equal stamps merge cell by cell, so content may never differ under one.
    stamps: BTreeMap<(Right, Stamp), Request>,
    pub counts: StoreCounts,
}

impl ModelStore {
    pub fn new(dice: Dice, skews_ms: [u64; COORDINATORS], planted: Planted) -> ModelStore {
        ModelStore {
            tables: Tables::default(),
            lies: Lies::new(planted),
            dice,
            skews_ms,
            calls: BTreeMap::new(),
            next: 0,
            outages: Vec::new(),
            late: (0, 0),
            numbers: BTreeMap::new(),
            changes: BTreeMap::new(),
            offers: BTreeSet::new(),
            lives: BTreeMap::new(),
            stamps: BTreeMap::new(),
            counts: StoreCounts::default(),
        }
    }

    /// Until then it is out of reach; most of what is under way is lost as well.
    pub fn go_out(&mut self, until: Millis, outage: Outage) {
        self.outages.push((until, outage));
        let is_hit = |call: &&mut Call| outage.hits(call.asker.0, &call.request);
        for call in self.calls.values_mut().filter(is_hit) {
            if !call.is_answered && self.dice.chance(70) {
                call.answer = Some(Err(unknown()));
            }
        }
    }

    /// What is asked about the nodes until then is answered so much later.
    pub fn answer_late(&mut self, until: Millis, late: Millis) {
        self.late = (until, late);
    }

    /// An operator has the store forget the panics of a region.
    #[cfg(feature = "planted-bugs")]
    pub fn forget_panics(&mut self, now: Millis, region: RegionId) -> Result<(), String> {
        let here = BEGIN_MS + now;
        let mut ask = |request| self.tables.apply(here, &request);
        let Ok(Reply::Fault(seen @ Some(_))) = ask(Request::FaultRead { region }) else {
            return Err(format!("no panic of {region:?} was written down"));
        };
        let to = FaultRow::default();
        match ask(Request::FaultCas { region, seen, to }) {
            Ok(Reply::FaultCas { applied: true, .. }) => Ok(()),
            reply => Err(format!("the panics of {region:?} stay: {reply:?}")),
        }
    }

    /// The store is there again.
    pub fn come_back(&mut self) {
        self.outages.clear();
        self.late = (0, 0);
    }

    /// What an outage takes of a request, if there is one.
    fn lost(&self, now: Millis, node: Node, request: &Request) -> Option<Lost> {
        let mut hits = self.outages.iter();
        let hit = hits.find(|(until, outage)| now < *until && outage.hits(node, request));
        hit.map(|(_, outage)| outage.lost)
    }

    /// Whether a request is one that may be sent at all.
    pub fn inspect(&mut self, request: &Request) -> Result<(), String> {
        let used = match request {
            Request::CharacterWrite { char_id, stamp, .. } => (Right::Character(*char_id), *stamp),
            Request::CharacterSeal {
                char_id, number, ..
            } => (Right::Character(*char_id), seal(*number)),
            Request::ObjectsWrite { region, stamp, .. } => (Right::Region(*region), *stamp),
            Request::ObjectsSeal { region, number, .. } => (Right::Region(*region), seal(*number)),
            _ => return Ok(()),
        };
        match self.stamps.insert(used, request.clone()) {
            Some(before) if before != *request => {
                Err(format!("{used:?} stamps both {before:?} and {request:?}"))
            }
            _ => Ok(()),
        }
    }

    /// Takes a request, and tells what is to happen when.
    pub fn ask(
        &mut self,
        now: Millis,
        plan: &Plan,
        (asker, time_of_day): (Asker, Millis),
        ticket: Ticket,
        request: Request,
    ) -> Vec<(Millis, Step)> {
        self.next += 1;
        let id = self.next;
        let lost = self.lost(now, asker.0, &request);
        let dice = &mut self.dice;
        let timeout = match request {
            Request::NodeBeat { .. } => BEAT_TIMEOUT_MS,
            _ => TIMEOUT_MS,
        };
        let unknown_percent = match request {
            Request::NodeBeat { .. } => plan.unknown_beats_percent,
            Request::LifeBegin { .. } | Request::LifeCas { .. } => plan.unknown_lives_percent,
            Request::NodesRead => plan.unknown_nodes_percent,
            Request::ObjectsWrite { .. } | Request::CharacterWrite { .. } => {
                plan.unknown_writes_percent
            }
            _ => plan.unknown_percent,
        };
        let delay = match request {
            Request::NodesRead => plan.nodes,
            _ if is_cas(&request) => plan.cas,
            _ => plan.store,
        };
        let late = match (&request, self.late) {
            (Request::NodesRead, (until, late)) if now < until => late,
            _ => 0,
        };
        let gives_up_at = now + timeout;
        let mut call = Call {
            asker,
            ticket,
            request,
            coordinator: dice.below(COORDINATORS as u64) as usize,
            stamp: now + time_of_day,
            gives_up_at,
            answer: None,
            is_answered: false,
        };
        let mut steps = Vec::new();
        if let Some(Lost::Answers | Lost::AnswersOfLives) = lost {
            call.answer = Some(Err(unknown()));
            steps.push((now + delay.draw(dice), Step::Apply(id)));
            steps.push((gives_up_at, Step::Answer(id)));
        } else if lost.is_some() || dice.chance(unknown_percent) {
            call.answer = Some(Err(unknown()));
            steps.push((gives_up_at, Step::Answer(id)));
            if dice.chance(if lost.is_some() { 10 } else { 50 }) {
                // At once, or long after its asker has given up.
                let within = if dice.chance(30) {
                    timeout
                } else {
                    plan.late_ms_max
                };
                steps.push((now + dice.below(within), Step::Apply(id)));
            }
        } else if dice.chance(plan.refused_percent) {
            call.answer = Some(Err(StoreError::Refused("not now".into())));
            steps.push((now + delay.draw(dice), Step::Answer(id)));
        } else {
            let applied = now + delay.draw(dice);
            let answered = applied + delay.draw(dice) + late;
            if answered > gives_up_at {
                call.answer = Some(Err(unknown()));
            }
            steps.push((applied, Step::Apply(id)));
            steps.push((answered.min(gives_up_at), Step::Answer(id)));
        }
        self.calls.insert(id, call);
        steps
    }

    /// A region is offered under an epoch: whoever it is offered to may claim it.
    pub fn offered(&mut self, region: RegionId, epoch: u64, to: NodeName) {
        self.offers.insert((region, epoch, to));
    }

    /// A request takes effect. What that means, or what it breaks.
    pub fn apply(&mut self, now: Millis, id: u64) -> Result<Option<Happening>, String> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(None);
        };
        let here = BEGIN_MS + now + self.skews_ms[call.coordinator];
        let (stamp, request) = (call.stamp, &call.request);
        let reply = self.lies.apply(&mut self.tables, here, stamp, request);
        self.counts.late_writes += u64::from(call.is_answered);
        let request = call.request.clone();
        let (by, _) = call.asker;
        let happened = match &reply {
            Ok(reply) => self.watch(by, &request, reply),
            Err(_) => Ok(None),
        };
        if let Some(call) = self.calls.get_mut(&id) {
            call.answer.get_or_insert(reply);
        }
        happened
    }

    fn watch(
        &mut self,
        by: Node,
        request: &Request,
        reply: &Reply,
    ) -> Result<Option<Happening>, String> {
        match (request, reply) {
            (Request::ClaimCas { right, seen, to }, Reply::ClaimCas { applied: true, .. }) => {
                watch_number(&mut self.numbers, *right, to)?;
                let before = seen.as_ref().and_then(|seen| seen.holder.as_ref());
                if before != to.holder.as_ref() {
                    *self.changes.entry(*right).or_default() += 1;
                }
                let Some(holder) = &to.holder else {
                    return Ok(None);
                };
                if let (Right::Region(region), Some(before)) = (right, before)
                    && before.boot != holder.boot
                {
                    let offer = (*region, to.number - 1, holder.node.clone());
                    if self.offers.contains(&offer) {
                        self.counts.drained += 1;
                        return Ok(Some(Happening::Claimed(*right, holder.clone())));
                    }
                    if self.lives.get(&before.boot) != Some(&Life::Dead) {
                        return Err(format!("{right:?} was claimed from {before:?}, who lives"));
                    }
                    self.counts.takeovers += 1;
                }
                Ok(Some(Happening::Claimed(*right, holder.clone())))
            }
            (Request::LifeBegin { boot, .. }, Reply::Life(Some(life))) => {
                self.lives.insert(*boot, *life);
                Ok(None)
            }
            (Request::LifeCas { boot, to, .. }, Reply::LifeCas { applied: true, .. }) => {
                self.watch_life(by, *boot, *to)
            }
            _ => Ok(None),
        }
    }

    /// A life's number only grows, until the boot is dead for ever.
    fn watch_life(
        &mut self,
        by: Node,
        boot: BootId,
        to: Life,
    ) -> Result<Option<Happening>, String> {
        let before = self.lives.insert(boot, to);
        match (before, to) {
            (Some(Life::Dead), Life::Dead) => Ok(None),
            (Some(Life::Dead), _) => Err(format!("{boot:?} was dead, and became {to:?}")),
            (_, Life::Dead) => {
                self.counts.deaths += 1;
                Ok(Some(Happening::Died(boot, by)))
            }
            (Some(Life::Alive(old)), Life::Alive(new)) if new > old => {
                self.counts.thaws += 1;
                Ok(None)
            }
            _ => Err(format!(
                "the life of {boot:?} went from {before:?} to {to:?}"
            )),
        }
    }

    /// The answer of a call is at its asker's machine, where no outage reaches it.
    pub fn arrived(&mut self, id: u64) {
        let call = self.calls.get_mut(&id);
        if let Some(call) = call.filter(|call| call.answer.is_some()) {
            call.is_answered = true;
        }
    }

    /// Which region's objects a call reads.
    pub fn region_read(&self, id: u64) -> Option<RegionId> {
        match self.calls.get(&id)?.request {
            Request::ObjectsRead { region } => Some(region),
            _ => None,
        }
    }

    /// Whose call it is.
    pub fn asker(&self, id: u64) -> Option<Asker> {
        self.calls.get(&id).map(|call| call.asker)
    }

    /// The answer of a call, and whose it is; or when it will be there, if it was lost on its way. A call that was given up
    /// may still take effect after it.
    pub fn answer(
        &mut self,
        now: Millis,
        id: u64,
    ) -> Option<Result<(Asker, Ticket, Answer), Millis>> {
        let call = self.calls.get_mut(&id)?;
        let answer = call.answer.clone()?;
        if matches!(answer, Err(StoreError::Unknown(_))) {
            if now < call.gives_up_at {
                return Some(Err(call.gives_up_at));
            }
            self.counts.unknowns += 1;
            if matches!(
                call.request,
                Request::LifeCas { .. } | Request::LifeBegin { .. }
            ) {
                self.counts.unknown_lives += 1;
            }
        }
        call.is_answered = true;
        let (asker, ticket) = (call.asker, call.ticket);
        if answer.is_ok() {
            self.calls.remove(&id);
        }
        Some(Ok((asker, ticket, answer)))
    }

    /// A process died: of what it had sent, half never leaves its machine.
    pub fn forget(&mut self, asker: Asker) {
        let dice = &mut self.dice;
        self.calls.retain(|_, call| {
            let is_sent = call.asker != asker || call.ticket == Ticket::Nobody;
            is_sent || dice.chance(50)
        });
    }

    /// The row of a right, as it is.
    pub fn claim(&mut self, right: Right) -> Option<ClaimRow> {
        read_claim(&mut self.tables, right)
    }

    /// How often a right changed hands. A holder that raises its own number does not change it.
    pub fn changes(&self, right: Right) -> u64 {
        self.changes.get(&right).copied().unwrap_or_default()
    }

    /// Whether a boot was declared dead.
    pub fn is_dead(&self, boot: BootId) -> bool {
        self.lives.get(&boot) == Some(&Life::Dead)
    }
}

fn unknown() -> StoreError {
    StoreError::Unknown("no answer in time".into())
}

/// The stamp of a seal's rows.
fn seal(number: u64) -> Stamp {
    Stamp { number, n: 1 }
}

/// Numbers only grow, by whoever writes them.
fn watch_number(
    numbers: &mut BTreeMap<Right, u64>,
    right: Right,
    to: &ClaimRow,
) -> Result<(), String> {
    let known = numbers.entry(right).or_default();
    if to.number <= *known {
        return Err(format!(
            "{right:?} went from number {known} to {}",
            to.number
        ));
    }
    *known = to.number;
    Ok(())
}
