//! The battle: who is in it, how one comes and goes, and its step.

use std::fmt;

use serde::{Deserialize, Serialize};
use uo_proto::{
    Class, EntityId, EntityInfo, EntityKind, EntityState, Inventory, ObjectState, Pos, RegionId,
    Target, fnv1a,
};

use crate::fighter::Fighter;
use crate::object::Lasting;
use crate::path::Scratch;
use crate::random::Random;
use crate::tempo::{Actor, Way};
use crate::{Arena, Rect, Report};

/// A mob and where it lives.
#[derive(Clone, PartialEq, Debug)]
pub struct MobSpawn {
    /// Who; a mob's id names its region and slot.
    pub id: EntityId,
    /// How it fights.
    pub class: Class,
    /// Shown above its head.
    pub name: String,
    /// Where it stands when nothing happens, and returns to.
    pub home: Pos,
}

/// What a battle is opened with.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Whose battle it is.
    pub region: RegionId,
    /// The epoch of the region's lease: coins carry it.
    pub epoch: u64,
    /// Of the battle's generator.
    pub seed: u64,
    /// Its tiles, with every object as it is now.
    pub arena: Arena,
    /// Its mobs.
    pub mobs: Vec<MobSpawn>,
    /// Dead characters come back on the free tile nearest to this one.
    pub respawn: Pos,
}

/// Why a fighter was not admitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdmitError {
    /// It stands outside of the arena.
    #[error("the fighter stands outside of the arena")]
    Outside,
    /// It is here already.
    #[error("the fighter is here already")]
    Present,
    /// No tile near it is free.
    #[error("no tile is free")]
    Full,
}

/// The fight of one region: its whole state, which can be taken out and goes on identically elsewhere.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Battle {
    pub(crate) epoch: u64,
    pub(crate) respawn: Pos,
    pub(crate) random: Random,
    /// Coins made under this epoch.
    pub(crate) coins_made: u32,
    /// Counts the runtime objects made.
    pub(crate) objects_made: u32,
    pub(crate) arena: Arena,
    /// In the order of ids.
    pub(crate) actors: Vec<Actor>,
    /// Objects with an end.
    pub(crate) lasting: Vec<Lasting>,
    /// What the next step reports, beside what it does itself.
    pub(crate) outbox: Report,
    /// Nothing happens until somebody comes or something is done from outside.
    pub(crate) quiet: bool,
    #[serde(skip)]
    pub(crate) cache: Cache,
}

/// What is derived, or merely kept to save allocations: no part of the state.
#[derive(Clone, Default)]
pub(crate) struct Cache {
    /// Who stands on a tile: its place among the actors plus 1; 0 is nobody.
    pub(crate) occupied: Vec<u16>,
    pub(crate) scratch: Scratch,
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cache")
    }
}

impl PartialEq for Cache {
    fn eq(&self, _: &Cache) -> bool {
        true
    }
}

impl Battle {
    /// A battle with its mobs at home and nobody else.
    pub fn open(setup: Setup) -> Battle {
        let mut battle = Battle {
            epoch: setup.epoch,
            respawn: setup.respawn,
            random: Random::new(setup.seed),
            coins_made: 0,
            objects_made: first_object(setup.epoch),
            arena: setup.arena,
            actors: Vec::with_capacity(setup.mobs.len()),
            lasting: Vec::new(),
            outbox: Report::default(),
            quiet: false,
            cache: Cache::default(),
        };
        battle.derive_cache();
        for spawn in setup.mobs {
            battle.spawn(spawn);
        }
        battle.arm_found_objects();
        battle
    }

    /// One step of [`crate::SIM_STEP_MS`]. `report` is cleared and filled.
    pub fn step(&mut self, report: &mut Report) {
        report.clear();
        if self.quiet {
            return;
        }
        self.derive_cache();
        self.age_objects();
        // Drawn anew each step, so that no id is an advantage: blows take even numbers of steps, and who strikes in the
        // same step as another would always do so first, or always last.
        let forwards = self.random.percent(50);
        let count = self.actors.len();
        for turn in 0..count {
            self.turn(if forwards { turn } else { count - 1 - turn });
        }
        self.publish();
        std::mem::swap(report, &mut self.outbox);
    }

    /// Takes a fighter in, with everything it was doing. If its tile is taken, it gets the nearest free one that is
    /// connected with it.
    pub fn admit(&mut self, mut fighter: Fighter) -> Result<(), AdmitError> {
        if !self.arena.contains(fighter.pos) {
            return Err(AdmitError::Outside);
        }
        let Err(at) = self.find(fighter.id) else {
            return Err(AdmitError::Present);
        };
        self.derive_cache();
        fighter.settle();
        if !fighter.is_dead() {
            fighter.pos = self.free_tile(fighter.pos).ok_or(AdmitError::Full)?;
        }
        self.actors.insert(at, Actor::player(fighter));
        self.occupy();
        self.quiet = false;
        Ok(())
    }

    /// Takes a fighter out, with everything it was doing.
    pub fn withdraw(&mut self, id: EntityId) -> Option<Fighter> {
        let at = self
            .find(id)
            .ok()
            .filter(|&at| self.actors[at].is_player())?;
        let actor = self.actors.remove(at);
        self.outbox.changed.push(id);
        self.derive_cache();
        self.occupy();
        self.quiet = false;
        Some(actor.fighter)
    }

    /// A copy without the characters, for whoever goes on with it. They follow one by one and take up where they left off:
    /// whoever was after one of them still is, unless it takes them longer than one waits for a target that is not there.
    pub fn without_players(&self) -> Battle {
        let mut battle = self.clone();
        battle.actors.retain(|actor| !actor.is_player());
        battle.cache = Cache::default();
        battle.quiet = false;
        battle
    }

    /// A copy of a fighter, as [`Battle::withdraw`] would give it.
    pub fn fighter(&self, id: EntityId) -> Option<Fighter> {
        self.actor(id)
            .filter(|actor| actor.is_player())
            .map(|actor| actor.fighter.clone())
    }

    /// What a fighter has.
    pub fn inventory(&self, id: EntityId) -> Option<&Inventory> {
        self.actor(id).map(|actor| &actor.fighter.inventory)
    }

    /// Where an entity stands, or is stepping onto.
    pub fn pos(&self, id: EntityId) -> Option<Pos> {
        self.actor(id).map(|actor| actor.fighter.pos)
    }

    /// For how long an entity still counts as fighting; 0: it does not.
    pub fn fight_left_ms(&self, id: EntityId) -> u64 {
        self.actor(id)
            .map_or(0, |actor| actor.fighter.fight_left_ms())
    }

    /// Whether an entity is in the battle: mobs that are dead and gone are still, and will return.
    pub fn contains(&self, id: EntityId) -> bool {
        self.find(id).is_ok()
    }

    /// What never changes about an entity that can be seen.
    pub fn info(&self, id: EntityId) -> Option<EntityInfo> {
        let actor = self.actor(id).filter(|actor| !actor.is_away())?;
        let fighter = &actor.fighter;
        Some(EntityInfo {
            kind: if actor.is_player() {
                EntityKind::Player
            } else {
                EntityKind::Mob
            },
            class: fighter.class,
            look: look_of(fighter.id),
            name: fighter.name.clone(),
            hits_max: fighter.hits_max(),
        })
    }

    /// The public state of an entity that can be seen.
    pub fn state(&self, id: EntityId) -> Option<EntityState> {
        self.actor(id).and_then(Actor::state)
    }

    /// Who can be seen, in the order of ids.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        self.actors
            .iter()
            .filter(|actor| !actor.is_away())
            .map(|actor| actor.fighter.id)
    }

    /// The characters, in the order of ids.
    pub fn players(&self) -> impl Iterator<Item = EntityId> {
        self.actors
            .iter()
            .filter(|actor| actor.is_player())
            .map(|actor| actor.fighter.id)
    }

    /// Its tiles and what stands on them.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Takes in how a neighbour's object is now. Nothing is reported: the neighbour did that.
    pub fn place_object(&mut self, object: ObjectState) {
        self.arena.place(object);
    }

    /// Whether a step changes nothing and costs next to nothing: no characters, nobody moving, lying or healing,
    /// nothing burning.
    pub fn is_idle(&self) -> bool {
        self.quiet
    }

    /// The epoch that new coins carry.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Sets the epoch, after a drain or a takeover; coins are counted anew under each.
    pub fn set_epoch(&mut self, epoch: u64) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.coins_made = 0;
        }
    }

    pub(crate) fn find(&self, id: EntityId) -> Result<usize, usize> {
        self.actors
            .binary_search_by_key(&id, |actor| actor.fighter.id)
    }

    pub(crate) fn actor(&self, id: EntityId) -> Option<&Actor> {
        self.find(id).ok().map(|at| &self.actors[at])
    }

    pub(crate) fn fighter_at(&mut self, at: usize) -> &mut Fighter {
        &mut self.actors[at].fighter
    }

    fn spawn(&mut self, spawn: MobSpawn) {
        let Err(at) = self.find(spawn.id) else {
            return;
        };
        let pos = self.free_tile(spawn.home).unwrap_or(spawn.home);
        let fighter = Fighter::of_class(spawn.id, &spawn.name, spawn.class, pos);
        self.actors.insert(at, Actor::mob(fighter, spawn.home));
        self.occupy();
    }

    /// Who stands on a tile.
    pub(crate) fn occupant(&self, pos: Pos) -> Option<usize> {
        let who = self.cache.occupied[self.arena.index(pos)?];
        usize::from(who).checked_sub(1)
    }

    pub(crate) fn set_occupant(&mut self, pos: Pos, who: Option<usize>) {
        if let Some(index) = self.arena.index(pos) {
            self.cache.occupied[index] = who.map_or(0, |at| at as u16 + 1);
        }
    }

    /// A battle that was just read from bytes has no cache yet.
    pub(crate) fn derive_cache(&mut self) {
        if self.cache.occupied.len() != self.arena.bounds().tiles() {
            self.occupy();
        }
    }

    /// Writes down anew who stands where: places among the actors shifted.
    fn occupy(&mut self) {
        self.cache.occupied.clear();
        self.cache.occupied.resize(self.arena.bounds().tiles(), 0);
        for at in 0..self.actors.len() {
            if !self.actors[at].fighter.is_dead() {
                self.set_occupant(self.actors[at].fighter.pos, Some(at));
            }
        }
    }

    /// The free tile nearest to `pos` among those that are connected with it, itself included; if `pos` is under an
    /// object or water, the nearest free one.
    pub(crate) fn free_tile(&self, pos: Pos) -> Option<Pos> {
        let component = self.arena.component(pos);
        let bounds: Rect = self.arena.bounds();
        let is_free = |&tile: &Pos| {
            self.arena.passable(tile)
                && self.occupant(tile).is_none()
                && (component == 0 || self.arena.component(tile) == component)
        };
        let radius_max = bounds.width.max(bounds.height);
        (0..radius_max).find_map(|radius| ring(pos, radius).find(is_free))
    }

    /// Compares what can be seen of everybody with what was last reported.
    fn publish(&mut self) {
        let mut quiet = self.lasting.is_empty();
        for actor in &mut self.actors {
            let state = actor.state();
            if state != actor.shown {
                actor.shown = state;
                self.outbox.changed.push(actor.fighter.id);
            }
            quiet &= actor.is_calm();
        }
        self.outbox.changed.sort_unstable();
        self.outbox.changed.dedup();
        self.quiet = quiet;
        if self.quiet {
            self.cache.scratch = Scratch::default();
        }
    }
}

/// Where the count of runtime objects begins under an epoch. A client may remember for long what it saw under an earlier
/// one and has left since: the same key must not soon mean something else.
fn first_object(epoch: u64) -> u32 {
    const OBJECTS_AN_EPOCH: u32 = 4096;
    (epoch.saturating_sub(1) as u32).wrapping_mul(OBJECTS_AN_EPOCH)
}

/// The tiles at exactly `radius` from `center`, row by row, as far as the numbers go.
fn ring(center: Pos, radius: u16) -> impl Iterator<Item = Pos> {
    let reach = i32::from(radius);
    (-reach..=reach).flat_map(move |dy| {
        let stride = if dy.abs() == reach {
            1
        } else {
            (2 * reach).max(1)
        };
        (-reach..=reach)
            .step_by(stride as usize)
            .filter_map(move |dx| {
                Some(Pos {
                    x: u16::try_from(i32::from(center.x) + dx).ok()?,
                    y: u16::try_from(i32::from(center.y) + dy).ok()?,
                })
            })
    })
}

impl Actor {
    /// A character.
    fn player(fighter: Fighter) -> Actor {
        Actor {
            fighter,
            mind: None,
            way: Way::default(),
            shown: None,
        }
    }

    /// What others see of it.
    fn state(&self) -> Option<EntityState> {
        if self.is_away() {
            return None;
        }
        let fighter = &self.fighter;
        Some(EntityState {
            id: fighter.id,
            x: fighter.pos.x,
            y: fighter.pos.y,
            heading: fighter.heading,
            hits: fighter.hits,
            action: fighter.action(),
            target: match fighter.target() {
                Some(Target::Entity(id)) => Some(id),
                _ => None,
            },
        })
    }
}

/// The seed of an appearance. It follows from the id alone: in dev mode the id is the hash of the name, and
/// mixing the two would cancel them out.
fn look_of(id: EntityId) -> u32 {
    fnv1a(&id.0.to_be_bytes()) as u32
}

#[cfg(test)]
mod tests {
    use uo_proto::CharId;

    use super::*;

    #[test]
    fn nobody_looks_like_another() {
        let mut looks: Vec<u32> = ["Ann", "Bob", "Cid", "Dan"]
            .map(|name| look_of(CharId::of_name(name).entity()))
            .into_iter()
            .chain((0..100).map(|mob| look_of(EntityId(mob))))
            .collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), 104);
    }
}
