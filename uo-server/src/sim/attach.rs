//! A gateway wants a character: attach, and what happens until it stands in its battle.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_combat::Fighter;
use uo_proto::{CharId, RegionId};
use uo_world::World;

use super::character::Character;
use super::claims::{Task, Who};
use super::core::SimCore;
use super::private::PrivateStream;
use super::quarantine::Health;
use crate::cluster::claim::{Claim, Input, Purpose};
use crate::identity::{Holder, NodeName};
use crate::limits::ORDERS_HELD_MAX;
use crate::peer::ToGateway;
use crate::peer::message::{Attach, AttachId, AttachRefusal, Attached, RoutedOrder};
use crate::store::row::{self, CharacterRow};
use crate::store::{ClaimRow, Request};

/// Inventory versions that one generation has for itself.
const VERSION_BITS: u32 = 20;

/// A character that a gateway wants attached, and that is not ours yet.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Entering {
    pub(super) task: Task,
    attach: Attach,
    /// The session is gone already; whether for good.
    detached: Option<bool>,
    /// Its last owner died: there may have been private messages that nobody remembers.
    after_crash: bool,
    /// What is durable, with the session of this attach.
    row: Option<CharacterRow>,
    /// Private messages up to this number are gone.
    lost_through: Option<u64>,
    /// Its region is being taken: it goes on once that is decided.
    waits_for: Option<RegionId>,
    held: VecDeque<RoutedOrder>,
}

impl Entering {
    pub(super) fn hold(&mut self, order: RoutedOrder) -> bool {
        let has_room = self.held.len() < ORDERS_HELD_MAX;
        if has_room {
            self.held.push_back(order);
        }
        has_room
    }

    /// Where it is about to stand, as far as is known.
    pub(super) fn region(&self, world: &World) -> Option<RegionId> {
        let row = self.row.as_ref()?;
        Some(world.region_at(row.fighter.pos))
    }

    /// What a snapshot shows of it.
    pub(super) fn name(&self) -> &str {
        &self.attach.name
    }
}

/// How a session number relates to the one that a character has.
#[derive(PartialEq, Eq, Debug)]
enum Session {
    /// An older one.
    Old,
    /// The same: a resume.
    Same,
    /// A new one, which counts its orders and private messages from the start.
    New(u64),
}

/// The owner issues the numbers: a login gets the next one. A higher one than ours was issued by an owner that crashed
/// before it could keep it.
fn session_of(attach: &Attach, current: u64) -> Session {
    match attach.session {
        None => Session::New(current + 1),
        Some(number) if number > current => Session::New(number),
        Some(number) if number < current => Session::Old,
        Some(_) => Session::Same,
    }
}

impl SimCore {
    pub(super) fn attach(&mut self, attach: Attach) {
        self.counters.attaches += 1;
        let id = attach.char_id;
        if self.characters.contains_key(&id) {
            self.attach_again(attach);
        } else if self.stopping || self.is_under_way(id) {
            self.refuse_attach(&attach, AttachRefusal::NotNow);
        } else {
            let entering = Entering {
                task: Task::default(),
                attach,
                detached: None,
                after_crash: false,
                row: None,
                lost_through: None,
                waits_for: None,
                held: VecDeque::new(),
            };
            self.entering.insert(id, entering);
            self.drive(Who::Entering(id), Input::Take);
        }
    }

    fn is_under_way(&self, id: CharId) -> bool {
        self.entering.contains_key(&id)
            || self.outgoing.contains_key(&id)
            || self.arrivals.contains_key(&id)
            || self.leaving.contains_key(&id)
    }

    /// It is owned here already: no compare-and-set, only the question whose session is newer.
    fn attach_again(&mut self, attach: Attach) {
        let id = attach.char_id;
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        if self.stopping && !self.evacuating || character.is_leaving {
            return self.refuse_attach(&attach, AttachRefusal::NotNow);
        }
        let session = session_of(&attach, character.session);
        let is_stale = match &character.attach {
            // Attaches of one boot of a gateway are told apart by their order there.
            Some((known, gateway)) => {
                session == Session::Same && *gateway == attach.gateway && *known > attach.attach
            }
            None => false,
        };
        if session == Session::Old || is_stale {
            return self.refuse_attach(&attach, AttachRefusal::Superseded);
        }
        let loser = character
            .attach
            .replace((attach.attach, attach.gateway.clone()))
            .filter(|(old, gateway)| *old != attach.attach || *gateway != attach.gateway);
        character.linger_due = None;
        let lost_through = if let Session::New(number) = session {
            character.session = number;
            character.last_order = 0;
            character.privates = PrivateStream::from_parts(attach.last_private, Vec::new());
            character.early.clear();
            None
        } else {
            character.privates.resume(attach.last_private, false)
        };
        if let Some((old, gateway)) = loser {
            self.counters.superseded += 1;
            let message = ToGateway::Superseded {
                char_id: id,
                attach: old,
            };
            self.send_gateway(gateway.node, message);
        }
        if matches!(session, Session::New(_)) {
            // The number was issued: it has to be durable before it is issued again.
            self.touch_urgent(id);
        }
        self.greet(id, lost_through);
    }

    /// Tells the gateway that the character is here, and everything its player was not told yet.
    fn greet(&mut self, id: CharId, lost_through: Option<u64>) {
        let Some(character) = self.characters.get(&id) else {
            return;
        };
        let Some((attach, gateway)) = character.attach.clone() else {
            return;
        };
        let (region, generation) = (character.region, character.generation);
        let (session, last_order) = (character.session, character.last_order);
        let kept = character.privates.kept();
        let saved = character.checkpoint.saved(session);
        let Some(battle) = self.slot_mut(region).and_then(|slot| slot.region.as_mut()) else {
            return;
        };
        battle.set_ack(id, last_order);
        let Some(pos) = battle.pos(id) else { return };
        let to = gateway.node;
        let attached = Attached {
            char_id: id,
            attach,
            generation,
            session,
            region,
            pos,
            last_order,
        };
        self.send_gateway(to.clone(), ToGateway::Attached(attached));
        if let Some(through) = lost_through {
            self.counters.privates_lost += 1;
            let message = ToGateway::PrivateLost {
                char_id: id,
                generation,
                through,
            };
            self.send_gateway(to.clone(), message);
        }
        for message in kept {
            let message = ToGateway::ToPlayer {
                char_id: id,
                generation,
                message,
            };
            self.send_gateway(to.clone(), message);
        }
        if let Some((seq, inventory)) = saved {
            let message = ToGateway::Saved {
                char_id: id,
                generation,
                seq,
                inventory,
            };
            self.send_gateway(to, message);
        }
    }

    pub(super) fn refuse_attach(&mut self, attach: &Attach, reason: AttachRefusal) {
        self.counters.attaches_refused += 1;
        let message = ToGateway::AttachRefused {
            char_id: attach.char_id,
            attach: attach.attach,
            reason,
        };
        self.send_gateway(attach.gateway.node.clone(), message);
    }

    /// The answer to an entering character's compare-and-set is here: was the row a crashed owner's?
    pub(super) fn note_crash(&mut self, who: Who) {
        let my_boot = self.config.me.boot;
        let Who::Entering(id) = who else { return };
        let Some(entering) = self.entering.get_mut(&id) else {
            return;
        };
        if let Claim::Claiming {
            attempt,
            purpose: Purpose::Take,
        } = &entering.task.claim
        {
            let holder = attempt.seen.as_ref().and_then(|seen| seen.holder.as_ref());
            entering.after_crash |= holder.is_some_and(|holder| holder.boot != my_boot);
        }
    }

    /// The row of a character that was claimed (none: a new one).
    pub(super) fn character_loaded(&mut self, who: Who, bytes: Option<Vec<u8>>) {
        let Who::Entering(id) = who else { return };
        let Some(entering) = self.entering.get_mut(&id) else {
            return;
        };
        let loaded: Option<CharacterRow> = match bytes.map(|bytes| row::decode(&bytes)).transpose()
        {
            Ok(loaded) => loaded,
            Err(_) => {
                // Nothing may overwrite what this build cannot read.
                self.counters.rows_unreadable += 1;
                return self.turn_away(id, AttachRefusal::NotNow);
            }
        };
        let mut row = match loaded {
            Some(row) => row,
            None => {
                let name = &entering.attach.name;
                let pos = uo_world::spawn_point(&self.config.world, name);
                CharacterRow {
                    generation: 0,
                    fighter: Fighter::new(id, name, pos),
                    session: 0,
                    last_order: 0,
                    last_private: 0,
                    privates: Vec::new(),
                }
            }
        };
        if entering.after_crash
            && let Some(generation) = entering.task.claim.number()
        {
            // Versions after the checkpoint may have been shown; none of them may come again and mean something else.
            let inventory = &mut row.fighter.inventory;
            inventory.version = inventory.version.max(generation << VERSION_BITS);
        }
        match session_of(&entering.attach, row.session) {
            Session::Old => return self.turn_away(id, AttachRefusal::Superseded),
            Session::New(number) => {
                let resumed = entering.attach.last_private;
                row.session = number;
                row.last_order = 0;
                row.last_private = resumed;
                row.privates.clear();
                entering.lost_through = (resumed > 0).then_some(resumed);
            }
            Session::Same => {
                let kept = std::mem::take(&mut row.privates);
                let mut privates = PrivateStream::from_parts(row.last_private, kept);
                let has = entering.attach.last_private;
                entering.lost_through = privates.resume(has, entering.after_crash);
                row.last_private = privates.last();
                row.privates = privates.kept();
            }
        }
        let region = self.config.world.region_at(row.fighter.pos);
        entering.row = Some(row);
        entering.waits_for = Some(region);
        if !self.is_coming(region) {
            self.go_on_entering(id);
        }
    }

    /// It is decided whether a region is ours: those who waited for that go on.
    pub(super) fn go_in(&mut self, region: RegionId) {
        let waiting = self.entering.iter();
        let waiting: Vec<CharId> = waiting
            .filter(|(_, entering)| entering.waits_for == Some(region))
            .map(|(&id, _)| id)
            .collect();
        for id in waiting {
            self.go_on_entering(id);
        }
    }

    /// Its row is loaded, and whether its region is served here will not change soon.
    fn go_on_entering(&mut self, id: CharId) {
        let Some(entering) = self.entering.get_mut(&id) else {
            return;
        };
        let Some(region) = entering.waits_for.take() else {
            return;
        };
        // 0: there is no row yet.
        let found = entering.row.as_ref().map(|row| row.generation);
        let found = found.filter(|&generation| generation > 0);
        if self.serves(region) {
            return self.drive(Who::Entering(id), Input::Loaded(found));
        }
        let reason = match self.elsewhere.get(&region) {
            Some((_, holder)) => AttachRefusal::Elsewhere(holder.clone()),
            None => AttachRefusal::NotHeld(region),
        };
        self.turn_away(id, reason);
    }

    /// Refuses an attach whose character is claimed already, and releases it.
    fn turn_away(&mut self, id: CharId, reason: AttachRefusal) {
        if let Some(entering) = self.entering.remove(&id) {
            self.refuse_attach(&entering.attach, reason);
            self.release(id, entering.task);
        }
    }

    pub(super) fn entering_seal(&mut self, id: CharId, number: u64) -> Option<Request> {
        let row = self.entering.get_mut(&id)?.row.as_mut()?;
        row.generation = number;
        Some(Request::CharacterSeal {
            char_id: id,
            number,
            row: Some(row::encode(row)),
        })
    }

    /// Sealed: into the battle with it.
    pub(super) fn enter(&mut self, id: CharId, generation: u64) {
        let Some(mut entering) = self.entering.remove(&id) else {
            return;
        };
        let Some(row) = entering.row.take() else {
            return self.release(id, entering.task);
        };
        let region = self.config.world.region_at(row.fighter.pos);
        let (fighter, last_order) = (row.fighter.clone(), row.last_order);
        let mut character = Character::from_row(entering.task, generation, region, row);
        if self
            .admit(region, fighter, generation, last_order, None)
            .is_err()
        {
            // Nothing changed since the seal, so it can be released as it is.
            self.refuse_attach(&entering.attach, AttachRefusal::NotNow);
            return self.release(id, character.task);
        }
        self.counters.entered += 1;
        character.attach = Some((entering.attach.attach, entering.attach.gateway.clone()));
        self.forget_moved(id);
        self.characters.insert(id, character);
        self.greet(id, entering.lost_through);
        if entering.after_crash {
            // What its player saw of it last may be undone.
            self.tell_inventory(id);
        }
        for order in entering.held {
            self.order_owned(order, true);
        }
        if let Some(logout) = entering.detached {
            self.detach_owned(id, logout);
        }
    }

    /// Somebody else has it.
    pub(super) fn entering_gone(&mut self, id: CharId, row: Option<ClaimRow>) {
        let Some(entering) = self.entering.remove(&id) else {
            return;
        };
        let reason = match row.and_then(|row| row.holder) {
            Some(holder) => AttachRefusal::Elsewhere(holder),
            None => AttachRefusal::NotNow,
        };
        self.refuse_attach(&entering.attach, reason);
    }

    pub(super) fn detach(&mut self, from: &Holder, id: CharId, attach: AttachId, logout: bool) {
        // Attaches of different gateways may bear the same number: only the gateway that plays the character is
        // believed, and the owner before, which forwards what came too late for it.
        let is_it = |character: &Character| {
            let plays = character.attach.as_ref();
            let came_from = character.came_from.as_ref();
            plays.is_some_and(|(known, gateway)| {
                *known == attach && (gateway.node == from.node || came_from == Some(&from.node))
            })
        };
        if let Some(character) = self.characters.get(&id) {
            if is_it(character) {
                self.detach_owned(id, logout);
            }
        } else if let Some(outgoing) = self.outgoing.get_mut(&id) {
            if is_it(&outgoing.character) {
                outgoing.detached = Some((attach, logout));
            }
        } else if let Some(entering) = self.entering.get_mut(&id)
            && entering.attach.attach == attach
            && entering.attach.gateway.node == from.node
        {
            entering.detached = Some(logout);
        }
    }

    /// Nobody plays it any more: it goes at once, or when it has lingered.
    pub(super) fn detach_owned(&mut self, id: CharId, logout: bool) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        character.attach = None;
        if logout {
            self.leave(id);
        } else {
            self.linger(id, self.config.linger_ms);
        }
    }

    /// A gateway is gone: its players linger.
    pub(super) fn detach_all_of(&mut self, gateway: &NodeName) {
        let plays_there = |attach: &Option<(AttachId, Holder)>| {
            attach.as_ref().is_some_and(|(_, at)| at.node == *gateway)
        };
        let gone: Vec<CharId> = self
            .characters
            .values()
            .filter(|character| plays_there(&character.attach))
            .map(|character| character.id)
            .collect();
        for id in gone {
            self.detach_owned(id, false);
        }
        // Of one that is on its way elsewhere, whoever has it then judges by its own link: this one says nothing of that.
        for entering in self.entering.values_mut() {
            if entering.attach.gateway.node == *gateway {
                entering.detached.get_or_insert(false);
            }
        }
    }

    /// Whether a gateway hears what it is told.
    pub(super) fn reaches(&self, gateway: &Holder) -> bool {
        gateway.node == self.config.me.node || self.others.is_linked(&gateway.node)
    }

    /// A character that has just come into a battle of ours: if its gateway does not hear of it, it lingers, and is
    /// attached again from there or from another.
    pub(super) fn detach_unreachable(&mut self, id: CharId) {
        let attach = self.characters.get(&id).and_then(|it| it.attach.as_ref());
        if attach.is_some_and(|(_, gateway)| !self.reaches(gateway)) {
            self.detach_owned(id, false);
        }
    }

    /// Where a character is looked for when it comes back.
    pub(super) fn serves(&self, region: RegionId) -> bool {
        let slot = self.slot(region);
        let runs = slot.is_some_and(|slot| slot.is_served() && slot.health == Health::Well);
        runs && !self.is_draining(region)
    }
}
