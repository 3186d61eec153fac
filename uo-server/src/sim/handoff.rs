//! The source of a handoff: out of the battle, offered, and either given or taken back by compare-and-set.
//!
//! An outgoing character is in no battle of ours. Its claim tells how far it is: `Outgoing` is offered and waits,
//! `Claiming` and `Sealing` take it back, `Held` is ours again and looks for a battle.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_combat::Fighter;
use uo_proto::{CharId, Pos, RegionId, TICK_MS};

use super::character::Character;
use super::claims::Who;
use super::core::SimCore;
use super::timer::Timer;
use crate::Millis;
use crate::cluster::claim::{Claim, Input};
use crate::identity::{Holder, NodeName};
use crate::limits::{
    FORWARDS_MAX, HANDOFF_PAUSE_MS, HANDOFF_TIMEOUT_MS, HANDOFF_TIMES_MAX, MOVED_KEPT_MAX,
    ORDERS_HELD_MAX, SEEK_MS,
};
use crate::peer::message::{AttachId, Flight, HandoffCause, HandoffOffer, RoutedOrder};
use crate::peer::{ToGateway, ToSim};
use crate::planted::PlantedBug;
use crate::store::{ClaimRow, Request, row};

/// A character that is in no battle here and on its way to one.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Outgoing {
    pub(super) character: Character,
    pub(super) fighter: Fighter,
    walk: Option<(Pos, u64)>,
    /// To which region's battle, and whose that is.
    pub(super) to: RegionId,
    pub(super) holder: Holder,
    /// When it left its battle, and for which reason.
    pub(super) left_at: Millis,
    pub(super) cause: HandoffCause,
    /// When it was offered last.
    pub(super) offered_at: Millis,
    /// When its offer has waited long enough.
    offer_due: Option<Millis>,
    /// Orders that were not applied, and how many of them went along with the offer.
    held: VecDeque<RoutedOrder>,
    offered: usize,
    /// Its session went meanwhile; whether for good.
    pub(super) detached: Option<(AttachId, bool)>,
}

/// Where a character went.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct MovedTo {
    pub(super) generation: u64,
    pub(super) region: RegionId,
    pub(super) owner: Holder,
}

impl Outgoing {
    pub(super) fn hold(&mut self, order: RoutedOrder) -> bool {
        let has_room = self.held.len() < ORDERS_HELD_MAX;
        if has_room {
            self.held.push_back(order);
        }
        has_room
    }

    /// The regions between which it is.
    pub(super) fn ends(&self) -> [RegionId; 2] {
        [self.character.region, self.to]
    }

    /// Orders that the other side does not have.
    fn unsent(mut self) -> VecDeque<RoutedOrder> {
        self.held.split_off(self.offered)
    }
}

impl SimCore {
    /// Whether the character can leave for `to` now.
    pub(super) fn can_hand_over(&self, id: CharId, to: RegionId) -> bool {
        let is_free = self.characters.get(&id).is_some_and(|character| {
            character.is_held()
                && !character.is_leaving
                && character.region != to
                && character.handoff_not_before <= self.now
        });
        is_free && !self.stopping && self.taker_of(to).is_some()
    }

    /// Takes the character out of its battle and offers it to the holder of `to`. `orders` were not applied: they go
    /// along.
    pub(super) fn hand_over(
        &mut self,
        id: CharId,
        to: RegionId,
        cause: HandoffCause,
        orders: Vec<RoutedOrder>,
    ) {
        let Some(holder) = self.taker_of(to) else {
            return;
        };
        let Some(mut character) = self.characters.remove(&id) else {
            return;
        };
        let withdrawn = self
            .slot_mut(character.region)
            .and_then(|slot| slot.region.as_mut())
            .and_then(|battle| battle.withdraw(id));
        let Some((fighter, walk)) = withdrawn else {
            // Without a body there is nothing to hand over; it cannot happen while the region is served.
            self.characters.insert(id, character);
            return;
        };
        let mut held: VecDeque<RoutedOrder> = orders.into();
        held.extend(std::mem::take(&mut character.early).into_values());
        if let Some(older) = self.outgoing.remove(&id) {
            // It went from one region of ours to another, and goes on before the first was told: that one is settled.
            held.extend(older.unsent());
        }
        if !self.has_bug(PlantedBug::SavedWithoutCheck) {
            character.checkpoint.suspend();
        }
        let outgoing = Outgoing {
            character,
            fighter,
            walk,
            to,
            holder,
            left_at: self.now,
            cause,
            offered_at: self.now,
            offer_due: None,
            held,
            offered: 0,
            detached: None,
        };
        self.outgoing.insert(id, outgoing);
        self.offer(id);
    }

    fn offer(&mut self, id: CharId) {
        self.drive(Who::Outgoing(id), Input::HandOver);
        let now = self.now;
        let source = self.config.me.clone();
        let Some(outgoing) = self.outgoing.get_mut(&id) else {
            return;
        };
        let due = now + HANDOFF_TIMEOUT_MS;
        outgoing.offer_due = Some(due);
        outgoing.offered_at = now;
        let character = &outgoing.character;
        let offer = HandoffOffer {
            char_id: id,
            generation: character.generation,
            source,
            region: outgoing.to,
            character: character.row(character.generation, outgoing.fighter.clone()),
            attach: character.attach.clone(),
            linger_left_ms: character
                .linger_due
                .map_or(0, |due| due.saturating_sub(now)),
            walk: outgoing.walk,
            // They stay here as well, for the case that it comes back.
            held: outgoing.held.iter().cloned().collect(),
            cause: outgoing.cause,
            from: Some(character.region),
            out_ms: now.saturating_sub(outgoing.left_at),
        };
        outgoing.offered = outgoing.held.len();
        let to = outgoing.holder.node.clone();
        self.counters.handoffs_offered += 1;
        self.timers.add(due, Timer::Offer(id));
        self.send_sim(to, ToSim::HandoffOffer(Box::new(offer)));
    }

    /// The destination has it.
    pub(super) fn accepted(&mut self, id: CharId, generation: u64, flight: Option<&Flight>) {
        let is_newer = self
            .outgoing
            .get(&id)
            .is_some_and(|outgoing| generation > outgoing.character.generation);
        if !is_newer {
            self.counters.messages_old_number += 1;
            return;
        }
        let Some(outgoing) = self.outgoing.remove(&id) else {
            return;
        };
        self.counters.handoffs_accepted += 1;
        if self.handoff_ms.len() < HANDOFF_TIMES_MAX {
            let took = self.now.saturating_sub(outgoing.left_at);
            self.handoff_ms
                .push(u32::try_from(took).unwrap_or(u32::MAX));
        }
        self.note_departure(&outgoing, generation, flight);
        let moved = MovedTo {
            generation,
            region: outgoing.to,
            owner: outgoing.holder.clone(),
        };
        self.tell_gateway_moved(&outgoing, &moved);
        self.pass_on_orders(outgoing, moved);
    }

    /// The gateway hears it from both sides: the new owner may have no link to it.
    fn tell_gateway_moved(&mut self, outgoing: &Outgoing, moved: &MovedTo) {
        if let Some((_, gateway)) = &outgoing.character.attach
            && moved.owner != self.config.me
        {
            self.tell_moved(gateway.node.clone(), outgoing.character.id, moved, None);
        }
    }

    /// The destination refused before it claimed anything: it is ours under the same generation.
    pub(super) fn refused(&mut self, id: CharId, generation: u64) {
        let is_ours = self.outgoing.get(&id).is_some_and(|outgoing| {
            outgoing.character.generation == generation
                && matches!(outgoing.character.task.claim, Claim::Outgoing { .. })
        });
        if !is_ours {
            self.counters.messages_old_number += 1;
            return;
        }
        self.counters.handoffs_refused += 1;
        self.drive(Who::Outgoing(id), Input::TakeBack);
        let cause = self.outgoing.get(&id).map(|outgoing| outgoing.cause);
        match cause {
            // Whoever has its region may be able to take it in the next tick.
            Some(HandoffCause::Drain | HandoffCause::Forward) => {
                self.timers.add(self.now + TICK_MS, Timer::Seek(id));
            }
            _ => self.settle_outgoing(id),
        }
    }

    /// No answer. Only a compare-and-set tells whether the destination has it.
    pub(super) fn offer_is_over(&mut self, id: CharId, due: Millis) {
        let is_waiting = self.outgoing.get(&id).is_some_and(|outgoing| {
            outgoing.offer_due == Some(due)
                && matches!(outgoing.character.task.claim, Claim::Outgoing { .. })
        });
        if !is_waiting {
            return;
        }
        self.counters.handoffs_timed_out += 1;
        if self.has_bug(PlantedBug::ReclaimWithoutClaim) {
            self.drive(Who::Outgoing(id), Input::TakeBack);
            return self.settle_outgoing(id);
        }
        self.drive(Who::Outgoing(id), Input::Reclaim);
    }

    pub(super) fn outgoing_seal(&mut self, id: CharId, number: u64) -> Option<Request> {
        let outgoing = self.outgoing.get(&id)?;
        Some(Request::CharacterSeal {
            char_id: id,
            number,
            row: Some(row::encode(
                &outgoing.character.row(number, outgoing.fighter.clone()),
            )),
        })
    }

    /// Ours again, under the next generation.
    pub(super) fn reclaimed(&mut self, id: CharId, generation: u64) {
        self.counters.handoffs_reclaimed += 1;
        if let Some(outgoing) = self.outgoing.get_mut(&id) {
            outgoing.character.generation = generation;
            outgoing.character.checkpoint = super::checkpoint::Checkpoint::sealed();
        }
        self.settle_outgoing(id);
    }

    /// The row changed under the reclaim: the character is where the row says.
    pub(super) fn outgoing_gone(&mut self, id: CharId, row: Option<ClaimRow>) {
        let Some(outgoing) = self.outgoing.remove(&id) else {
            return;
        };
        self.counters.handoffs_lost += 1;
        self.note_loss(&outgoing, row.as_ref());
        let Some(ClaimRow {
            holder: Some(owner),
            number,
            ..
        }) = row
        else {
            self.counters.orders_dropped += outgoing.held.len() as u64;
            return;
        };
        let moved = MovedTo {
            generation: number,
            region: outgoing.to,
            owner,
        };
        self.tell_gateway_moved(&outgoing, &moved);
        self.pass_on_orders(outgoing, moved);
    }

    /// Whatever came for a character while it was on its way follows it.
    fn pass_on_orders(&mut self, outgoing: Outgoing, moved: MovedTo) {
        let id = outgoing.character.id;
        let to = moved.owner.node.clone();
        let detached = outgoing.detached;
        for order in outgoing.unsent() {
            self.counters.orders_forwarded += 1;
            self.send_sim(to.clone(), ToSim::Order(order));
        }
        if let Some((attach, logout)) = detached {
            let message = ToSim::Detach {
                char_id: id,
                attach,
                logout,
            };
            self.send_sim(to, message);
        }
        if moved.owner != self.config.me {
            self.remember_moved(id, moved);
        }
    }

    /// A character that is ours and in no battle: into one of ours, or to whoever holds its region, or later.
    pub(super) fn settle_outgoing(&mut self, id: CharId) {
        let Some(outgoing) = self.outgoing.get(&id) else {
            return;
        };
        let there = self.config.world.region_at(outgoing.fighter.pos);
        let home = outgoing.character.region;
        let generation = outgoing.character.generation;
        let last_order = outgoing.character.last_order;
        let (fighter, walk) = (outgoing.fighter.clone(), outgoing.walk);
        let forwards = !self.has_bug(PlantedBug::NoForwarding);
        // First where its fight is, then where it stands.
        for region in [home, there] {
            let admitted = self.admit(region, fighter.clone(), generation, last_order, walk);
            if admitted.is_ok() {
                return self.bring_back(id, region);
            }
            if forwards && let Some(holder) = self.forwards_to(region) {
                return self.forward(id, region, holder);
            }
        }
        if !forwards {
            return;
        }
        if self.gives_up() {
            // Nobody to forward to, and nothing runs any more: what it has is written, and it is released.
            if let Some(outgoing) = self.outgoing.remove(&id) {
                self.leave_unplaced(outgoing.character, outgoing.fighter);
            }
            return;
        }
        self.timers.add(self.now + SEEK_MS, Timer::Seek(id));
    }

    /// Who else takes a character that has no battle here for `region`.
    fn forwards_to(&self, region: RegionId) -> Option<Holder> {
        let is_over = self.stopping && self.now >= self.evacuate_until;
        let holder = self.taker_of(region).filter(|_| !is_over)?;
        (holder != self.config.me).then_some(holder)
    }

    /// Offers a character without a battle to another node, or as soon as there is room.
    fn forward(&mut self, id: CharId, to: RegionId, holder: Holder) {
        if self.forwards_left == 0 {
            return self.timers.add(self.now + TICK_MS, Timer::Seek(id));
        }
        self.forwards_left -= 1;
        if let Some(outgoing) = self.outgoing.get_mut(&id) {
            if outgoing.cause != HandoffCause::Drain || to != outgoing.character.region {
                outgoing.cause = HandoffCause::Forward;
            }
            outgoing.to = to;
            outgoing.holder = holder;
        }
        self.offer(id);
    }

    /// A new tick: as many may be forwarded as there is room for.
    pub(super) fn allow_forwards(&mut self) {
        let waits = |outgoing: &&Outgoing| !outgoing.character.is_held();
        let waiting = self.outgoing.values().filter(waits).count();
        self.forwards_left = FORWARDS_MAX.saturating_sub(waiting);
    }

    fn bring_back(&mut self, id: CharId, region: RegionId) {
        let Some(outgoing) = self.outgoing.remove(&id) else {
            return;
        };
        let flight = self.note_return(&outgoing, region);
        let mut character = outgoing.character;
        character.region = region;
        character.handoff_not_before = self.now + HANDOFF_PAUSE_MS;
        self.characters.insert(id, character);
        self.tell_flight(id, Some(flight));
        self.touch(id);
        self.arm_linger(id);
        for order in outgoing.held {
            // It was not taken over there, so it is played here, whatever comes of it.
            self.order_owned(order, false);
        }
        match outgoing.detached {
            Some((_, logout)) => self.detach_owned(id, logout),
            None => self.detach_unreachable(id),
        }
        if self.characters.get(&id).is_some_and(|it| it.is_leaving) {
            self.leave(id);
        }
    }

    pub(super) fn seek(&mut self, id: CharId) {
        let is_ours = self
            .outgoing
            .get(&id)
            .is_some_and(|outgoing| outgoing.character.is_held());
        if is_ours {
            self.settle_outgoing(id);
        }
    }

    /// An owner that could not place what it took over: it goes on as an outgoing one.
    pub(super) fn hold_unplaced(
        &mut self,
        character: Character,
        fighter: Fighter,
        walk: Option<(Pos, u64)>,
        mut held: VecDeque<RoutedOrder>,
        left_at: Millis,
        cause: HandoffCause,
    ) {
        let id = character.id;
        if let Some(older) = self.outgoing.remove(&id) {
            held.extend(older.unsent());
        }
        let outgoing = Outgoing {
            to: character.region,
            character,
            fighter,
            walk,
            holder: self.config.me.clone(),
            left_at,
            cause,
            offered_at: self.now,
            offer_due: None,
            held,
            offered: 0,
            detached: None,
        };
        let is_held = outgoing.character.is_held();
        self.outgoing.insert(id, outgoing);
        if is_held {
            self.settle_outgoing(id);
        } else {
            // Its renewal is under way: the answer comes here from now on.
            self.drive(Who::Outgoing(id), Input::Retry);
        }
    }

    /// Tells the gateway and the feed under which generation the character goes on.
    pub(super) fn tell_generation(&mut self, id: CharId) {
        self.tell_flight(id, None);
    }

    /// The same, after it was in no battle for a while.
    pub(super) fn tell_flight(&mut self, id: CharId, flight: Option<Flight>) {
        let me = self.config.me.clone();
        let Some(character) = self.characters.get(&id) else {
            return;
        };
        let (region, generation) = (character.region, character.generation);
        let gateway = character.attach.as_ref().map(|(_, at)| at.node.clone());
        if let Some(battle) = self.slot_mut(region).and_then(|slot| slot.region.as_mut()) {
            battle.set_generation(id, generation);
        }
        if let Some(to) = gateway {
            let moved = MovedTo {
                generation,
                region,
                owner: me,
            };
            self.tell_moved(to, id, &moved, flight);
        }
    }

    pub(super) fn tell_moved(
        &mut self,
        to: NodeName,
        id: CharId,
        moved: &MovedTo,
        flight: Option<Flight>,
    ) {
        let message = ToGateway::Moved {
            char_id: id,
            generation: moved.generation,
            region: moved.region,
            owner: moved.owner.clone(),
            flight,
        };
        self.send_gateway(to, message);
    }

    fn remember_moved(&mut self, id: CharId, moved: MovedTo) {
        if self.moved.insert(id, moved).is_none() {
            self.moved_order.push_back(id);
        }
        while self.moved_order.len() > MOVED_KEPT_MAX {
            if let Some(oldest) = self.moved_order.pop_front() {
                self.moved.remove(&oldest);
            }
        }
    }

    pub(super) fn forget_moved(&mut self, id: CharId) {
        if self.moved.remove(&id).is_some() {
            self.moved_order.retain(|&known| known != id);
        }
    }
}
