//! What waits for a connection, by delivery class.
//!
//! Control goes first. Reliable messages form two streams: the public one is numbered here and kept for a while after it
//! was written, for a resume at this gateway; the private one is numbered and kept by the owner. State is never queued.
//!
//! **When the owner may forget a private message.** Only the client can tell that it has one, and the protocol has no
//! message for that. After a private message a WebSocket ping with its number is written; the pong that answers it was
//! made by a reader that had read the message before, so the owner is told then ([`Reliable::confirm`]). At most one
//! ping is under way. A resume tells the client's own number. Until one of the two, the owner keeps the message, up to
//! its bound.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;
use std::sync::Arc;

use uo_proto::{Encoding, MissedCount, Saved, ServerMsg};

use super::fragment::PublicRecord;
use super::frames::Frames;
use crate::Millis;
use crate::limits::{
    CONTROL_LANE_MAX, PRIVATE_KEPT_MAX, PUBLIC_KEPT_MS, RELIABLE_WRITE_BYTES_MAX, SLOW_FULL_MS,
    SLOW_OLDEST_MS,
};

/// The lane of a connection cannot take more: close it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneFull;

/// How a private message follows on those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Succession {
    /// It is the next, and was taken.
    Next,
    /// It came before.
    Before,
    /// One before it never came: the owner that sent it had no link to here at that time. It was not taken either.
    Gap,
}

/// Control messages, encoded.
#[derive(Debug, Default)]
pub struct Control(VecDeque<(Millis, Box<[u8]>)>);

impl Control {
    /// Queues a message.
    pub fn push(&mut self, now: Millis, message: Vec<u8>) -> Result<(), LaneFull> {
        if self.0.len() >= CONTROL_LANE_MAX {
            return Err(LaneFull);
        }
        self.0.push_back((now, message.into_boxed_slice()));
        Ok(())
    }

    /// Moves all of it into `frames`.
    pub fn write(&mut self, frames: &mut Frames) {
        for (_, message) in self.0.drain(..) {
            frames.push(|out| out.extend_from_slice(&message));
        }
        self.0 = VecDeque::new();
    }

    /// Whether a message has waited for too long.
    pub fn is_stuck(&self, now: Millis) -> bool {
        let oldest = self.0.front();
        oldest.is_some_and(|&(at, _)| now.saturating_sub(at) > SLOW_OLDEST_MS)
    }
}

/// The two reliable streams of a session, and its promise of durability.
#[derive(Debug)]
pub struct Reliable {
    /// The latest public messages, written or not, without gaps in their numbers.
    public: VecDeque<(Millis, Arc<PublicRecord>)>,
    /// The number that the next public message gets.
    next: u64,
    /// The highest public number written to this connection, or given up for it.
    written: u64,
    /// Public messages given up because the connection was too slow, not yet told.
    given_up: u64,
    /// The client was shown the world here: from then on it is told what it misses.
    hears: bool,
    /// Before the public message of this number some never came here, nobody knows how many. A client that has that
    /// message was told so; of one that has not, the line may have broken before.
    hole: Option<u64>,
    /// That was not yet written to this connection.
    hole_is_news: bool,
    private: VecDeque<(Millis, ServerMsg)>,
    /// The highest private number that came from the owner.
    private_taken: u64,
    /// The highest private number written to this connection.
    private_written: u64,
    /// The highest private number that the client is known to have.
    private_confirmed: u64,
    /// The private number of the ping under way.
    pinged: Option<u64>,
    saved: Option<Saved>,
    full_since: Option<Millis>,
    /// So many messages may wait, and so many public ones are kept.
    max: usize,
    /// When the present connection began: older messages have not waited for it longer than that.
    bound_at: Millis,
}

impl Reliable {
    /// Streams of a session of which the client has the public numbers up to `public` and the private ones up to
    /// `private`; `max` may wait, and as many public ones are kept.
    pub fn new(public: u64, private: u64, max: usize) -> Reliable {
        Reliable {
            public: VecDeque::new(),
            next: public + 1,
            written: public,
            given_up: 0,
            hears: false,
            hole: None,
            hole_is_news: false,
            private: VecDeque::new(),
            private_taken: private,
            private_written: private,
            private_confirmed: private,
            pinged: None,
            saved: None,
            full_since: None,
            max,
            bound_at: 0,
        }
    }

    /// Begins a connection whose client has the public numbers up to `public` and the private ones up to `private`, and
    /// tells how many public messages it will never get. The owner sends private ones again.
    pub fn rebind(&mut self, now: Millis, public: u64, private: u64) -> MissedCount {
        self.bound_at = now;
        self.private.clear();
        self.private_taken = private;
        self.private_written = private;
        self.private_confirmed = private;
        self.pinged = None;
        self.full_since = None;
        self.given_up = 0;
        // It is told with the welcome.
        self.hole_is_news = false;
        self.hole = self.hole.filter(|&behind| public < behind);
        self.forget_old(now, true);
        if public >= self.next {
            // Not from us: the numbers go on where the client stands, and what it missed is anybody's guess.
            self.public.clear();
            self.next = public + 1;
            self.written = public;
            self.begin_behind_a_hole();
            return MissedCount::Unknown;
        }
        let first = self.next - self.public.len() as u64;
        self.written = public.max(first - 1);
        match self.hole {
            Some(_) => MissedCount::Unknown,
            None => MissedCount::Count(self.written - public),
        }
    }

    /// The client is shown the world: what is public from here on is promised to it.
    pub fn begin_to_hear(&mut self) {
        self.hears = true;
    }

    /// What was public before is not known here, and its client is told so with its welcome.
    pub fn begin_behind_a_hole(&mut self) {
        self.hole = Some(self.next);
    }

    /// Public messages never came here. Whether that is news which the client has to be told.
    pub fn miss_public(&mut self) -> bool {
        if !self.hears {
            return false;
        }
        self.hole = Some(self.next);
        !std::mem::replace(&mut self.hole_is_news, true)
    }

    /// Adds a public message.
    pub fn push_public(&mut self, now: Millis, record: &Arc<PublicRecord>, is_bound: bool) {
        self.forget_old(now, !is_bound);
        if self.public.len() >= self.max {
            self.public.pop_front();
            let first = self.next - self.public.len() as u64;
            if is_bound && self.written + 1 < first {
                self.given_up += first - 1 - self.written;
                self.written = first - 1;
            }
        }
        self.public.push_back((now, Arc::clone(record)));
        self.next += 1;
        self.note_full(now);
    }

    /// Adds a private message, if it is the next one.
    pub fn push_private(
        &mut self,
        now: Millis,
        message: ServerMsg,
    ) -> Result<Succession, LaneFull> {
        let number = message.private().unwrap_or(0);
        if number <= self.private_taken {
            return Ok(Succession::Before);
        }
        if number > self.private_taken + 1 {
            return Ok(Succession::Gap);
        }
        if self.private.len() >= PRIVATE_KEPT_MAX {
            return Err(LaneFull);
        }
        self.private_taken = number;
        self.private.push_back((now, message));
        self.note_full(now);
        Ok(Succession::Next)
    }

    /// Private messages up to `through` are lost. If the client has all of these, the owner cannot tell how many.
    pub fn lose_private(&mut self, through: u64) -> MissedCount {
        if through <= self.private_taken {
            return MissedCount::Unknown;
        }
        let lost = through - std::mem::replace(&mut self.private_taken, through);
        // It is told so once: the next owner must not count them again.
        self.private_written = self.private_written.max(through);
        MissedCount::Count(lost)
    }

    /// A newer promise of durability replaces the one that waits.
    pub fn push_saved(&mut self, saved: Saved) {
        self.saved = Some(saved);
    }

    /// Writes what waits, oldest first, up to a bound of bytes; the rest goes with the next write. Times are told since
    /// `began`.
    pub fn write(&mut self, now: Millis, encoding: Encoding, began: Millis, frames: &mut Frames) {
        if self.given_up > 0 || self.hole_is_news {
            let given_up = std::mem::take(&mut self.given_up);
            let missed = ServerMsg::Missed(uo_proto::Missed {
                public: match std::mem::take(&mut self.hole_is_news) {
                    true => MissedCount::Unknown,
                    false => MissedCount::Count(given_up),
                },
                private: MissedCount::Count(0),
            });
            frames.push(|out| encoding.write(&missed, out));
        }
        let room = |frames: &Frames| frames.bytes.len() < RELIABLE_WRITE_BYTES_MAX;
        while room(frames) {
            let Some((_, message)) = self.private.pop_front() else {
                break;
            };
            self.private_written = message.private().unwrap_or(self.private_written);
            frames.push(|out| encoding.write(&message, out));
        }
        while room(frames) && self.written + 1 < self.next {
            let first = self.next - self.public.len() as u64;
            let (at, record) = &self.public[(self.written + 1 - first) as usize];
            let at_ms = at.saturating_sub(began);
            self.written += 1;
            frames.push(|out| record.write(encoding, self.written, at_ms, out));
        }
        if let Some(saved) = self.saved.take() {
            frames.push(|out| encoding.write(&ServerMsg::Saved(saved), out));
        }
        if self.private.is_empty() && self.private.capacity() > 8 {
            self.private = VecDeque::new();
        }
        self.note_full(now);
    }

    /// The number for a ping behind what was just written, if the owner waits for one.
    pub fn ping(&mut self) -> Option<u64> {
        let is_due = self.pinged.is_none() && self.private_written > self.private_confirmed;
        is_due.then(|| *self.pinged.insert(self.private_written))
    }

    /// Whether a ping is due that nothing else will carry.
    pub fn wants_ping(&self) -> bool {
        self.pinged.is_none() && self.private_written > self.private_confirmed
    }

    /// The pong to a ping: the client has every private message up to the number that it returns.
    pub fn confirm(&mut self, payload: u64) -> Option<u64> {
        if self.pinged != Some(payload) {
            return None;
        }
        self.pinged = None;
        self.private_confirmed = payload;
        Some(payload)
    }

    /// Begins anew with an owner, which sends again what lies behind the number that this returns: the highest that the
    /// client may have seen. An owner that took over from one that crashed must not use it for something else.
    pub fn reattach(&mut self) -> u64 {
        self.private.clear();
        self.private_taken = self.private_written;
        self.private_written
    }

    /// Whether the connection is too slow to be kept.
    pub fn is_stuck(&self, now: Millis) -> bool {
        let full = self.full_since;
        let public = (self.written + 1 < self.next).then(|| {
            let first = self.next - self.public.len() as u64;
            self.public[(self.written + 1 - first) as usize].0
        });
        let private = self.private.front().map(|&(at, _)| at);
        let oldest = public.into_iter().chain(private).min();
        let waited = oldest.map(|at| now.saturating_sub(at.max(self.bound_at)));
        full.is_some_and(|since| now.saturating_sub(since) >= SLOW_FULL_MS)
            || waited.is_some_and(|waited| waited > SLOW_OLDEST_MS)
    }

    /// Forgets public messages that are older than a resume may ask for. What waits for a connection is never old: the
    /// connection is closed before.
    pub fn forget_old(&mut self, now: Millis, even_unwritten: bool) {
        while let Some(&(at, _)) = self.public.front() {
            let first = self.next - self.public.len() as u64;
            let is_written = even_unwritten || first <= self.written;
            if now.saturating_sub(at) <= PUBLIC_KEPT_MS || !is_written {
                break;
            }
            self.public.pop_front();
        }
        if self.public.is_empty() && self.public.capacity() > 0 {
            self.public = VecDeque::new();
        }
    }

    fn pending(&self) -> usize {
        (self.next - 1 - self.written) as usize + self.private.len()
    }

    fn note_full(&mut self, now: Millis) {
        if self.pending() < self.max {
            self.full_since = None;
        } else if self.full_since.is_none() {
            self.full_since = Some(now);
        }
    }
}
