//! Hits and misses, harm, death and return.

use uo_proto::{Class, CoinSerial, CombatEvent, EntityId, ItemKind, MissReason, Pos};

use crate::battle::Battle;
use crate::fighter::{Act, Foe};
use crate::table::balance::*;
use crate::table::{Weapon, class_row};
use crate::{FIGHT_MS, MOB_RETURN_MS, Notice, RESPAWN_MS, STEP_MS};

impl Battle {
    /// A blow or a shot reaches somebody, or not.
    pub(crate) fn strike_entity(&mut self, at: usize, other: usize, weapon: Weapon) {
        let who = self.actors[at].fighter.id;
        self.provoke(other, at);
        if let Some(why) = self.roll_miss(at, other, weapon) {
            let target = self.actors[other].fighter.id;
            let from = self.actors[at].fighter.pos;
            let to = self.actors[other].fighter.pos;
            self.happen(from, Some(to), CombatEvent::Missed { who, target, why });
            return;
        }
        let damage = self.weapon_damage(at, weapon);
        let damage = self.soften(other, damage, true);
        self.harm(other, damage, Some(who));
    }

    /// Why a blow does no harm; none if it does.
    fn roll_miss(&mut self, at: usize, other: usize, weapon: Weapon) -> Option<MissReason> {
        let from = self.actors[at].fighter.pos;
        let target = &self.actors[other].fighter;
        let dodge = class_row(target.class).dodge_percent;
        let block = target.worn(|item| item.block_percent);
        let guard = target.guard;
        let to = target.pos;
        // Whoever takes one step away from a blow that has begun is still hit by it.
        if from.distance(to) > weapon.reach + 1 {
            return Some(MissReason::Dodged);
        }
        let sight = self.arena.line_of_sight(from, to);
        let base = if weapon.ranged {
            RANGED_HIT_PERCENT
        } else {
            MELEE_HIT_PERCENT
        };
        let chance = base.saturating_sub(dodge).max(HIT_PERCENT_MIN);
        if !self.random.percent(chance) {
            return Some(MissReason::Dodged);
        }
        let edge = !weapon.ranged && from.distance(to) == 1 && self.arena.touches(from, to);
        let cover = match sight.cover_percent() {
            100 if edge => 0,
            100 => 100,
            cover if weapon.ranged => cover,
            _ => 0,
        };
        if cover > 0 && self.random.percent(cover) {
            return Some(MissReason::Cover);
        }
        let guard = match (guard, weapon.ranged) {
            (false, _) => 0,
            (true, false) => GUARD_MELEE_PERCENT,
            (true, true) => GUARD_RANGED_PERCENT,
        };
        self.random
            .percent((guard + block).min(100 - HIT_PERCENT_MIN))
            .then_some(MissReason::Guarded)
    }

    /// Harm of a hit before armour.
    pub(crate) fn weapon_damage(&mut self, at: usize, weapon: Weapon) -> u16 {
        let percent = class_row(self.actors[at].fighter.class).weapon_percent;
        self.random.between(weapon.damage) * percent / 100
    }

    /// What armour and a raised guard leave of harm; at least 1.
    pub(crate) fn soften(&self, other: usize, damage: u16, armour: bool) -> u16 {
        let target = &self.actors[other].fighter;
        let armour = match armour {
            true => target.worn(|item| u32::from(item.armour_percent)) as u16,
            false => 0,
        };
        let guard = if target.guard {
            GUARD_HARM_PERCENT
        } else {
            100
        };
        (damage * (100 - armour.min(ARMOUR_PERCENT_MAX)) / 100 * guard / 100).max(1)
    }

    /// Takes hits away. The dead are left alone.
    pub(crate) fn harm(&mut self, other: usize, damage: u16, by: Option<EntityId>) {
        let fighter = self.fighter_at(other);
        if fighter.is_dead() {
            return;
        }
        fighter.hits = fighter.hits.saturating_sub(damage);
        let (target, pos, hits) = (fighter.id, fighter.pos, fighter.hits);
        let casting = matches!(fighter.act, Act::Cast { .. });
        let who = by.unwrap_or(target);
        let from = by.and_then(|id| self.pos(id)).unwrap_or(pos);
        let event = CombatEvent::Hit {
            who,
            target,
            damage,
            hits,
        };
        self.happen(from, Some(pos), event);
        if hits == 0 {
            self.die(other, by);
        } else if casting && self.random.percent(INTERRUPT_PERCENT) {
            self.fighter_at(other).act = Act::Idle;
            self.happen(pos, None, CombatEvent::Interrupted { who: target });
        }
    }

    /// `at` attacked `other`: both are in a fight, and `other` remembers.
    pub(crate) fn provoke(&mut self, other: usize, at: usize) {
        if at == other {
            return;
        }
        self.enter_fight(at);
        self.enter_fight(other);
        let id = self.actors[at].fighter.id;
        self.fighter_at(other).note_foe(id);
        self.rouse(other, at);
    }

    /// From now on it counts as fighting, anew.
    pub(crate) fn enter_fight(&mut self, at: usize) {
        let fighter = self.fighter_at(at);
        let id = fighter.id;
        if std::mem::replace(&mut fighter.clocks.fight_ms, FIGHT_MS as u32) == 0 {
            self.tell(at, Notice::FightBegan { id });
        }
    }

    fn die(&mut self, at: usize, by: Option<EntityId>) {
        let is_player = self.actors[at].is_player();
        let actor = &mut self.actors[at];
        actor.way = Default::default();
        let fighter = &mut actor.fighter;
        let (id, pos) = (fighter.id, fighter.pos);
        fighter.act = Act::Idle;
        fighter.act_ms = 0;
        fighter.guard = false;
        fighter.intent = Default::default();
        fighter.foes.clear();
        let spells = std::mem::take(&mut fighter.clocks.spells);
        fighter.clocks = Default::default();
        fighter.clocks.spells = spells;
        let dead_ms = if is_player { RESPAWN_MS } else { MOB_RETURN_MS };
        fighter.clocks.dead_ms = Some(dead_ms as u32);
        if let Some(mind) = &mut actor.mind {
            mind.returning = false;
        }
        self.set_occupant(pos, None);
        self.happen(pos, None, CombatEvent::Died { who: id, by });
        self.outbox.notices.push(Notice::Died { id, by });
        if !is_player && let Some(killer) = by.and_then(|id| self.find(id).ok()) {
            self.loot(killer, at);
        }
    }

    /// A killed bandit may have something on it.
    fn loot(&mut self, killer: usize, body: usize) {
        if !self.actors[killer].is_player() {
            return;
        }
        let chief = self.actors[body].fighter.class == Class::BanditChief;
        let count = match chief {
            true => self.random.between(LOOT_CHIEF_COINS),
            false if self.random.percent(LOOT_PERCENT) => self.random.between(LOOT_COINS),
            false => 0,
        };
        let potion = self.random.percent(LOOT_POTION_PERCENT);
        let room = COINS_MAX.saturating_sub(self.actors[killer].fighter.inventory.coins.len());
        let coins: Vec<CoinSerial> = (0..usize::from(count).min(room))
            .map(|_| self.mint())
            .collect();
        if coins.is_empty() && !potion {
            return;
        }
        let pos = self.actors[body].fighter.pos;
        let fighter = self.fighter_at(killer);
        let (id, from) = (fighter.id, fighter.pos);
        if potion {
            fighter.inventory.put(ItemKind::Potion, 1);
        }
        fighter.inventory.coins.extend(&coins);
        fighter.inventory.coins.sort_unstable();
        self.inventory_changed(killer);
        if !coins.is_empty() {
            self.happen(from, Some(pos), CombatEvent::Looted { who: id, coins });
        }
    }

    /// A coin that never was before.
    fn mint(&mut self) -> CoinSerial {
        self.coins_made += 1;
        CoinSerial {
            region: self.arena.region(),
            epoch: self.epoch,
            counter: self.coins_made,
        }
    }

    /// Raises the inventory's version and says so.
    pub(crate) fn inventory_changed(&mut self, at: usize) {
        let fighter = self.fighter_at(at);
        fighter.inventory.version += 1;
        let id = fighter.id;
        self.tell(at, Notice::InventoryChanged { id });
    }

    /// A dead one waits, and comes back.
    pub(crate) fn lie(&mut self, at: usize) {
        let respawn = self.respawn;
        let actor = &mut self.actors[at];
        let left = actor
            .fighter
            .clocks
            .dead_ms
            .unwrap_or(0)
            .saturating_sub(STEP_MS);
        actor.fighter.clocks.dead_ms = Some(left);
        actor.fighter.age_cooldowns();
        if left > 0 {
            return;
        }
        let wanted = actor.mind.as_ref().map_or(respawn, |mind| mind.home);
        let Some(pos) = self.free_tile(wanted) else {
            return;
        };
        self.come_back(at, pos);
    }

    fn come_back(&mut self, at: usize, pos: Pos) {
        self.set_occupant(pos, Some(at));
        let fighter = self.fighter_at(at);
        fighter.pos = pos;
        fighter.hits = fighter.hits_max();
        fighter.clocks.dead_ms = None;
        let id = fighter.id;
        let (x, y) = (pos.x, pos.y);
        self.happen(pos, None, CombatEvent::Returned { who: id, x, y });
        self.tell(at, Notice::Respawned { id, pos });
    }

    /// Gives hits back, as many as are missing.
    pub(crate) fn heal(&mut self, at: usize, amount: u16) {
        let fighter = self.fighter_at(at);
        let amount = amount.min(fighter.hits_max() - fighter.hits);
        fighter.hits += amount;
        let (who, pos, hits) = (fighter.id, fighter.pos, fighter.hits);
        self.happen(pos, None, CombatEvent::Healed { who, amount, hits });
    }
}

impl crate::Fighter {
    fn note_foe(&mut self, id: EntityId) {
        let left_ms = FIGHT_MS as u32;
        if let Some(foe) = self.foes.iter_mut().find(|foe| foe.id == id) {
            foe.left_ms = left_ms;
            return;
        }
        if self.foes.len() >= FOES_MAX {
            let oldest = (0..self.foes.len()).min_by_key(|&foe| self.foes[foe].left_ms);
            oldest.map(|foe| self.foes.remove(foe));
        }
        self.foes.push(Foe { id, left_ms });
    }

    /// Lets time pass for the spells.
    pub(crate) fn age_cooldowns(&mut self) {
        self.clocks.spells.retain_mut(|cooldown| {
            cooldown.left_ms = cooldown.left_ms.saturating_sub(STEP_MS);
            cooldown.left_ms > 0
        });
    }
}
