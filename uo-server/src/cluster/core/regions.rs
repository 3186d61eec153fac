//! Leases, placement and demand: three loops, each with its own request or none.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{REGION_SIZE, RegionId};

use super::asking::{Asked, Asking};
use super::{Age, ClusterCore, Effect};
use crate::cluster::demand::Demand;
use crate::cluster::placement::{Around, Move, Placement, Sim};
use crate::cluster::rank::NodeKey;
use crate::cluster::timing::Timing;
use crate::identity::{BootId, Holder, NodeName};
use crate::limits::{LEASES_PAUSE_MS, STARTS_SICK};
use crate::peer::message::Leases;
use crate::planted::Planted;
use crate::store::row::{NodeRow, NodeState};
use crate::store::{ClaimRow, Reply, Request, StoreError};

/// How urgent a read of all leases is: it is the dearest thing that this node asks of the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Wanted {
    InTurn,
    /// Not at once after the one before.
    Soon,
    Now,
}

/// What this node knows of regions, and what it asks about them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Regions {
    pub(super) placement: Placement,
    pub(super) demand: Demand,
    leases: Asking,
    /// Since the newest read of the leases was sent.
    since_leases: Age,
    /// Whether something happened after which the leases have to be read out of turn.
    leases_wanted: Wanted,
    demand_write: Asking,
    demand_read: Asking,
    since_demand: Age,
    /// Since the newest step of placement.
    since_step: Age,
    /// Something happened after which placement has to look at once.
    step_wanted: bool,
}

impl Regions {
    pub(super) fn new(regions: u32, demand_driven: bool, planted: Planted) -> Regions {
        Regions {
            placement: Placement::new(regions, demand_driven, planted),
            demand: Demand::default(),
            leases: Asking::default(),
            since_leases: Age::ZERO,
            leases_wanted: Wanted::Now,
            demand_write: Asking::default(),
            demand_read: Asking::default(),
            since_demand: Age::of(u64::MAX),
            since_step: Age::ZERO,
            step_wanted: true,
        }
    }

    /// For model checkers that have no regions.
    pub(super) fn ask_nothing(&mut self) {
        self.leases_wanted = Wanted::InTurn;
        self.step_wanted = false;
        self.since_demand = Age::ZERO;
    }

    pub(super) fn elapse(&mut self, ms: u64, timing: &Timing) {
        self.demand.elapse(ms, timing);
        self.leases.elapse(ms, timing.cas_retry_ms);
        self.since_leases.elapse(ms, timing.leases_ms);
        self.demand_write.elapse(ms, timing.cas_retry_ms);
        self.demand_read.elapse(ms, timing.cas_retry_ms);
        self.since_demand
            .elapse(ms, timing.demand_read_ms.max(timing.leases_ms));
        // A long pause counts as one step: waits are for others, and they did not wait longer for it.
        self.since_step.elapse(ms, timing.placement_ms);
    }

    /// Somebody died, or this node may act (again): leases are there to be taken.
    pub(super) fn look_now(&mut self) {
        self.leases_wanted = Wanted::Now;
        self.step_wanted = true;
    }

    /// This node stops: what it holds is to go.
    pub(super) fn evacuate(&mut self) {
        self.placement.set_evacuates(true);
        self.step_wanted = true;
    }

    /// Somebody came, went or changed.
    pub(super) fn look_soon(&mut self) {
        self.leases_wanted = self.leases_wanted.max(Wanted::Soon);
        self.step_wanted = true;
    }

    /// This process goes on as another boot, which has and knows nothing.
    pub(super) fn reset(&mut self) {
        self.placement.reset();
        self.look_now();
    }
}

impl ClusterCore {
    /// Nobody who may not act takes, drains or retires anything.
    pub(super) fn drive_regions(&mut self) {
        if !self.has_life() {
            return self.drive_demand_write();
        }
        if !self.may_act() {
            return;
        }
        self.drive_leases();
        self.drive_demand_write();
        self.drive_demand_read();
        self.drive_placement();
    }

    fn drive_leases(&mut self) {
        let regions = &mut self.regions;
        let is_due = match regions.leases_wanted {
            Wanted::Now => true,
            Wanted::Soon => regions.since_leases.reached(LEASES_PAUSE_MS),
            // Nobody else writes to a store that only this process has open.
            Wanted::InTurn => {
                regions.since_leases.reached(self.config.timing.leases_ms)
                    && !self.config.others_are_dead
            }
        };
        if !is_due || !regions.leases.is_idle() {
            return;
        }
        regions.leases_wanted = Wanted::InTurn;
        regions.since_leases = Age::ZERO;
        let ticket = self.ask(Request::LeasesRead, Asked::Leases);
        self.regions.leases.sent(ticket);
    }

    pub(super) fn leases_answered(&mut self, reply: Result<Reply, StoreError>) {
        let Ok(Reply::Leases(rows)) = reply else {
            self.regions.leases_wanted = Wanted::Now;
            return self.regions.leases.failed();
        };
        self.regions.leases.answered();
        let news = self.with_placement(|placement, around| placement.leases_read(rows, around));
        self.effects.push(Effect::ReadBack { leases: news });
        for boot in self.regions.placement.holders() {
            self.watch(boot);
        }
        self.look_at_suspects();
        self.regions.step_wanted = true;
    }

    fn drive_demand_write(&mut self) {
        let is_alone = self.config.others_are_dead && !self.config.demand_driven;
        if is_alone || !self.told_alive || !self.regions.demand_write.is_idle() {
            return;
        }
        let is_urgent = self.config.demand_driven;
        let due = self
            .regions
            .demand
            .write_due(is_urgent, &self.config.timing);
        if let Some(regions) = due {
            let ttl_s = self.config.timing.demand_ttl_s;
            let request = Request::DemandPut { regions, ttl_s };
            let ticket = self.ask(request, Asked::DemandWrite);
            self.regions.demand_write.sent(ticket);
        }
    }

    pub(super) fn demand_written(&mut self, is_done: bool) {
        if is_done {
            self.regions.demand_write.answered();
        } else {
            self.regions.demand_write.failed();
            self.regions.demand.write_failed();
        }
    }

    fn drive_demand_read(&mut self) {
        let timing = &self.config.timing;
        // In a small world demand only says which regions come first after a death, and is no more urgent than leases.
        let (is_used, period_ms) = if self.config.demand_driven {
            (true, timing.demand_read_ms)
        } else {
            (!self.config.others_are_dead, timing.leases_ms)
        };
        let is_due = is_used && self.regions.since_demand.reached(period_ms);
        if is_due && self.regions.demand_read.is_idle() {
            self.regions.since_demand = Age::ZERO;
            let ticket = self.ask(Request::DemandRead, Asked::DemandRead);
            self.regions.demand_read.sent(ticket);
        }
    }

    pub(super) fn demand_read(&mut self, reply: Result<Reply, StoreError>) {
        let Ok(Reply::Demand(needed)) = reply else {
            return self.regions.demand_read.failed();
        };
        let regions = &mut self.regions;
        regions.demand_read.answered();
        regions.step_wanted |= self.config.demand_driven;
        let held = regions.placement.held().iter().copied();
        let idle = regions.demand.read(needed, held, &self.config.timing);
        if !self.config.demand_driven || !self.may_act() || self.stopping {
            return;
        }
        for region in idle {
            if self.regions.placement.retire(region) {
                self.effects.push(Effect::Retire { region });
            }
        }
    }

    /// Players are there. In a world that runs by demand their neighbours are needed as well, before anybody walks in.
    pub(super) fn demanded(&mut self, mut needed: Vec<RegionId>) {
        if self.config.demand_driven {
            let side = self.config.regions.isqrt();
            let size = (side * u32::from(REGION_SIZE)) as u16;
            let around: Vec<RegionId> = needed.iter().flat_map(|it| it.neighbours(size)).collect();
            needed.extend(around);
        }
        self.regions.demand.tell(needed);
        self.regions.step_wanted |= self.config.demand_driven;
    }

    fn drive_placement(&mut self) {
        let timing = &self.config.timing;
        let is_time = self.regions.since_step.reached(timing.placement_ms);
        if is_time || self.regions.step_wanted {
            let passed_ms = self.regions.since_step.ms();
            self.regions.since_step = Age::ZERO;
            self.regions.step_wanted = false;
            let (sims, gives_way) = (self.sims(), self.gives_way());
            self.regions.placement.set_sims(sims);
            self.regions.placement.set_evacuates(gives_way);
            let demand = std::mem::take(&mut self.regions.demand);
            self.with_placement(|placement, around| placement.step(passed_ms, &demand, around));
            self.regions.placement.plan_evacuation(&demand);
            self.regions.demand = demand;
        }
        let moves = match self.regions.placement.evacuates() {
            true => self.regions.placement.evacuate(),
            false => self.regions.placement.moves(),
        };
        for decided in moves {
            self.effects.push(match decided {
                Move::Take(region, row) => Effect::Take { region, row },
                Move::Drain(region, to) => Effect::Drain {
                    region,
                    to,
                    is_wished: false,
                },
            });
        }
        if self.stopping && !self.gave_up && self.regions.placement.is_stranded() {
            self.gave_up = true;
            self.effects.push(Effect::GiveUp);
        }
    }

    /// The sims that may take regions: running, and not stopping, fenced or starting; and reached by gateways, if there is
    /// any that is. Of two boots of one name the newer counts, whichever that is: the other will not run for long.
    pub(super) fn sims(&self) -> Vec<Sim> {
        let mut sims: BTreeMap<NodeName, Sim> = BTreeMap::new();
        let mut cut_off: BTreeSet<NodeName> = BTreeSet::new();
        for (boot, peer) in &self.peers {
            let Some(row) = peer.row.as_ref().filter(|_| peer.has_life()) else {
                continue;
            };
            if row.state == NodeState::Running && !self.observer.is_gone(*boot) {
                let holder = Holder {
                    node: peer.node.clone(),
                    boot: *boot,
                };
                let is_linked = self.linked.contains(&peer.node);
                let is_settled = self.is_settled(row) && is_linked;
                sims.insert(peer.node.clone(), sim(holder, is_settled, is_linked));
                match row.is_cut_off {
                    true => cut_off.insert(peer.node.clone()),
                    false => cut_off.remove(&peer.node),
                };
            }
        }
        if !self.stopping {
            let me = self.config.me.clone();
            if self.is_cut_off() {
                cut_off.insert(me.node.clone());
            }
            sims.insert(me.node.clone(), sim(me, true, true));
        }
        let is_any_better_off = cut_off.len() < sims.len();
        if is_any_better_off {
            sims.retain(|node, _| !cut_off.contains(node));
        }
        sims.into_values().collect()
    }

    fn is_settled(&self, row: &NodeRow) -> bool {
        row.up_ms >= self.config.timing.settled_ms && row.starts < STARTS_SICK
    }

    pub(super) fn region_served(&mut self, region: RegionId, epoch: u64) {
        self.with_placement(|placement, around| placement.served(region, epoch, around));
        // One that was to go and did not is to go elsewhere.
        self.regions.step_wanted |= self.regions.placement.evacuates();
    }

    pub(super) fn region_gone(&mut self, region: RegionId, row: Option<ClaimRow>) {
        self.with_placement(|placement, around| placement.gone(region, row.as_ref(), around));
        self.watch_holder(region);
        if row.is_none() {
            self.regions.look_soon();
        }
    }

    pub(super) fn region_released(&mut self, region: RegionId, number: u64) {
        self.with_placement(|placement, around| placement.released(region, number, around));
    }

    pub(super) fn hear_leases(&mut self, leases: Leases) {
        for (region, number, holder) in leases.changes {
            self.with_placement(|placement, around| {
                placement.told(region, number, holder, around);
            });
            self.watch_holder(region);
        }
        self.regions.step_wanted = true;
    }

    fn watch_holder(&mut self, region: RegionId) {
        if let Some(boot) = self.regions.placement.holder(region).map(|h| h.boot) {
            self.watch(boot);
        }
    }

    /// What `boot` held is open.
    pub(super) fn reopen(&mut self, boot: BootId) {
        self.with_placement(|placement, around| placement.died(boot, around));
        self.regions.look_now();
    }

    fn with_placement<T>(&mut self, act: impl FnOnce(&mut Placement, Around<'_>) -> T) -> T {
        let (others_are_dead, me, dead) =
            (self.config.others_are_dead, &self.config.me, &self.dead);
        let is_dead = |boot: BootId| dead.contains(&boot) || (others_are_dead && boot != me.boot);
        let around = Around {
            me,
            is_dead: &is_dead,
            timing: &self.config.timing,
        };
        act(&mut self.regions.placement, around)
    }
}

fn sim(holder: Holder, is_settled: bool, is_linked: bool) -> Sim {
    Sim {
        key: NodeKey::of(&holder.node),
        holder,
        is_settled,
        is_linked,
    }
}
