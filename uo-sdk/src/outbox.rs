//! Orders that the server has not taken yet: numbered, kept, and sent again after a resume.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::{NumberedOrder, Order};

/// Most orders kept; what a gateway buffers for a session is the same number.
pub const OUTBOX_ORDERS_MAX: usize = 256;

/// Orders in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    last_seq: u64,
    kept: VecDeque<NumberedOrder>,
}

impl Outbox {
    /// Numbers an order and keeps it; none when too many are kept already.
    pub fn push(&mut self, order: Order) -> Option<&NumberedOrder> {
        if self.kept.len() >= OUTBOX_ORDERS_MAX {
            return None;
        }
        self.last_seq += 1;
        self.kept.push_back(NumberedOrder {
            seq: self.last_seq,
            order,
        });
        self.kept.back()
    }

    /// The server took all orders up to this one.
    pub fn acknowledge(&mut self, seq: u64) {
        while self.kept.front().is_some_and(|order| order.seq <= seq) {
            self.kept.pop_front();
        }
    }

    /// After a resume: the server applied all orders up to `last_order`; what is left is to be sent again.
    pub fn resume(&mut self, last_order: u64) -> impl Iterator<Item = &NumberedOrder> {
        self.acknowledge(last_order);
        // A server that knows of more orders than this client sent has seen the session used elsewhere: a lower number
        // would be dropped as a duplicate.
        self.last_seq = self.last_seq.max(last_order);
        self.kept.iter()
    }

    /// A new session: numbers begin again at 1, and what was not taken is forgotten.
    pub fn restart(&mut self) {
        *self = Outbox::default();
    }

    /// The number of the newest order; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// How many orders wait to be taken.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether no order waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs<'a>(orders: impl Iterator<Item = &'a NumberedOrder>) -> Vec<u64> {
        orders.map(|order| order.seq).collect()
    }

    #[test]
    fn what_was_not_taken_is_sent_again_with_its_number() {
        let mut outbox = Outbox::default();
        for _ in 0..5 {
            outbox.push(Order::Stop);
        }
        outbox.acknowledge(2);
        assert_eq!(seqs(outbox.resume(3)), [4, 5]);
        assert_eq!(outbox.push(Order::Guard).map(|order| order.seq), Some(6));
        assert_eq!(outbox.len(), 3);
    }

    #[test]
    fn numbers_jump_over_what_the_server_already_knows() {
        let mut outbox = Outbox::default();
        assert_eq!(seqs(outbox.resume(9)), [0u64; 0]);
        assert_eq!(outbox.push(Order::Stop).map(|order| order.seq), Some(10));
    }

    #[test]
    fn a_new_session_starts_at_one() {
        let mut outbox = Outbox::default();
        outbox.push(Order::Stop);
        outbox.restart();
        assert!(outbox.is_empty());
        assert_eq!(outbox.push(Order::Stop).map(|order| order.seq), Some(1));
    }

    #[test]
    fn it_is_bounded() {
        let mut outbox = Outbox::default();
        for _ in 0..OUTBOX_ORDERS_MAX {
            assert!(outbox.push(Order::Stop).is_some());
        }
        assert_eq!(outbox.push(Order::Stop), None);
        assert_eq!(outbox.last_seq(), OUTBOX_ORDERS_MAX as u64);
    }
}
