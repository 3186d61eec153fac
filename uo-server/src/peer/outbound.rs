//! What waits to be sent to one node.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::Message;
use super::merge::{Merged, merge};
use super::rule::{Key, Rule, rule};
use super::weight::weight;
use crate::identity::BootId;
use crate::limits::{PEER_KEYED_MAX, PEER_QUEUE_BYTES_MAX, PEER_WAITING_MAX};

/// A bounded queue that follows the [`rule`] of each message.
#[derive(Clone, Debug)]
pub struct Outbound {
    /// By place: the order in which they are sent.
    items: BTreeMap<u64, Item>,
    /// Where the one message of a key is.
    places: BTreeMap<Key, u64>,
    next: u64,
    /// About how much all of them are.
    bytes: usize,
    bounds: Bounds,
}

/// How much may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Messages that wait whatever happens.
    pub waiting_max: usize,
    /// Messages that have a key.
    pub keyed_max: usize,
    /// About how many bytes all of them are.
    pub bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            waiting_max: PEER_WAITING_MAX,
            keyed_max: PEER_KEYED_MAX,
            bytes_max: PEER_QUEUE_BYTES_MAX,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
struct Item {
    from: BootId,
    key: Option<Key>,
    bytes: usize,
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
            bytes: 0,
            bounds,
        }
    }

    /// Queues `message`, which this boot sends.
    pub fn push(&mut self, from: BootId, message: Message) -> Pushed {
        match rule(&message) {
            Rule::Waits => {
                let ends_feed = feed_end(&message);
                let is_full = self.items.len() - self.keyed() >= self.bounds.waiting_max;
                if is_full || self.is_heavy() {
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
                let replaced = older.and_then(|at| self.remove(at));
                match replaced.is_some() {
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
                    Some(older) => {
                        let merged = merge(&mut older.message, message);
                        let before = std::mem::replace(&mut older.bytes, weight(&older.message));
                        self.bytes = self.bytes + older.bytes - before;
                        match merged {
                            Merged::Both => return Pushed::Combined,
                            Merged::Gap => return Pushed::Dropped,
                            Merged::Apart(message) => message,
                        }
                    }
                    None => message,
                };
                self.append_keyed(from, key, message)
            }
        }
    }

    /// The next message to send, and the boot that sends it.
    pub fn pop(&mut self) -> Option<(BootId, Message)> {
        let (&at, _) = self.items.first_key_value()?;
        let item = self.remove(at)?;
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

    /// One more message is let in while it is not: a long one may go beyond the bound, and then it is the last.
    fn is_heavy(&self) -> bool {
        self.bytes >= self.bounds.bytes_max
    }

    fn remove(&mut self, at: u64) -> Option<Item> {
        let item = self.items.remove(&at)?;
        self.bytes -= item.bytes;
        Some(item)
    }

    fn append_keyed(&mut self, from: BootId, key: Key, message: Message) -> Pushed {
        // Some have lost their key to a newer one that could not be combined with them.
        let is_full = self.items.len() >= self.bounds.waiting_max + self.bounds.keyed_max;
        if is_full || self.is_heavy() || self.keyed() >= self.bounds.keyed_max {
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
        let bytes = weight(&message);
        self.bytes += bytes;
        let item = Item {
            from,
            key,
            bytes,
            message,
        };
        self.items.insert(at, item);
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
