//! What a step tells its caller.

use serde::{Deserialize, Serialize};
use uo_proto::{CombatEvent, EntityId, ErrorCode, ObjectKey, ObjectState, Pos};

/// Why an order was not taken.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What kind of reason.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
}

impl Refusal {
    /// A refusal of that kind.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Refusal {
        Refusal {
            code,
            message: message.into(),
        }
    }
}

/// Harm to an object that another region owns: its owner applies it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ObjectHit {
    /// Which.
    pub key: ObjectKey,
    /// How much.
    pub damage: u16,
    /// Whether it was fire: what burns suffers double, and burns down instead of breaking.
    #[serde(default)]
    pub fire: bool,
    /// Who did it.
    pub by: Option<EntityId>,
}

/// Something that happened, and where: whoever sees one of the places hears of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BattleEvent {
    /// Where.
    pub at: Pos,
    /// The other place, if it has two: the target's.
    pub also: Option<Pos>,
    /// What.
    pub event: CombatEvent,
}

/// Something that concerns one fighter and its player, or the caller alone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields say who, where and which order")]
pub enum Notice {
    /// A queued step could not be taken; the fighter stands at `pos`.
    StepRejected { id: EntityId, pos: Pos, seq: u64 },
    /// The goal of a `walk_to` was reached (the last step onto it began), or somebody stands on it and the fighter
    /// beside.
    LegDone { id: EntityId, pos: Pos, seq: u64 },
    /// No way leads to the goal of a `walk_to`; the walk ended at `pos`.
    WalkFailed { id: EntityId, pos: Pos, seq: u64 },
    /// A dead character is back.
    Respawned { id: EntityId, pos: Pos },
    /// A character's items or coins changed.
    InventoryChanged { id: EntityId },
    /// Somebody died, character or mob.
    Died { id: EntityId, by: Option<EntityId> },
    /// A character that was not fighting is now.
    FightBegan { id: EntityId },
    /// An order that had been taken failed when its turn came.
    Refused {
        id: EntityId,
        seq: u64,
        refusal: Refusal,
    },
}

/// Everything that one step changed. The caller keeps one and hands it in again, so that its buffers are reused.
#[derive(Clone, Default, PartialEq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Whose public state or presence changed, newcomers included: sorted, each once. One who is no longer there
    /// ([`crate::Battle::state`] gives none) has left.
    pub changed: Vec<EntityId>,
    /// The region's own objects that changed, each once, in the order of their keys.
    pub objects: Vec<ObjectState>,
    /// Harm to neighbours' objects.
    pub foreign_hits: Vec<ObjectHit>,
    /// What happened, in order.
    pub events: Vec<BattleEvent>,
    /// What concerns single fighters, in order.
    pub notices: Vec<Notice>,
}

impl Report {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty()
            && self.objects.is_empty()
            && self.foreign_hits.is_empty()
            && self.events.is_empty()
            && self.notices.is_empty()
    }

    /// Empties it; the buffers stay.
    pub fn clear(&mut self) {
        self.changed.clear();
        self.objects.clear();
        self.foreign_hits.clear();
        self.events.clear();
        self.notices.clear();
    }
}
