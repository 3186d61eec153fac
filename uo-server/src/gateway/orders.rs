//! The orders of a session that its owner has not acknowledged: bounded, in order, and ready to be sent again.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::NumberedOrder;

use crate::limits::SESSION_ORDERS_MAX;

/// What becomes of an order that a client gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Offer {
    /// It waits to be sent.
    Taken,
    /// Its number is not above the last: it was given before.
    Repeated,
    /// Too many wait for their acknowledgement. Its number is still free.
    Full,
}

/// Orders by their numbers, oldest first: some sent but not acknowledged, then some not sent.
#[derive(Clone, Debug, Default)]
pub struct OrderWindow {
    orders: VecDeque<NumberedOrder>,
    /// How many of them, from the oldest on, were sent to the present owner.
    sent: usize,
    last: u64,
    /// The highest number that was acknowledged: up to it no order is here any more.
    acknowledged: u64,
}

impl OrderWindow {
    /// Offers an order.
    pub fn offer(&mut self, order: NumberedOrder) -> Offer {
        if order.seq <= self.last {
            return Offer::Repeated;
        }
        if self.orders.len() >= SESSION_ORDERS_MAX {
            return Offer::Full;
        }
        self.last = order.seq;
        self.orders.push_back(order);
        Offer::Taken
    }

    /// The next order to send; it counts as sent.
    pub fn send_next(&mut self) -> Option<&NumberedOrder> {
        let order = self.orders.get(self.sent)?;
        self.sent += 1;
        Some(order)
    }

    /// Everything that is not acknowledged has to be sent again.
    pub fn rewind(&mut self) {
        self.sent = 0;
    }

    /// The owner has applied every order up to `seq`.
    pub fn acknowledge(&mut self, seq: u64) {
        while self.orders.front().is_some_and(|order| order.seq <= seq) {
            self.orders.pop_front();
            self.sent = self.sent.saturating_sub(1);
        }
        self.last = self.last.max(seq);
        self.acknowledged = self.acknowledged.max(seq);
        if self.orders.is_empty() && self.orders.capacity() > 16 {
            self.orders = VecDeque::new();
        }
    }

    /// Only orders up to `seq` were ever given: the client gives the others again.
    pub fn restart(&mut self, seq: u64) {
        *self = OrderWindow {
            last: seq,
            acknowledged: seq,
            ..OrderWindow::default()
        };
    }

    /// A client is told that orders up to `seq` were applied, and gives the others again. If a crash took some back that
    /// were acknowledged, they are not here any more, and have to be taken again.
    pub fn resume(&mut self, seq: u64) {
        if self.acknowledged > seq {
            self.restart(seq);
        }
    }

    /// The highest number taken, or known to be applied.
    pub fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use uo_proto::Order;

    use super::*;

    fn order(seq: u64) -> NumberedOrder {
        NumberedOrder {
            seq,
            order: Order::Stop,
        }
    }

    fn sent(window: &mut OrderWindow) -> Vec<u64> {
        std::iter::from_fn(|| window.send_next().map(|order| order.seq)).collect()
    }

    #[test]
    fn orders_are_sent_once_until_rewound() {
        let mut window = OrderWindow::default();
        for seq in [1, 2, 5] {
            assert_eq!(window.offer(order(seq)), Offer::Taken);
        }
        assert_eq!(window.offer(order(5)), Offer::Repeated);
        assert_eq!(window.offer(order(3)), Offer::Repeated);
        assert_eq!(sent(&mut window), [1, 2, 5]);
        window.acknowledge(2);
        assert_eq!(window.offer(order(6)), Offer::Taken);
        assert_eq!(sent(&mut window), [6]);
        window.rewind();
        assert_eq!(sent(&mut window), [5, 6]);
        window.restart(1);
        assert_eq!(window.offer(order(2)), Offer::Taken);
        assert_eq!(sent(&mut window), [2]);
        window.resume(1);
        assert_eq!(window.offer(order(2)), Offer::Repeated, "it is here");
        window.acknowledge(2);
        window.resume(1);
        assert_eq!(window.offer(order(2)), Offer::Taken, "it is gone");
        window.acknowledge(9);
        assert_eq!((window.orders.len(), window.last()), (0, 9));
        assert_eq!(window.offer(order(9)), Offer::Repeated);
    }

    #[test]
    fn a_full_window_leaves_the_number_free() {
        let mut window = OrderWindow::default();
        let max = SESSION_ORDERS_MAX as u64;
        (1..=max).for_each(|seq| assert_eq!(window.offer(order(seq)), Offer::Taken));
        assert_eq!(window.offer(order(max + 1)), Offer::Full);
        window.acknowledge(1);
        assert_eq!(window.offer(order(max + 1)), Offer::Taken);
    }
}
