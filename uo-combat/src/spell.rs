//! Spells: what may be cast at what, and what comes of it.

use uo_proto::{Action, CombatEvent, EntityId, ErrorCode, ObjectKind, Pos, Spell, Target};

use crate::attack::near_side;
use crate::battle::Battle;
use crate::fighter::{Act, Cooldown};
use crate::object::Blast;
use crate::table::{class_row, spell_row};
use crate::tempo::slowed;
use crate::{AP_MS, Notice, Refusal, STEP_MS};

/// A target may move this much further away while a spell is cast.
const CAST_SLACK: u16 = 2;

impl Battle {
    /// Whether `at` can cast that at that now.
    pub(crate) fn check_cast(
        &self,
        at: usize,
        spell: Spell,
        target: Target,
        slack: u16,
    ) -> Result<(), Refusal> {
        let row = spell_row(spell);
        let fighter = &self.actors[at].fighter;
        if class_row(fighter.class).spell_percent == 0 {
            return Err(Refusal::new(ErrorCode::Unavailable, "it cannot cast"));
        }
        let to = self.check_target(at, spell, target)?;
        if fighter.cooldown_ms(spell) > 0 {
            return Err(Refusal::new(
                ErrorCode::NotNow,
                "the spell is not ready yet",
            ));
        }
        if fighter.pos.distance(to) > row.info.range + slack {
            return Err(Refusal::new(ErrorCode::OutOfReach, "that is too far away"));
        }
        if !self.arena.line_of_sight(fighter.pos, to).sees() {
            return Err(Refusal::new(ErrorCode::NoSight, "something stands between"));
        }
        Ok(())
    }

    /// Whether the spell takes such a target and it is there; where it is.
    fn check_target(&self, at: usize, spell: Spell, target: Target) -> Result<Pos, Refusal> {
        let row = spell_row(spell);
        let unfit = || Refusal::new(ErrorCode::Invalid, "the spell does not take such a target");
        let absent = || Refusal::new(ErrorCode::NoTarget, "the target is not here");
        match target {
            Target::Entity(id) => {
                if !row.info.targets_entity || (row.hostile && id == self.actors[at].fighter.id) {
                    return Err(unfit());
                }
                let target = self.actor(id).filter(|target| !target.fighter.is_dead());
                target.map(|target| target.fighter.pos).ok_or_else(absent)
            }
            Target::Object(key) => {
                if !matches!(spell, Spell::Bolt | Spell::Fireball) {
                    return Err(unfit());
                }
                let from = self.actors[at].fighter.pos;
                let object = self.arena.object(key).ok_or_else(absent)?;
                Ok(near_side(object, from))
            }
            Target::Tile(pos) => {
                if !row.info.targets_tile {
                    return Err(unfit());
                }
                self.arena.contains(pos).then_some(pos).ok_or_else(absent)
            }
        }
    }

    /// Begins a cast.
    pub(crate) fn begin_cast(
        &mut self,
        at: usize,
        spell: Spell,
        target: Target,
        seq: u64,
    ) -> Result<(), Refusal> {
        self.check_cast(at, spell, target, 0)?;
        let to = self.target_pos(target);
        let row = spell_row(spell);
        let fighter = self.fighter_at(at);
        let hasten = fighter.worn(|item| item.cast_percent).min(90);
        let cast_ms = (row.info.cast_ms * (100 - hasten) / 100).next_multiple_of(STEP_MS);
        let (who, from) = (fighter.id, fighter.pos);
        fighter.guard = false;
        fighter.heading = to.and_then(|to| from.dir_to(to)).unwrap_or(fighter.heading);
        fighter.act = Act::Cast { spell, target, seq };
        fighter.act_ms = slowed(fighter, cast_ms);
        if row.hostile {
            self.enter_fight(at);
        }
        self.happen(from, to, CombatEvent::Casting { who, spell, target });
        Ok(())
    }

    /// A cast takes effect, unless its target went away or hid.
    pub(crate) fn finish_cast(&mut self, at: usize, spell: Spell, target: Target, seq: u64) {
        let (who, from) = (self.actors[at].fighter.id, self.actors[at].fighter.pos);
        self.fighter_at(at).act = Act::Idle;
        let done = self
            .check_cast(at, spell, target, CAST_SLACK)
            .and_then(|()| self.take_effect(at, spell, target));
        if let Err(refusal) = done {
            self.happen(from, None, CombatEvent::Interrupted { who });
            self.tell(
                at,
                Notice::Refused {
                    id: who,
                    seq,
                    refusal,
                },
            );
            return;
        }
        // The caster may have died in its own fire.
        let fighter = self.fighter_at(at);
        let left_ms = spell_row(spell).info.cooldown_ms;
        fighter.clocks.spells.push(Cooldown { spell, left_ms });
        if !fighter.is_dead() {
            fighter.recover(Action::Cast, AP_MS as u32);
        }
    }

    fn take_effect(&mut self, at: usize, spell: Spell, target: Target) -> Result<(), Refusal> {
        let row = spell_row(spell);
        let fighter = &self.actors[at].fighter;
        let (who, from) = (fighter.id, fighter.pos);
        let skill = class_row(fighter.class).spell_percent;
        let to = self.target_pos(target).unwrap_or(from);
        if spell == Spell::StoneWall {
            self.check_free(to)?;
        }
        self.happen(from, Some(to), CombatEvent::CastDone { who, spell, target });
        let power = (row.power.0 * skill / 100, row.power.1 * skill / 100);
        match (spell, target) {
            (Spell::Fireball, _) => self.blast(Blast {
                center: to,
                radius: row.info.radius,
                power,
                fall_percent: 0,
                object_percent: 100,
                by: Some(who),
            }),
            (Spell::StoneWall, _) => {
                let lasts = row.lasting_ms * u32::from(skill) / 100;
                self.raise(
                    ObjectKind::Stone,
                    to,
                    lasts.next_multiple_of(STEP_MS),
                    Some(who),
                );
            }
            (Spell::Heal, Target::Entity(id)) => {
                let amount = self.random.between(power);
                if let Ok(other) = self.find(id) {
                    self.heal(other, amount);
                }
            }
            (_, Target::Entity(id)) => self.cast_at(at, spell, id, power),
            (_, Target::Object(key)) => {
                let damage = self.random.between(power);
                self.damage_object(key, damage.max(1), Some(who), false);
            }
            (_, Target::Tile(_)) => {}
        }
        Ok(())
    }

    /// Harm by a spell to one entity. Armour is no help against it.
    fn cast_at(&mut self, at: usize, spell: Spell, id: EntityId, power: (u16, u16)) {
        let Ok(other) = self.find(id) else {
            return;
        };
        let who = self.actors[at].fighter.id;
        let skill = class_row(self.actors[at].fighter.class).spell_percent;
        self.provoke(other, at);
        let lasting_ms = spell_row(spell).lasting_ms * u32::from(skill) / 100;
        let clocks = &mut self.fighter_at(other).clocks;
        clocks.slow_ms = clocks.slow_ms.max(lasting_ms.next_multiple_of(STEP_MS));
        let damage = self.random.between(power);
        let damage = self.soften(other, damage, false);
        self.harm(other, damage, Some(who));
    }
}
