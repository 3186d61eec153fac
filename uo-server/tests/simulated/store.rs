//! A store that is slow, loses answers and applies late: the real tables behind it, and every change of ownership watched.

use std::collections::BTreeMap;

use uo_server::Millis;
use uo_server::sim::core::Ticket;
use uo_server::store::tables::Tables;
use uo_server::store::{ClaimRow, Reply, Request, Right, Stamp, StoreError};

use super::dice::Dice;
use super::plan::Plan;

/// How long a caller waits for an answer.
const TIMEOUT_MS: u64 = 400;
/// A request that was given up may take effect this much later.
const LATE_MS_MAX: u64 = 3_000;

/// Who asked: a node, and which start of it.
pub type Asker = (super::shard::Node, u32);

/// A request under way.
#[derive(Debug)]
struct Call {
    asker: Asker,
    ticket: Ticket,
    request: Request,
    answer: Option<Result<Reply, StoreError>>,
}

/// What is to happen to a call, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It takes effect.
    Apply(u64),
    /// Its answer arrives.
    Answer(u64),
}

/// The store.
#[derive(Debug)]
pub struct ModelStore {
    pub tables: Tables,
    dice: Dice,
    calls: BTreeMap<u64, Call>,
    next: u64,
    outage_until: Millis,
    /// The highest number each right was ever seen with.
    numbers: BTreeMap<Right, u64>,
    /// What each stamp was used for: equal stamps merge cell by cell, so content may never differ under one.
    stamps: BTreeMap<(Right, Stamp), Request>,
    pub unknowns: u64,
}

impl ModelStore {
    pub fn new(dice: Dice) -> ModelStore {
        ModelStore {
            tables: Tables::default(),
            dice,
            calls: BTreeMap::new(),
            next: 0,
            outage_until: 0,
            numbers: BTreeMap::new(),
            stamps: BTreeMap::new(),
            unknowns: 0,
        }
    }

    /// Until then nobody gets an answer.
    pub fn go_out(&mut self, until: Millis) {
        self.outage_until = self.outage_until.max(until);
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
        asker: Asker,
        ticket: Ticket,
        request: Request,
    ) -> Vec<(Millis, Step)> {
        self.next += 1;
        let id = self.next;
        let dice = &mut self.dice;
        let is_out = now < self.outage_until;
        let is_unknown = is_out || dice.chance(plan.unknown_percent);
        let mut call = Call {
            asker,
            ticket,
            request,
            answer: None,
        };
        let mut steps = Vec::new();
        if is_unknown {
            self.unknowns += 1;
            call.answer = Some(Err(StoreError::Unknown("no answer in time".into())));
            steps.push((now + TIMEOUT_MS, Step::Answer(id)));
            if dice.chance(if is_out { 10 } else { 50 }) {
                let late = dice.below(LATE_MS_MAX);
                steps.push((now + late, Step::Apply(id)));
            }
        } else if dice.chance(plan.refused_percent) {
            call.answer = Some(Err(StoreError::Refused("not now".into())));
            steps.push((now + plan.store.draw(dice), Step::Answer(id)));
        } else {
            let applied = now + plan.store.draw(dice);
            let answered = applied + plan.store.draw(dice);
            steps.push((applied, Step::Apply(id)));
            steps.push((answered, Step::Answer(id)));
        }
        self.calls.insert(id, call);
        steps
    }

    /// A request takes effect. What that breaks, in words.
    pub fn apply(&mut self, now: Millis, id: u64) -> Result<(), String> {
        let Some(call) = self.calls.get_mut(&id) else {
            return Ok(());
        };
        let reply = self.tables.apply(now, &call.request);
        let watched = match (&call.request, &reply) {
            (Request::ClaimCas { right, to, .. }, Ok(Reply::ClaimCas { applied: true, .. })) => {
                watch(&mut self.numbers, *right, to)
            }
            _ => Ok(()),
        };
        call.answer.get_or_insert(reply);
        watched
    }

    /// The answer of a call, and whose it is. A call that was given up may still take effect after it.
    pub fn answer(&mut self, id: u64) -> Option<(Asker, Ticket, Result<Reply, StoreError>)> {
        let call = self.calls.get_mut(&id)?;
        let answer = call.answer.clone()?;
        let (asker, ticket) = (call.asker, call.ticket);
        if answer.is_ok() {
            self.calls.remove(&id);
        }
        Some((asker, ticket, answer))
    }

    /// A process died: of what it had sent, half never leaves its machine.
    pub fn forget(&mut self, asker: Asker) {
        let dice = &mut self.dice;
        self.calls
            .retain(|_, call| call.asker != asker || dice.chance(50));
    }

    /// The row of a right, as it is.
    pub fn claim(&mut self, right: Right) -> Option<ClaimRow> {
        let request = Request::ClaimRead {
            right,
            serial: true,
        };
        match self.tables.apply(0, &request) {
            Ok(Reply::Claim(row)) => row,
            _ => None,
        }
    }
}

/// The stamp of a seal's rows.
fn seal(number: u64) -> Stamp {
    Stamp { number, n: 1 }
}

/// Numbers only grow, by whoever writes them.
fn watch(numbers: &mut BTreeMap<Right, u64>, right: Right, to: &ClaimRow) -> Result<(), String> {
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
