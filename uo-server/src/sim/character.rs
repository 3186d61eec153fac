//! A character that is owned here: what its owner knows of it beside the fighter, which its battle has.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_combat::Fighter;
use uo_proto::{CharId, RegionId};

use super::checkpoint::Checkpoint;
use super::claims::Task;
use super::private::PrivateStream;
use crate::Millis;
use crate::identity::{Holder, NodeName};
use crate::peer::message::{AttachId, RoutedOrder};
use crate::store::row::CharacterRow;

/// A character under a generation of ours.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Character {
    pub(super) id: CharId,
    pub(super) name: String,
    pub(super) task: Task,
    /// The generation that it is served under.
    pub(super) generation: u64,
    /// The region whose battle it is in.
    pub(super) region: RegionId,
    /// The session it is played in, at which gateway; none: it lingers.
    pub(super) attach: Option<(AttachId, Holder)>,
    /// The owner that handed it over.
    pub(super) came_from: Option<NodeName>,
    /// The session number issued last.
    pub(super) session: u64,
    /// The highest order applied in that session.
    pub(super) last_order: u64,
    pub(super) privates: PrivateStream,
    /// When it has lingered long enough.
    pub(super) linger_due: Option<Millis>,
    pub(super) checkpoint: Checkpoint,
    /// Orders that came before the ones before them, by their numbers.
    pub(super) early: BTreeMap<u64, RoutedOrder>,
    /// Until when they wait for those.
    pub(super) settle_due: Option<Millis>,
    /// Ticks that were complete when it came into its battle.
    pub(super) arrived_at_tick: u64,
    /// No handoff begins before.
    pub(super) handoff_not_before: Millis,
    /// To be released as soon as its claim can be.
    pub(super) is_leaving: bool,
}

impl Character {
    /// A character as its row has it, in the battle of `region`.
    pub(super) fn from_row(
        task: Task,
        generation: u64,
        region: RegionId,
        row: CharacterRow,
    ) -> Character {
        Character {
            id: CharId(row.fighter.id.0),
            name: row.fighter.name,
            task,
            generation,
            region,
            attach: None,
            came_from: None,
            session: row.session,
            last_order: row.last_order,
            privates: PrivateStream::from_parts(row.last_private, row.privates),
            linger_due: None,
            checkpoint: Checkpoint::sealed(),
            early: BTreeMap::new(),
            settle_due: None,
            arrived_at_tick: 0,
            handoff_not_before: 0,
            is_leaving: false,
        }
    }

    /// Everything about it at rest.
    pub(super) fn row(&self, generation: u64, fighter: Fighter) -> CharacterRow {
        CharacterRow {
            generation,
            fighter,
            session: self.session,
            last_order: self.last_order,
            last_private: self.privates.last(),
            privates: self.privates.kept(),
        }
    }

    /// Whether it is ours to serve and to save at this moment.
    pub(super) fn is_held(&self) -> bool {
        self.task.claim.held().is_some()
    }
}
