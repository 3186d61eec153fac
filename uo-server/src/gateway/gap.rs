//! A player's gap: for how long nobody showed the player's character, whatever the reason, measured where it is felt.
//!
//! It runs from the last frame of the battle, owner or connection before to the first frame of the next, as they reach
//! this gateway; without a loss that is one tick. Where it begins is told by what says so earliest:
//! - a crossing: the feed that says its battle removed it, less the tick since it was in it; or what is told of its
//!   flight, less how long that took (which lacks the way of the offer, but also holds where no feed can say anything);
//! - a failover: the last message of its owner's node;
//! - a freeze: the message that says so, and it ends with the one that says otherwise, plus the tick between the last and
//!   the next;
//! - a resume: the client's message, because the time before it is the client's own; it ends with the snapshot.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{CharId, EntityId, TICK_MS};

use super::core::GatewayCore;
use super::interest::look;
use super::session::{Greeting, Phase as SessionPhase, Session};
use crate::Millis;
use crate::crossing::{Crossing, GapCause, Measured, Outcome, Phase, Recorder};
use crate::identity::{Holder, NodeName};
use crate::peer::message::Flight;

/// What is known of a session's gap.
#[derive(Clone, Debug, Default)]
pub struct Gap {
    open: Option<Box<Open>>,
    /// When a feed said that a battle had removed the character, and the number it had there.
    removed: Option<(u64, Millis)>,
    /// A gap that is over, since when, and whose first delta is still to be written.
    unshown: Option<Box<(Crossing, Millis)>>,
}

/// A gap that lasts.
#[derive(Clone, Debug)]
struct Open {
    cause: GapCause,
    began: Millis,
    flight: Option<Flight>,
    /// Who owned it before.
    source: Option<NodeName>,
}

impl Gap {
    /// Opens a gap, unless one is open: then that one goes on, for this reason.
    fn open(&mut self, cause: GapCause, began: Millis, source: Option<NodeName>) -> &mut Open {
        let open = self.open.get_or_insert_with(|| {
            Box::new(Open {
                cause,
                began,
                flight: None,
                source,
            })
        });
        open.cause = cause;
        open.began = open.began.min(began);
        open
    }

    /// The connection is gone: nobody feels anything.
    pub(super) fn forget(&mut self, recorder: &mut Recorder) {
        self.open = None;
        self.removed = None;
        self.first_delta(None, recorder);
    }

    /// Whether a gap is over, and no delta has shown so yet.
    pub(super) fn is_awaited(&self) -> bool {
        self.unshown.is_some()
    }

    /// The first look after a gap: the delta that shows it was written now, or its connection is gone.
    pub(super) fn first_delta(&mut self, written: Option<Millis>, recorder: &mut Recorder) {
        let Some(unshown) = self.unshown.take() else {
            return;
        };
        let (mut crossing, since) = *unshown;
        crossing.first_frame_ms = written.map(|now| now.saturating_sub(since));
        if let Some(ms) = crossing.first_frame_ms {
            recorder.measure(Measured::Phase(Phase::FirstFrame, ms));
        }
        recorder.keep(crossing);
    }

    /// The snapshot of a new connection was written.
    pub(super) fn snapshot_written(
        &mut self,
        now: Millis,
        id: CharId,
        generation: u64,
        recorder: &mut Recorder,
    ) {
        if let Some(open) = self.open.take() {
            let gap_ms = now.saturating_sub(open.began);
            recorder.measure(Measured::Gap(open.cause, gap_ms));
            recorder.keep(Crossing {
                gap_ms: Some(gap_ms),
                ..Crossing::new(now, id, generation, open.cause)
            });
        }
    }
}

impl GatewayCore {
    /// Whether there is a player who would feel a gap: one who is connected and was shown the world.
    fn is_felt(session: &Session) -> bool {
        session.conn.is_some() && session.greeting == Greeting::Done
    }

    /// A feed says who left its battle.
    pub(super) fn note_removes(&mut self, removes: &[(EntityId, u64)]) {
        for &(id, number) in removes {
            let session = id.character().and_then(|id| self.sessions.of_char(id));
            // What its next battle has shown already is no news of it.
            let shown = self.view.find(id).map(|own| own.number);
            if let Some(key) = session
                && shown.is_none_or(|shown| shown <= number)
            {
                self.sessions[key].gap.removed = Some((number, self.now));
            }
        }
    }

    /// The owner tells how the character came into its battle.
    pub(super) fn note_flight(&mut self, key: u32, flight: Flight) {
        let now = self.now;
        let session = &mut self.sessions[key];
        if !Self::is_felt(session) {
            return;
        }
        let mut began = now.saturating_sub(flight.out_ms());
        let generation = session.generation;
        if let Some((_, at)) = session
            .gap
            .removed
            .take()
            .filter(|(number, _)| *number < generation)
        {
            began = began.min(at.saturating_sub(TICK_MS));
        }
        let (cause, source) = (flight.cause.into(), flight.source.clone());
        let open = session.gap.open(cause, began, Some(source));
        open.flight = Some(flight);
    }

    /// The owner of a session's character is out of reach.
    pub(super) fn note_loss(&mut self, key: u32) {
        let session = &mut self.sessions[key];
        if !Self::is_felt(session) {
            return;
        }
        let owner = session.owner.as_ref().map(|owner| owner.node.clone());
        let heard = owner.as_ref().and_then(|owner| self.heard.get(owner));
        let began = heard.copied().unwrap_or(self.now);
        session.gap.open(GapCause::Failover, began, owner);
    }

    /// The sim of a session's character stands still, or goes on.
    pub(super) fn note_freeze(&mut self, key: u32, is_frozen: bool) {
        let now = self.now;
        let session = &mut self.sessions[key];
        if !Self::is_felt(session) {
            return;
        }
        if is_frozen {
            let owner = session.owner.as_ref().map(|owner| owner.node.clone());
            session.gap.open(GapCause::Freeze, now, owner);
            return;
        }
        let is_freeze = |open: &mut Box<Open>| open.cause == GapCause::Freeze;
        if let Some(open) = session.gap.open.take_if(is_freeze) {
            // Ticks stood still at some moment before the one message, and go on at some moment after the other.
            self.end_gap(key, *open, now + TICK_MS);
        }
    }

    /// A session goes on over a new connection.
    pub(super) fn note_resume(&mut self, key: u32) {
        let now = self.now;
        let session = &mut self.sessions[key];
        session.gap.forget(&mut self.recorder);
        session.gap.open(GapCause::Resume, now, None);
    }

    /// A feed shows the own character of a session, under this number.
    pub(super) fn note_shown(&mut self, key: u32, number: u64) {
        let session = &mut self.sessions[key];
        session
            .gap
            .removed
            .take_if(|(removed, _)| *removed < number);
        let is_over = session.phase == SessionPhase::Attached
            && session.greeting == Greeting::Done
            && number >= session.generation;
        // A freeze ends by word, and a resume by its snapshot.
        let ends =
            |open: &mut Box<Open>| !matches!(open.cause, GapCause::Freeze | GapCause::Resume);
        if is_over && let Some(open) = session.gap.open.take_if(ends) {
            self.end_gap(key, *open, self.now);
        }
    }

    /// A session is served again. If nothing but a link was lost, the feed may have come back first.
    pub(super) fn note_attached(&mut self, key: u32) {
        let own = self.sessions[key].char_id.entity();
        let Some((number, region)) = self.view.find(own).map(|own| (own.number, own.region)) else {
            return;
        };
        if self.regions.get(&region).is_some_and(|held| held.is_fed()) {
            self.note_shown(key, number);
        }
    }

    fn end_gap(&mut self, key: u32, open: Open, ended: Millis) {
        let now = self.now;
        let session = &mut self.sessions[key];
        // The delta of an earlier one was never written: what follows shows both.
        session.gap.first_delta(None, &mut self.recorder);
        let gap_ms = ended.saturating_sub(open.began);
        self.recorder.measure(Measured::Gap(open.cause, gap_ms));
        let own = self.view.find(session.char_id.entity());
        let mut crossing = Crossing::new(now, session.char_id, session.generation, open.cause);
        if let Some(flight) = &open.flight {
            crossing = crossing.of_flight(flight);
        }
        // The gap may have got another reason since the flight began.
        crossing.cause = open.cause;
        if open.flight.is_none() {
            crossing.outcome = Outcome::Arrived;
        }
        let crossing = Crossing {
            to: own.map(|own| own.region),
            source: crossing.source.or(open.source),
            destination: session.owner.as_ref().map(|owner| owner.node.clone()),
            gap_ms: Some(gap_ms),
            ..crossing
        };
        session.gap.unshown = Some(Box::new((crossing, now)));
        // Even if nothing about it has changed, it is looked at.
        self.mark(key, look::ENTITIES);
    }

    /// Something was heard of a node.
    pub(super) fn hear(&mut self, from: &Holder) {
        match self.heard.get_mut(&from.node) {
            Some(at) => *at = self.now,
            None => drop(self.heard.insert(from.node.clone(), self.now)),
        }
    }

    /// The durations that were noted since this was asked last.
    pub fn take_measured(&mut self) -> Vec<Measured> {
        self.recorder.take_measured()
    }

    /// What is remembered of crossings and gaps.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}
