//! Notes for the report of the present step.

use uo_proto::{CombatEvent, Pos};

use crate::battle::Battle;
use crate::{BattleEvent, Notice};

impl Battle {
    /// Something happened at `at`, and perhaps at another place.
    pub(crate) fn happen(&mut self, at: Pos, also: Option<Pos>, event: CombatEvent) {
        let also = also.filter(|&pos| pos != at);
        self.outbox.events.push(BattleEvent { at, also, event });
    }

    /// Tells a player's side something; nobody listens for a mob.
    pub(crate) fn tell(&mut self, at: usize, notice: Notice) {
        if self.actors[at].is_player() {
            self.outbox.notices.push(notice);
        }
    }
}
