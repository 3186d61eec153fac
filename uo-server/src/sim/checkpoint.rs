//! Checkpoints: what is written when, and when a player may be told that it is saved.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{CharId, TICK_MS};

use super::claims::{Asked, Who};
use super::core::{SimCore, Ticket};
use super::timer::Timer;
use crate::Millis;
use crate::cluster::claim::Input;
use crate::identity::Holder;
use crate::limits::{CAS_RETRY_MS, CHARACTER_WRITES_MAX, CHECKPOINT_URGENT_MS};
use crate::peer::ToGateway;
use crate::peer::message::AttachId;
use crate::planted::PlantedBug;
use crate::store::row;
use crate::store::{Request, Stamp};

/// The last `n` of a seal: its tombstone and its row are 0 and 1.
const SEAL_N: u32 = 1;

/// What a write holds that a player can be promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Promise {
    session: u64,
    seq: u64,
    inventory: u64,
    /// The object writes up to this tick have to be durable as well.
    tick: u64,
}

/// Which writes of a character are due, under way and acknowledged.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Checkpoint {
    /// The newest stamp used under the present generation.
    n: u32,
    /// Something changed since the last write was made.
    is_dirty: bool,
    /// When the next one is due.
    due: Option<Millis>,
    /// When the last one was made.
    written_at: Option<Millis>,
    in_flight: Option<(Ticket, Promise)>,
    /// Acknowledged, and waiting for object writes.
    acknowledged: Option<Promise>,
    /// Told, or ready to be told.
    saved: Option<Promise>,
}

impl Checkpoint {
    /// Of a character whose seal is durable.
    pub(super) fn sealed() -> Checkpoint {
        Checkpoint {
            n: SEAL_N,
            is_dirty: false,
            due: None,
            written_at: None,
            in_flight: None,
            acknowledged: None,
            saved: None,
        }
    }

    /// Stamps that this generation has left.
    pub(super) fn stamps_left(&self, stamps_max: u32) -> u32 {
        stamps_max.saturating_sub(self.n)
    }

    /// A stamp never used before under this generation.
    pub(super) fn next_n(&mut self) -> u32 {
        self.n += 1;
        self.n
    }

    /// The character goes on a way on which nothing is saved; should it come back, it has to be written.
    pub(super) fn suspend(&mut self) {
        self.is_dirty = true;
        self.due = None;
        self.in_flight = None;
        self.acknowledged = None;
    }

    /// Whether there is anything that is not known to be durable.
    pub(super) fn is_needed(&self) -> bool {
        self.is_dirty || self.in_flight.is_some()
    }

    /// The order number and inventory version last promised in `session`.
    pub(super) fn saved(&self, session: u64) -> Option<(u64, u64)> {
        let saved = self.saved.filter(|saved| saved.session == session)?;
        Some((saved.seq, saved.inventory))
    }
}

impl SimCore {
    /// The character changed: it is written in its next turn.
    pub(super) fn touch(&mut self, id: CharId) {
        let every = self.config.checkpoint_ms;
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        let checkpoint = &mut character.checkpoint;
        checkpoint.is_dirty = true;
        if checkpoint.due.is_none() {
            let due = next_turn(id, self.now, every);
            checkpoint.due = Some(due);
            self.timers.add(due, Timer::Checkpoint(id));
        }
    }

    /// The character changed in a way that must not be lost: it is written at once, or a second after its last write.
    pub(super) fn touch_urgent(&mut self, id: CharId) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        let checkpoint = &mut character.checkpoint;
        checkpoint.is_dirty = true;
        let due = checkpoint
            .written_at
            .map_or(self.now, |at| self.now.max(at + CHECKPOINT_URGENT_MS));
        if checkpoint.due.is_none_or(|known| known > due) {
            checkpoint.due = Some(due);
            self.timers.add(due, Timer::Checkpoint(id));
        }
    }

    pub(super) fn checkpoint_is_due(&mut self, id: CharId, due: Millis) {
        let stamps_max = self.config.stamps_max;
        let has_room = self.writes_under_way < CHARACTER_WRITES_MAX;
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        let is_held = character.is_held();
        let checkpoint = &mut character.checkpoint;
        if checkpoint.due != Some(due) {
            return;
        }
        checkpoint.due = None;
        if !checkpoint.is_dirty || checkpoint.in_flight.is_some() || !is_held {
            return; // The answer to what is under way asks again.
        }
        if !has_room {
            let later = self.now + TICK_MS;
            checkpoint.due = Some(later);
            return self.timers.add(later, Timer::Checkpoint(id));
        }
        if checkpoint.stamps_left(stamps_max) == 0 {
            self.counters.renewals += 1;
            return self.drive(Who::Owned(id), Input::Renew);
        }
        self.write_checkpoint(id);
    }

    fn write_checkpoint(&mut self, id: CharId) {
        let Some(fighter) = self.fighter(id) else {
            return;
        };
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        let promise = Promise {
            session: character.session,
            seq: character.last_order,
            inventory: fighter.inventory.version,
            // Whatever the orders did to objects is written in this tick at the latest: a neighbour's in its next one.
            tick: self.ticks + 2,
        };
        let stamp = Stamp {
            number: character.generation,
            n: character.checkpoint.next_n(),
        };
        let request = Request::CharacterWrite {
            char_id: id,
            stamp,
            row: row::encode(&character.row(character.generation, fighter)),
        };
        character.checkpoint.is_dirty = false;
        character.checkpoint.written_at = Some(self.now);
        let ticket = self.ask(request, Asked::Checkpoint(id));
        if let Some(character) = self.characters.get_mut(&id) {
            character.checkpoint.in_flight = Some((ticket, promise));
        }
        self.writes_under_way += 1;
        self.counters.checkpoints += 1;
        if self.has_bug(PlantedBug::SavedBeforeAcknowledged) {
            self.tell_saved(id, promise);
        }
    }

    pub(super) fn checkpoint_answered(&mut self, id: CharId, ticket: Ticket, is_done: bool) {
        self.writes_under_way -= 1;
        if is_done && self.has_bug(PlantedBug::SavedWithoutCheck) {
            return self.tell_saved_at_once(id, ticket);
        }
        let Some(character) = self.characters.get_mut(&id) else {
            return; // Outgoing or gone: whoever has it next decides what is saved.
        };
        let is_held = character.is_held();
        let checkpoint = &mut character.checkpoint;
        let Some((_, promise)) = checkpoint.in_flight.take_if(|(known, _)| *known == ticket) else {
            return;
        };
        if !is_done {
            // Unknown, so it is written again, under a new stamp: should the first arrive yet, it is older and loses.
            self.counters.checkpoints_failed += 1;
            let due = self.now + CAS_RETRY_MS;
            checkpoint.is_dirty = true;
            checkpoint.due = Some(due);
            return self.timers.add(due, Timer::Checkpoint(id));
        }
        if is_held {
            if let Some(older) = checkpoint.acknowledged.replace(promise) {
                self.unsaved.remove(&(older.tick, id));
            }
            self.unsaved.insert((promise.tick, id));
        }
        if checkpoint.is_dirty && checkpoint.due.is_none() {
            self.touch_urgent(id);
        }
    }

    /// Tells every player whose checkpoint and whose object writes are durable by now.
    pub(super) fn tell_everyone_saved(&mut self) {
        let Some(&(first, _)) = self.unsaved.first() else {
            return;
        };
        if first > self.ticks {
            return;
        }
        let flushed = self.flushed_through().min(self.ticks);
        while let Some(&(tick, id)) = self.unsaved.first()
            && tick <= flushed
        {
            self.unsaved.pop_first();
            let Some(character) = self.characters.get_mut(&id) else {
                continue;
            };
            let acknowledged = &mut character.checkpoint.acknowledged;
            if let Some(promise) = acknowledged.take_if(|promise| promise.tick == tick) {
                self.tell_saved(id, promise);
            }
        }
    }

    /// The one place where durability is promised: acknowledged, and still ours under the same generation.
    fn tell_saved(&mut self, id: CharId, promise: Promise) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        if !character.is_held() || character.session != promise.session {
            return;
        }
        character.checkpoint.saved = Some(promise);
        let (generation, attach) = (character.generation, character.attach.clone());
        self.send_saved(id, generation, attach, promise);
    }

    fn send_saved(
        &mut self,
        id: CharId,
        generation: u64,
        attach: Option<(AttachId, Holder)>,
        promise: Promise,
    ) {
        self.counters.saved += 1;
        if let Some((_, gateway)) = attach {
            let message = ToGateway::Saved {
                char_id: id,
                generation,
                seq: promise.seq,
                inventory: promise.inventory,
            };
            self.send_gateway(gateway.node, message);
        }
    }

    /// The fault: whoever it belongs to by now, and whether or not we may act.
    fn tell_saved_at_once(&mut self, id: CharId, ticket: Ticket) {
        let outgoing = self.outgoing.get_mut(&id).map(|it| &mut it.character);
        let Some(character) = self.characters.get_mut(&id).or(outgoing) else {
            return;
        };
        let in_flight = &mut character.checkpoint.in_flight;
        if let Some((_, promise)) = in_flight.take_if(|(known, _)| *known == ticket) {
            let (generation, attach) = (character.generation, character.attach.clone());
            self.send_saved(id, generation, attach, promise);
        }
    }

    /// A renewal's seal: the state as it is now, under the next generation.
    pub(super) fn owned_seal(&mut self, id: CharId, number: u64) -> Option<Request> {
        let fighter = self.fighter(id)?;
        let character = self.characters.get_mut(&id)?;
        character.checkpoint.is_dirty = false;
        Some(Request::CharacterSeal {
            char_id: id,
            number,
            row: Some(row::encode(&character.row(number, fighter))),
        })
    }

    /// The next generation is sealed: on as before.
    pub(super) fn renewed(&mut self, id: CharId, generation: u64) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        let was_dirty = character.checkpoint.is_dirty;
        let saved = character.checkpoint.saved;
        character.generation = generation;
        // What happened since the seal was made is not in it.
        character.checkpoint = Checkpoint {
            saved,
            is_dirty: was_dirty,
            ..Checkpoint::sealed()
        };
        let is_leaving = character.is_leaving;
        self.tell_generation(id);
        if is_leaving {
            self.leave(id);
        } else if was_dirty {
            self.touch(id);
        }
    }

    /// Somebody has it under a higher generation: it is no longer ours to show.
    pub(super) fn owned_gone(&mut self, id: CharId) {
        self.counters.lost += 1;
        if let Some(character) = self.characters.remove(&id)
            && let Some(battle) = self
                .slot_mut(character.region)
                .and_then(|slot| slot.region.as_mut())
        {
            battle.withdraw(id);
        }
    }

    pub(super) fn fighter(&self, id: CharId) -> Option<uo_combat::Fighter> {
        let character = self.characters.get(&id)?;
        self.slot(character.region)?.region.as_ref()?.fighter(id)
    }
}

/// When it is the character's turn next. Turns are spread over the interval by the id, so that a thousand logins do not
/// write in the same second for ever.
fn next_turn(id: CharId, now: Millis, every: u64) -> Millis {
    let phase = (id.0 ^ id.0 >> 32) % every;
    let since = (now + every - phase) % every;
    now + every - since
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_once_an_interval_and_are_spread() {
        let turns: Vec<Millis> = (0..100)
            .map(|id| next_turn(CharId(id * 150), 1_000_000, 15_000))
            .collect();
        assert!(
            turns
                .iter()
                .all(|turn| (1_000_001..=1_015_000).contains(turn))
        );
        let mut distinct = turns.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), turns.len());
        let first = next_turn(CharId(7), 0, 15_000);
        assert_eq!(next_turn(CharId(7), first, 15_000), first + 15_000);
    }
}
