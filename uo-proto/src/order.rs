//! What a player asks for. Every order has a `seq`; the owner applies each (session number, seq) at most once.

use serde::{Deserialize, Serialize};

use crate::{Dir, EntityId, ItemKind, ObjectKey, Pos, Slot};

/// What an attack or a spell is aimed at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Somebody.
    Entity(EntityId),
    /// Something.
    Object(ObjectKey),
    /// A place.
    Tile(Pos),
}

/// A spell. What it costs and does stands in `uo-combat`'s spell table and, for clients, in `welcome.spells`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spell {
    /// Hurts one entity or object.
    Bolt,
    /// Hurts everything around a tile.
    Fireball,
    /// Gives hits back to oneself or another.
    Heal,
    /// Raises a stone that stands for a while: a runtime object.
    StoneWall,
    /// Slows one entity.
    Frost,
}

/// What a player asks its character to do. On the wire, `type` names the order and its fields stand beside `seq`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Order {
    /// Go there, across regions if need be, in legs planned by `uo_world::walk`.
    WalkTo {
        /// Column of the goal.
        x: u16,
        /// Row of the goal.
        y: u16,
    },
    /// Hold a heading: one step per step time, sliding along obstacles, until `dir` is null.
    Move {
        /// The heading, or null to let go.
        dir: Option<Dir>,
    },
    /// One step, queued behind at most three others and checked when its turn comes.
    Step {
        /// The heading.
        dir: Dir,
    },
    /// Drop every queued step, the walk, the held heading and the attack.
    Stop,
    /// Fight this until told otherwise: approach, strike, repeat.
    Attack {
        /// An entity or an object.
        target: Target,
    },
    /// Cast a spell once.
    Cast {
        /// Which.
        spell: Spell,
        /// At what.
        target: Target,
    },
    /// Raise the guard; it falls with the next own action.
    Guard,
    /// Drink a potion.
    Potion,
    /// Stand, and strike only what comes into reach.
    Hold,
    /// Open or close a door within reach.
    Open {
        /// The door.
        object: ObjectKey,
    },
    /// Plant a keg on a neighbouring tile and light its fuse.
    Plant {
        /// Column of the tile.
        x: u16,
        /// Row of the tile.
        y: u16,
    },
    /// Say something to everyone in the area of interest.
    Say {
        /// UTF-8 without control characters: 1 byte to as many as `welcome` allows, 256 by default.
        text: String,
    },
    /// Ask what something is; answered by `looked`.
    Look {
        /// At what.
        target: Target,
    },
    /// Ask for the inventory; answered by `inventory`.
    Inventory,
    /// Wear an item that is carried.
    Equip {
        /// Which.
        item: ItemKind,
    },
    /// Take off what is worn.
    Unequip {
        /// From where.
        slot: Slot,
    },
    /// Not part of the game yet: answered `unavailable`.
    Gather {
        /// What from.
        target: Target,
    },
    /// Not part of the game yet: answered `unavailable`.
    Craft {
        /// What to make.
        item: ItemKind,
    },
    /// Leave the world.
    Logout,
}
