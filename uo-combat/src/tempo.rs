//! What a fighter does in its turn: what is under way ends, the next thing begins.

use serde::{Deserialize, Serialize};
use uo_proto::{CombatEvent, Dir, EntityState, ErrorCode, ItemKind, Pos};

use crate::battle::Battle;
use crate::fighter::{Act, Deed, Fighter, Wish};
use crate::table::balance::*;
use crate::{AP_MS, BODY_MS, MOB_RETURN_MS, Notice, Refusal, STEP_MS};

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
        let lies_until = (MOB_RETURN_MS - BODY_MS) as u32;
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
        if self.actors[at].fighter.is_dead() {
            self.lie(at);
            return;
        }
        self.age(at);
        let fighter = self.fighter_at(at);
        if fighter.act != Act::Idle {
            fighter.act_ms = fighter.act_ms.saturating_sub(STEP_MS);
            if fighter.act_ms > 0 {
                return;
            }
            self.finish(at);
        }
        // It may have died in its own fire.
        let fighter = &self.actors[at].fighter;
        if fighter.act == Act::Idle && !fighter.is_dead() {
            self.choose(at);
        }
    }

    /// Lets time pass for everything that runs out.
    fn age(&mut self, at: usize) {
        self.age_mind(at);
        let actor = &mut self.actors[at];
        actor.way.wait_ms = actor.way.wait_ms.saturating_sub(STEP_MS);
        let fighter = &mut actor.fighter;
        let clocks = &mut fighter.clocks;
        for clock in [
            &mut clocks.fight_ms,
            &mut clocks.slow_ms,
            &mut clocks.potion_ms,
        ] {
            *clock = clock.saturating_sub(STEP_MS);
        }
        fighter.age_cooldowns();
        fighter.foes.retain_mut(|foe| {
            foe.left_ms = foe.left_ms.saturating_sub(STEP_MS);
            foe.left_ms > 0
        });
        let resting = actor.mind.as_ref().is_some_and(|mind| mind.returning);
        if fighter.hits < fighter.hits_max() {
            fighter.regenerate(resting);
        }
    }

    /// What was under way takes effect.
    fn finish(&mut self, at: usize) {
        let fighter = self.fighter_at(at);
        let id = fighter.id;
        let (seq, done) = match fighter.act {
            Act::Idle | Act::Step { .. } | Act::Recover { .. } => {
                fighter.act = Act::Idle;
                return;
            }
            Act::Windup { target, weapon } => return self.land_strike(at, target, weapon),
            Act::Cast { spell, target, seq } => return self.finish_cast(at, spell, target, seq),
            Act::Drink { seq } => (seq, self.finish_drink(at)),
            Act::Plant { at: pos, seq } => (seq, self.finish_plant(at, pos)),
        };
        if let Err(refusal) = done {
            self.tell(at, Notice::Refused { id, seq, refusal });
        }
    }

    /// Begins the next thing: what was asked for once, then movement, then the fight.
    fn choose(&mut self, at: usize) {
        self.think(at);
        let _ = self.fulfil(at)
            || self.step_queued(at)
            || self.step_held(at)
            || self.step_walk(at)
            || self.fight(at);
    }

    /// Does the one thing that was asked for.
    fn fulfil(&mut self, at: usize) -> bool {
        let fighter = self.fighter_at(at);
        let Some(Wish { what, seq }) = fighter.intent.wish.take() else {
            return false;
        };
        let (id, pos) = (fighter.id, fighter.pos);
        let begun = match what {
            Deed::Cast { spell, target } => self.begin_cast(at, spell, target, seq),
            Deed::Drink => self.begin_drink(at, seq),
            Deed::Open { object } => self.open_door(at, object),
            Deed::Plant { at: tile } => self.begin_plant(at, tile, seq),
            Deed::Guard => {
                fighter.guard = true;
                self.happen(pos, None, CombatEvent::Guarded { who: id });
                Ok(())
            }
        };
        if let Err(refusal) = begun {
            self.tell(at, Notice::Refused { id, seq, refusal });
        }
        self.actors[at].fighter.act != Act::Idle
    }

    /// Whether there is a potion and it may be drunk.
    pub(crate) fn check_drink(&self, at: usize) -> Result<(), Refusal> {
        let fighter = &self.actors[at].fighter;
        if fighter.inventory.count(ItemKind::Potion) == 0 {
            return Err(Refusal::new(
                ErrorCode::NothingLeft,
                "there is no potion left",
            ));
        }
        if fighter.clocks.potion_ms > 0 {
            return Err(Refusal::new(
                ErrorCode::NotNow,
                "it is too early for another potion",
            ));
        }
        Ok(())
    }

    fn begin_drink(&mut self, at: usize, seq: u64) -> Result<(), Refusal> {
        self.check_drink(at)?;
        let fighter = self.fighter_at(at);
        fighter.guard = false;
        fighter.act = Act::Drink { seq };
        fighter.act_ms = slowed(fighter, DRINK_MS);
        Ok(())
    }

    fn finish_drink(&mut self, at: usize) -> Result<(), Refusal> {
        self.fighter_at(at).act = Act::Idle;
        self.check_drink(at)?;
        let fighter = self.fighter_at(at);
        fighter.inventory.take(ItemKind::Potion);
        fighter.clocks.potion_ms = POTION_COOLDOWN_MS;
        let (who, pos) = (fighter.id, fighter.pos);
        self.inventory_changed(at);
        self.happen(pos, None, CombatEvent::Drank { who });
        self.heal(at, POTION_HITS);
        Ok(())
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
        _ => 100 + SLOW_PERCENT,
    };
    (ms * percent / 100).next_multiple_of(STEP_MS)
}

impl Fighter {
    /// Lets time pass for a wounded one. `resting` is a mob on its way home.
    fn regenerate(&mut self, resting: bool) {
        let fights = self.clocks.fight_ms > 0;
        let (every_ms, hits) = match (resting, fights) {
            (true, _) => (REGEN_MS, REGEN_HOME_HITS),
            (false, false) => (REGEN_MS, REGEN_HITS),
            (false, true) => (REGEN_FIGHT_MS, REGEN_FIGHT_HITS),
        };
        let percent = 100 + self.worn(|item| item.regen_percent);
        self.clocks.regen_ms += STEP_MS * percent / 100;
        if self.clocks.regen_ms >= every_ms {
            self.clocks.regen_ms = 0;
            self.hits = (self.hits + hits).min(self.hits_max());
        }
    }
}
