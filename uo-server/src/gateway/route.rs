//! Between a client and the owner of its character: orders one way, private messages and promises the other.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{
    CharId, ErrorCode, Missed, MissedCount, NumberedOrder, Order, Pos, RegionId, Saved, ServerMsg,
    Target,
};

use super::connections::Stage;
use super::core::{ConnId, GatewayCore};
use super::lanes::Succession;
use super::orders::Offer;
use super::session::{Greeting, Phase};
use crate::limits::{CLIENT_NUMBER_MAX, PRIVATE_ASKS_MAX};
use crate::peer::ToSim;
use crate::peer::message::RoutedOrder;

impl GatewayCore {
    /// A client gives an order.
    pub(super) fn order(&mut self, key: u32, order: NumberedOrder) {
        let seq = order.seq;
        let Some(conn) = self.sessions[key].conn else {
            return;
        };
        if seq == 0 || seq > CLIENT_NUMBER_MAX {
            let why = "`seq` starts at 1 and counts on";
            return self.refuse(conn, ErrorCode::Invalid, why, Some(seq));
        }
        if order.order == Order::Logout {
            return self.logout(key);
        }
        if !self.is_on_map(&order.order) {
            let why = "that tile is not on the map";
            return self.refuse(conn, ErrorCode::Invalid, why, Some(seq));
        }
        let said = match &order.order {
            Order::Say { text } => text.len(),
            _ => 0,
        };
        let say_bytes = self.config.limits.say_bytes;
        if said > say_bytes as usize {
            let why = format!("what is said here is 1 to {say_bytes} bytes");
            return self.refuse(conn, ErrorCode::Invalid, &why, Some(seq));
        }
        match self.sessions[key].orders.offer(order) {
            Offer::Taken => self.send_orders(key),
            Offer::Repeated => self.counters.orders_repeated += 1,
            Offer::Full => {
                self.counters.orders_refused += 1;
                let why = "too many orders wait to be carried out";
                self.refuse(conn, ErrorCode::Busy, why, Some(seq));
            }
        }
    }

    /// Sends the orders of an attached session that its owner was not sent.
    pub(super) fn send_orders(&mut self, key: u32) {
        let session = &self.sessions[key];
        let (Phase::Attached, Some(owner), Some(number)) =
            (&session.phase, session.owner.clone(), session.number)
        else {
            return;
        };
        if self.is_frozen(&owner) {
            return; // They wait here, as many as a session may have waiting.
        }
        let (char_id, generation) = (session.char_id, session.generation);
        while let Some(order) = self.sessions[key].orders.send_next().cloned() {
            self.counters.orders += 1;
            let target_region = self.target_region(&order.order);
            let order = RoutedOrder {
                char_id,
                generation,
                session: number,
                order,
                target_region,
            };
            self.send(&owner.node, ToSim::Order(order));
        }
    }

    fn is_on_map(&self, order: &Order) -> bool {
        let tile = match *order {
            Order::WalkTo { x, y } | Order::Plant { x, y } => Pos::new(x, y),
            Order::Attack { target } | Order::Look { target } | Order::Cast { target, .. } => {
                match target {
                    Target::Tile(pos) => pos,
                    Target::Entity(_) | Target::Object(_) => return true,
                }
            }
            _ => return true,
        };
        self.config.world.contains(tile)
    }

    /// The region in whose battle the target of an order is, as far as is seen here.
    fn target_region(&self, order: &Order) -> Option<RegionId> {
        let map_size = self.config.world.size();
        let target = match *order {
            Order::Attack { target } | Order::Look { target } | Order::Cast { target, .. } => {
                target
            }
            Order::Open { object } => Target::Object(object),
            Order::Plant { x, y } => Target::Tile(Pos::new(x, y)),
            _ => return None,
        };
        match target {
            Target::Entity(id) => self.view.find(id).map(|entity| entity.region),
            Target::Object(key) => Some(key.region()),
            Target::Tile(pos) => Some(RegionId::at(map_size, pos)),
        }
    }

    /// The owner has a private message for its player.
    pub(super) fn private_message(&mut self, char_id: CharId, generation: u64, message: ServerMsg) {
        let Some(key) = self.of_generation(char_id, generation) else {
            return;
        };
        let session = &mut self.sessions[key];
        // Without a connection, or for a session before this one, it stays with the owner, which sends again at the next
        // attach what is for that.
        let Some(conn) = session.conn.filter(|_| session.phase == Phase::Attached) else {
            return;
        };
        let number = message.private().unwrap_or(0);
        match session.reliable.push_private(self.now, message) {
            Ok(Succession::Next) => {
                session.asked_again = 0;
                self.counters.privates += 1;
                self.urgent.push(conn);
            }
            Ok(Succession::Before) => self.counters.privates_repeated += 1,
            Ok(Succession::Gap) if session.asked_again < PRIVATE_ASKS_MAX => self.ask_again(key),
            // Nobody has those before it: they are told as missed, and this one comes with the next attach.
            Ok(Succession::Gap) => {
                self.private_lost(char_id, generation, number - 1);
                self.ask_again(key);
            }
            Err(_) => self.close_slow(conn),
        }
    }

    /// The owner has lost private messages.
    pub(super) fn private_lost(&mut self, char_id: CharId, generation: u64, through: u64) {
        let Some(key) = self.of_generation(char_id, generation) else {
            return;
        };
        let session = &mut self.sessions[key];
        if session.phase != Phase::Attached {
            return;
        }
        let private = session.reliable.lose_private(through);
        let Some(conn) = session.conn else {
            return;
        };
        if session.greeting == Greeting::Welcome {
            let public = session
                .missed
                .map_or(MissedCount::Count(0), |missed| missed.public);
            session.missed = Some(Missed { public, private });
        } else {
            let public = MissedCount::Count(0);
            self.control(conn, &ServerMsg::Missed(Missed { public, private }));
        }
    }

    /// Orders and an inventory are durable.
    pub(super) fn saved(&mut self, char_id: CharId, generation: u64, seq: u64, inventory: u64) {
        let Some(key) = self.of_generation(char_id, generation) else {
            return;
        };
        let session = &mut self.sessions[key];
        if let Some(conn) = session.conn
            && session.phase == Phase::Attached
        {
            session.reliable.push_saved(Saved { seq, inventory });
            self.urgent.push(conn);
        }
    }

    /// A client's library has read everything up to a ping of ours.
    pub(super) fn pong(&mut self, conn: ConnId, payload: u64) {
        let Some(Stage::Bound(key)) = self
            .conns
            .key(conn)
            .map(|key| self.conns[key].stage.clone())
        else {
            return;
        };
        let session = &mut self.sessions[key];
        let Some(private) = session.reliable.confirm(payload) else {
            return;
        };
        let char_id = session.char_id;
        if let (Phase::Attached, Some(owner)) = (&session.phase, session.owner.clone()) {
            self.send(&owner.node, ToSim::PlayerAck { char_id, private });
        }
        if let Some(conn) = self.sessions[key].conn
            && self.sessions[key].reliable.wants_ping()
        {
            self.urgent.push(conn);
        }
    }
}
