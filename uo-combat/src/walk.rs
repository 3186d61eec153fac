//! Steps: queued ones, a held heading, and the way to a goal.

use uo_proto::{Dir, Pos};

use crate::Notice;
use crate::battle::Battle;
use crate::fighter::Act;
use crate::path::{Found, Goal, Search};
use crate::table::balance::{SEARCH_AGAIN_MS, SEARCH_FAILURES_MAX};
use crate::tempo::Actor;
use crate::{LEASH, Rect};

/// Tiles that a search for a way to a goal looks at.
const WALK_BUDGET: usize = 2_500;

/// What came of following a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stride {
    /// A step began.
    Began,
    /// A search failed just now; another may find people gone.
    Crowded,
    /// A search failed here not long ago.
    Waiting,
    /// It was tried often enough, or there is no way at all.
    Failed,
}

impl Battle {
    /// Takes the next queued step. If it cannot be taken, those behind it were predicted from a place that the fighter
    /// never reached: all are rejected.
    pub(crate) fn step_queued(&mut self, at: usize) -> bool {
        let fighter = self.fighter_at(at);
        if fighter.intent.steps.is_empty() {
            return false;
        }
        let step = fighter.intent.steps.remove(0);
        if self.try_step(at, step.dir) {
            return true;
        }
        let fighter = self.fighter_at(at);
        fighter.heading = step.dir;
        let (id, pos) = (fighter.id, fighter.pos);
        let rest = std::mem::take(&mut fighter.intent.steps);
        for step in std::iter::once(step).chain(rest) {
            let seq = step.seq;
            self.tell(at, Notice::StepRejected { id, pos, seq });
        }
        false
    }

    /// Goes on in the held heading, sliding along what is in the way.
    pub(crate) fn step_held(&mut self, at: usize) -> bool {
        let fighter = &self.actors[at].fighter;
        let Some(held) = fighter.intent.held else {
            return false;
        };
        let way = self
            .arena
            .slide(fighter.pos, held, |pos| self.occupant(pos).is_some());
        match way {
            Some(dir) => self.try_step(at, dir),
            None => {
                self.fighter_at(at).heading = held;
                false
            }
        }
    }

    /// Goes on towards the goal of a walk.
    pub(crate) fn step_walk(&mut self, at: usize) -> bool {
        let fighter = &self.actors[at].fighter;
        let Some(walk) = fighter.intent.walk else {
            return false;
        };
        let (id, goal, seq) = (fighter.id, walk.goal, walk.seq);
        let taken = self.occupant(goal).is_some_and(|who| who != at);
        let stride = if fighter.pos == goal {
            Stride::Waiting
        } else if taken {
            let beside = self.tiles_around(goal);
            let goals = Goal::Tiles(beside.as_slice());
            self.follow(at, (goal, 1), goals, WALK_BUDGET)
        } else {
            self.follow(at, (goal, 0), Goal::Tiles(&[goal]), WALK_BUDGET)
        };
        let fighter = self.fighter_at(at);
        let pos = fighter.pos;
        if pos == goal || (taken && pos.distance(goal) == 1) {
            fighter.intent.walk = None;
            self.tell(at, Notice::LegDone { id, pos, seq });
        } else if stride == Stride::Failed {
            fighter.intent.walk = None;
            self.tell(at, Notice::WalkFailed { id, pos, seq });
        }
        stride == Stride::Began
    }

    /// Takes the next step of the way to a goal, which lies within a distance of a place; looks for a way if there is
    /// none or somebody stands on it.
    pub(crate) fn follow(
        &mut self,
        at: usize,
        to: (Pos, u16),
        goal: Goal<'_>,
        budget: usize,
    ) -> Stride {
        let way = &mut self.actors[at].way;
        if way.to == Some(to)
            && let Some(dir) = way.steps.pop()
            && self.try_step(at, dir)
        {
            return Stride::Began;
        }
        let actor = &self.actors[at];
        if actor.way.wait_ms > 0 && actor.way.failed_at == actor.fighter.pos {
            return Stride::Waiting;
        }
        self.seek(at, to, goal, budget)
    }

    /// Looks for a way and takes its first step.
    pub(crate) fn seek(
        &mut self,
        at: usize,
        to: (Pos, u16),
        goal: Goal<'_>,
        budget: usize,
    ) -> Stride {
        let actor = &mut self.actors[at];
        let search = Search {
            arena: &self.arena,
            occupied: &self.cache.occupied,
            from: actor.fighter.pos,
            limit: match &actor.mind {
                Some(mind) => Rect::around(mind.home, LEASH),
                None => self.arena.bounds(),
            },
            goal,
            budget,
        };
        let found = search.run(&mut self.cache.scratch, &mut actor.way.steps);
        actor.way.to = Some(to);
        if matches!(found, Found::Whole | Found::Part)
            && let Some(dir) = actor.way.steps.pop()
            && self.try_step(at, dir)
        {
            self.actors[at].way.failures = 0;
            return Stride::Began;
        }
        let Actor { fighter, way, .. } = &mut self.actors[at];
        way.steps.clear();
        way.failed_at = fighter.pos;
        way.wait_ms = SEARCH_AGAIN_MS;
        way.failures += 1;
        if found == Found::Walled || way.failures >= SEARCH_FAILURES_MAX {
            way.failures = 0;
            return Stride::Failed;
        }
        Stride::Crowded
    }

    /// Begins a step, if ground, objects and people allow it.
    pub(crate) fn try_step(&mut self, at: usize, dir: Dir) -> bool {
        let from = self.actors[at].fighter.pos;
        let Some(to) = from.step(dir) else {
            return false;
        };
        if self.arena.blocked_step(from, dir) || self.occupant(to).is_some() {
            return false;
        }
        self.set_occupant(from, None);
        self.set_occupant(to, Some(at));
        let fighter = self.fighter_at(at);
        let (ms, run) = Battle::step_ms(fighter);
        fighter.pos = to;
        fighter.heading = dir;
        fighter.guard = false;
        fighter.act = Act::Step { run };
        fighter.act_ms = ms;
        true
    }
}
