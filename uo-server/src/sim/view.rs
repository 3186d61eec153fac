//! A region as operators see it in `/state?full`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::Serialize;
use uo_proto::{CharId, Class, EntityId, EntityInfo, EntityState, ObjectState, Pos, RegionId};

use super::region::Region;

/// Everything in a region.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionView {
    /// Which.
    pub region: RegionId,
    /// Under which lease.
    pub epoch: u64,
    /// Ticks since it was opened.
    pub tick: u64,
    /// Whether nothing moves in it.
    pub idle: bool,
    /// Nodes that are shown it.
    pub subscribers: Vec<String>,
    /// The characters in its battle, in the order of ids.
    pub players: Vec<PlayerView>,
    /// The mobs that can be seen, in the order of ids.
    pub mobs: Vec<EntityView>,
    /// Its objects that were changed, in the order of keys.
    pub objects: Vec<ObjectState>,
}

/// Somebody in a battle.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EntityView {
    /// Who.
    pub id: EntityId,
    /// By name.
    pub name: String,
    /// How it fights.
    pub class: Class,
    /// Hits when unhurt.
    pub hits_max: u16,
    /// Place, heading, hits, action, target.
    pub state: EntityState,
}

/// A character in a battle.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PlayerView {
    /// Who.
    pub char_id: CharId,
    /// What everybody sees.
    #[serde(flatten)]
    pub entity: EntityView,
    /// The generation it is owned under.
    pub generation: u64,
    /// The highest order applied.
    pub ack: u64,
    /// For how long it still counts as fighting, in milliseconds.
    pub fight_left_ms: u64,
    /// Where it walks to.
    pub goal: Option<Pos>,
    /// Version of its inventory.
    pub inventory: u64,
    /// How many coins it carries.
    pub coins: usize,
}

impl Region {
    /// Everything in it.
    pub fn view(&self) -> RegionView {
        RegionView {
            region: self.id,
            epoch: self.epoch,
            tick: self.tick,
            idle: self.is_idle(),
            subscribers: self.subscribers().map(ToString::to_string).collect(),
            players: self.characters().filter_map(|id| self.player(id)).collect(),
            mobs: self
                .battle
                .entities()
                .filter(|id| id.mob_region().is_some())
                .filter_map(|id| self.entity(id))
                .collect(),
            objects: self.differences(),
        }
    }

    fn entity(&self, id: EntityId) -> Option<EntityView> {
        let EntityInfo {
            name,
            class,
            hits_max,
            ..
        } = self.battle.info(id)?;
        Some(EntityView {
            id,
            name,
            class,
            hits_max,
            state: self.battle.state(id)?,
        })
    }

    fn player(&self, char_id: CharId) -> Option<PlayerView> {
        let member = self.members.get(&char_id)?;
        let inventory = self.battle.inventory(char_id.entity())?;
        Some(PlayerView {
            char_id,
            entity: self.entity(char_id.entity())?,
            generation: member.generation,
            ack: member.ack,
            fight_left_ms: self.battle.fight_left_ms(char_id.entity()),
            goal: member.walk.map(|walk| walk.goal),
            inventory: inventory.version,
            coins: inventory.coins.len(),
        })
    }
}
