//! Virtual time: what happens when, ties in the order in which they were planned.

use std::collections::BTreeMap;

use uo_server::Millis;

/// Events by their time.
#[derive(Debug)]
pub struct Queue<E> {
    events: BTreeMap<(Millis, u64), E>,
    planned: u64,
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Queue {
            events: BTreeMap::new(),
            planned: 0,
        }
    }
}

impl<E> Queue<E> {
    pub fn push(&mut self, at: Millis, event: E) {
        self.planned += 1;
        self.events.insert((at, self.planned), event);
    }

    pub fn pop(&mut self) -> Option<(Millis, E)> {
        let ((at, _), event) = self.events.pop_first()?;
        Some((at, event))
    }
}

/// What is sent one way arrives in order, however long each takes.
#[derive(Clone, Debug, Default)]
pub struct InOrder {
    last: Millis,
}

impl InOrder {
    /// When that arrives which is sent at `now` and would take `delay`.
    pub fn arrival(&mut self, now: Millis, delay: u64) -> Millis {
        self.last = self.last.max(now + delay);
        self.last
    }
}
