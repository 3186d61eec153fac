//! What stands: doors that open, kegs that go off, stones that last a while, and everything that breaks.

use serde::{Deserialize, Serialize};
use uo_proto::{
    CombatEvent, EntityId, ErrorCode, ItemKind, ObjectKey, ObjectKind, ObjectState, Pos,
    RUNTIME_OBJECT_BIT,
};

use crate::attack::sides;
use crate::battle::Battle;
use crate::fighter::Act;
use crate::table::balance::*;
use crate::table::{object_row, spell_row};
use crate::{ObjectHit, Refusal, STEP_MS};

/// An object with an end: a keg whose fuse burns, a raised stone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lasting {
    pub(crate) key: ObjectKey,
    pub(crate) left_ms: u32,
    pub(crate) by: Option<EntityId>,
}

/// Fire around a place.
pub(crate) struct Blast {
    pub(crate) center: Pos,
    pub(crate) radius: u16,
    /// Harm in the middle, from and to.
    pub(crate) power: (u16, u16),
    /// By how much it falls with each tile.
    pub(crate) fall_percent: u16,
    /// Harm to objects, in percent of that to people.
    pub(crate) object_percent: u16,
    pub(crate) by: Option<EntityId>,
}

impl Battle {
    /// A neighbour's battle did harm to one of the region's own objects.
    pub fn hit_object(&mut self, hit: &ObjectHit) {
        if hit.key.region() == self.arena.region() {
            self.quiet = false;
            self.damage_object(hit.key, hit.damage, hit.by, hit.fire);
        }
    }

    /// Objects found at the opening whose end was lost with the battle before it get a new one.
    pub(crate) fn arm_found_objects(&mut self) {
        let region = self.arena.region();
        let found = self
            .arena
            .objects()
            .filter(|object| object.key.region() == region);
        self.lasting = found
            .filter_map(|object| {
                let left_ms = match object.kind {
                    ObjectKind::Keg if object.active => FUSE_MS,
                    ObjectKind::Stone => spell_row(uo_proto::Spell::StoneWall).lasting_ms,
                    _ => return None,
                };
                let (key, by) = (object.key, None);
                Some(Lasting { key, left_ms, by })
            })
            .collect();
    }

    /// Lets time pass for fuses and stones. What their end sets off counts from the next step.
    pub(crate) fn age_objects(&mut self) {
        for lasting in &mut self.lasting {
            lasting.left_ms = lasting.left_ms.saturating_sub(STEP_MS);
        }
        let (ended, left) = std::mem::take(&mut self.lasting)
            .into_iter()
            .partition(|lasting| lasting.left_ms == 0);
        self.lasting = left;
        let ended: Vec<Lasting> = ended;
        for lasting in ended {
            if let Some(&object) = self.arena.object(lasting.key) {
                self.end(object, lasting.by);
            }
        }
    }

    /// The fuse has burnt down, or the stone sinks back.
    fn end(&mut self, object: ObjectState, by: Option<EntityId>) {
        if !object_row(object.kind).explosive {
            self.change(ObjectState {
                gone: true,
                ..object
            });
            return;
        }
        let (x, y) = (object.x, object.y);
        self.change(ObjectState {
            hits: 0,
            active: false,
            gone: true,
            ..object
        });
        let exploded = CombatEvent::Exploded {
            object: object.key,
            x,
            y,
            radius: KEG_RADIUS,
        };
        self.happen(object.pos(), None, exploded);
        let broke = CombatEvent::Broke {
            object: object.key,
            into: None,
        };
        self.happen(object.pos(), None, broke);
        self.blast(Blast {
            center: object.pos(),
            radius: KEG_RADIUS,
            power: KEG_DAMAGE,
            fall_percent: KEG_FALL_PERCENT,
            object_percent: KEG_OBJECT_PERCENT,
            by,
        });
    }

    /// Harms everyone who sees the middle and everything that is near it.
    pub(crate) fn blast(&mut self, blast: Blast) {
        let attacker = blast.by.and_then(|id| self.find(id).ok());
        for other in 0..self.actors.len() {
            let target = &self.actors[other].fighter;
            let distance = target.pos.distance(blast.center);
            if target.is_dead()
                || distance > blast.radius
                || !self.arena.line_of_sight(blast.center, target.pos).sees()
            {
                continue;
            }
            if let Some(attacker) = attacker {
                self.provoke(other, attacker);
            }
            let damage = self.blast_damage(&blast, distance);
            let damage = self.soften(other, damage, true);
            self.harm(other, damage, blast.by);
        }
        let near: Vec<(ObjectKey, u16)> = self
            .arena
            .objects()
            .filter(|object| object_row(object.kind).strength > 0)
            .filter_map(|object| {
                let sides = sides(object).into_iter().flatten();
                let distance = sides.map(|side| side.distance(blast.center)).min()?;
                (distance <= blast.radius).then_some((object.key, distance))
            })
            .collect();
        for (key, distance) in near {
            let damage = self.blast_damage(&blast, distance) * blast.object_percent / 100;
            self.damage_object(key, damage, blast.by, true);
        }
    }

    fn blast_damage(&mut self, blast: &Blast, distance: u16) -> u16 {
        let left = 100_u16.saturating_sub(distance * blast.fall_percent);
        self.random.between(blast.power) * left / 100
    }

    /// Harms an object of the region, or reports the harm if it is a neighbour's.
    pub(crate) fn damage_object(
        &mut self,
        key: ObjectKey,
        damage: u16,
        by: Option<EntityId>,
        fire: bool,
    ) {
        let Some(&object) = self.arena.object(key) else {
            return;
        };
        let row = object_row(object.kind);
        if row.strength == 0 || damage == 0 {
            return;
        }
        if key.region() != self.arena.region() {
            self.outbox.foreign_hits.push(ObjectHit {
                key,
                damage,
                fire,
                by,
            });
            return;
        }
        let fire = fire && row.flammable;
        let damage = if fire {
            damage * (FIRE_PERCENT / 100)
        } else {
            damage
        };
        let damage = damage.min(object.hits);
        let hits = object.hits - damage;
        let event = CombatEvent::Damaged {
            object: key,
            damage,
            hits,
        };
        self.happen(object.pos(), None, event);
        match hits {
            0 if row.explosive => self.light(object, CHAIN_FUSE_MS, by),
            0 => self.break_down(
                object,
                if fire {
                    row.burns_into
                } else {
                    row.breaks_into
                },
            ),
            _ => self.change(ObjectState { hits, ..object }),
        }
    }

    fn break_down(&mut self, object: ObjectState, into: Option<ObjectKind>) {
        let broken = match into {
            Some(kind) => ObjectState {
                kind,
                hits: object_row(kind).strength,
                active: false,
                ..object
            },
            None => ObjectState {
                hits: 0,
                gone: true,
                ..object
            },
        };
        self.change(broken);
        let event = CombatEvent::Broke {
            object: object.key,
            into,
        };
        self.happen(object.pos(), None, event);
    }

    /// Lights a keg's fuse, or shortens one that burns. A keg that was broken stands until it goes off.
    fn light(&mut self, object: ObjectState, left_ms: u32, by: Option<EntityId>) {
        let key = object.key;
        match self.lasting.iter_mut().find(|lasting| lasting.key == key) {
            Some(lasting) => lasting.left_ms = lasting.left_ms.min(left_ms),
            None => self.lasting.push(Lasting { key, left_ms, by }),
        }
        self.change(ObjectState {
            hits: object.hits.min(1),
            active: true,
            ..object
        });
    }

    /// Puts an object of the region's own into its new state and reports it.
    pub(crate) fn change(&mut self, object: ObjectState) {
        self.arena.place(object);
        let objects = &mut self.outbox.objects;
        match objects.binary_search_by_key(&object.key, |known| known.key) {
            Ok(at) => objects[at] = object,
            Err(at) => objects.insert(at, object),
        }
    }

    /// Makes a runtime object that ends after `left_ms`.
    pub(crate) fn raise(
        &mut self,
        kind: ObjectKind,
        pos: Pos,
        left_ms: u32,
        by: Option<EntityId>,
    ) -> ObjectKey {
        let key = self.runtime_key();
        self.change(ObjectState {
            key,
            kind,
            x: pos.x,
            y: pos.y,
            edge: None,
            hits: object_row(kind).strength,
            active: kind == ObjectKind::Keg,
            gone: false,
        });
        self.lasting.push(Lasting { key, left_ms, by });
        key
    }

    /// A key that no object here has: those of a battle before this one may still stand.
    fn runtime_key(&mut self) -> ObjectKey {
        loop {
            let index = RUNTIME_OBJECT_BIT | (self.objects_made & (RUNTIME_OBJECT_BIT - 1));
            self.objects_made = self.objects_made.wrapping_add(1);
            let key = ObjectKey::new(self.arena.region(), index);
            if self.arena.object(key).is_none() {
                return key;
            }
        }
    }

    /// Whether something can be put down on a tile.
    pub(crate) fn check_free(&self, pos: Pos) -> Result<(), Refusal> {
        if self.arena.passable(pos) && self.occupant(pos).is_none() {
            return Ok(());
        }
        Err(Refusal::new(ErrorCode::NotNow, "the tile is taken"))
    }

    /// Whether `at` can open or close that now; how it stands.
    pub(crate) fn check_open(&self, at: usize, key: ObjectKey) -> Result<ObjectState, Refusal> {
        let own = key.region() == self.arena.region();
        let Some(&door) = self.arena.object(key).filter(|_| own) else {
            return Err(Refusal::new(ErrorCode::NoTarget, "that door is not here"));
        };
        if door.kind != ObjectKind::Door {
            return Err(Refusal::new(ErrorCode::Invalid, "that does not open"));
        }
        let from = self.actors[at].fighter.pos;
        let near = sides(&door)
            .into_iter()
            .flatten()
            .any(|side| side.distance(from) <= 1);
        if !near {
            return Err(Refusal::new(ErrorCode::OutOfReach, "that is too far away"));
        }
        Ok(door)
    }

    /// Opens or closes a door.
    pub(crate) fn open_door(&mut self, at: usize, key: ObjectKey) -> Result<(), Refusal> {
        let door = self.check_open(at, key)?;
        let open = !door.active;
        self.change(ObjectState {
            active: open,
            ..door
        });
        let fighter = self.fighter_at(at);
        let (who, from) = (fighter.id, fighter.pos);
        fighter.guard = false;
        fighter.heading = from.dir_to(door.pos()).unwrap_or(fighter.heading);
        fighter.recover(uo_proto::Action::Idle, crate::AP_MS as u32);
        let event = CombatEvent::Opened {
            who,
            object: key,
            open,
        };
        self.happen(from, Some(door.pos()), event);
        Ok(())
    }

    /// Whether `at` can plant a keg there now.
    pub(crate) fn check_plant(&self, at: usize, pos: Pos) -> Result<(), Refusal> {
        let fighter = &self.actors[at].fighter;
        if fighter.inventory.count(ItemKind::Keg) == 0 {
            return Err(Refusal::new(ErrorCode::NothingLeft, "there is no keg left"));
        }
        if fighter.pos.distance(pos) != 1 || !self.arena.touches(fighter.pos, pos) {
            return Err(Refusal::new(
                ErrorCode::OutOfReach,
                "that is not beside you",
            ));
        }
        self.check_free(pos)
    }

    /// Begins to plant a keg.
    pub(crate) fn begin_plant(&mut self, at: usize, pos: Pos, seq: u64) -> Result<(), Refusal> {
        self.check_plant(at, pos)?;
        let fighter = self.fighter_at(at);
        fighter.guard = false;
        fighter.heading = fighter.pos.dir_to(pos).unwrap_or(fighter.heading);
        fighter.act = Act::Plant { at: pos, seq };
        fighter.act_ms = crate::tempo::slowed(fighter, PLANT_MS);
        Ok(())
    }

    /// The keg stands and its fuse burns.
    pub(crate) fn finish_plant(&mut self, at: usize, pos: Pos) -> Result<(), Refusal> {
        self.fighter_at(at).act = Act::Idle;
        self.check_plant(at, pos)?;
        let fighter = self.fighter_at(at);
        let (who, from) = (fighter.id, fighter.pos);
        fighter.inventory.take(ItemKind::Keg);
        self.inventory_changed(at);
        let object = self.raise(ObjectKind::Keg, pos, FUSE_MS, Some(who));
        self.happen(from, Some(pos), CombatEvent::Planted { who, object });
        Ok(())
    }
}
