//! From a character to the sim that owns it: find, attach, and find again when that sim is gone.
//!
//! The owner is asked of the store (or remembered). A live one is attached to. Without one, whoever holds the region of
//! the last checkpoint, or of the spawn point of a new name, is asked to own the character. Everything that fails waits
//! and begins again, however long it takes: the client keeps its socket.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::Deserialize;
use uo_proto::{CharId, ErrorCode, Pos, RegionId, WorldStatus};
use uo_world::spawn_point;

use super::core::{Alarm, Asked, GatewayCore};
use super::session::{Greeting, Phase};
use crate::identity::{Holder, NodeName};
use crate::limits::{ATTACH_HOPS_MAX, ATTACH_WAIT_MS, DEMAND_TTL_S, MOVE_CONFIRM_MS};
use crate::peer::ToSim;
use crate::peer::message::{Attach, AttachId, AttachRefusal, Attached, Flight};
use crate::sim::core::Ticket;
use crate::store::{Reply, Request, Right, StoreError, row};

/// The one thing a gateway reads in a character's row: where it stands.
#[derive(Deserialize)]
struct PlaceRow {
    fighter: Place,
}

#[derive(Deserialize)]
struct Place {
    pos: Pos,
}

impl GatewayCore {
    /// Begins to look for the character of a session, at the owner heard of last, if it can be reached.
    pub(super) fn locate(&mut self, key: u32) {
        let session = &self.sessions[key];
        let known = session
            .owner
            .clone()
            .filter(|owner| self.members.contains(owner));
        match known {
            Some(owner) => self.attach_to(key, owner),
            None => self.ask_owner(key),
        }
    }

    fn ask_owner(&mut self, key: u32) {
        let right = Right::Character(self.sessions[key].char_id);
        let serial = false;
        let ticket = self.ask_store(Asked::Locate(key), Request::ClaimRead { right, serial });
        self.set_phase(key, Phase::AskingOwner(ticket));
    }

    fn ask_place(&mut self, key: u32) {
        let char_id = self.sessions[key].char_id;
        let ticket = self.ask_store(Asked::Locate(key), Request::CharacterRead { char_id });
        self.set_phase(key, Phase::AskingPlace(ticket));
    }

    fn ask_holder(&mut self, key: u32, region: RegionId) {
        if let Some(holder) = self.holder_of(region) {
            return self.attach_to(key, holder);
        }
        let right = Right::Region(region);
        let serial = false;
        let ticket = self.ask_store(Asked::Locate(key), Request::ClaimRead { right, serial });
        self.set_phase(key, Phase::AskingHolder(ticket, region));
    }

    /// The store answered a question about where a session's character is.
    pub(super) fn located(&mut self, key: u32, ticket: Ticket, reply: Result<Reply, StoreError>) {
        let Some(session) = self.sessions.get(key) else {
            return;
        };
        match (&session.phase, reply) {
            (&Phase::AskingOwner(asked), Ok(Reply::Claim(row))) if asked == ticket => {
                match row.and_then(|row| row.holder) {
                    Some(owner) if self.members.contains(&owner) => self.attach_to(key, owner),
                    _ => self.ask_place(key),
                }
            }
            (&Phase::AskingPlace(asked), Ok(Reply::Character(bytes))) if asked == ticket => {
                let stored = bytes.and_then(|bytes| row::decode::<PlaceRow>(&bytes).ok());
                let world = &self.config.world;
                let pos = match stored {
                    Some(row) => row.fighter.pos,
                    None => spawn_point(world, &session.name),
                };
                let region = RegionId::at(world.size(), pos);
                self.ask_holder(key, region);
            }
            (&Phase::AskingHolder(asked, region), Ok(Reply::Claim(row))) if asked == ticket => {
                if let Some(row) = row {
                    self.learn(region, row.number, row.holder);
                }
                match self.holder_of(region) {
                    Some(holder) => self.attach_to(key, holder),
                    None => self.await_region(key, region),
                }
            }
            (
                &Phase::AskingOwner(asked)
                | &Phase::AskingPlace(asked)
                | &Phase::AskingHolder(asked, _),
                _,
            ) if asked == ticket => self.try_later(key, None),
            _ => {}
        }
    }

    /// Asks a sim to own the character of a session.
    pub(super) fn attach_to(&mut self, key: u32, to: Holder) {
        let attach = self.next_attach();
        let until = self.now + ATTACH_WAIT_MS;
        let session = &mut self.sessions[key];
        session.attach = attach;
        session.confirm_by = None;
        let message = Attach {
            char_id: session.char_id,
            name: session.name.to_string(),
            session: session.number,
            attach,
            gateway: self.config.me.clone(),
            last_private: session.reliable.reattach(),
        };
        self.send(&to.node, ToSim::Attach(message));
        self.set_alarm(until, Alarm::Session(key));
        self.set_phase(key, Phase::Attaching { to, until });
    }

    /// A sim owns the character of a session now.
    pub(super) fn attached(&mut self, from: Holder, attached: Attached) {
        let Some(key) = self.of_attach(attached.char_id, attached.attach) else {
            return;
        };
        if !matches!(self.sessions[key].phase, Phase::Attaching { .. }) {
            self.counters.stale += 1;
            return;
        }
        if attached.generation < self.sessions[key].generation {
            return self.attached_late(key);
        }
        self.counters.attaches += 1;
        self.set_phase(key, Phase::Attached);
        let session = &mut self.sessions[key];
        session.owner = Some(from);
        session.generation = attached.generation;
        session.number = Some(attached.session);
        session.tries = 0;
        session.hops = 0;
        let has_forgotten = attached.last_order < session.ack;
        session.ack = attached.last_order;
        if has_forgotten && session.greeting == Greeting::Welcome {
            // A crash took orders back that were acknowledged. The client is about to hear of it, and sends them again
            // with everything behind them: in order.
            session.orders.restart(attached.last_order);
        } else {
            session.orders.acknowledge(attached.last_order);
            session.orders.rewind();
        }
        self.set_centre(key, Some(attached.pos));
        self.note_attached(key);
        self.send_orders(key);
        self.greet(key);
        self.tell_world(key, WorldStatus::Ok);
    }

    /// It has moved on since, and whoever owns it now was quicker: that one is asked. Believing both, the session would
    /// take what the former owner still has to say for news.
    fn attached_late(&mut self, key: u32) {
        self.counters.stale += 1;
        let owner = self.sessions[key].owner.clone();
        self.sessions[key].hops += 1;
        let may_hop = self.sessions[key].hops <= ATTACH_HOPS_MAX;
        match owner.filter(|owner| may_hop && self.members.contains(owner)) {
            Some(owner) => self.attach_to(key, owner),
            None => self.try_later(key, None),
        }
    }

    /// A sim does not own it.
    pub(super) fn attach_refused(
        &mut self,
        char_id: CharId,
        attach: AttachId,
        reason: AttachRefusal,
    ) {
        let Some(key) = self.of_attach(char_id, attach) else {
            return;
        };
        let session = &mut self.sessions[key];
        if !matches!(session.phase, Phase::Attaching { .. }) {
            self.counters.stale += 1;
            return;
        }
        self.counters.attaches_refused += 1;
        session.owner = None;
        session.hops += 1;
        let may_hop = session.hops <= ATTACH_HOPS_MAX;
        match reason {
            AttachRefusal::Superseded => drop(self.end_session(key, Some(ErrorCode::Superseded))),
            AttachRefusal::Elsewhere(owner) if may_hop && self.members.contains(&owner) => {
                self.attach_to(key, owner);
            }
            AttachRefusal::NotHeld(region) if may_hop => {
                self.hints.remove(&region);
                self.ask_holder(key, region);
            }
            AttachRefusal::NotHeld(region) => self.await_region(key, region),
            AttachRefusal::Elsewhere(_) | AttachRefusal::NotNow => self.try_later(key, None),
        }
    }

    /// The character has another owner, or the same one under another generation. An owner that says so itself knows of
    /// the session. When the one before says so, that is not certain: the new one may have had no link to here when the
    /// character came, and then it lingers. If it does not speak for itself soon, it is asked.
    pub(super) fn moved(
        &mut self,
        from: &Holder,
        char_id: CharId,
        generation: u64,
        owner: Holder,
        flight: Option<Flight>,
    ) {
        let Some(key) = self.of_generation(char_id, generation) else {
            return;
        };
        let session = &mut self.sessions[key];
        let is_news = generation > session.generation || session.owner.as_ref() != Some(&owner);
        let is_certain = *from == owner || !is_news;
        session.generation = generation;
        let is_new_owner = session.owner.as_ref() != Some(&owner);
        session.owner = Some(owner.clone());
        let phase = session.phase.clone();
        if is_certain {
            session.confirm_by = session.confirm_by.filter(|_| *from != owner);
        } else {
            let due = self.now + MOVE_CONFIRM_MS;
            session.confirm_by = Some(due);
            self.set_alarm(due, Alarm::Session(key));
        }
        if let Some(flight) = flight {
            self.note_flight(key, flight);
        }
        if phase != Phase::Attached || !is_new_owner {
            return;
        }
        if !self.members.contains(&owner) {
            return self.lose_owner(key);
        }
        // Orders that the former owner passes on could come behind ours; sent again, they come in order.
        self.sessions[key].orders.rewind();
        self.send_orders(key);
    }

    /// Another attach took the character.
    pub(super) fn superseded(&mut self, char_id: CharId, attach: AttachId) {
        if let Some(key) = self.of_attach(char_id, attach) {
            self.end_session(key, Some(ErrorCode::Superseded));
        }
    }

    /// The sims that can be reached.
    pub(super) fn members_are(&mut self, alive: Vec<Holder>) {
        let alive = alive.into_iter().collect();
        let before = std::mem::replace(&mut self.members, alive);
        let gone: Vec<Holder> = before.difference(&self.members).cloned().collect();
        gone.iter().for_each(|holder| self.lose_sim(&holder.node));
        if self.members.difference(&before).next().is_some() {
            self.retry_regions();
            self.retry_sessions();
        }
    }

    /// The link to a node is gone.
    pub(super) fn peer_lost(&mut self, node: &NodeName) {
        self.members.retain(|member| member.node != *node);
        self.lose_sim(node);
    }

    fn lose_sim(&mut self, node: &NodeName) {
        self.frozen.remove(node);
        self.pulse.forget(node);
        self.lose_regions_of(node);
        for key in self.sessions.keys() {
            let session = &self.sessions[key];
            let is_of = match &session.phase {
                Phase::Attaching { to, .. } => to.node == *node,
                Phase::Attached => session.owner.as_ref().is_some_and(|o| o.node == *node),
                _ => false,
            };
            if is_of {
                self.lose_owner(key);
            }
        }
        self.heard.remove(node);
    }

    /// The owner has lost a session's character to somebody who does not know of the session.
    pub(super) fn owner_lost(&mut self, from: &Holder, char_id: CharId, generation: u64) {
        let Some(key) = self.of_generation(char_id, generation) else {
            return;
        };
        let session = &mut self.sessions[key];
        if session.phase == Phase::Attached && session.owner.as_ref() == Some(from) {
            session.owner = None;
            self.lose_owner(key);
        }
    }

    /// The owner of a session's character cannot be reached: it is looked for after a moment.
    fn lose_owner(&mut self, key: u32) {
        self.note_loss(key);
        self.sessions[key].tries = 0;
        self.try_later(key, None);
    }

    /// Waits, longer after each failure, and tells the client that its part of the world is on its way.
    fn try_later(&mut self, key: u32, region: Option<RegionId>) {
        let session = &mut self.sessions[key];
        session.tries += 1;
        session.hops = 0;
        let until = self.now + self.jitter.wait_ms(session.tries);
        self.set_alarm(until, Alarm::Session(key));
        self.set_phase(key, Phase::Waiting { until, region });
        self.tell_world(key, WorldStatus::Moving);
    }

    /// Nobody holds the region in which a session's character stands: in a world that runs by demand somebody has to say
    /// that it is needed, with those around it.
    fn await_region(&mut self, key: u32, region: RegionId) {
        if self.demand_driven {
            let around = self.config.world.neighbours(region);
            let regions = std::iter::once(region).chain(around).collect();
            let ttl_s = DEMAND_TTL_S;
            self.tell_store(Request::DemandPut { regions, ttl_s });
        }
        self.try_later(key, Some(region));
    }

    fn retry_sessions(&mut self) {
        for key in self.sessions.keys() {
            if matches!(self.sessions[key].phase, Phase::Waiting { .. }) {
                let until = self.now + self.jitter.below(50);
                self.set_alarm(until, Alarm::Session(key));
                self.set_phase(
                    key,
                    Phase::Waiting {
                        until,
                        region: None,
                    },
                );
            }
        }
    }

    /// The time of a session's phase may have come.
    pub(super) fn phase_over(&mut self, key: u32) {
        match self.sessions.get(key).map(|session| &session.phase) {
            Some(&Phase::Waiting { until, .. }) if until <= self.now => self.locate(key),
            Some(Phase::Attached) => self.confirm_owner(key),
            Some(&Phase::Attaching { until, .. }) if until <= self.now => {
                self.counters.attaches_timed_out += 1;
                self.sessions[key].owner = None;
                self.try_later(key, None);
            }
            _ => {}
        }
    }

    /// Something is missing of what the owner said: it begins anew behind what the client has.
    pub(super) fn ask_again(&mut self, key: u32) {
        self.counters.private_gaps += 1;
        let session = &mut self.sessions[key];
        session.asked_again = session.asked_again.saturating_add(1);
        if let Some(owner) = session.owner.clone() {
            self.attach_to(key, owner);
        }
    }

    /// The new owner has not said itself that it has the character.
    fn confirm_owner(&mut self, key: u32) {
        let session = &mut self.sessions[key];
        let is_due = session.confirm_by.is_some_and(|due| due <= self.now);
        if let Some(owner) = session.owner.clone().filter(|_| is_due) {
            self.attach_to(key, owner);
        }
    }

    /// Changes the phase of a session, and the list of those who wait for a region.
    pub(super) fn set_phase(&mut self, key: u32, phase: Phase) {
        if let Phase::Waiting {
            region: Some(region),
            ..
        } = phase
        {
            self.awaiting.insert((region, key));
        }
        let before = std::mem::replace(&mut self.sessions[key].phase, phase);
        self.left_phase(key, &before);
    }

    /// Takes a session off the list of those who wait for a region.
    pub(super) fn left_phase(&mut self, key: u32, before: &Phase) {
        let Phase::Waiting { region, .. } = before else {
            return;
        };
        let now = self.sessions.get(key).map(|session| &session.phase);
        let still = matches!(now, Some(Phase::Waiting { region: now, .. }) if now == region);
        if let (Some(region), false) = (region, still) {
            self.awaiting.remove(&(*region, key));
        }
    }

    /// The session that made this attach, if it has made no newer one.
    fn of_attach(&mut self, char_id: CharId, attach: AttachId) -> Option<u32> {
        let key = self.sessions.of_char(char_id);
        let key = key.filter(|&key| self.sessions[key].attach == attach);
        self.counters.stale += u64::from(key.is_none());
        key
    }

    /// The session of a character, if this generation is not over.
    pub(super) fn of_generation(&mut self, char_id: CharId, generation: u64) -> Option<u32> {
        let key = self.sessions.of_char(char_id);
        let key = key.filter(|&key| generation >= self.sessions[key].generation);
        self.counters.stale += u64::from(key.is_none());
        key
    }
}
