//! What a fighter does in its turn: what is under way ends, the next thing begins.

use serde::{Deserialize, Serialize};
use uo_proto::{Dir, EntityState, Pos};

use crate::battle::Battle;
use crate::fighter::{Act, Fighter};
use crate::{AP_MS, BODY_MS, STEP_MS};

/// A fighter in a battle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Actor {
    pub(crate) fighter: Fighter,
    /// A mob's will; a character has its player's.
    pub(crate) mind: Option<Mind>,
    pub(crate) way: Way,
    /// What was last reported of it.
    pub(crate) shown: Option<EntityState>,
}

/// What a mob wants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mind {
    pub(crate) home: Pos,
    /// On its way home, heeding nobody.
    pub(crate) returning: bool,
    /// Until it looks around again.
    pub(crate) look_ms: u32,
}

/// The way that a fighter follows, and what it knows of failed searches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Way {
    /// Steps to come, the next one last.
    pub(crate) steps: Vec<Dir>,
    /// What they lead to: a place, and how near to it.
    pub(crate) to: Option<(Pos, u16)>,
    /// Where the last search failed, and how long it is not repeated there.
    pub(crate) failed_at: Pos,
    pub(crate) wait_ms: u32,
    /// Searches that failed one after the other.
    pub(crate) failures: u8,
}

impl Actor {
    /// A mob, which wakes at home.
    pub(crate) fn mob(fighter: Fighter, home: Pos) -> Actor {
        Actor {
            fighter,
            mind: Some(Mind {
                home,
                returning: false,
                look_ms: 0,
            }),
            way: Way::default(),
            shown: None,
        }
    }

    pub(crate) fn is_player(&self) -> bool {
        self.mind.is_none()
    }

    /// Whether it is a mob whose body is gone.
    pub(crate) fn is_away(&self) -> bool {
        let lies_until = (crate::MOB_RETURN_MS - BODY_MS) as u32;
        self.mind.is_some()
            && self
                .fighter
                .clocks
                .dead_ms
                .is_some_and(|left| left <= lies_until)
    }

    /// Whether nothing will come of it by itself.
    pub(crate) fn is_calm(&self) -> bool {
        let fighter = &self.fighter;
        self.mind.as_ref().is_some_and(|mind| !mind.returning)
            && fighter.act == Act::Idle
            && fighter.hits == fighter.hits_max()
            && fighter.intent.attack.is_none()
            && fighter.intent.walk.is_none()
            && fighter.clocks.fight_ms == 0
            && fighter.clocks.slow_ms == 0
            && fighter.clocks.dead_ms.is_none()
            && fighter.foes.is_empty()
    }
}

impl Battle {
    /// One step of one fighter.
    pub(crate) fn turn(&mut self, at: usize) {
        self.age(at);
        let fighter = self.fighter_at(at);
        if fighter.act != Act::Idle {
            fighter.act_ms = fighter.act_ms.saturating_sub(STEP_MS);
            if fighter.act_ms > 0 {
                return;
            }
            self.finish(at);
        }
        if self.actors[at].fighter.act == Act::Idle {
            self.choose(at);
        }
    }

    /// Lets time pass for everything that runs out.
    fn age(&mut self, at: usize) {
        let actor = &mut self.actors[at];
        actor.way.wait_ms = actor.way.wait_ms.saturating_sub(STEP_MS);
        let clocks = &mut actor.fighter.clocks;
        for clock in [
            &mut clocks.fight_ms,
            &mut clocks.slow_ms,
            &mut clocks.potion_ms,
        ] {
            *clock = clock.saturating_sub(STEP_MS);
        }
    }

    /// What was under way takes effect.
    fn finish(&mut self, at: usize) {
        self.fighter_at(at).act = Act::Idle;
    }

    /// Begins the next thing.
    fn choose(&mut self, at: usize) {
        let _ = self.step_queued(at) || self.step_held(at) || self.step_walk(at);
    }

    /// How long a step takes now, and whether it is a run.
    pub(crate) fn step_ms(fighter: &Fighter) -> (u32, bool) {
        let run = fighter.clocks.fight_ms == 0;
        let base = if run { AP_MS } else { 2 * AP_MS } as u32;
        (slowed(fighter, base), run)
    }
}

/// A time of `ms`, longer while the fighter is slowed; a whole number of battle steps.
pub(crate) fn slowed(fighter: &Fighter, ms: u32) -> u32 {
    let percent = match fighter.clocks.slow_ms {
        0 => 100,
        _ => 100 + crate::table::balance::SLOW_PERCENT,
    };
    (ms * percent / 100).next_multiple_of(STEP_MS)
}
