//! Which free regions this sim takes now, and which of its own it should hand to a better one.
//!
//! It keeps what is known of every lease, newest number first, and which of the regions are this node's. A region is
//! *open* when it is released, or its holder is dead, or its row names this boot although it is not held here. The best
//! sim takes an open region at once, the one of rank k after k waits; ranks are kept until the sims change. What becomes of
//! the regions of a node that stops is in `evacuate`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use uo_proto::RegionId;

use super::age::Age;
use super::demand::Demand;
use super::rank::{self, NodeKey};
use super::timing::Timing;
use crate::identity::{BootId, Holder, Nonce};
use crate::limits::{DRAINS_MAX, REGION_CLAIMS_MAX};
use crate::planted::{Planted, PlantedBug};
use crate::store::ClaimRow;

/// A sim that may take regions: alive, running, not stopping.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Sim {
    /// Who.
    pub holder: Holder,
    /// Its name, for weights.
    pub key: NodeKey,
    /// It may be given regions by others: up for long enough, not sick, and linked.
    pub is_settled: bool,
    /// Messages to it arrive.
    pub is_linked: bool,
}

/// What is to be done with a region.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Move {
    /// Take it; its row as far as it is known.
    Take(RegionId, Option<ClaimRow>),
    /// Hand it to that sim.
    Drain(RegionId, Holder),
}

/// What a decision needs to know of the world around.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// Who we are.
    pub me: &'a Holder,
    /// Which boots are proven dead.
    pub is_dead: &'a dyn Fn(BootId) -> bool,
    /// The times.
    pub timing: &'a Timing,
}

/// What this node has of a region.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Hold {
    Nothing,
    Taking,
    Held {
        epoch: u64,
    },
    /// Held, and on its way to another.
    Draining {
        epoch: u64,
        to: BootId,
    },
    /// Held, and on its way to nobody.
    Retiring {
        epoch: u64,
    },
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Slot {
    /// The newest row that is known; none: none is.
    row: Option<ClaimRow>,
    hold: Hold,
    /// How many sims are better; none: not worked out since the sims changed.
    rank: Option<u32>,
    /// It was tried and did not come: the next try waits like one rank more.
    tried: bool,
}

/// The regions of the map, as one sim sees them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Placement {
    slots: Vec<Slot>,
    demand_driven: bool,
    planted: Planted,
    /// The leases were read. Before that nothing is open.
    is_known: bool,
    /// All who may take regions, and their keys; this node is among them or takes nothing.
    sims: Vec<Sim>,
    keys: Vec<NodeKey>,
    open: BTreeSet<RegionId>,
    /// Open, and named as ours by their rows.
    ours: BTreeSet<RegionId>,
    /// Since when the open regions that should run are known to be so.
    waiting: BTreeMap<RegionId, Age>,
    /// Whose time has come, in the order in which they are taken.
    due: VecDeque<RegionId>,
    taking: BTreeSet<RegionId>,
    held: BTreeSet<RegionId>,
    draining: BTreeSet<RegionId>,
    retiring: BTreeSet<RegionId>,
    /// Regions whose drain came to nothing a while ago.
    paused: BTreeMap<RegionId, Age>,
    /// Everything is to go.
    evacuates: bool,
    /// Regions that are to go, in the order in which they do, and whether somebody needs them.
    leaving: VecDeque<(RegionId, bool)>,
    /// Drains that came to nothing meanwhile and not long ago, and whom they were to.
    refused: BTreeSet<(RegionId, BootId)>,
    /// Held regions with a better sim; none: to be worked out.
    misplaced: Option<VecDeque<(RegionId, Holder)>>,
}

impl Placement {
    /// Of a map of `regions` regions, with nothing known.
    pub fn new(regions: u32, demand_driven: bool, planted: Planted) -> Placement {
        let slot = Slot {
            row: None,
            hold: Hold::Nothing,
            rank: None,
            tried: false,
        };
        Placement {
            slots: vec![slot; regions as usize],
            demand_driven,
            planted,
            is_known: false,
            sims: Vec::new(),
            keys: Vec::new(),
            open: BTreeSet::new(),
            ours: BTreeSet::new(),
            waiting: BTreeMap::new(),
            due: VecDeque::new(),
            taking: BTreeSet::new(),
            held: BTreeSet::new(),
            draining: BTreeSet::new(),
            retiring: BTreeSet::new(),
            paused: BTreeMap::new(),
            evacuates: false,
            leaving: VecDeque::new(),
            refused: BTreeSet::new(),
            misplaced: None,
        }
    }

    /// Forgets everything: this process goes on as another boot.
    pub fn reset(&mut self) {
        let regions = self.slots.len() as u32;
        *self = Placement::new(regions, self.demand_driven, self.planted);
    }

    /// The sims that may take regions now. Whether that has changed anything.
    pub fn set_sims(&mut self, sims: Vec<Sim>) -> bool {
        if sims == self.sims {
            return false;
        }
        let keys: Vec<NodeKey> = sims.iter().map(|sim| sim.key).collect();
        if keys != self.keys {
            for slot in &mut self.slots {
                slot.rank = None;
            }
        }
        self.keys = keys;
        self.sims = sims;
        self.misplaced = None;
        true
    }

    /// Every lease, as read at quorum. Returns what is new, and what stands against a region of ours.
    pub fn leases_read(
        &mut self,
        rows: Vec<(RegionId, ClaimRow)>,
        around: Around<'_>,
    ) -> Vec<(RegionId, ClaimRow)> {
        let mut news = Vec::new();
        for (region, row) in rows {
            let is_new = self.learn(region, &row, around);
            if is_new || self.is_against(region, &row, around.me) {
                news.push((region, row));
            }
        }
        if !self.is_known {
            self.is_known = true;
            for region in (0..self.slots.len() as u32).map(RegionId) {
                self.sort(region, around);
            }
        }
        news
    }

    /// Whether a row says that a region which is ours, or about to be, is another's by now.
    fn is_against(&self, region: RegionId, row: &ClaimRow, me: &Holder) -> bool {
        let Some(slot) = self.slot(region) else {
            return false;
        };
        let ours = match slot.hold {
            Hold::Nothing => return false,
            Hold::Taking => 0,
            Hold::Held { epoch } | Hold::Draining { epoch, .. } | Hold::Retiring { epoch } => epoch,
        };
        let is_newer =
            row.number > ours || self.planted.has(PlantedBug::LeaseCheckBelievesOlderRow);
        is_newer && row.holder.as_ref() != Some(me)
    }

    /// Somebody tells who holds a region under a number, by a message and not by a read.
    pub fn told(
        &mut self,
        region: RegionId,
        number: u64,
        holder: Option<Holder>,
        around: Around<'_>,
    ) {
        let row = ClaimRow {
            holder,
            number,
            nonce: Nonce::default(),
        };
        self.learn(region, &row, around);
    }

    /// Keeps the row, if it is newer than what is known. An answer may be older than what was learned since it was asked
    /// for.
    fn learn(&mut self, region: RegionId, row: &ClaimRow, around: Around<'_>) -> bool {
        let believes_all = self.planted.has(PlantedBug::LeaseCheckBelievesOlderRow);
        let Some(slot) = self.slots.get_mut(region.0 as usize) else {
            return false;
        };
        let known = slot.row.as_ref().map(|known| known.number);
        if !believes_all && known.is_some_and(|known| row.number <= known) {
            return false;
        }
        slot.row = Some(row.clone());
        slot.tried = false;
        self.sort(region, around);
        true
    }

    /// The region is held and served here.
    pub fn served(&mut self, region: RegionId, epoch: u64, around: Around<'_>) {
        let Some(slot) = self.slots.get_mut(region.0 as usize) else {
            return;
        };
        let before = std::mem::replace(&mut slot.hold, Hold::Held { epoch });
        self.taking.remove(&region);
        self.retiring.remove(&region);
        self.draining.remove(&region);
        if let Hold::Draining { to, .. } = before {
            self.paused.insert(region, Age::ZERO);
            if self.evacuates {
                self.refused.insert((region, to));
            }
        }
        if self.held.insert(region) {
            self.misplaced = None;
        }
        self.told(region, epoch, Some(around.me.clone()), around);
        self.sort(region, around);
    }

    /// The region is not ours, or not any more; the row that stood against it, if one is known.
    pub fn gone(&mut self, region: RegionId, row: Option<&ClaimRow>, around: Around<'_>) {
        self.drop_hold(region, true);
        if let Some(row) = row {
            self.learn(region, row, around);
        }
        self.sort(region, around);
    }

    /// The region is released.
    pub fn released(&mut self, region: RegionId, number: u64, around: Around<'_>) {
        self.drop_hold(region, false);
        self.told(region, number, None, around);
        self.sort(region, around);
    }

    fn drop_hold(&mut self, region: RegionId, tried: bool) {
        if let Some(slot) = self.slots.get_mut(region.0 as usize) {
            slot.hold = Hold::Nothing;
            slot.tried = tried;
        }
        self.taking.remove(&region);
        self.held.remove(&region);
        self.draining.remove(&region);
        self.retiring.remove(&region);
        self.paused.remove(&region);
        self.refused.retain(|(of, _)| *of != region);
        // The next step begins its wait anew.
        self.waiting.remove(&region);
    }

    /// That boot is dead: what it held is open.
    pub fn died(&mut self, boot: BootId, around: Around<'_>) {
        for region in (0..self.slots.len() as u32).map(RegionId) {
            let holder = self.holder(region);
            if holder.is_some_and(|holder| holder.boot == boot) {
                self.slots[region.0 as usize].tried = false;
                self.sort(region, around);
            }
        }
    }

    /// Puts a region where it belongs after something about it has changed.
    fn sort(&mut self, region: RegionId, around: Around<'_>) {
        let Some(slot) = self.slot(region) else {
            return;
        };
        let holder = slot.row.as_ref().and_then(|row| row.holder.as_ref());
        let is_ours = holder.is_some_and(|holder| holder.boot == around.me.boot);
        let is_free = holder.is_none_or(|holder| is_ours || (around.is_dead)(holder.boot));
        if self.is_known && slot.hold == Hold::Nothing && is_free {
            self.open.insert(region);
            if is_ours {
                self.ours.insert(region);
            } else {
                self.ours.remove(&region);
            }
        } else {
            self.open.remove(&region);
            self.ours.remove(&region);
            self.waiting.remove(&region);
        }
    }

    /// `ms` passed since the step before: works out whose time has come, and what is misplaced.
    pub fn step(&mut self, ms: u64, demand: &Demand, around: Around<'_>) {
        self.wait(ms, demand, around.timing);
        self.line_up(demand, around);
        let pause_ms = around.timing.drain_pause_ms;
        let paused = self.paused.len();
        self.paused.retain(|_, age| {
            age.elapse(ms, pause_ms);
            !age.reached(pause_ms)
        });
        if self.paused.len() < paused {
            self.misplaced = None;
            let paused = &self.paused;
            self.refused
                .retain(|(region, _)| paused.contains_key(region));
        }
        if self.misplaced.is_none() {
            self.misplaced = Some(self.find_misplaced(around.me));
        }
    }

    /// Ages the waits of open regions that should run, and begins those of new ones.
    fn wait(&mut self, ms: u64, demand: &Demand, timing: &Timing) {
        let cap_ms = timing
            .rank_wait_ms
            .saturating_mul(self.sims.len() as u64 + 1);
        let before = std::mem::take(&mut self.waiting);
        let mut wait = |region: RegionId| {
            let age = before.get(&region).map(|age| {
                let mut age = *age;
                age.elapse(ms, cap_ms);
                age
            });
            (region, age.unwrap_or_default())
        };
        self.waiting = if self.demand_driven {
            let needed = demand.needed().filter(|region| self.open.contains(region));
            needed
                .chain(self.ours.iter().copied())
                .map(&mut wait)
                .collect()
        } else {
            self.open.iter().copied().map(&mut wait).collect()
        };
    }

    /// Those whose wait is over, demanded ones first.
    fn line_up(&mut self, demand: &Demand, around: Around<'_>) {
        let Some(mine) = self.own_key(around.me) else {
            return self.due.clear();
        };
        let mut needed = VecDeque::new();
        let mut others = VecDeque::new();
        for (region, age) in &self.waiting {
            let slot = &mut self.slots[region.0 as usize];
            let rank = if self.ours.contains(region) {
                0
            } else {
                let keys = &self.keys;
                *slot
                    .rank
                    .get_or_insert_with(|| rank::rank(*region, mine, keys))
            };
            let waits = u64::from(rank) + u64::from(slot.tried);
            if !age.reached(waits * around.timing.rank_wait_ms) {
                continue;
            }
            if demand.needs(*region) {
                needed.push_back(*region);
            } else {
                others.push_back(*region);
            }
        }
        needed.append(&mut others);
        self.due = needed;
    }

    fn own_key(&self, me: &Holder) -> Option<NodeKey> {
        let own = self.sims.iter().find(|sim| sim.holder == *me);
        own.map(|sim| sim.key)
    }

    /// Held regions whose best sim is another one that is settled.
    fn find_misplaced(&self, me: &Holder) -> VecDeque<(RegionId, Holder)> {
        let better: Vec<&Sim> = self
            .sims
            .iter()
            .filter(|sim| sim.is_settled || sim.holder == *me)
            .collect();
        let keys: Vec<NodeKey> = better.iter().map(|sim| sim.key).collect();
        if self.own_key(me).is_none() || keys.len() < 2 {
            return VecDeque::new();
        }
        self.held
            .iter()
            .filter_map(|region| {
                let best = &better[rank::best(*region, &keys)?].holder;
                (best != me).then(|| (*region, best.clone()))
            })
            .collect()
    }

    /// What to do now, as far as the bounds on what is under way allow.
    pub fn moves(&mut self) -> Vec<Move> {
        let mut moves = Vec::new();
        while self.taking.len() < REGION_CLAIMS_MAX
            && let Some(region) = self.due.pop_front()
        {
            if !self.open.remove(&region) {
                continue;
            }
            self.ours.remove(&region);
            self.waiting.remove(&region);
            let slot = &mut self.slots[region.0 as usize];
            slot.hold = Hold::Taking;
            self.taking.insert(region);
            moves.push(Move::Take(region, slot.row.clone()));
        }
        while self.draining.len() < DRAINS_MAX
            && let Some((region, to)) = self.misplaced.as_mut().and_then(VecDeque::pop_front)
        {
            if let Hold::Held { epoch } = self.slots[region.0 as usize].hold
                && !self.paused.contains_key(&region)
            {
                self.begin_drain(region, epoch, to.boot);
                moves.push(Move::Drain(region, to));
            }
        }
        moves
    }

    /// Whether this region is to be handed to `to` now, because an operator wants it, and not held up by something else.
    pub fn hand_on(&mut self, region: RegionId, to: BootId) -> bool {
        match self.slot(region).map(|slot| slot.hold) {
            Some(Hold::Held { epoch }) => {
                self.begin_drain(region, epoch, to);
                true
            }
            _ => false,
        }
    }

    /// A region that is held here stays for a while, whoever would be better for it.
    pub fn stay(&mut self, region: RegionId) {
        if self.held.contains(&region) {
            self.paused.insert(region, Age::ZERO);
        }
    }

    fn begin_drain(&mut self, region: RegionId, epoch: u64, to: BootId) {
        self.slots[region.0 as usize].hold = Hold::Draining { epoch, to };
        self.draining.insert(region);
    }

    /// Whether this region is to be retired now, and not held up by something else.
    pub fn retire(&mut self, region: RegionId) -> bool {
        let has_room = self.retiring.len() < REGION_CLAIMS_MAX;
        let Some(slot) = self.slots.get_mut(region.0 as usize) else {
            return false;
        };
        match slot.hold {
            Hold::Held { epoch } if has_room => {
                slot.hold = Hold::Retiring { epoch };
                self.retiring.insert(region);
                true
            }
            _ => false,
        }
    }

    fn slot(&self, region: RegionId) -> Option<&Slot> {
        self.slots.get(region.0 as usize)
    }

    /// Who holds a region by the newest row that is known.
    pub fn holder(&self, region: RegionId) -> Option<&Holder> {
        self.slot(region)?.row.as_ref()?.holder.as_ref()
    }

    /// Every boot that a row names, each once.
    pub fn holders(&self) -> BTreeSet<BootId> {
        let rows = self.slots.iter().filter_map(|slot| slot.row.as_ref());
        rows.filter_map(|row| Some(row.holder.as_ref()?.boot))
            .collect()
    }

    /// The regions held here, those on their way elsewhere included.
    pub fn held(&self) -> &BTreeSet<RegionId> {
        &self.held
    }

    /// How many regions are being taken.
    pub fn taking(&self) -> usize {
        self.taking.len()
    }

    /// How many regions nobody holds, as far as is known.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether everything that this node is the best sim for is held, as far as is known, and nothing is being taken.
    pub fn is_settled(&self) -> bool {
        let is_anothers = |region: &RegionId| {
            let rank = self.slot(*region).and_then(|slot| slot.rank);
            rank.is_some_and(|rank| rank > 0) && !self.ours.contains(region)
        };
        let is_idle = self.is_known && self.taking.is_empty() && self.due.is_empty();
        is_idle
            && match self.demand_driven {
                true => self.waiting.keys().all(is_anothers),
                false => self.open.iter().all(is_anothers),
            }
    }

    /// Whether the leases were read.
    pub fn is_known(&self) -> bool {
        self.is_known
    }
}

mod evacuate;
#[cfg(test)]
mod tests;
