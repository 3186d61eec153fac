//! The destination of a handoff: refuse before anything is claimed, or claim, seal, admit, accept.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::CharId;

use super::character::Character;
use super::claims::{Task, Who};
use super::core::SimCore;
use super::timer::Timer;
use crate::Millis;
use crate::cluster::claim::Input;
use crate::limits::{ORDERS_HELD_MAX, ORDERS_SETTLE_MS};
use crate::peer::ToSim;
use crate::peer::message::{HandoffCause, HandoffOffer, HandoffRefusal, RoutedOrder};
use crate::store::{ClaimRow, Request, Seen, row};

/// A character that is offered to us and that we claim.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Arrival {
    pub(super) task: Task,
    pub(super) offer: HandoffOffer,
    /// When the offer was heard, and when it was claimed.
    pub(super) heard_at: Millis,
    pub(super) claimed_at: Option<Millis>,
    /// Orders that came by themselves.
    held: VecDeque<RoutedOrder>,
}

impl Arrival {
    pub(super) fn hold(&mut self, order: RoutedOrder) -> bool {
        let has_room = self.held.len() < ORDERS_HELD_MAX;
        if has_room {
            self.held.push_back(order);
        }
        has_room
    }
}

impl SimCore {
    pub(super) fn offered(&mut self, offer: HandoffOffer) {
        let id = offer.char_id;
        let known = self.characters.get(&id).map(|known| known.generation);
        let under_way = self.arrivals.get(&id).map(|known| known.offer.generation);
        let entering = self.entering.get(&id);
        let entering = entering.and_then(|known| known.task.claim.known_number());
        if known
            .max(under_way)
            .max(entering)
            .is_some_and(|known| known >= offer.generation)
        {
            self.counters.messages_old_number += 1;
            return;
        }
        if self.stopping {
            return self.refuse_offer(&offer, HandoffRefusal::Stopping);
        }
        if !self.serves(offer.region) {
            return self.refuse_offer(&offer, HandoffRefusal::NotHeld);
        }
        let gateway = offer.attach.as_ref().map(|(_, gateway)| gateway);
        let can_stay = matches!(offer.cause, HandoffCause::Border | HandoffCause::Pin);
        if can_stay && gateway.is_some_and(|gateway| !self.reaches(gateway)) {
            return self.refuse_offer(&offer, HandoffRefusal::NotLinked);
        }
        if known.is_some() {
            // Offered under a higher generation than ours: we lost it and were not told.
            self.owned_gone(id);
        }
        // Two claims of one node must not meet in the row: each would take what the other got for its own and not held.
        // Its gateway attaches again, and finds the character here. What it claimed from is older, and gone.
        self.entering_gone(id, None);
        // An older offer's claim names a row that is gone, so it can never apply: it is simply forgotten.
        let seen = Seen {
            holder: Some(offer.source.clone()),
            number: offer.generation,
        };
        let arrival = Arrival {
            task: Task::default(),
            offer,
            heard_at: self.now,
            claimed_at: None,
            held: VecDeque::new(),
        };
        self.arrivals.insert(id, arrival);
        self.drive(Who::Arrival(id), Input::TakeOffered(seen));
    }

    pub(super) fn refuse_offer(&mut self, offer: &HandoffOffer, reason: HandoffRefusal) {
        self.counters.offers_refused += 1;
        let message = ToSim::HandoffRefuse {
            char_id: offer.char_id,
            generation: offer.generation,
            reason,
        };
        self.send_sim(offer.source.node.clone(), message);
    }

    pub(super) fn arrival_seal(&mut self, id: CharId, number: u64) -> Option<Request> {
        let now = self.now;
        let arrival = self.arrivals.get_mut(&id)?;
        arrival.claimed_at.get_or_insert(now);
        arrival.offer.character.generation = number;
        Some(Request::CharacterSeal {
            char_id: id,
            number,
            row: Some(row::encode(&arrival.offer.character)),
        })
    }

    /// Ours and sealed: into the battle, and everybody is told.
    pub(super) fn arrive(&mut self, id: CharId, generation: u64) {
        let Some(arrival) = self.arrivals.remove(&id) else {
            return;
        };
        self.counters.arrivals += 1;
        self.forget_moved(id);
        let flight = self.note_arrival(&arrival, generation);
        let offer = arrival.offer;
        let source = offer.source.node.clone();
        let is_pinned = offer.cause == HandoffCause::Pin;
        let comes_from_afar = offer.source != self.config.me;
        let mut held = VecDeque::from(offer.held);
        held.extend(arrival.held);

        let fighter = offer.character.fighter.clone();
        let last_order = offer.character.last_order;
        let mut character =
            Character::from_row(arrival.task, generation, offer.region, offer.character);
        character.attach = offer.attach;
        character.came_from = Some(source.clone());
        if character.attach.is_none() {
            character.linger_due = Some(self.now + offer.linger_left_ms);
        }
        let is_placed = self
            .admit(
                offer.region,
                fighter.clone(),
                generation,
                last_order,
                offer.walk,
            )
            .is_ok();
        if is_placed {
            let due = self.now + ORDERS_SETTLE_MS;
            character.settle_due = Some(due);
            character.arrived_at_tick = self.ticks;
            self.timers.add(due, Timer::Settle(id));
            self.characters.insert(id, character);
        } else {
            // The region went, or filled up, between claim and admission. It is ours all the same: it moves on.
            let left_at = self.now.saturating_sub(flight.out_ms());
            let held = std::mem::take(&mut held);
            let cause = HandoffCause::Forward;
            self.hold_unplaced(character, fighter, offer.walk, held, left_at, cause);
        }
        let accept = ToSim::HandoffAccept {
            char_id: id,
            generation,
            flight: Some(flight.clone()),
        };
        self.send_sim(source, accept);
        self.tell_flight(id, is_placed.then_some(flight));
        if comes_from_afar {
            self.tell_privates_again(id);
        }
        self.arm_linger(id);
        for (index, order) in held.into_iter().enumerate() {
            // The order that it came for is played here, wherever its target is by now.
            self.order_owned(order, !(is_pinned && index == 0));
        }
        self.detach_unreachable(id);
    }

    /// The source took it back, or somebody else has it. What came by itself follows it.
    pub(super) fn arrival_gone(&mut self, id: CharId, row: Option<ClaimRow>) {
        let Some(arrival) = self.arrivals.remove(&id) else {
            return;
        };
        self.counters.arrivals_lost += 1;
        let owner = row.and_then(|row| row.holder);
        for order in arrival.held {
            match &owner {
                Some(owner) => {
                    self.counters.orders_forwarded += 1;
                    self.send_sim(owner.node.clone(), ToSim::Order(order));
                }
                None => self.counters.orders_dropped += 1,
            }
        }
    }
}
