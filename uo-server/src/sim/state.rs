//! What `/state` and `/metrics` show of a sim.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::Serialize;
use serde_json::{Value, json};
use uo_proto::{CharId, RegionId};

use super::core::SimCore;
use super::{Region, tick};

/// What was counted since the start.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "each is told by its name")]
pub struct Counters {
    /// Characters that began to fight.
    pub fights: u64,
    /// Deaths of characters and mobs.
    pub deaths: u64,
    /// Returns of characters and mobs.
    pub respawns: u64,
    pub objects_broken: u64,
    pub attaches: u64,
    pub attaches_refused: u64,
    pub superseded: u64,
    pub entered: u64,
    pub left: u64,
    /// Characters that somebody else had under a higher generation.
    pub lost: u64,
    pub orders_applied: u64,
    pub orders_refused: u64,
    pub orders_duplicate: u64,
    pub orders_other_session: u64,
    /// Held for a character on its way.
    pub orders_held: u64,
    /// Came before the ones before them.
    pub orders_early: u64,
    pub orders_forwarded: u64,
    /// For characters nobody here knows, or beyond the bound of what is held.
    pub orders_dropped: u64,
    pub pins: u64,
    pub handoffs_offered: u64,
    pub handoffs_accepted: u64,
    /// Offers of ours that were refused.
    pub handoffs_refused: u64,
    pub handoffs_timed_out: u64,
    pub handoffs_reclaimed: u64,
    /// Reclaims that found the row changed.
    pub handoffs_lost: u64,
    /// Offers of others that were refused here.
    pub offers_refused: u64,
    pub arrivals: u64,
    pub arrivals_lost: u64,
    pub messages_old_number: u64,
    pub messages_not_understood: u64,
    pub messages_dropped_fenced: u64,
    /// To sims to which there is no link.
    pub messages_not_linked: u64,
    /// Regions that were to be handed to another node; that are held there; that it refused; that got no answer.
    pub drains_begun: u64,
    pub drains_done: u64,
    pub drains_refused: u64,
    pub drains_timed_out: u64,
    /// Taken back by compare-and-set, and found taken by it.
    pub drains_reclaimed: u64,
    pub drains_lost: u64,
    /// Regions that were taken over from others, and offers of others that were refused here.
    pub drains_taken: u64,
    pub drain_offers_refused: u64,
    /// Regions that were taken and stand still, because they ended two boots.
    pub regions_quarantined: u64,
    /// Regions that nobody needed.
    pub regions_retired: u64,
    /// Regions that the store said another holds.
    pub regions_lost: u64,
    pub checkpoints: u64,
    pub checkpoints_failed: u64,
    pub saved: u64,
    /// Times that private messages were lost.
    pub privates_lost: u64,
    /// Numbers that were claimed because the stamps of the one before ran out.
    pub renewals: u64,
    pub object_writes: u64,
    pub object_writes_failed: u64,
    /// Harm to objects whose owner nobody knew.
    pub hits_dropped: u64,
    pub cas_applied: u64,
    pub cas_refused: u64,
    pub cas_unknown: u64,
    pub store_errors: u64,
    pub replies_not_expected: u64,
    /// Rows of the store that this build cannot read; alert on any.
    pub rows_unreadable: u64,
    pub fences: u64,
}

/// How much there is of everything at this moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[allow(missing_docs, reason = "each is told by its name")]
pub struct Gauges {
    pub regions: usize,
    /// In a battle.
    pub characters: usize,
    pub characters_entering: usize,
    pub characters_outgoing: usize,
    pub characters_arriving: usize,
    pub characters_leaving: usize,
    pub store_requests_under_way: usize,
    /// Checkpoints that are acknowledged and wait for object writes.
    pub checkpoints_unsaved: usize,
}

/// A region that runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionState {
    /// Which.
    pub id: RegionId,
    /// Under which lease.
    pub epoch: u64,
    /// Ticks since it was opened.
    pub ticks: u64,
    /// Characters in its battle.
    pub players: usize,
    /// Whether its next tick has nothing to do.
    pub idle: bool,
}

/// How much of it an observer wants to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detail {
    /// Regions and counts.
    Summary,
    /// Every character as well.
    Characters,
    /// The same, and what is in each region instead of its summary; that is much.
    Full,
}

/// A character.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CharacterState {
    /// Who.
    pub id: CharId,
    /// Its name.
    pub name: String,
    /// The generation it is owned under; 0: not yet.
    pub generation: u64,
    /// What it is going through.
    pub phase: Phase,
    /// The region whose battle it is in, or was in last.
    pub region: Option<RegionId>,
    /// Where it stands.
    pub x: u16,
    /// Where it stands.
    pub y: u16,
    /// Its session number.
    pub session: u64,
    /// The highest order applied.
    pub last_order: u64,
    /// The highest order promised to be durable.
    pub saved: u64,
    /// Whether somebody plays it.
    pub attached: bool,
}

/// What a character is going through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is being claimed for a gateway.
    Entering,
    /// It is in a battle.
    Playing,
    /// It is offered, or being taken back.
    Outgoing,
    /// It is being claimed from another region's battle.
    Arriving,
    /// It is being written and released.
    Leaving,
}

impl Counters {
    /// Adds what a region counted.
    pub(super) fn add_battle(&mut self, counted: tick::Counters) {
        self.fights += u64::from(counted.fights);
        self.deaths += u64::from(counted.deaths);
        self.respawns += u64::from(counted.respawns);
        self.objects_broken += u64::from(counted.broken);
    }
}

impl SimCore {
    /// Itself, for `/state` and `/metrics`.
    pub fn observe(&self, detail: Detail) -> Value {
        let mut state = json!({
            "me": self.config.me,
            "fenced": self.is_fenced(),
            "stopping": self.stopping,
            "ticks": self.ticks,
            "counters": self.counters,
            "gauges": self.gauges(),
            "regions": self.region_states(),
            "draining": self.drains.keys().collect::<Vec<_>>(),
            "quarantined": self.quarantined().collect::<Vec<_>>(),
        });
        if detail == Detail::Full {
            let regions = self.slots.iter().filter_map(|slot| slot.region.as_ref());
            state["regions"] = json!(regions.map(Region::view).collect::<Vec<_>>());
        }
        if detail != Detail::Summary {
            state["characters"] = json!(self.character_states());
        }
        state
    }

    /// How much there is of everything.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            regions: self.slots.iter().filter(|slot| slot.is_served()).count(),
            characters: self.characters.len(),
            characters_entering: self.entering.len(),
            characters_outgoing: self.outgoing.len(),
            characters_arriving: self.arrivals.len(),
            characters_leaving: self.leaving.len(),
            store_requests_under_way: self.asked.len(),
            checkpoints_unsaved: self.unsaved.len(),
        }
    }

    /// A region, if it runs here.
    pub fn region(&self, id: RegionId) -> Option<&Region> {
        self.slot(id)?.region.as_ref()
    }

    /// Every region that runs here.
    pub fn region_states(&self) -> Vec<RegionState> {
        let regions = self.slots.iter().filter_map(|slot| slot.region.as_ref());
        regions
            .map(|region| RegionState {
                id: region.id(),
                epoch: region.epoch(),
                ticks: region.tick_count(),
                players: region.characters().count(),
                idle: region.is_idle(),
            })
            .collect()
    }

    /// Every character that is owned here or on its way in or out.
    pub fn character_states(&self) -> Vec<CharacterState> {
        let empty = |id: CharId, phase| CharacterState {
            id,
            name: String::new(),
            generation: 0,
            phase,
            region: None,
            x: 0,
            y: 0,
            session: 0,
            last_order: 0,
            saved: 0,
            attached: false,
        };
        let entering = self.entering.iter().map(|(&id, entering)| CharacterState {
            name: entering.name().to_owned(),
            ..empty(id, Phase::Entering)
        });
        let playing = self.characters.values().map(|character| {
            let region = self.slot(character.region);
            let battle = region.and_then(|slot| slot.region.as_ref());
            let pos = battle.and_then(|battle| battle.pos(character.id));
            self.character_state(character, pos, Phase::Playing)
        });
        let outgoing = self.outgoing.values().map(|outgoing| {
            let pos = Some(outgoing.fighter.pos);
            self.character_state(&outgoing.character, pos, Phase::Outgoing)
        });
        let arriving = self.arrivals.keys().map(|&id| empty(id, Phase::Arriving));
        let leaving = self.leaving.keys().map(|&id| empty(id, Phase::Leaving));
        entering
            .chain(playing)
            .chain(outgoing)
            .chain(arriving)
            .chain(leaving)
            .collect()
    }

    fn character_state(
        &self,
        character: &super::character::Character,
        pos: Option<uo_proto::Pos>,
        phase: Phase,
    ) -> CharacterState {
        let pos = pos.unwrap_or_default();
        let saved = character.checkpoint.saved(character.session);
        CharacterState {
            id: character.id,
            name: character.name.clone(),
            generation: character.generation,
            phase,
            region: Some(character.region),
            x: pos.x,
            y: pos.y,
            session: character.session,
            last_order: character.last_order,
            saved: saved.map_or(0, |(seq, _)| seq),
            attached: character.attach.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::core::SimConfig;
    use uo_world::World;

    #[test]
    fn a_core_can_be_looked_at_at_any_time() {
        let me = crate::identity::Holder {
            node: "all-1".into(),
            boot: crate::identity::BootId(u128::MAX),
        };
        let world = World::new(7, 64).expect("one region");
        let seen = SimCore::new(SimConfig::alone(me, world)).observe(Detail::Full);
        // JSON has no 128-bit numbers: a boot that was one ended the tick thread.
        assert_eq!(seen["me"]["boot"], "f".repeat(32));
        assert_eq!(seen["fenced"], true);
        assert_eq!(seen["counters"]["fights"], 0);
    }
}
