//! Carrying out what claims want, and taking the store's answers to whoever asked.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{CharId, RegionId};

use super::core::{SimCore, Ticket};
use super::timer::Timer;
use crate::cluster::claim::{Claim, Context, Input, Output};
use crate::limits::CAS_RETRY_MS;
use crate::store::{ClaimRow, Reply, Request, Right, Stamp, StoreError};

/// In which part a claim is played here. Of one character there can be two at a time: outgoing from one region of this
/// node and arriving in another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Who {
    /// A region's lease.
    Region(RegionId),
    /// A character that a gateway wants attached.
    Entering(CharId),
    /// A character that is owned and in a battle.
    Owned(CharId),
    /// A character on its way out of a battle.
    Outgoing(CharId),
    /// A character that another offers.
    Arrival(CharId),
    /// A character that is being released.
    Leaving(CharId),
}

impl Who {
    fn right(self) -> Right {
        match self {
            Who::Region(region) => Right::Region(region),
            Who::Entering(char_id)
            | Who::Owned(char_id)
            | Who::Outgoing(char_id)
            | Who::Arrival(char_id)
            | Who::Leaving(char_id) => Right::Character(char_id),
        }
    }
}

/// Whose request it was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Asked {
    /// A claim's.
    Claim(Who),
    /// A checkpoint.
    Checkpoint(CharId),
    /// The last write of a character that leaves.
    LastWrite(CharId),
    /// A region's object writes.
    Objects(RegionId, Stamp),
    /// Who owns a character, to be sure.
    OwnerReadBack(CharId),
    /// Whether a region may run.
    Health(RegionId),
}

/// A claim, and the request of it that is under way.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Task {
    pub(super) claim: Claim,
    pub(super) ticket: Option<Ticket>,
    /// The newest seal and its number: one that is repeated has the same stamps, so it has the same content, whatever
    /// happened meanwhile.
    seal: Option<(u64, Request)>,
}

impl SimCore {
    pub(super) fn task(&mut self, who: Who) -> Option<&mut Task> {
        match who {
            Who::Region(region) => Some(&mut self.slot_mut(region)?.task),
            Who::Entering(id) => Some(&mut self.entering.get_mut(&id)?.task),
            Who::Owned(id) => Some(&mut self.characters.get_mut(&id)?.task),
            Who::Outgoing(id) => Some(&mut self.outgoing.get_mut(&id)?.character.task),
            Who::Arrival(id) => Some(&mut self.arrivals.get_mut(&id)?.task),
            Who::Leaving(id) => Some(&mut self.leaving.get_mut(&id)?.task),
        }
    }

    /// Gives a claim its next input and carries out what it answers.
    pub(super) fn drive(&mut self, who: Who, input: Input) {
        let Some(task) = self.task(who) else {
            return;
        };
        let mut claim = std::mem::take(&mut task.claim);
        let output = claim.handle(
            input,
            &mut Context {
                me: &self.config.me,
                is_dead: &|boot| self.others.is_dead(boot),
                nonces: &mut self.nonces,
                planted: self.config.planted,
            },
        );
        if let Some(task) = self.task(who) {
            task.claim = claim;
        }
        self.carry_out(who, output);
    }

    fn carry_out(&mut self, who: Who, output: Output) {
        let right = who.right();
        match output {
            Output::Nothing => {}
            Output::Read => self.ask_for(
                who,
                Request::ClaimRead {
                    right,
                    serial: true,
                },
            ),
            Output::Cas(attempt) => {
                let (seen, to) = (attempt.seen, attempt.to);
                if let Who::Region(region) = who {
                    self.ask_health(region);
                }
                self.ask_for(who, Request::ClaimCas { right, seen, to });
            }
            Output::RetryLater => {
                // Whoever runs into the same row at the same time should not do so for ever.
                let at = self.now + self.jitter.of(CAS_RETRY_MS);
                self.timers.add(at, Timer::Claim(who));
            }
            Output::Load { .. } => match right {
                Right::Region(region) => self.ask_for(who, Request::ObjectsRead { region }),
                Right::Character(char_id) => self.ask_for(who, Request::CharacterRead { char_id }),
            },
            Output::Seal { number } => self.seal(who, number),
            Output::Serve { number } => self.serve(who, number),
            Output::Released { number } => self.released(who, number),
            Output::Gone(row) => self.gone(who, row),
        }
    }

    fn gone(&mut self, who: Who, row: Option<ClaimRow>) {
        self.look_at_holder(row.as_ref());
        match who {
            Who::Region(region) => self.region_gone(region, row),
            Who::Entering(id) => self.entering_gone(id, row),
            Who::Owned(id) => self.owned_gone(id),
            Who::Outgoing(id) => self.outgoing_gone(id, row),
            Who::Arrival(id) => self.arrival_gone(id, row),
            Who::Leaving(id) => self.left(id),
        }
    }

    /// Sends a claim's request; only the answer to its newest one counts.
    fn ask_for(&mut self, who: Who, request: Request) {
        let ticket = self.ask(request, Asked::Claim(who));
        if let Some(task) = self.task(who) {
            task.ticket = Some(ticket);
        }
    }

    fn seal(&mut self, who: Who, number: u64) {
        let kept = self.task(who).and_then(|task| task.seal.clone());
        if let Some((_, request)) = kept.filter(|(of, _)| *of == number) {
            return self.ask_for(who, request);
        }
        let request = match who {
            Who::Region(region) => self.region_seal(region, number),
            Who::Entering(id) => self.entering_seal(id, number),
            Who::Owned(id) => self.owned_seal(id, number),
            Who::Outgoing(id) => self.outgoing_seal(id, number),
            Who::Arrival(id) => self.arrival_seal(id, number),
            Who::Leaving(_) => None,
        };
        if let Some(request) = request {
            if let Some(task) = self.task(who) {
                task.seal = Some((number, request.clone()));
            }
            self.ask_for(who, request);
        }
    }

    fn serve(&mut self, who: Who, number: u64) {
        if let Some(task) = self.task(who) {
            task.seal = None;
        }
        match who {
            Who::Region(region) => self.serve_region(region, number),
            Who::Entering(id) => self.enter(id, number),
            Who::Owned(id) => self.renewed(id, number),
            Who::Outgoing(id) => self.reclaimed(id, number),
            Who::Arrival(id) => self.arrive(id, number),
            Who::Leaving(_) => {}
        }
    }

    fn released(&mut self, who: Who, number: u64) {
        match who {
            Who::Region(region) => self.region_released(region, number),
            Who::Leaving(id) => self.left(id),
            // Only those two are ever released.
            Who::Entering(_) | Who::Owned(_) | Who::Outgoing(_) | Who::Arrival(_) => {}
        }
    }

    /// A pause is over: repeats the claim's request, unless it has one under way again.
    pub(super) fn retry_claim(&mut self, who: Who) {
        if self.task(who).is_some_and(|task| task.ticket.is_none()) {
            self.drive(who, Input::Retry);
        }
    }

    /// The store answered.
    pub(super) fn answered(&mut self, ticket: Ticket, reply: Result<Reply, StoreError>) {
        let Some(asked) = self.asked.remove(&ticket) else {
            self.counters.replies_not_expected += 1;
            return;
        };
        if reply.is_err() {
            self.counters.store_errors += 1;
        }
        match asked {
            Asked::Claim(who) => self.claim_answered(who, ticket, reply),
            Asked::Checkpoint(id) => self.checkpoint_answered(id, ticket, reply.is_ok()),
            Asked::LastWrite(id) => self.last_write_answered(id, ticket, reply.is_ok()),
            Asked::Objects(region, stamp) => self.objects_answered(region, stamp, reply.is_ok()),
            Asked::OwnerReadBack(id) => self.owner_read_back(id, reply),
            Asked::Health(region) => self.health_answered(region, ticket, reply),
        }
    }

    fn claim_answered(&mut self, who: Who, ticket: Ticket, reply: Result<Reply, StoreError>) {
        let Some(task) = self.task(who).filter(|task| task.ticket == Some(ticket)) else {
            // Whoever asked is gone, or asked something else since.
            return;
        };
        task.ticket = None;
        let input = match reply {
            Ok(Reply::Claim(row)) => Input::Row(row),
            Ok(Reply::ClaimCas { applied: true, .. }) => {
                self.counters.cas_applied += 1;
                self.note_crash(who);
                Input::Applied
            }
            Ok(Reply::ClaimCas { row, .. }) => {
                self.counters.cas_refused += 1;
                self.note_crash(who);
                Input::Refused(row)
            }
            Ok(Reply::Character(row)) => return self.character_loaded(who, row),
            Ok(Reply::Objects(rows)) => return self.objects_loaded(who, &rows),
            Ok(Reply::Done) => Input::Sealed,
            Ok(_) => Input::Failed,
            Err(_) => {
                if self.task(who).is_some_and(|task| is_cas(&task.claim)) {
                    self.counters.cas_unknown += 1;
                }
                Input::Failed
            }
        };
        self.drive(who, input);
    }
}

fn is_cas(claim: &Claim) -> bool {
    matches!(claim, Claim::Claiming { .. } | Claim::Releasing { .. })
}
