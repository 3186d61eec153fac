//! What a player sees: entities, objects and what happens between them.

use serde::{Deserialize, Serialize};

use crate::{CharId, CoinSerial, Dir, EntityId, ItemKind, ObjectKey, Pos, Spell, Target};

/// Whose will moves an entity.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntityKind {
    /// A character's body.
    Player,
    /// A mob.
    Mob,
}

/// How an entity fights. A character's is told by a hash of its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Sword and shield.
    Warrior,
    /// Bow.
    Archer,
    /// Spells.
    Mage,
    /// A camp's swordsman.
    Bandit,
    /// A camp's bowman.
    BanditArcher,
    /// A camp's head.
    BanditChief,
}

/// What never changes about an entity; sent with `enter`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct EntityInfo {
    /// Player or mob.
    pub kind: EntityKind,
    /// How it fights.
    pub class: Class,
    /// Shown above its head.
    pub name: String,
    /// Seed of its appearance.
    pub look: u32,
    /// Hits when unhurt.
    pub hits_max: u16,
}

/// What an entity is doing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Nothing.
    #[default]
    Idle,
    /// A step of 0.5 s onto (x, y).
    Walk,
    /// A step of 0.25 s onto (x, y).
    Run,
    /// A blow with a melee weapon.
    Strike,
    /// A shot with a bow.
    Shoot,
    /// A spell being cast.
    Cast,
    /// Guard raised.
    Guard,
    /// Standing its ground.
    Hold,
    /// Drinking.
    Drink,
    /// Lying on the ground.
    Dead,
}

/// The whole volatile state of an entity: an update carries all of it, never a difference of a difference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct EntityState {
    /// Who.
    pub id: EntityId,
    /// Column of the tile it stands on, or is stepping onto.
    pub x: u16,
    /// Row of the tile it stands on, or is stepping onto.
    pub y: u16,
    /// Which way it faces.
    pub heading: Dir,
    /// Hits left; 0 is dead.
    pub hits: u16,
    /// What it is doing.
    pub action: Action,
    /// Whom it is fighting.
    pub target: Option<EntityId>,
}

impl EntityState {
    /// The tile it stands on, or is stepping onto.
    pub fn pos(&self) -> Pos {
        Pos::new(self.x, self.y)
    }
}

/// An entity that came into view.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EntityEnter {
    /// What does not change.
    pub info: EntityInfo,
    /// What does.
    pub state: EntityState,
}

/// A kind of object. What each is stands in `uo-combat`'s object table. Kinds are added at the end, never removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectKind {
    /// A tree; breaks into a stump.
    Tree,
    /// What is left of a tree.
    Stump,
    /// A rock; nothing breaks it.
    Rock,
    /// Low growth; no cover.
    Bush,
    /// A wall on the edge between two tiles.
    Wall,
    /// A fence on an edge; can be shot over.
    Fence,
    /// A door on an edge; opens.
    Door,
    /// A crate; breaks into splinters.
    Crate,
    /// A chest.
    Chest,
    /// A keg; goes off when it breaks.
    Keg,
    /// A tent of a camp.
    Tent,
    /// A camp's fire; nothing breaks it.
    Campfire,
    /// A stone raised by a spell; stands for a while.
    Stone,
    /// What is left of a wall, a fence, a door, a crate or a tent; blocks nothing.
    Rubble,
}

/// Which edge of its tile an edge object (wall, fence, door) stands on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edge {
    /// Between this tile and the one to the north.
    North,
    /// Between this tile and the one to the west.
    West,
}

/// An object as it is now. Only objects that differ from the generated content are sent and stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectState {
    /// Which.
    pub key: ObjectKey,
    /// What it is now: a felled tree is a stump.
    pub kind: ObjectKind,
    /// Column of its tile.
    pub x: u16,
    /// Row of its tile.
    pub y: u16,
    /// The edge it stands on; null for what fills its tile.
    pub edge: Option<Edge>,
    /// Strength left.
    pub hits: u16,
    /// A door that stands open, a keg whose fuse burns.
    pub active: bool,
    /// It is no more: forget it, also if it was generated.
    pub gone: bool,
}

impl ObjectState {
    /// Its tile.
    pub fn pos(&self) -> Pos {
        Pos::new(self.x, self.y)
    }
}

/// Why a blow or a shot did no harm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissReason {
    /// It went wide.
    Dodged,
    /// Something stood between.
    Cover,
    /// The guard held.
    Guarded,
}

/// Something that happened in a battle, for everyone in whose area of interest it happened.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields say who, what and how much")]
pub enum CombatEvent {
    /// A blow began.
    Swung {
        who: EntityId,
        target: Target,
        weapon: Option<ItemKind>,
    },
    /// An arrow or a bolt left for its target.
    Shot {
        who: EntityId,
        target: Target,
        weapon: Option<ItemKind>,
    },
    /// Harm was done to an entity.
    Hit {
        who: EntityId,
        target: EntityId,
        damage: u16,
        hits: u16,
    },
    /// No harm was done.
    Missed {
        who: EntityId,
        target: EntityId,
        why: MissReason,
    },
    /// A spell began.
    Casting {
        who: EntityId,
        spell: Spell,
        target: Target,
    },
    /// A spell took effect.
    CastDone {
        who: EntityId,
        spell: Spell,
        target: Target,
    },
    /// A spell or an action was broken off.
    Interrupted { who: EntityId },
    /// Hits came back.
    Healed {
        who: EntityId,
        amount: u16,
        hits: u16,
    },
    /// A potion was drunk.
    Drank { who: EntityId },
    /// A guard was raised.
    Guarded { who: EntityId },
    /// A door was opened or closed.
    Opened {
        who: EntityId,
        object: ObjectKey,
        open: bool,
    },
    /// A keg was planted.
    Planted { who: EntityId, object: ObjectKey },
    /// Something blew up.
    Exploded {
        object: ObjectKey,
        x: u16,
        y: u16,
        radius: u16,
    },
    /// Harm was done to an object.
    Damaged {
        object: ObjectKey,
        damage: u16,
        hits: u16,
    },
    /// An object broke.
    Broke {
        object: ObjectKey,
        into: Option<ObjectKind>,
    },
    /// Somebody died.
    Died { who: EntityId, by: Option<EntityId> },
    /// Somebody is back.
    Returned { who: EntityId, x: u16, y: u16 },
    /// Coins were taken from a body.
    Looted {
        who: EntityId,
        coins: Vec<CoinSerial>,
    },
}

/// The character of a `said` line.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Speech {
    /// Who.
    pub char_id: CharId,
    /// Their name.
    pub name: String,
    /// What.
    pub text: String,
}
