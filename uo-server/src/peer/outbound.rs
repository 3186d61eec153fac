//! What waits to be sent to one node.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::Message;
use super::merge::{Merged, merge};
use super::rule::{Key, Rule, rule};
use crate::identity::BootId;
use crate::limits::{PEER_KEYED_MAX, PEER_WAITING_MAX};

/// A bounded queue that follows the [`rule`] of each message.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// By place: the order in which they are sent.
    items: BTreeMap<u64, Item>,
    /// Where the one message of a key is.
    places: BTreeMap<Key, u64>,
    next: u64,
    bounds: Bounds,
}

/// How much may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Messages that wait whatever happens.
    pub waiting_max: usize,
    /// Messages that have a key.
    pub keyed_max: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            waiting_max: PEER_WAITING_MAX,
            keyed_max: PEER_KEYED_MAX,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Item {
    from: BootId,
    key: Option<Key>,
    message: Message,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// It waits.
    Queued,
    /// It took the place of an older one, or was merged into it.
    Combined,
    /// It is lost, and its receiver will notice.
    Dropped,
    /// There is no room for what may not be lost: the link has to be cut, so that both sides start over.
    Overflow,
}

impl Outbound {
    /// An empty queue.
    pub fn new(bounds: Bounds) -> Outbound {
        Outbound {
            items: BTreeMap::new(),
            places: BTreeMap::new(),
            next: 0,
            bounds,
        }
    }

    /// Queues `message`, which this boot sends.
    pub fn push(&mut self, from: BootId, message: Message) -> Pushed {
        match rule(&message) {
            Rule::Waits => {
                let ends_feed = feed_end(&message);
                if self.items.len() - self.keyed() >= self.bounds.waiting_max {
                    return Pushed::Overflow;
                }
                self.append(from, None, message);
                if let Some(key) = ends_feed {
                    // What comes after a feed's end may not overtake it.
                    self.places.remove(&key);
                }
                Pushed::Queued
            }
            Rule::Replaces(key) => {
                let older = self.places.remove(&key);
                let replaced = older.and_then(|at| self.items.remove(&at)).is_some();
                match replaced {
                    true => {
                        self.append(from, Some(key), message);
                        Pushed::Combined
                    }
                    false => self.append_keyed(from, key, message),
                }
            }
            Rule::Merges(key) => {
                let older = self.places.get(&key);
                let older = older.and_then(|at| self.items.get_mut(at));
                let message = match older.filter(|older| older.from == from) {
                    Some(older) => match merge(&mut older.message, message) {
                        Merged::Both => return Pushed::Combined,
                        Merged::Gap => return Pushed::Dropped,
                        Merged::Apart(message) => message,
                    },
                    None => message,
                };
                self.append_keyed(from, key, message)
            }
        }
    }

    /// The next message to send, and the boot that sends it.
    pub fn pop(&mut self) -> Option<(BootId, Message)> {
        let (at, item) = self.items.pop_first()?;
        if let Some(key) = item.key
            && self.places.get(&key) == Some(&at)
        {
            self.places.remove(&key);
        }
        Some((item.from, item.message))
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether none does.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Of those that wait, the ones that another may be combined with.
    fn keyed(&self) -> usize {
        self.places.len()
    }

    fn append_keyed(&mut self, from: BootId, key: Key, message: Message) -> Pushed {
        // Some have lost their key to a newer one that could not be combined with them.
        let is_full = self.items.len() >= self.bounds.waiting_max + self.bounds.keyed_max;
        if is_full || self.keyed() >= self.bounds.keyed_max {
            return Pushed::Dropped;
        }
        self.append(from, Some(key), message);
        Pushed::Queued
    }

    fn append(&mut self, from: BootId, key: Option<Key>, message: Message) {
        let at = self.next;
        self.next += 1;
        if let Some(key) = key {
            self.places.insert(key, at);
        }
        self.items.insert(at, Item { from, key, message });
    }
}

fn feed_end(message: &Message) -> Option<Key> {
    match message {
        Message::ToGateway(super::ToGateway::FeedEnd { region, .. }) => Some(Key::Feed(*region)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
