//! The will of bandits: notice, fight, keep near home, walk back.

use uo_proto::{EntityId, Target};

use crate::battle::Battle;
use crate::fighter::{Attack, Walk};
use crate::table::balance::{AGGRO_TILES, ALARM_TILES, LOOK_MS};
use crate::{LEASH, STEP_MS};

impl Battle {
    /// Decides what a mob that has nothing under way goes after.
    pub(crate) fn think(&mut self, at: usize) {
        let actor = &self.actors[at];
        let Some(mind) = &actor.mind else {
            return;
        };
        let (home, returning, look) = (mind.home, mind.returning, mind.look_ms == 0);
        if returning {
            self.go_home(at);
            return;
        }
        if let Some(attack) = actor.fighter.intent.attack {
            let reach = self.weapon_of(at).reach;
            let far = self
                .target_pos(attack.target)
                .is_some_and(|pos| pos.distance(home) > LEASH + reach);
            if !far {
                return;
            }
            self.fighter_at(at).intent.attack = None;
        } else if !look {
            return;
        }
        if let Some(mind) = &mut self.actors[at].mind {
            mind.look_ms = LOOK_MS;
        }
        match self.notice(at) {
            Some(id) => self.turn_on(at, id),
            None => self.go_home(at),
        }
    }

    /// Lets time pass for a mob's eyes.
    pub(crate) fn age_mind(&mut self, at: usize) {
        if let Some(mind) = &mut self.actors[at].mind {
            mind.look_ms = mind.look_ms.saturating_sub(STEP_MS);
        }
    }

    /// The nearest character that a mob sees and can come to: those who fought it from further away than others.
    fn notice(&self, at: usize) -> Option<EntityId> {
        let actor = &self.actors[at];
        let home = actor.mind.as_ref()?.home;
        let from = actor.fighter.pos;
        let reach = self.weapon_of(at).reach;
        self.actors
            .iter()
            .filter(|other| other.is_player() && !other.fighter.is_dead())
            .filter(|other| {
                let pos = other.fighter.pos;
                let eyes = if actor.fighter.remembers(other.fighter.id) {
                    LEASH
                } else {
                    AGGRO_TILES
                };
                pos.distance(from) <= eyes
                    && pos.distance(home) <= LEASH
                    && self.arena.line_of_sight(from, pos).sees()
                    && (pos.distance(from) <= reach || self.arena.reachable(from, pos))
            })
            .map(|other| (other.fighter.pos.distance(from), other.fighter.id))
            .min()
            .map(|(_, id)| id)
    }

    fn turn_on(&mut self, at: usize, id: EntityId) {
        let actor = &mut self.actors[at];
        actor.way = Default::default();
        actor.fighter.intent.walk = None;
        actor.fighter.intent.attack = Some(Attack {
            target: Target::Entity(id),
            seq: 0,
            absent_ms: 0,
        });
    }

    /// Sets out for home, or settles there.
    fn go_home(&mut self, at: usize) {
        let actor = &self.actors[at];
        let Some(mind) = &actor.mind else {
            return;
        };
        let (home, from) = (mind.home, actor.fighter.pos);
        let taken = self.occupant(home).is_some_and(|who| who != at);
        let there = from == home || (from.distance(home) == 1 && taken);
        let actor = &mut self.actors[at];
        if let Some(mind) = &mut actor.mind {
            mind.returning = !there;
        }
        let walk = &mut actor.fighter.intent.walk;
        if there {
            *walk = None;
        } else if walk.is_none() {
            *walk = Some(Walk { goal: home, seq: 0 });
        }
    }

    /// A mob that cannot come to its target looks for another at once, else goes home.
    pub(crate) fn lose_heart(&mut self, at: usize) {
        let Some(mind) = &mut self.actors[at].mind else {
            return;
        };
        mind.returning = true;
        self.actors[at].fighter.foes.clear();
    }

    /// `at` attacked `other`: a mob turns on it, unless it is busy or on its way home, and calls those around it.
    pub(crate) fn rouse(&mut self, other: usize, at: usize) {
        if !self.actors[at].is_player() || self.actors[other].is_player() {
            return;
        }
        let id = self.actors[at].fighter.id;
        let pos = self.actors[other].fighter.pos;
        for mob in 0..self.actors.len() {
            let actor = &self.actors[mob];
            let free = actor.mind.as_ref().is_some_and(|mind| !mind.returning)
                && actor.fighter.intent.attack.is_none()
                && !actor.fighter.is_dead();
            if free && actor.fighter.pos.distance(pos) <= ALARM_TILES {
                self.turn_on(mob, id);
            }
        }
    }
}
