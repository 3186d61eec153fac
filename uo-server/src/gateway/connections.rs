//! Connections: who is on the other end, what waits for them, and whether they can take it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use slab::Slab;
use uo_proto::{Encoding, Resume};

use super::core::ConnId;
use super::lanes::Control;
use crate::Millis;
use crate::sim::core::Ticket;

/// How far a connection is.
#[derive(Clone, Debug)]
pub enum Stage {
    /// Nothing was heard yet.
    New,
    /// It resumes a session that the store is asked about, for the so-manieth time.
    Resuming(Ticket, Resume, u32),
    /// It belongs to the session with this key.
    Bound(u32),
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// How the shell knows it.
    pub id: ConnId,
    /// Which frames it takes.
    pub encoding: Encoding,
    /// When it was opened.
    pub opened: Millis,
    /// How far it is.
    pub stage: Stage,
    /// Whether a write is under way.
    pub is_busy: bool,
    /// Its control lane.
    pub control: Control,
}

/// All connections that are not closed or closing, by their keys and ids.
#[derive(Debug, Default)]
pub struct Connections {
    slots: Slab<Connection>,
    by_id: FxHashMap<ConnId, u32>,
    /// Those that were told to close and have not said that they did.
    pub closing: BTreeSet<ConnId>,
}

impl Connections {
    /// Adds a connection.
    pub fn insert(&mut self, id: ConnId, encoding: Encoding, now: Millis) -> u32 {
        let key = self.slots.insert(Connection {
            id,
            encoding,
            opened: now,
            stage: Stage::New,
            is_busy: false,
            control: Control::default(),
        }) as u32;
        self.by_id.insert(id, key);
        key
    }

    /// Removes a connection.
    pub fn remove(&mut self, key: u32) -> Connection {
        let conn = self.slots.remove(key as usize);
        self.by_id.remove(&conn.id);
        conn
    }

    /// The key of a connection, if it is neither closed nor closing.
    pub fn key(&self, id: ConnId) -> Option<u32> {
        self.by_id.get(&id).copied()
    }

    /// A connection, if it is still there.
    pub fn get_mut(&mut self, key: u32) -> Option<&mut Connection> {
        self.slots.get_mut(key as usize)
    }

    /// Every connection, by key.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Connection)> {
        self.slots.iter().map(|(key, conn)| (key as u32, conn))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }
}

impl std::ops::Index<u32> for Connections {
    type Output = Connection;
    fn index(&self, key: u32) -> &Connection {
        &self.slots[key as usize]
    }
}

impl std::ops::IndexMut<u32> for Connections {
    fn index_mut(&mut self, key: u32) -> &mut Connection {
        &mut self.slots[key as usize]
    }
}
