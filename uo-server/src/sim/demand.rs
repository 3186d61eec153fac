//! Which regions somebody needs: those with players in them, and those that players are on their way to.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use uo_proto::RegionId;

use super::Region;
use super::core::{News, SimCore};

/// How often the cluster core is told, in ticks, if there is something new.
const TELL_TICKS: u64 = 20;

impl SimCore {
    /// Whether anybody is in a region or on the way to it.
    pub(super) fn is_needed(&self, id: RegionId) -> bool {
        let plays = |region: &Region| region.characters().next().is_some();
        self.region(id).is_some_and(plays) || self.on_the_way().any(|to| to == id)
    }

    /// Where everybody goes who is in no battle here.
    fn on_the_way(&self) -> impl Iterator<Item = RegionId> {
        let entering = self
            .entering
            .values()
            .filter_map(|entering| entering.region(&self.config.world));
        let outgoing = self.outgoing.values().flat_map(|outgoing| outgoing.ends());
        let arriving = self.arrivals.values().map(|arrival| arrival.offer.region);
        entering.chain(outgoing).chain(arriving)
    }

    /// Tells where players are, once a second if that has changed.
    pub(super) fn tell_demand(&mut self) {
        if !self.ticks.is_multiple_of(TELL_TICKS) {
            return;
        }
        let mut regions: BTreeSet<RegionId> = self.on_the_way().collect();
        for character in self.characters.values() {
            regions.insert(character.region);
            let battle = self.region(character.region);
            let stands = battle.and_then(|battle| battle.pos(character.id));
            regions.extend(stands.map(|pos| self.config.world.region_at(pos)));
        }
        let regions: Vec<RegionId> = regions.into_iter().collect();
        if regions != self.demanded {
            self.demanded.clone_from(&regions);
            self.tell_cluster(News::Demanded { regions });
        }
    }
}
