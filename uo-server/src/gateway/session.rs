//! Sessions: one player's presence here, with or without a connection.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use rustc_hash::FxHashMap;
use slab::Slab;
use uo_proto::{CharId, Missed, RegionId, WorldStatus};

use super::gap::Gap;
use super::lanes::Reliable;
use super::orders::OrderWindow;
use super::sight::Sight;
use super::subscribe::Needs;
use crate::Millis;
use crate::identity::Holder;
use crate::peer::message::AttachId;
use crate::sim::core::Ticket;
use crate::store::TokenHash;

/// Where a session is on its way to its character.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Nobody is connected: nothing is wanted.
    Resting,
    /// The store is asked who owns the character.
    AskingOwner(Ticket),
    /// Nobody does: the store is asked where it stands.
    AskingPlace(Ticket),
    /// The store is asked who holds that region.
    AskingHolder(Ticket, RegionId),
    /// A sim is asked to own it.
    Attaching {
        /// Which.
        to: Holder,
        /// When it is given up.
        until: Millis,
    },
    /// Not now; the next try begins then, or when the region is held.
    Waiting {
        /// When.
        until: Millis,
        /// The region that nobody holds.
        region: Option<RegionId>,
    },
    /// Its owner serves it.
    Attached,
}

/// What a new connection still has to be told before anything else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Greeting {
    /// `welcome`, once it is attached.
    Welcome,
    /// `snapshot`, once the regions around it are in, or at this time.
    Snapshot(Millis),
    /// Nothing: deltas may follow.
    Done,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    /// Whose.
    pub char_id: CharId,
    /// Its name.
    pub name: Box<str>,
    /// The session number that the owner issued.
    pub number: Option<u64>,
    /// Key of its connection.
    pub conn: Option<u32>,
    /// What that is still to be told first.
    pub greeting: Greeting,
    /// The token of the newest `welcome`, and the one before it while the newest was not used.
    pub token: Option<TokenHash>,
    /// See there.
    pub token_before: Option<TokenHash>,
    /// Public times are told since then.
    pub began: Millis,
    /// When its connection went, while it has none.
    pub rests_since: Millis,
    /// When its row was written last.
    pub stored_at: Millis,
    /// Where it is on its way to its character.
    pub phase: Phase,
    /// Tries that failed in a row.
    pub tries: u32,
    /// How often in a row an attach was sent on to another sim.
    pub hops: u8,
    /// Who owned the character when last heard.
    pub owner: Option<Holder>,
    /// And under which generation.
    pub generation: u64,
    /// How often the owner was asked for missing private messages since the last one that followed.
    pub asked_again: u8,
    /// By when that owner has to have said so itself; none: it has.
    pub confirm_by: Option<Millis>,
    /// Names the newest attach.
    pub attach: AttachId,
    /// Orders not yet acknowledged.
    pub orders: OrderWindow,
    /// The highest order that the battle took.
    pub ack: u64,
    /// The one that the client was told.
    pub ack_told: u64,
    /// Reliable messages.
    pub reliable: Reliable,
    /// What it sees.
    pub sight: Sight,
    /// The regions that it needs.
    pub needs: Option<Needs>,
    /// What the client believes of the world.
    pub world_told: WorldStatus,
    /// What a resumed client will never get: told behind its `welcome`.
    pub missed: Option<Missed>,
    /// For how long its player was shown nothing new.
    pub gap: Gap,
}

impl Session {
    /// A session that begins now, for a client that has the public and private messages up to those numbers.
    pub fn new(
        now: Millis,
        char_id: CharId,
        name: &str,
        (last_seq, last_private): (u64, u64),
        lane_max: usize,
    ) -> Self {
        Session {
            char_id,
            name: name.into(),
            number: None,
            conn: None,
            greeting: Greeting::Welcome,
            token: None,
            token_before: None,
            began: now,
            rests_since: now,
            stored_at: now,
            phase: Phase::Resting,
            tries: 0,
            hops: 0,
            owner: None,
            generation: 0,
            asked_again: 0,
            confirm_by: None,
            attach: 0,
            orders: OrderWindow::default(),
            ack: 0,
            ack_told: 0,
            reliable: Reliable::new(last_seq, last_private, lane_max),
            sight: Sight::default(),
            needs: None,
            world_told: WorldStatus::Ok,
            missed: None,
            gap: Gap::default(),
        }
    }
}

/// All sessions, by their keys, characters and tokens.
#[derive(Debug, Default)]
pub struct Sessions {
    slots: Slab<Session>,
    by_char: FxHashMap<CharId, u32>,
    by_token: FxHashMap<TokenHash, u32>,
}

impl Sessions {
    /// Adds a session; the character has none yet.
    pub fn insert(&mut self, session: Session) -> u32 {
        let char_id = session.char_id;
        let key = self.slots.insert(session) as u32;
        let before = self.by_char.insert(char_id, key);
        assert!(before.is_none(), "a character has one session");
        key
    }

    /// Removes a session and its tokens.
    pub fn remove(&mut self, key: u32) -> Session {
        let session = self.slots.remove(key as usize);
        self.by_char.remove(&session.char_id);
        for token in session.token.iter().chain(&session.token_before) {
            self.by_token.remove(token);
        }
        session
    }

    /// A session, if it is still there.
    pub fn get(&self, key: u32) -> Option<&Session> {
        self.slots.get(key as usize)
    }

    /// A session, if it is still there.
    pub fn get_mut(&mut self, key: u32) -> Option<&mut Session> {
        self.slots.get_mut(key as usize)
    }

    /// The session of a character.
    pub fn of_char(&self, char_id: CharId) -> Option<u32> {
        self.by_char.get(&char_id).copied()
    }

    /// The session that a token resumes.
    pub fn of_token(&self, token: TokenHash) -> Option<u32> {
        self.by_token.get(&token).copied()
    }

    /// Sets the token of the newest `welcome`.
    pub fn set_token(&mut self, key: u32, token: TokenHash) {
        self.slots[key as usize].token = Some(token);
        self.by_token.insert(token, key);
    }

    /// `used` resumed the session: it stays good until the next token is used. Returns the one that is good no longer.
    pub fn rotate(&mut self, key: u32, used: TokenHash) -> Option<TokenHash> {
        let session = &mut self.slots[key as usize];
        let retired = if session.token == Some(used) {
            session.token_before.replace(used)
        } else {
            session.token
        };
        session.token = None;
        if let Some(token) = retired {
            self.by_token.remove(&token);
        }
        retired
    }

    /// A session resumed from the store by this token.
    pub fn adopt_token(&mut self, key: u32, used: TokenHash) {
        self.slots[key as usize].token_before = Some(used);
        self.by_token.insert(used, key);
    }

    /// Every session, by key.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Session)> {
        self.slots
            .iter()
            .map(|(key, session)| (key as u32, session))
    }

    /// The keys of all sessions.
    pub fn keys(&self) -> Vec<u32> {
        self.slots.iter().map(|(key, _)| key as u32).collect()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }
}

impl std::ops::Index<u32> for Sessions {
    type Output = Session;
    fn index(&self, key: u32) -> &Session {
        &self.slots[key as usize]
    }
}

impl std::ops::IndexMut<u32> for Sessions {
    fn index_mut(&mut self, key: u32) -> &mut Session {
        &mut self.slots[key as usize]
    }
}
