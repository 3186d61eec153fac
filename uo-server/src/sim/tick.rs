//! Stepping regions, and what a step leaves behind for the core.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;
use uo_combat::{Notice, ObjectHit, Report};
use uo_proto::{CharId, CombatEvent, ObjectState, Pos, RegionId};

use super::region::{Member, Region, Shown};
use crate::identity::NodeName;
use crate::limits::{HANDOFF_DEPTH, HANDOFF_DEPTH_FIGHTING};
use crate::peer::ToGateway;
use crate::peer::message::{FeedEvent, PublicEvent};

/// Everything that happened in a region since its output was taken last.
#[derive(Default, Debug)]
pub struct TickOutput {
    /// Frames for its subscribers.
    pub feeds: Vec<(NodeName, ToGateway)>,
    /// What concerns single characters, in order. Legs of a walk are not told, only its end.
    pub notices: Vec<Notice>,
    /// Its own objects that changed: to be persisted, and told to the neighbours.
    pub objects: Vec<ObjectState>,
    /// Harm to objects of other regions.
    pub foreign_hits: Vec<(RegionId, Vec<ObjectHit>)>,
    /// Characters that are deep enough in another region to be handed over, in each tick while they are.
    pub border: Vec<(CharId, RegionId)>,
    /// Characters with something new for their checkpoint, in the order of ids.
    pub changed: Vec<CharId>,
    /// How much of it there was.
    pub counters: Counters,
}

/// Counted for `/metrics`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Characters that began to fight.
    pub fights: u32,
    /// Deaths of characters and mobs.
    pub deaths: u32,
    /// Returns of characters and mobs.
    pub respawns: u32,
    /// Objects that broke.
    pub broken: u32,
}

impl Region {
    /// Simulates one tick. A region without characters in which nothing moves only counts it.
    pub fn step(&mut self) {
        #[cfg(feature = "planted-bugs")]
        assert!(!self.panics, "somebody asked for it");
        self.tick += 1;
        if self.is_idle() {
            return;
        }
        let mut report = std::mem::take(&mut self.report);
        self.battle.step(&mut report);
        self.follow(&mut report);
        self.report = report;
        self.continue_walks();
        self.find_border_crossers();
        self.show();
    }

    /// Shows what came after the last step, without another one: it stands still from now on.
    pub fn show_last(&mut self) {
        self.show();
    }

    fn show(&mut self) {
        let shown = Shown {
            battle: &self.battle,
            members: &self.members,
            differences: &self.differences,
            epoch: self.epoch,
        };
        self.feed.frame(self.tick, &shown, &mut self.output.feeds);
    }

    /// Whether the next step has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.members.is_empty() && self.battle.is_idle() && !self.feed.is_pending()
    }

    /// Takes what happened since it was taken last.
    pub fn take_output(&mut self) -> TickOutput {
        std::mem::take(&mut self.output)
    }

    /// Takes in what the battle reports.
    fn follow(&mut self, report: &mut Report) {
        for &id in &report.changed {
            self.feed.touch(id);
        }
        let characters = report.changed.iter().filter_map(|id| id.character());
        let present = characters.filter(|char_id| self.members.contains_key(char_id));
        self.output.changed.extend(present);

        for object in report.objects.drain(..) {
            if object.gone && object.key.is_runtime() {
                self.differences.remove(&object.key);
            } else {
                self.differences.insert(object.key, object);
            }
            self.feed.object(object);
            self.output.objects.push(object);
        }
        let mut foreign: BTreeMap<RegionId, Vec<ObjectHit>> = BTreeMap::new();
        for hit in report.foreign_hits.drain(..) {
            foreign.entry(hit.key.region()).or_default().push(hit);
        }
        self.output.foreign_hits.extend(foreign);

        for event in report.events.drain(..) {
            self.output.counters.count(&event.event);
            self.feed.event(FeedEvent {
                at: event.at,
                also: event.also,
                what: PublicEvent::Combat(event.event),
            });
        }
        for notice in report.notices.drain(..) {
            self.heed(notice);
        }
        self.output.changed.sort_unstable();
        self.output.changed.dedup();
    }

    /// Acts on a notice, and passes on what is not the region's own business.
    fn heed(&mut self, notice: Notice) {
        let is_passed_on = match notice {
            Notice::LegDone { id, pos, seq } => self.leg_done(CharId(id.0), pos, seq),
            Notice::WalkFailed { id, seq, .. } => self.leg_failed(CharId(id.0), seq),
            Notice::Died { id, .. } => {
                self.end_walk(CharId(id.0));
                true
            }
            Notice::InventoryChanged { id } => {
                self.output.changed.push(CharId(id.0));
                true
            }
            Notice::FightBegan { .. } => {
                self.output.counters.fights += 1;
                true
            }
            Notice::StepRejected { .. } | Notice::Respawned { .. } | Notice::Refused { .. } => true,
        };
        if is_passed_on {
            self.output.notices.push(notice);
        }
    }

    /// A leg ended at `at`. Says whether the whole walk did.
    fn leg_done(&mut self, char_id: CharId, at: Pos, seq: u64) -> bool {
        let Some(member) = self.members.get_mut(&char_id) else {
            return true;
        };
        let Some(walk) = member.walk.as_mut().filter(|walk| walk.seq == seq) else {
            return true;
        };
        if walk.ends_at(at) {
            member.walk = None;
            return true;
        }
        walk.leg_is_done();
        let walk = *walk;
        self.continue_walk(char_id, walk);
        false
    }

    /// The battle found no way to the end of a leg. Says whether that ends the walk.
    fn leg_failed(&mut self, char_id: CharId, seq: u64) -> bool {
        let Some(member) = self.members.get_mut(&char_id) else {
            return true;
        };
        let Some(walk) = member.walk.as_mut().filter(|walk| walk.seq == seq) else {
            return true;
        };
        let goes_on = walk.wait_after_failure(self.tick);
        if !goes_on {
            member.walk = None;
        }
        !goes_on
    }

    /// Plans again the legs that failed a while ago.
    fn continue_walks(&mut self) {
        let tick = self.tick;
        let due = |member: &Member| member.walk.filter(|walk| walk.is_due(tick));
        let due: Vec<_> = self
            .members
            .iter()
            .filter_map(|(&char_id, member)| Some((char_id, due(member)?)))
            .collect();
        for (char_id, walk) in due {
            self.continue_walk(char_id, walk);
        }
    }

    fn find_border_crossers(&mut self) {
        let owned = self.battle.arena().owned();
        for &char_id in self.members.keys() {
            let id = char_id.entity();
            let Some(pos) = self.battle.pos(id).filter(|&pos| !owned.contains(pos)) else {
                continue;
            };
            let depth = owned.distance(pos);
            let is_deep = depth >= HANDOFF_DEPTH_FIGHTING
                || depth >= HANDOFF_DEPTH && self.battle.fight_left_ms(id) == 0;
            let is_alive = self.battle.state(id).is_some_and(|state| state.hits > 0);
            if is_deep && is_alive {
                self.output
                    .border
                    .push((char_id, self.world.region_at(pos)));
            }
        }
    }
}

impl Counters {
    fn count(&mut self, event: &CombatEvent) {
        match event {
            CombatEvent::Died { .. } => self.deaths += 1,
            CombatEvent::Returned { .. } => self.respawns += 1,
            CombatEvent::Broke { .. } => self.broken += 1,
            _ => {}
        }
    }
}

impl std::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.fights += other.fights;
        self.deaths += other.deaths;
        self.respawns += other.respawns;
        self.broken += other.broken;
    }
}

/// The tick of this region panicked; it is in no state to go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the tick of {0:?} panicked")]
pub struct Panicked(pub RegionId);

/// Steps every region by one tick. `parallel`: on the rayon pool that the caller stands in. What a region leaves stays in
/// it until it is taken, so the outcome does not depend on scheduling. Of several that panic the first is told.
pub fn step_all(regions: &mut [&mut Region], parallel: bool) -> Result<(), Panicked> {
    let step = |region: &mut &mut Region| {
        let stepped = catch_unwind(AssertUnwindSafe(|| region.step()));
        stepped.is_err().then_some(region.id)
    };
    let panicked = if parallel {
        regions.par_iter_mut().filter_map(step).min()
    } else {
        regions.iter_mut().filter_map(step).min()
    };
    panicked.map_or(Ok(()), |id| Err(Panicked(id)))
}
