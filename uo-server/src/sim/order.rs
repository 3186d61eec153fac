//! Orders: each (session number, seq) is applied at most once, in order.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::Refusal;
use uo_proto::{
    CharId, ErrorCode, ErrorMsg, InventoryMsg, Looked, NumberedOrder, Order, ServerMsg,
};

use super::character::Character;
use super::core::SimCore;
use crate::Millis;
use crate::identity::Holder;
use crate::limits::ORDERS_HELD_MAX;
use crate::peer::message::{HandoffCause, RoutedOrder};
use crate::peer::{ToGateway, ToSim};
use crate::planted::PlantedBug;

/// What becomes of an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It is the next one.
    Apply,
    /// It was applied already.
    Duplicate,
    /// The ones before it may still come, by another way.
    Early,
    /// It belongs to another session.
    OtherSession,
}

/// The one place that decides whether an order is applied.
fn judge(character: &Character, session: u64, seq: u64) -> Verdict {
    if session != character.session {
        Verdict::OtherSession
    } else if seq <= character.last_order {
        Verdict::Duplicate
    } else if character.settle_due.is_some() && seq > character.last_order + 1 {
        Verdict::Early
    } else {
        Verdict::Apply
    }
}

impl SimCore {
    /// An order arrived, from a gateway or forwarded by another sim.
    pub(super) fn order(&mut self, from: &Holder, order: RoutedOrder) {
        let id = order.char_id;
        let is_held = if self.characters.contains_key(&id) {
            return self.order_owned(order, true);
        } else if let Some(outgoing) = self.outgoing.get_mut(&id) {
            outgoing.hold(order)
        } else if let Some(arrival) = self.arrivals.get_mut(&id) {
            arrival.hold(order)
        } else if let Some(entering) = self.entering.get_mut(&id) {
            entering.hold(order)
        } else if let Some(moved) = self.moved.get(&id).cloned() {
            self.counters.orders_forwarded += 1;
            self.tell_moved(from.node.clone(), id, &moved, None);
            return self.send_sim(moved.owner.node, ToSim::Order(order));
        } else {
            false
        };
        if is_held {
            self.counters.orders_held += 1;
        } else {
            self.counters.orders_dropped += 1;
        }
    }

    /// An order for a character that is in a battle here. `may_pin`: it may first move to the battle of its target.
    pub(super) fn order_owned(&mut self, order: RoutedOrder, may_pin: bool) {
        let id = order.char_id;
        let Some(character) = self.characters.get(&id) else {
            // It moved on between two orders that were held for it.
            let from = self.config.me.clone();
            return self.order(&from, order);
        };
        let verdict = judge(character, order.session, order.order.seq);
        let mut verdict = self.misjudge(verdict);
        if verdict == Verdict::Apply && self.is_draining(character.region) {
            verdict = Verdict::Early; // It goes along, or is played when the region goes on.
        }
        match verdict {
            Verdict::Apply => {
                self.apply(order, may_pin);
                self.apply_early(id);
            }
            Verdict::Duplicate => self.counters.orders_duplicate += 1,
            Verdict::OtherSession => self.counters.orders_other_session += 1,
            Verdict::Early => {
                let Some(character) = self.characters.get_mut(&id) else {
                    return;
                };
                if character.early.len() < ORDERS_HELD_MAX {
                    self.counters.orders_early += 1;
                    character.early.insert(order.order.seq, order);
                } else {
                    self.counters.orders_dropped += 1;
                }
            }
        }
    }

    fn misjudge(&self, verdict: Verdict) -> Verdict {
        let is_planted = self.has_bug(PlantedBug::NoDuplicateSuppression);
        if is_planted && verdict == Verdict::Duplicate {
            Verdict::Apply
        } else {
            verdict
        }
    }

    /// Applies what had come too early and is next by now.
    fn apply_early(&mut self, id: CharId) {
        while let Some(character) = self.characters.get_mut(&id) {
            let Some(entry) = character.early.first_entry() else {
                return;
            };
            if *entry.key() > character.last_order + 1 {
                return;
            }
            let order = entry.remove();
            if order.order.seq > character.last_order {
                self.apply(order, true);
            }
        }
    }

    /// Whatever is missing before the early orders will not come any more.
    pub(super) fn settle(&mut self, id: CharId, due: Millis) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        if character.settle_due != Some(due) {
            return;
        }
        character.settle_due = None;
        self.apply_kept(id);
    }

    /// Judges the early orders of a character once more.
    pub(super) fn apply_kept(&mut self, id: CharId) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        for order in std::mem::take(&mut character.early).into_values() {
            self.order_owned(order, true);
        }
    }

    fn apply(&mut self, order: RoutedOrder, may_pin: bool) {
        let id = order.char_id;
        // Those before it, if any are missing, were lost with a former owner. Wherever it goes to be played, nobody is to
        // wait for them once more: it might be sent back meanwhile, and wait there.
        if let Some(character) = self.characters.get_mut(&id) {
            character.last_order = character.last_order.max(order.order.seq.saturating_sub(1));
        }
        if may_pin && let Some(to) = self.pinned_to(&order) {
            self.counters.pins += 1;
            return self.hand_over(id, to, HandoffCause::Pin, vec![order]);
        }
        let NumberedOrder { seq, order } = order.order;
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        character.last_order = seq;
        let region = character.region;
        let is_new_here = character.arrived_at_tick == self.ticks && character.came_from.is_some();
        self.counters.orders_applied += 1;
        self.touch(id);
        if let Some(battle) = self.slot_mut(region).and_then(|slot| slot.region.as_mut()) {
            battle.set_ack(id, seq);
            match order {
                Order::Say { text } if is_new_here => self.unsaid.push((id, text)),
                Order::Say { text } => {
                    for (node, frame) in battle.say_at_once(id, text) {
                        self.send_gateway(node, frame);
                    }
                }
                Order::Look { target } => match battle.look(target) {
                    Some(text) => self.tell(id, |private| {
                        ServerMsg::Looked(Looked {
                            private,
                            seq,
                            target,
                            text,
                        })
                    }),
                    None => self.tell_refusal(
                        id,
                        seq,
                        Refusal::new(ErrorCode::NoTarget, "there is nothing like that in sight"),
                    ),
                },
                Order::Inventory => self.tell_inventory(id),
                Order::Gather { .. } | Order::Craft { .. } => self.tell_refusal(
                    id,
                    seq,
                    Refusal::new(ErrorCode::Unavailable, "that is not part of the game yet"),
                ),
                Order::Logout => self.detach_owned(id, true),
                order => {
                    if let Err(refusal) = battle.order(id, seq, &order) {
                        self.tell_refusal(id, seq, refusal);
                    }
                }
            }
        }
    }

    /// Says what arrivals have to say. Their last region's feed went out with this tick, so nobody hears them out of order.
    /// `of`: only this one, which leaves.
    pub(super) fn say_unsaid(&mut self, of: Option<CharId>) {
        let is_due = |(id, _): &mut (CharId, String)| of.is_none_or(|of| of == *id);
        let due: Vec<(CharId, String)> = self.unsaid.extract_if(.., is_due).collect();
        for (id, text) in due {
            let region = self.characters.get(&id).map(|character| character.region);
            let slot = region.and_then(|region| self.slot_mut(region));
            if let Some(battle) = slot.and_then(|slot| slot.region.as_mut()) {
                battle.say(id, text);
            }
        }
    }

    /// The neighbour in whose battle the order has to be played, if the character can go there.
    fn pinned_to(&self, order: &RoutedOrder) -> Option<uo_proto::RegionId> {
        let id = order.char_id;
        let character = self.characters.get(&id)?;
        let battle = self.slot(character.region)?.region.as_ref()?;
        let hint = order.target_region;
        let to = battle.pin_for(&self.config.world, id, &order.order.order, hint)?;
        self.can_hand_over(id, to).then_some(to)
    }

    /// Adds a message to the character's private stream, and sends it to whoever plays it.
    pub(super) fn tell(&mut self, id: CharId, build: impl FnOnce(u64) -> ServerMsg) {
        let Some(character) = self.characters.get_mut(&id) else {
            return;
        };
        let message = character.privates.push(build);
        if let Some((_, gateway)) = &character.attach {
            let message = ToGateway::ToPlayer {
                char_id: id,
                generation: character.generation,
                message: message.clone(),
            };
            let to = gateway.node.clone();
            self.send_gateway(to, message);
        }
        self.touch(id);
    }

    pub(super) fn tell_refusal(&mut self, id: CharId, seq: u64, refusal: Refusal) {
        self.counters.orders_refused += 1;
        self.tell(id, |private| {
            ServerMsg::Error(ErrorMsg {
                code: refusal.code,
                message: refusal.message,
                seq: Some(seq),
                private: Some(private),
            })
        });
    }

    pub(super) fn tell_inventory(&mut self, id: CharId) {
        if let Some(fighter) = self.fighter(id) {
            self.tell(id, |private| {
                ServerMsg::Inventory(InventoryMsg {
                    private,
                    inventory: fighter.inventory,
                })
            });
        }
    }

    /// Everything its player has not acknowledged, once more: the old owner's messages may come by a slower way.
    pub(super) fn tell_privates_again(&mut self, id: CharId) {
        let Some(character) = self.characters.get(&id) else {
            return;
        };
        let Some((_, gateway)) = &character.attach else {
            return;
        };
        let (to, generation) = (gateway.node.clone(), character.generation);
        for message in character.privates.kept() {
            let message = ToGateway::ToPlayer {
                char_id: id,
                generation,
                message,
            };
            self.send_gateway(to.clone(), message);
        }
    }

    /// The client has its private messages up to `private`.
    pub(super) fn player_ack(&mut self, from: &Holder, id: CharId, private: u64) {
        let character = match self.characters.get_mut(&id) {
            Some(character) => character,
            None => match self.outgoing.get_mut(&id) {
                Some(outgoing) => &mut outgoing.character,
                None => return,
            },
        };
        // An acknowledgement of an older session counts other messages: only whoever plays it now is believed.
        let plays = character.attach.as_ref();
        if plays.is_some_and(|(_, gateway)| gateway.node == from.node) {
            character.privates.acknowledge(private);
        }
    }
}
