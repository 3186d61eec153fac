//! Leaving the world: out of the battle, written once more, and only then released.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::Fighter;
use uo_proto::CharId;

use super::character::Character;
use super::claims::{Asked, Task, Who};
use super::core::{SimCore, Ticket};
use super::timer::Timer;
use crate::Millis;
use crate::cluster::claim::Input;
use crate::limits::CAS_RETRY_MS;
use crate::store::{Request, Stamp, row};

/// A character that is in no battle any more and is about to be released.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Leaving {
    pub(super) task: Task,
    /// Its last write, until it is acknowledged. Repeated as it is: same content, same stamp.
    last_write: Option<Request>,
    ticket: Option<Ticket>,
}

fn last_write(character: &mut Character, fighter: Fighter) -> Request {
    Request::CharacterWrite {
        char_id: character.id,
        stamp: Stamp {
            number: character.generation,
            n: character.checkpoint.next_n(),
        },
        row: row::encode(&character.row(character.generation, fighter)),
    }
}

impl SimCore {
    /// From now on the character lingers for `left_ms`.
    pub(super) fn linger(&mut self, id: CharId, left_ms: u64) {
        if let Some(character) = self.characters.get_mut(&id) {
            let due = self.now + left_ms;
            character.linger_due = Some(due);
            self.timers.add(due, Timer::Linger(id));
        }
    }

    /// Sets the timer of a character that lingers and came into a battle of ours just now.
    pub(super) fn arm_linger(&mut self, id: CharId) {
        if let Some(due) = self.characters.get(&id).and_then(|it| it.linger_due) {
            self.timers.add(due, Timer::Linger(id));
        }
    }

    pub(super) fn linger_is_over(&mut self, id: CharId, due: Millis) {
        let character = self.characters.get(&id);
        if character.is_some_and(|character| character.linger_due == Some(due)) {
            self.leave(id);
        }
    }

    /// Takes the character out of its battle, writes it, and releases it; as soon as its claim can be released.
    pub(super) fn leave(&mut self, id: CharId) {
        let stamps_max = self.config.stamps_max;
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        character.is_leaving = true;
        if !character.is_held() {
            return; // Its renewal is under way, and comes back here.
        }
        if character.checkpoint.stamps_left(stamps_max) == 0 {
            return self.drive(Who::Owned(id), Input::Renew);
        }
        // Its last words are heard, out of order or not.
        self.say_unsaid(Some(id));
        let Some(mut character) = self.characters.remove(&id) else {
            return;
        };
        self.counters.left += 1;
        let region = character.region;
        let withdrawn = self
            .slot_mut(region)
            .and_then(|slot| slot.region.as_mut())
            .and_then(|battle| battle.withdraw(id));
        let last_write = match withdrawn {
            Some((fighter, _)) if character.checkpoint.is_needed() => {
                Some(last_write(&mut character, fighter))
            }
            _ => None,
        };
        let leaving = Leaving {
            task: character.task,
            last_write,
            ticket: None,
        };
        self.leaving.insert(id, leaving);
        self.write_last(id);
    }

    /// Writes and releases a character that no battle will have any more.
    pub(super) fn leave_unplaced(&mut self, mut character: Character, fighter: Fighter) {
        let id = character.id;
        let leaving = Leaving {
            last_write: Some(last_write(&mut character, fighter)),
            task: character.task,
            ticket: None,
        };
        self.leaving.insert(id, leaving);
        self.write_last(id);
    }

    /// Releases a character that is in no battle and of which everything is durable.
    pub(super) fn release(&mut self, id: CharId, task: Task) {
        let leaving = Leaving {
            task,
            last_write: None,
            ticket: None,
        };
        self.leaving.insert(id, leaving);
        self.write_last(id);
    }

    /// The last write if there is one, and the release once there is none.
    pub(super) fn write_last(&mut self, id: CharId) {
        let Some(leaving) = self.leaving.get(&id).filter(|it| it.ticket.is_none()) else {
            return;
        };
        let Some(request) = leaving.last_write.clone() else {
            return self.drive(Who::Leaving(id), Input::Release);
        };
        let ticket = self.ask(request, Asked::LastWrite(id));
        self.counters.checkpoints += 1;
        if let Some(leaving) = self.leaving.get_mut(&id) {
            leaving.ticket = Some(ticket);
        }
    }

    pub(super) fn last_write_answered(&mut self, id: CharId, ticket: Ticket, is_done: bool) {
        let Some(leaving) = self
            .leaving
            .get_mut(&id)
            .filter(|it| it.ticket == Some(ticket))
        else {
            return;
        };
        leaving.ticket = None;
        if is_done {
            leaving.last_write = None;
            self.write_last(id);
        } else {
            self.timers
                .add(self.now + CAS_RETRY_MS, Timer::LastWrite(id));
        }
    }

    /// Released, or another's.
    pub(super) fn left(&mut self, id: CharId) {
        self.leaving.remove(&id);
    }
}
