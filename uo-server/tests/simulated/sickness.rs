//! A region whose tick panics wherever it runs, until somebody mends it: it may end so many boots and no more, is then held
//! and stands still, whoever holds it, and goes on once an operator has released it.

use uo_proto::RegionId;
use uo_server::limits::REGION_PANICS_MAX;
use uo_server::sim::member;

use super::node::Node;
use super::shard::Shard;

/// The sick region of a run.
#[derive(Debug)]
pub struct Sickness {
    region: RegionId,
    /// Boots that it has ended.
    ended: usize,
    is_mended: bool,
}

impl Shard {
    /// From now on this region panics.
    pub(super) fn sicken(&mut self, region: RegionId) {
        self.sickness = Some(Sickness {
            region,
            ended: 0,
            is_mended: false,
        });
    }

    /// Before each tick of a sim. One that stands still is left alone: what is planted there would show after its release.
    pub(super) fn spoil_tick(&mut self, index: usize) {
        let Some(sickness) = self.sickness.as_ref().filter(|it| !it.is_mended) else {
            return;
        };
        let region = sickness.region;
        let Some(sim) = &mut self.sims[index] else {
            return;
        };
        let core = sim.core();
        if core.region(region).is_some() && core.quarantined().all(|id| id != region) {
            sim.member.plant_panic(region);
            self.excuse(Node::Sim(index), 0);
        }
    }

    /// A sim has ended because of a region.
    pub(super) fn has_ended(&mut self, index: usize) {
        let ended_by = self.sims[index].as_ref().map(|sim| sim.member.panicked());
        let Some(sickness) = &mut self.sickness else {
            return;
        };
        if ended_by != Some(Some(sickness.region)) {
            return;
        }
        self.counted.panics += 1;
        sickness.ended += 1;
        if sickness.ended > REGION_PANICS_MAX || sickness.is_mended {
            let why = format!("{sickness:?} goes around");
            self.broken.get_or_insert(why);
        }
    }

    /// Somebody has mended it, and an operator releases it: first in the store, then where it stands still.
    pub(super) fn mend(&mut self) -> Result<(), String> {
        let Some(sickness) = &mut self.sickness else {
            return Ok(());
        };
        sickness.is_mended = true;
        let (region, ended) = (sickness.region, sickness.ended);
        if ended != REGION_PANICS_MAX {
            return Err(format!("{region:?} has ended {ended} boots"));
        }
        let holders: Vec<usize> = (0..self.sims.len())
            .filter(|&index| self.stands_still(index, region))
            .collect();
        let &[holder] = holders.as_slice() else {
            return Err(format!("{region:?} stands still at {holders:?}"));
        };
        self.note(|| format!("{region:?} is released"));
        self.store.forget_panics(self.now, region)?;
        self.give_sim(holder, member::Input::Release { region });
        Ok(())
    }

    fn stands_still(&self, index: usize, region: RegionId) -> bool {
        let sim = self.sims[index].as_ref().filter(|sim| sim.may_act());
        sim.is_some_and(|sim| {
            let core = sim.core();
            let ticks = core.region(region).map(|region| region.tick_count());
            core.quarantined().any(|id| id == region) && ticks == Some(0)
        })
    }

    /// At the end it has gone on.
    pub(super) fn is_well_again(&self) -> Result<(), String> {
        let Some(sickness) = &self.sickness else {
            return Ok(());
        };
        let sims = self.sims.iter().flatten().filter(|sim| sim.may_act());
        let mut ticks = sims.filter_map(|sim| sim.core().region(sickness.region));
        match ticks.any(|region| region.tick_count() > 0) {
            true if sickness.is_mended => Ok(()),
            _ => Err(format!("{sickness:?} never went on")),
        }
    }
}
