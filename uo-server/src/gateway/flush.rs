//! From what changed to what is written: who is looked at, what each is sent, and never more than one write under way.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{AOI_RADIUS, DeltaParts, Encoding};

use super::connections::Stage;
use super::core::{ConnId, Effect, GatewayCore};
use super::fragment::PublicRecord;
use super::frames::Frames;
use super::interest::{Kind, look};
use super::session::{Greeting, Session};
use super::sight::Diff;
use super::view::View;
use crate::Millis;
use crate::peer::message::{FeedEvent, PublicEvent};

/// Memory that one write after the other uses again.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    frames: Frames,
    diff: Diff,
    hearers: Vec<u32>,
}

impl GatewayCore {
    /// When the next flush is due.
    pub(super) fn flush_at(&self) -> Option<Millis> {
        // What waits for nothing but its tick goes with the round of feeds, if one has begun.
        let is_wanted = !self.queue.is_empty() || self.view.grid.is_changed();
        self.pulse
            .due(self.now)
            .or_else(|| self.pulse.next_tick().filter(|_| is_wanted))
    }

    /// Notes what a session has to look at in the next flush.
    pub(super) fn mark(&mut self, key: u32, bits: u8) {
        mark(&mut self.sessions[key], key, bits, &mut self.queue);
    }

    /// Looks at every session near a change, and writes to those that can take it.
    pub(super) fn flush(&mut self) {
        self.counters.flushes += 1;
        self.pulse.flushed(self.now);
        let (sessions, queue) = (&mut self.sessions, &mut self.queue);
        self.view
            .grid
            .drain_changed(|key, bits| mark(&mut sessions[key], key, bits, queue));
        let tick = self.pulse.tick(self.now);
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|&key| {
            let Some(session) = self.sessions.get_mut(key) else {
                return false;
            };
            let Some(conn) = session.conn.filter(|_| session.greeting == Greeting::Done) else {
                // A snapshot will show it all, and a delta behind it which orders were taken.
                session.sight.looks = 0;
                session.sight.is_queued = false;
                return false;
            };
            self.counters.looks += 1;
            let has_had_its_delta = session.sight.tick >= tick;
            session.sight.is_queued = has_had_its_delta;
            self.serve(conn);
            has_had_its_delta
        });
        queue.append(&mut self.queue);
        self.queue = queue;
    }

    /// A connection can take its next write.
    pub(super) fn writable(&mut self, conn: ConnId) {
        if let Some(key) = self.conns.key(conn) {
            self.conns[key].is_busy = false;
            self.serve(key);
        }
    }

    /// Writes what does not wait for a flush.
    pub(super) fn serve_urgent(&mut self) {
        // One after the other: a connection that overflows is closed, which may make others urgent.
        while let Some(key) = self.urgent.pop() {
            if self.conns.get_mut(key).is_some() {
                self.serve(key);
            }
        }
    }

    /// Writes everything that a connection is to be told now, unless a write is under way: control first, then its
    /// snapshot, then reliable messages, then the difference to what it was last sent, once a tick at most.
    fn serve(&mut self, key: u32) {
        let conn = &mut self.conns[key];
        if conn.is_busy {
            return;
        }
        let Scratch { frames, diff, .. } = &mut self.scratch;
        frames.clear();
        conn.control.write(frames);
        let mut ping = None;
        if let Stage::Bound(session) = conn.stage {
            let session = &mut self.sessions[session];
            if session.greeting == Greeting::Done {
                let mut writer = Writer {
                    encoding: conn.encoding,
                    view: &mut self.view,
                    frames,
                    diff,
                    fragments: 0,
                };
                if std::mem::take(&mut session.sight.wants_snapshot) {
                    self.counters.snapshots += 1;
                    writer.snapshot(session);
                    session.gap.snapshot_written(
                        self.now,
                        session.char_id,
                        session.generation,
                        &mut self.recorder,
                    );
                }
                let (encoding, began) = (conn.encoding, session.began);
                session
                    .reliable
                    .write(self.now, encoding, began, writer.frames);
                session.sight.looks &= !look::EVENTS;
                let tick = self.pulse.tick(self.now);
                if session.sight.looks != 0 && session.sight.tick < tick {
                    let is_written = writer.delta(session, tick);
                    self.counters.deltas += u64::from(is_written);
                    let written = is_written.then_some(self.now);
                    session.gap.first_delta(written, &mut self.recorder);
                }
                self.counters.fragments += writer.fragments;
                ping = session.reliable.ping();
            }
        }
        if frames.is_empty() && ping.is_none() {
            return;
        }
        conn.is_busy = true;
        self.counters.writes += 1;
        self.out.push(Effect::Write {
            conn: conn.id,
            frames: frames.take_exact(),
            ping,
        });
    }

    /// Puts public events into the streams of everybody in whose area of interest they happened.
    pub(super) fn tell_events(&mut self, events: &[FeedEvent]) {
        for event in events {
            let mut hearers = std::mem::take(&mut self.scratch.hearers);
            hearers.clear();
            let sessions = &self.sessions;
            let mut hear = |place| {
                self.view.grid.each_near(Kind::Sessions, place, |key| {
                    let centre = sessions[key].sight.centre;
                    if centre.is_some_and(|centre| centre.distance(place) <= AOI_RADIUS) {
                        hearers.push(key);
                    }
                });
            };
            hear(event.at);
            event.also.into_iter().for_each(hear);
            hearers.sort_unstable();
            hearers.dedup();
            if !hearers.is_empty() {
                let record = PublicRecord::new(event.what.clone());
                let is_said = matches!(event.what, PublicEvent::Said(_));
                self.counters.publics += hearers.len() as u64;
                for &key in &hearers {
                    let session = &mut self.sessions[key];
                    let conn = session.conn;
                    session
                        .reliable
                        .push_public(self.now, &record, conn.is_some());
                    match conn {
                        Some(conn) if is_said => self.urgent.push(conn),
                        _ => self.mark(key, look::EVENTS),
                    }
                }
            }
            self.scratch.hearers = hearers;
        }
    }
}

fn mark(session: &mut Session, key: u32, bits: u8, queue: &mut Vec<u32>) {
    session.sight.looks |= bits;
    if !session.sight.is_queued {
        session.sight.is_queued = true;
        queue.push(key);
    }
}

/// Assembles the state that one client is sent.
struct Writer<'a> {
    encoding: Encoding,
    view: &'a mut View,
    frames: &'a mut Frames,
    diff: &'a mut Diff,
    fragments: u64,
}

impl Writer<'_> {
    fn snapshot(&mut self, session: &mut Session) {
        session.sight.forget();
        self.look(session, look::ENTITIES | look::OBJECTS);
        session.sight.looks &= look::ACK;
        let (encoding, view, diff) = (self.encoding, &*self.view, &*self.diff);
        let entities = diff
            .enter
            .iter()
            .map(|&slot| view.entity(slot).enter(encoding));
        let objects = diff
            .objects
            .iter()
            .map(|&slot| view.object(slot).fragment(encoding));
        self.frames
            .push(|out| encoding.write_snapshot(out, entities, objects));
    }

    /// Writes a delta, if there is anything new; false if not. Whoever was shown nothing for a while, for whatever reason,
    /// is shown that the world goes on even if nothing in it has changed.
    fn delta(&mut self, session: &mut Session, tick: u64) -> bool {
        self.look(session, session.sight.looks);
        session.sight.looks = 0;
        let is_news = !self.diff.is_empty() || session.ack != session.ack_told;
        if !is_news && !session.gap.is_awaited() {
            return false;
        }
        session.sight.tick = tick;
        session.ack_told = session.ack;
        let (encoding, view, diff) = (self.encoding, &*self.view, &*self.diff);
        let parts = DeltaParts {
            tick,
            ack: session.ack,
            enter: diff
                .enter
                .iter()
                .map(|&slot| view.entity(slot).enter(encoding)),
            update: diff
                .update
                .iter()
                .map(|&slot| view.entity(slot).update(encoding)),
            leave: &diff.leave,
            objects: diff
                .objects
                .iter()
                .map(|&slot| view.object(slot).fragment(encoding)),
        };
        self.frames.push(|out| encoding.write_delta(out, parts));
        true
    }

    /// Finds what is new to a client, and sees to it that all of it is encoded.
    fn look(&mut self, session: &mut Session, looks: u8) {
        self.diff.clear();
        let own = session.char_id.entity();
        if looks & look::ENTITIES != 0 {
            session.sight.look_at_entities(self.view, own, self.diff);
        }
        if looks & look::OBJECTS != 0 {
            session.sight.look_at_objects(self.view, self.diff);
        }
        let encoding = self.encoding;
        let mut made = 0;
        for &slot in &self.diff.enter {
            made += u64::from(self.view.entity_mut(slot).encode(encoding, true));
        }
        for &slot in &self.diff.update {
            made += u64::from(self.view.entity_mut(slot).encode(encoding, false));
        }
        for &slot in &self.diff.objects {
            made += u64::from(self.view.object_mut(slot).encode(encoding));
        }
        self.fragments += made;
    }
}
