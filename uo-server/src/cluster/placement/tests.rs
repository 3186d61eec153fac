//! Which regions are taken, when, and in which order.

use super::*;
use crate::identity::NodeName;

const REGIONS: u32 = 64;

fn holder(name: &str, boot: u128) -> Holder {
    Holder {
        node: NodeName::from(name),
        boot: BootId(boot),
    }
}

fn row(holder: Option<Holder>, number: u64) -> ClaimRow {
    ClaimRow {
        holder,
        number,
        nonce: Nonce(7),
    }
}

struct Setup {
    me: Holder,
    dead: BTreeSet<BootId>,
    timing: Timing,
    placement: Placement,
    demand: Demand,
}

impl Setup {
    /// `sims` sims, of which this is the first; the leases are read, and there are none.
    fn new(sims: usize, demand_driven: bool) -> Setup {
        let mut setup = Setup {
            me: holder("sim-0", 0),
            dead: BTreeSet::new(),
            timing: Timing::default(),
            placement: Placement::new(REGIONS, demand_driven, Planted::NONE),
            demand: Demand::default(),
        };
        setup.placement.set_sims(Self::sims(sims));
        setup
    }

    fn sims(count: usize) -> Vec<Sim> {
        let sim = |i: usize| {
            let holder = holder(&format!("sim-{i}"), i as u128);
            Sim {
                key: NodeKey::of(&holder.node),
                holder,
                is_settled: true,
                is_linked: true,
            }
        };
        (0..count).map(sim).collect()
    }

    fn act<T>(&mut self, act: impl FnOnce(&mut Placement, Around<'_>) -> T) -> T {
        let dead = &self.dead;
        let around = Around {
            me: &self.me,
            is_dead: &|boot| dead.contains(&boot),
            timing: &self.timing,
        };
        act(&mut self.placement, around)
    }

    fn read(&mut self, rows: Vec<(RegionId, ClaimRow)>) -> Vec<(RegionId, ClaimRow)> {
        self.act(|placement, around| placement.leases_read(rows, around))
    }

    fn step(&mut self, ms: u64) -> Vec<Move> {
        let demand = self.demand.clone();
        self.act(|placement, around| placement.step(ms, &demand, around));
        self.placement.moves()
    }

    fn serve(&mut self, region: RegionId, epoch: u64) {
        self.act(|placement, around| placement.served(region, epoch, around));
    }

    fn gone(&mut self, region: RegionId, row: Option<&ClaimRow>) {
        self.act(|placement, around| placement.gone(region, row, around));
    }

    fn rank(&self, region: u32) -> u32 {
        let keys: Vec<NodeKey> = self.placement.keys.clone();
        rank::rank(RegionId(region), NodeKey::of(&self.me.node), &keys)
    }
}

fn taken(moves: &[Move]) -> Vec<RegionId> {
    moves
        .iter()
        .filter_map(|decided| match decided {
            Move::Take(region, _) => Some(*region),
            Move::Drain(..) => None,
        })
        .collect()
}

#[test]
fn nothing_is_open_before_the_leases_were_read() {
    let mut setup = Setup::new(1, false);
    assert_eq!(setup.step(200), []);
    setup.read(vec![]);
    assert_eq!(setup.step(0).len(), REGIONS as usize);
}

#[test]
fn the_best_takes_at_once_and_each_rank_waits_a_second_more() {
    let mut setup = Setup::new(3, false);
    setup.read(vec![]);
    for second in 0..3 {
        let took = taken(&setup.step(if second == 0 { 0 } else { 1_000 }));
        let of_rank = |region: &RegionId| setup.rank(region.0) == second;
        let expected: Vec<_> = (0..REGIONS).map(RegionId).filter(of_rank).collect();
        assert_eq!(took, expected, "after {second} s");
    }
}

#[test]
fn an_heir_takes_at_once_when_the_best_is_dead() {
    let mut setup = Setup::new(2, false);
    let other = holder("sim-1", 1);
    let rows = (0..REGIONS).map(|i| (RegionId(i), row(Some(other.clone()), 4)));
    let rows: Vec<_> = rows.collect();
    assert_eq!(setup.read(rows.clone()), rows, "all of it is news");
    assert_eq!(setup.read(rows.clone()), [], "and only once");
    assert_eq!(setup.step(60_000), [], "its holder lives");
    setup.placement.set_sims(Setup::sims(1));
    assert_eq!(setup.step(200), [], "it is presumed gone, but not dead");
    setup.dead.insert(other.boot);
    setup.act(|placement, around| placement.died(other.boot, around));
    let moves = setup.step(0);
    assert_eq!(moves.len(), REGIONS as usize);
    assert_eq!(moves[0], Move::Take(RegionId(0), Some(row(Some(other), 4))));
}

#[test]
fn what_players_need_comes_first() {
    let mut setup = Setup::new(1, false);
    setup
        .demand
        .read([RegionId(40), RegionId(20)], [], &setup.timing.clone());
    setup.read(vec![]);
    let took = taken(&setup.step(0));
    assert_eq!(took[..3], [RegionId(20), RegionId(40), RegionId(0)]);
}

#[test]
fn takes_under_way_are_bounded() {
    let mut setup = Setup::new(1, false);
    setup.placement = Placement::new(200, false, Planted::NONE);
    setup.placement.set_sims(Setup::sims(1));
    setup.read(vec![]);
    assert_eq!(setup.step(0).len(), REGION_CLAIMS_MAX);
    assert_eq!(setup.placement.moves(), []);
    setup.serve(RegionId(0), 1);
    setup.gone(RegionId(1), None);
    let next = [64, 65].map(|i| Move::Take(RegionId(i), None));
    assert_eq!(setup.placement.moves(), next);
}

#[test]
fn a_take_that_came_to_nothing_waits_before_the_next() {
    let mut setup = Setup::new(1, false);
    setup.read(vec![]);
    setup.step(0);
    setup.gone(RegionId(5), None);
    assert_eq!(setup.step(200), []);
    assert_eq!(setup.step(900), []);
    assert_eq!(setup.step(100), [Move::Take(RegionId(5), None)]);
}

#[test]
fn a_row_that_names_us_without_being_held_is_taken_again() {
    let mut setup = Setup::new(2, true);
    let lost = row(Some(setup.me.clone()), 9);
    setup.read(vec![(RegionId(3), lost.clone())]);
    assert_eq!(setup.step(0), [Move::Take(RegionId(3), Some(lost))]);
}

#[test]
fn older_answers_change_nothing() {
    let mut setup = Setup::new(1, false);
    let other = holder("sim-1", 1);
    setup.read(vec![]);
    setup.step(0);
    setup.serve(RegionId(3), 5);
    // A read that was sent before region 3 was taken from a dead boot. (The comparison of numbers removed: red.)
    let stale = vec![(RegionId(3), row(Some(other.clone()), 4))];
    assert_eq!(setup.read(stale), []);
    assert_eq!(setup.placement.holder(RegionId(3)), Some(&setup.me));
    let newer = vec![(RegionId(3), row(Some(other), 6))];
    assert_eq!(setup.read(newer.clone()), newer);
    assert_eq!(setup.read(newer.clone()), newer, "told until it is dropped");
    setup.gone(RegionId(3), None);
    assert_eq!(setup.read(newer), []);
}

#[test]
fn regions_with_a_better_sim_are_drained_to_it_a_few_at_a_time() {
    let mut setup = Setup::new(1, false);
    setup.read(vec![]);
    setup.step(0);
    for region in 0..REGIONS {
        setup.serve(RegionId(region), 1);
    }
    assert_eq!(setup.step(200), [], "alone");
    setup.placement.set_sims(Setup::sims(2));
    let misplaced: Vec<u32> = (0..REGIONS).filter(|i| setup.rank(*i) == 1).collect();
    let to = holder("sim-1", 1);
    let drain = |i: u32| Move::Drain(RegionId(i), to.clone());
    let first: Vec<_> = misplaced[..DRAINS_MAX].iter().map(|i| drain(*i)).collect();
    assert_eq!(setup.step(200), first);
    assert_eq!(setup.step(200), [], "no more at a time");
    setup.gone(RegionId(misplaced[0]), Some(&row(Some(to.clone()), 2)));
    assert_eq!(setup.step(200), [drain(misplaced[4])]);
    // Taken back: it stays for a while.
    setup.serve(RegionId(misplaced[1]), 3);
    assert_eq!(setup.step(200), [drain(misplaced[5])]);
    for left in &misplaced[2..6] {
        setup.gone(RegionId(*left), Some(&row(Some(to.clone()), 2)));
    }
    let mut drained = Vec::new();
    for _ in 0..misplaced.len() {
        for decided in setup.step(200) {
            let Move::Drain(region, _) = decided else {
                panic!("nothing is open");
            };
            drained.push(region.0);
            setup.gone(region, Some(&row(Some(to.clone()), 2)));
        }
    }
    assert_eq!(drained, misplaced[6..]);
    assert_eq!(setup.step(30_000), [drain(misplaced[1])]);
}

#[test]
fn nothing_is_drained_to_who_is_not_settled() {
    let mut setup = Setup::new(1, false);
    setup.read(vec![]);
    setup.step(0);
    for region in 0..REGIONS {
        setup.serve(RegionId(region), 1);
    }
    let mut sims = Setup::sims(2);
    sims[1].is_settled = false;
    setup.placement.set_sims(sims);
    assert_eq!(setup.step(200), []);
}

#[test]
fn a_world_by_demand_takes_what_is_needed_and_no_more() {
    let mut setup = Setup::new(1, true);
    setup.read(vec![]);
    assert_eq!(setup.step(60_000), []);
    setup.demand.tell([RegionId(9)]);
    assert_eq!(taken(&setup.step(200)), [RegionId(9)]);
    setup.serve(RegionId(9), 1);
    assert!(setup.placement.retire(RegionId(9)));
    assert!(!setup.placement.retire(RegionId(9)), "it is under way");
    setup.act(|placement, around| placement.released(RegionId(9), 2, around));
    assert_eq!(taken(&setup.step(200)), [RegionId(9)], "it is needed again");
}

impl Setup {
    /// A sim that holds everything and stops, with these others.
    fn stopping(others: Vec<Sim>) -> Setup {
        let mut setup = Setup::new(1, false);
        setup.read(vec![]);
        setup.step(0);
        for region in 0..REGIONS {
            setup.serve(RegionId(region), 1);
        }
        setup.placement.set_sims(others);
        setup.placement.set_evacuates(true);
        setup.plan();
        setup
    }

    fn plan(&mut self) {
        self.placement.plan_evacuation(&self.demand);
    }
}

fn others(count: usize) -> Vec<Sim> {
    Setup::sims(count + 1).split_off(1)
}

#[test]
fn a_node_that_stops_hands_everything_to_the_next_best() {
    let mut setup = Setup::stopping(others(2));
    setup.demand.tell((40..50).map(RegionId));
    setup.plan();
    let keys: Vec<NodeKey> = others(2).iter().map(|sim| sim.key).collect();
    let mut gone = Vec::new();
    while !setup.placement.held().is_empty() {
        let moves = setup.placement.evacuate();
        let most = if gone.is_empty() { 8 } else { 32 };
        assert!(!moves.is_empty() && moves.len() <= most);
        for decided in moves {
            let Move::Drain(region, to) = decided else {
                panic!("nothing is taken");
            };
            let best = rank::best(region, &keys).expect("there are some");
            assert_eq!(to, others(2)[best].holder);
            gone.push(region);
            setup.gone(region, Some(&row(Some(to), 2)));
        }
        assert!(!setup.placement.is_stranded());
    }
    assert_eq!(gone.len(), REGIONS as usize);
    let needed: Vec<RegionId> = (40..50).map(RegionId).collect();
    assert_eq!(gone[..10], needed, "players first");
}

#[test]
fn the_last_node_has_nobody_to_hand_to() {
    let mut setup = Setup::stopping(Vec::new());
    assert_eq!(setup.placement.evacuate(), []);
    assert!(setup.placement.is_stranded());
    let mut unlinked = others(1);
    unlinked[0].is_linked = false;
    unlinked[0].is_settled = false;
    let mut setup = Setup::stopping(unlinked);
    assert_eq!(setup.placement.evacuate(), []);
    assert!(setup.placement.is_stranded());
}

#[test]
fn a_newcomer_is_better_than_nobody_and_worse_than_anybody_else() {
    let mut sims = others(2);
    sims[1].is_settled = false;
    let mut setup = Setup::stopping(sims.clone());
    let to_first = |decided: &Move| matches!(decided, Move::Drain(_, to) if *to == sims[0].holder);
    assert!(setup.placement.evacuate().iter().all(to_first));
    sims[0].is_linked = false;
    sims[0].is_settled = false;
    let mut setup = Setup::stopping(sims.clone());
    assert_eq!(setup.placement.evacuate().len(), 32);
}

#[test]
fn what_is_refused_goes_to_another_and_whoever_refuses_again_and_again_is_asked_no_more() {
    let mut setup = Setup::stopping(others(2));
    let refuser = others(2)[0].holder.clone();
    let mut offered = 0;
    for _ in 0..100 {
        for decided in setup.placement.evacuate() {
            let Move::Drain(region, to) = decided else {
                panic!("nothing is taken");
            };
            if to == refuser {
                offered += 1;
                setup.serve(region, 1);
            } else {
                setup.gone(region, Some(&row(Some(to), 2)));
            }
        }
        setup.plan();
    }
    assert!(setup.placement.held().is_empty());
    assert!(offered <= 32, "{offered} were offered to whom refused them");
}

/// Waited from the day it became free, everybody would try a region at the moment somebody needs it.
#[test]
fn waits_begin_when_a_region_is_needed() {
    let mut setup = Setup::new(3, true);
    setup.read(vec![]);
    setup.step(60_000);
    let second = (0..REGIONS).find(|i| setup.rank(*i) == 1).map(RegionId);
    let second = second.expect("there is one");
    setup.demand.tell([second]);
    assert_eq!(setup.step(60_000), []);
    assert_eq!(setup.step(900), []);
    assert_eq!(taken(&setup.step(100)), [second]);
}
