//! The open battle. (The names that others compile against; the battle itself lands next and replaces this file.)

use serde::{Deserialize, Serialize};
use uo_proto::{EntityId, Inventory, ObjectKey, Pos};

/// A character's whole portable fighting state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fighter {
    /// Who.
    pub id: EntityId,
    /// Where.
    pub pos: Pos,
    /// What it has.
    pub inventory: Inventory,
}

/// One region's running battle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Battle {}

/// Damage by a neighbour's battle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ObjectHit {
    /// What was hit.
    pub key: ObjectKey,
    /// How hard.
    pub damage: u16,
    /// By whom.
    pub by: Option<EntityId>,
}
