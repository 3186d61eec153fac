//! The flight recorder: what became of characters between two battles, and how long their players saw nothing new.
//!
//! Each core notes what it saw itself, in durations on its own clock. What another measured comes along in messages, as
//! durations too: no time of one machine is ever compared with one of another. The parts of one crossing bear the same
//! character and generation, and are [merged](merge) where somebody looks at them.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use serde::Serialize;
use uo_proto::{CharId, RegionId};

use crate::Millis;
use crate::identity::NodeName;
use crate::limits::{CROSSINGS_KEPT_MAX, MEASURED_KEPT_MAX};
use crate::peer::message::{Flight, HandoffCause};

/// Why a player was shown nothing new for a while.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GapCause {
    /// It walked across a border.
    Border,
    /// It went where it fights.
    Pin,
    /// Its region was drained.
    Drain,
    /// Its owner no longer held its region.
    Forward,
    /// Its owner was out of reach.
    Failover,
    /// Its sim stood still without the store.
    Freeze,
    /// It came back over a new connection.
    Resume,
}

impl GapCause {
    /// All of them.
    pub const ALL: [GapCause; 7] = [
        GapCause::Border,
        GapCause::Pin,
        GapCause::Drain,
        GapCause::Forward,
        GapCause::Failover,
        GapCause::Freeze,
        GapCause::Resume,
    ];

    /// Its name in metrics and questions.
    pub const fn name(self) -> &'static str {
        match self {
            GapCause::Border => "border",
            GapCause::Pin => "pin",
            GapCause::Drain => "drain",
            GapCause::Forward => "forward",
            GapCause::Failover => "failover",
            GapCause::Freeze => "freeze",
            GapCause::Resume => "resume",
        }
    }
}

impl From<HandoffCause> for GapCause {
    fn from(cause: HandoffCause) -> GapCause {
        match cause {
            HandoffCause::Border => GapCause::Border,
            HandoffCause::Pin => GapCause::Pin,
            HandoffCause::Drain => GapCause::Drain,
            HandoffCause::Forward => GapCause::Forward,
        }
    }
}

/// A part of a crossing that is measured by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// From leaving its battle to its offer.
    Leave,
    /// From hearing the offer to the compare-and-set that took it.
    Claim,
    /// From there until it was durable, and in its new battle.
    Seal,
    /// From the offer to hearing that it was taken.
    Accept,
    /// From the first feed frame that shows it in its new battle to the delta that tells its player.
    FirstFrame,
}

impl Phase {
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Leave => "leave",
            Phase::Claim => "claim",
            Phase::Seal => "seal",
            Phase::Accept => "accept",
            Phase::FirstFrame => "first_frame",
        }
    }
}

/// A duration for a histogram, in milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measured {
    /// A player saw nothing new for so long.
    Gap(GapCause, u64),
    /// A phase took so long.
    Phase(Phase, u64),
}

/// How a crossing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is in a battle at its destination, or is shown again.
    Arrived,
    /// It was refused or not answered, and is back in a battle of its source.
    Returned,
    /// Its source lost it to somebody unknown at the time.
    Lost,
}

/// One crossing, or one gap of another kind, as far as one node saw it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Crossing {
    /// When this part was complete, on the clock of the node that noted it.
    #[serde(skip)]
    pub at: Millis,
    /// Who.
    pub char_id: CharId,
    /// The generation under which it goes on.
    pub generation: u64,
    /// Why.
    pub cause: GapCause,
    /// How it ended.
    pub outcome: Outcome,
    /// The region whose battle it left.
    pub from: Option<RegionId>,
    /// The region whose battle it came into.
    pub to: Option<RegionId>,
    /// Who owned it before.
    pub source: Option<NodeName>,
    /// Who owns it now.
    pub destination: Option<NodeName>,
    /// See [`Phase::Leave`].
    pub leave_ms: Option<u64>,
    /// See [`Phase::Claim`].
    pub claim_ms: Option<u64>,
    /// See [`Phase::Seal`].
    pub seal_ms: Option<u64>,
    /// See [`Phase::Accept`].
    pub accept_ms: Option<u64>,
    /// See [`Phase::FirstFrame`].
    pub first_frame_ms: Option<u64>,
    /// The player's gap.
    pub gap_ms: Option<u64>,
}

impl Crossing {
    /// A crossing of which nothing is known but whose and why.
    pub fn new(at: Millis, char_id: CharId, generation: u64, cause: GapCause) -> Crossing {
        Crossing {
            at,
            char_id,
            generation,
            cause,
            outcome: Outcome::Arrived,
            from: None,
            to: None,
            source: None,
            destination: None,
            leave_ms: None,
            claim_ms: None,
            seal_ms: None,
            accept_ms: None,
            first_frame_ms: None,
            gap_ms: None,
        }
    }

    /// The same with what its flight tells.
    pub fn of_flight(self, flight: &Flight) -> Crossing {
        Crossing {
            cause: flight.cause.into(),
            outcome: if flight.claim_ms.is_some() {
                Outcome::Arrived
            } else {
                Outcome::Returned
            },
            from: flight.from,
            source: Some(flight.source.clone()),
            leave_ms: Some(flight.leave_ms),
            claim_ms: flight.claim_ms,
            seal_ms: flight.seal_ms,
            ..self
        }
    }

    /// Adds what `other` knows and this does not.
    fn complete(&mut self, other: Crossing) {
        self.at = self.at.max(other.at);
        self.from = self.from.or(other.from);
        self.to = self.to.or(other.to);
        self.source = self.source.take().or(other.source);
        self.destination = self.destination.take().or(other.destination);
        self.leave_ms = self.leave_ms.or(other.leave_ms);
        self.claim_ms = self.claim_ms.or(other.claim_ms);
        self.seal_ms = self.seal_ms.or(other.seal_ms);
        self.accept_ms = self.accept_ms.or(other.accept_ms);
        self.first_frame_ms = self.first_frame_ms.or(other.first_frame_ms);
        self.gap_ms = self.gap_ms.or(other.gap_ms);
    }
}

/// Which crossings somebody wants to see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query {
    /// At most so many of the newest.
    pub most: usize,
    /// Only those of this cause.
    pub cause: Option<GapCause>,
    /// Only those of this character.
    pub char_id: Option<CharId>,
}

impl Query {
    fn wants(&self, crossing: &Crossing) -> bool {
        self.cause.is_none_or(|cause| cause == crossing.cause)
            && self.char_id.is_none_or(|id| id == crossing.char_id)
    }
}

/// What one core noted: the newest crossings, and the durations that nobody has taken yet.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    kept: VecDeque<Crossing>,
    measured: Vec<Measured>,
}

impl Recorder {
    /// Keeps a crossing, and forgets the oldest beyond the bound.
    pub fn keep(&mut self, crossing: Crossing) {
        if self.kept.len() >= CROSSINGS_KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(crossing);
    }

    /// Notes a duration, unless far too many wait to be taken.
    pub fn measure(&mut self, measured: Measured) {
        if self.measured.len() < MEASURED_KEPT_MAX {
            self.measured.push(measured);
        }
    }

    /// Takes the durations.
    pub fn take_measured(&mut self) -> Vec<Measured> {
        std::mem::take(&mut self.measured)
    }

    /// The newest crossings that are asked for, newest first.
    pub fn newest(&self, query: &Query) -> Vec<Crossing> {
        let wanted = self.kept.iter().rev().filter(|it| query.wants(it));
        wanted.take(query.most).cloned().collect()
    }
}

/// Joins the parts that several cores of one node noted of the same crossings; newest first.
pub fn merge(parts: Vec<Crossing>) -> Vec<Crossing> {
    let is_handoff = |cause| {
        use GapCause::{Border, Drain, Forward, Pin};
        matches!(cause, Border | Pin | Drain | Forward)
    };
    // Of a failover, a freeze and a resume one core knows everything, and there may be several under one generation.
    let (mut joined, others): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|part| is_handoff(part.cause));
    joined.sort_by_key(|part| (part.char_id, part.generation));
    joined.dedup_by(|next, first| {
        let is_same = (first.char_id, first.generation) == (next.char_id, next.generation);
        if is_same {
            first.complete(next.clone());
        }
        is_same
    });
    joined.extend(others);
    joined.sort_by_key(|it| std::cmp::Reverse((it.at, it.char_id, it.generation)));
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crossing(at: Millis, cause: GapCause) -> Crossing {
        Crossing::new(at, CharId(1), at, cause)
    }

    fn all(most: usize) -> Query {
        Query {
            most,
            cause: None,
            char_id: None,
        }
    }

    // Red when `keep` forgets nothing.
    #[test]
    fn only_the_latest_are_kept_and_the_newest_is_told_first() {
        let mut recorder = Recorder::default();
        for at in 0..CROSSINGS_KEPT_MAX as u64 + 5 {
            recorder.keep(crossing(at, GapCause::Border));
        }
        let kept = recorder.newest(&all(usize::MAX));
        assert_eq!(kept.len(), CROSSINGS_KEPT_MAX);
        assert_eq!(kept.last().map(|it| it.at), Some(5));
        let newest: Vec<u64> = recorder.newest(&all(2)).iter().map(|it| it.at).collect();
        assert_eq!(
            newest,
            [CROSSINGS_KEPT_MAX as u64 + 4, CROSSINGS_KEPT_MAX as u64 + 3]
        );
    }

    #[test]
    fn one_cause_and_one_character_can_be_asked_for() {
        let mut recorder = Recorder::default();
        recorder.keep(crossing(1, GapCause::Border));
        recorder.keep(crossing(2, GapCause::Resume));
        recorder.keep(Crossing {
            char_id: CharId(2),
            ..crossing(3, GapCause::Border)
        });
        let ats =
            |query: Query| -> Vec<u64> { recorder.newest(&query).iter().map(|it| it.at).collect() };
        let cause = Some(GapCause::Border);
        assert_eq!(ats(Query { cause, ..all(9) }), [3, 1]);
        let char_id = Some(CharId(1));
        assert_eq!(ats(Query { char_id, ..all(9) }), [2, 1]);
    }

    #[test]
    fn durations_that_nobody_takes_are_bounded() {
        let mut recorder = Recorder::default();
        for _ in 0..2 * MEASURED_KEPT_MAX {
            recorder.measure(Measured::Gap(GapCause::Pin, 50));
        }
        assert_eq!(recorder.take_measured().len(), MEASURED_KEPT_MAX);
        assert_eq!(recorder.take_measured(), []);
    }

    // Red when the parts are compared by character alone.
    #[test]
    fn the_parts_of_one_crossing_become_one() {
        let part = |at, generation| Crossing::new(at, CharId(1), generation, GapCause::Border);
        let source = Crossing {
            accept_ms: Some(9),
            ..part(10, 2)
        };
        let gateway = Crossing {
            gap_ms: Some(50),
            ..part(60, 2)
        };
        let later = part(70, 3);
        let resumes = [1, 2].map(|at| Crossing::new(at, CharId(1), 2, GapCause::Resume));
        let mut parts = vec![source, later.clone(), gateway];
        parts.extend(resumes.clone());
        let merged = merge(parts);
        let both = Crossing {
            accept_ms: Some(9),
            gap_ms: Some(50),
            ..part(60, 2)
        };
        let [first, second] = resumes;
        assert_eq!(merged, [later, both, second, first]);
    }
}
