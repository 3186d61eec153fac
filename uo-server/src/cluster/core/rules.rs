//! The rules of the cluster core, one by one.

use super::world::{FAIR, Runs, Weather, World};
use super::*;
use crate::limits::STARTS_SICK;

const REGIONS: u32 = 24;

/// `count` sims that run and have taken every region between them.
fn cluster(seed: u64, count: usize) -> World {
    planted_cluster(seed, count, Planted::NONE)
}

fn planted_cluster(seed: u64, count: usize, planted: Planted) -> World {
    let mut world = World::new(seed, REGIONS);
    world.planted = planted;
    for index in 0..count {
        world.start(&format!("sim-{index}"));
    }
    world.run(6_000);
    assert_eq!(world.unserved(), []);
    world
}

fn check(world: &World) {
    assert_eq!(world.violation, None);
}

#[test]
fn a_shard_of_one_process_serves_at_once() {
    let mut world = World::new(1, REGIONS);
    world.weather = Weather {
        delay_ms: 1,
        ..FAIR
    };
    world.start_as("all-1", Role::All, |config| config.others_are_dead = true);
    world.run(30);
    assert_eq!(
        world.unserved(),
        [],
        "life, beat, leases, claims: an answer each"
    );
}

#[test]
fn sims_that_start_together_share_the_regions() {
    let mut world = cluster(1, 3);
    world.run(10_000);
    check(&world);
    assert_eq!(world.deaths.len(), 0);
    let members = world.nodes[0].core.members();
    assert_eq!(members.len(), 3);
    assert!(members.iter().all(|it| it.state == NodeState::Running));
}

/// Found by the window, the read after it, and one compare-and-set. The bar of the whole failover is 4 s.
#[test]
fn a_killed_sim_is_replaced_within_the_bar() {
    for seed in 0..20 {
        let mut world = cluster(seed, 3);
        let offset = world.random(1_000);
        world.run(offset);
        let victim = (0..3).max_by_key(|id| world.served(*id).len());
        let victim = victim.expect("there are three");
        world.nodes[victim].runs = Runs::Not;
        assert_ne!(world.unserved(), []);
        world.run(3_400);
        assert_eq!(world.unserved(), [], "seed {seed}");
        check(&world);
        assert_eq!(world.deaths.len(), 1);
    }
}

#[test]
fn a_sim_that_declares_itself_dead_is_replaced_at_once() {
    for seed in 0..20 {
        let mut world = cluster(seed, 3);
        let dying = (0..3).max_by_key(|id| world.served(*id).len());
        let dying = dying.expect("there are three");
        world.die(dying);
        assert!(!world.nodes[dying].core.may_act(), "latch first");
        world.run(700);
        assert_eq!(world.unserved(), [], "seed {seed}");
        assert_eq!(world.nodes[dying].exit, Some(ExitReason::Died));
        check(&world);
    }
}

#[test]
fn a_stop_in_order_hands_everything_to_the_others() {
    let mut world = cluster(3, 2);
    world.stop(0);
    world.run(700);
    assert_eq!(world.unserved(), []);
    assert_eq!(world.nodes[0].exit, Some(ExitReason::Stopped));
    check(&world);
}

#[test]
fn nobody_dies_while_all_beat() {
    let mut world = cluster(4, 3);
    world.weather = Weather {
        delay_ms: 180,
        lost: 5,
        unanswered: 5,
        late: 5,
    };
    world.run(120_000);
    check(&world);
    assert_eq!(world.deaths.len(), 0);
}

/// Three sims through an outage: of the whole store, or of its writes.
fn outage(seed: u64, read_only: bool, planted: Planted) -> World {
    let mut world = planted_cluster(seed, 3, planted);
    let before: Vec<_> = (0..3).map(|id| world.served(id)).collect();
    let outage_ms = 3_000 + world.random(30_000);
    world.outage = !read_only;
    world.read_only = read_only;
    world.run(outage_ms);
    for id in 0..3 {
        assert!(!world.acts(id), "seed {seed}");
    }
    world.mend();
    world.run(2_500);
    if world.deaths.is_empty() {
        let after: Vec<_> = (0..3).map(|id| world.served(id)).collect();
        assert_eq!(before, after, "everything goes on where it stood");
        assert_eq!(world.unserved(), []);
    }
    world
}

/// An outage freezes everybody, kills nobody, and is over when it is over.
#[test]
fn an_outage_of_the_store_freezes_and_thaws() {
    for seed in 0..20 {
        for read_only in [false, true] {
            let world = outage(seed, read_only, Planted::NONE);
            check(&world);
            assert_eq!(world.deaths.len(), 0, "seed {seed}");
        }
    }
}

/// What keeps an outage from killing: `fenced` counts only after a while, and beats that fail are an outage too.
#[cfg(feature = "planted-bugs")]
#[test]
fn an_outage_kills_when_a_rule_is_left_out() {
    use crate::planted::PlantedBug;
    for bug in [
        PlantedBug::FencedKillsAtOnce,
        PlantedBug::OutageByReadsAlone,
    ] {
        let kills = |seed| !outage(seed, true, Planted::of(bug)).deaths.is_empty();
        assert!((0..20).any(kills), "{bug:?}");
    }
}

#[test]
fn a_sim_that_was_paused_too_long_starts_over_as_another_boot() {
    let mut world = cluster(5, 3);
    let boot = world.nodes[0].core.me().boot;
    world.nodes[0].runs = Runs::Paused;
    world.run(10_000);
    assert_eq!(world.unserved(), [], "the others have it all");
    world.wake(0);
    assert!(!world.acts(0));
    world.run(3_000);
    check(&world);
    assert_eq!(world.nodes[0].rebirths, 1);
    assert_ne!(world.nodes[0].core.me().boot, boot);
    assert!(world.acts(0), "and is one of them again");
    assert_eq!(world.served(0), [], "with nothing of its own");
}

#[test]
fn a_sim_that_was_paused_briefly_thaws() {
    let mut world = cluster(6, 3);
    let before = world.served(0);
    world.nodes[0].runs = Runs::Paused;
    world.run(2_100);
    world.wake(0);
    assert!(
        !world.acts(0),
        "the fence is looked at before anything that came"
    );
    world.run(600);
    check(&world);
    assert!(world.acts(0));
    assert_eq!(world.nodes[0].fenced, 1);
    assert_eq!(world.nodes[0].core.observe().life, 2);
    assert_eq!(world.served(0), before);
}

#[test]
fn a_sim_that_is_cut_off_freezes_and_is_replaced() {
    let mut world = cluster(7, 2);
    world.nodes[0].cut = true;
    world.run(2_100);
    assert!(!world.acts(0));
    world.run(2_500);
    assert_eq!(world.unserved(), []);
    world.nodes[0].cut = false;
    world.run(3_000);
    check(&world);
    assert_eq!(world.nodes[0].rebirths, 1);
    assert!(world.acts(0));
}

#[test]
fn a_second_process_of_a_name_exits_before_it_writes() {
    let mut world = cluster(8, 2);
    let second = world.start("sim-0");
    world.run(2_000);
    assert!(matches!(
        world.nodes[second].exit,
        Some(ExitReason::NameTaken { .. })
    ));
    assert!(world.acts(0) && world.deaths.is_empty());
}

#[test]
fn of_two_that_start_together_under_one_name_the_higher_boot_exits() {
    let mut world = World::new(9, REGIONS);
    let twins = [world.start("sim-0"), world.start("sim-0")];
    world.run(6_000);
    let [low, high] = twins;
    let boots = twins.map(|id| world.nodes[id].core.me().boot);
    let (low, high) = if boots[0] < boots[1] {
        (low, high)
    } else {
        (high, low)
    };
    assert!(world.acts(low));
    assert!(matches!(
        world.nodes[high].exit,
        Some(ExitReason::NameTaken { .. })
    ));
    assert_eq!(world.unserved(), []);
    check(&world);
}

#[test]
fn a_restart_waits_for_the_row_of_its_predecessor_to_stand_still() {
    let mut world = cluster(10, 1);
    world.nodes[0].runs = Runs::Not;
    let next = world.start("sim-0");
    world.run(2_400);
    assert!(world.nodes[next].core.observe().watching);
    world.run(1_600);
    assert_eq!(world.unserved(), []);
    assert_eq!(world.nodes[next].core.own_row().starts, 2);
    check(&world);
}

/// Red when a single move of its predecessor's row ends a newcomer: a supervisor that restarts what was killed would then
/// find it gone again.
#[test]
fn what_a_killed_process_left_on_its_way_does_not_end_its_successor() {
    let mut world = cluster(10, 1);
    world.nodes[0].runs = Runs::Not;
    let next = world.start("sim-0");
    world.run(600);
    for _ in 0..2 {
        beat_for(&mut world, 0);
        world.run(300);
    }
    assert!(world.nodes[next].core.observe().watching);
    world.run(4_000);
    assert_eq!(world.nodes[next].exit, None);
    assert_eq!(world.unserved(), []);
    check(&world);
}

/// A beat of that node takes effect now, whenever it was sent.
fn beat_for(world: &mut World, id: usize) {
    let Holder { node, boot } = world.nodes[id].core.me().clone();
    let Ok(Reply::Nodes(rows)) = world.tables.apply(world.now, &Request::NodesRead) else {
        panic!("it can be read");
    };
    let found = rows.into_iter().find(|(_, of, _)| *of == boot);
    let (_, _, bytes) = found.expect("it has beaten before");
    let mut row: crate::store::row::NodeRow =
        crate::store::row::decode(&bytes).expect("it is a row");
    row.beat += 1;
    let request = Request::NodeBeat {
        node,
        boot,
        beat: row.beat,
        row: crate::store::row::encode(&row),
        ttl_s: 3_600,
    };
    let done = world.tables.apply(world.now, &request);
    assert!(done.is_ok());
}

/// Red when `is_settled` does not ask how often it started.
#[test]
fn a_node_that_keeps_starting_is_given_nothing_until_it_has_lasted() {
    let mut world = cluster(12, 2);
    let nodes = vec!["sim-1".into()];
    world.give(0, Input::Linked { nodes });
    let may_be_given = |world: &World| {
        let sims = world.nodes[0].core.sims();
        let other = sims.iter().find(|sim| &*sim.holder.node.0 == "sim-1");
        other.is_some_and(|sim| sim.is_settled)
    };
    world.run(10_000);
    assert!(may_be_given(&world));
    let mut last = 1;
    for starts in 2..=3 {
        world.nodes[last].runs = Runs::Not;
        last = world.start("sim-1");
        world.run(15_000);
        assert_eq!(world.nodes[last].core.own_row().starts, starts);
        assert_eq!(may_be_given(&world), starts < STARTS_SICK);
    }
    world.run(300_000);
    assert!(may_be_given(&world), "it has lasted");
    check(&world);
}

fn link(world: &mut World, id: usize, nodes: &[&str]) {
    let nodes = nodes.iter().map(|&node| node.into()).collect();
    world.give(id, Input::Linked { nodes });
}

/// Two sims and three gateways, all of which reach the sims.
fn reached() -> World {
    let mut world = cluster(14, 2);
    for name in GATEWAYS {
        world.start_as(name, Role::Gateway, |_| {});
    }
    for id in 0..2 {
        link(&mut world, id, &GATEWAYS);
    }
    world.run(10_000);
    world
}

const GATEWAYS: [&str; 3] = ["gate-0", "gate-1", "gate-2"];

fn candidates(world: &World, id: usize) -> Vec<String> {
    let sims = world.nodes[id].core.sims();
    sims.iter().map(|it| it.holder.node.to_string()).collect()
}

/// Red when `gives_way` looks at nothing but whether it stops, and when `sims` leaves nobody out.
#[test]
fn a_sim_that_most_gateways_cannot_reach_gives_way() {
    let mut world = reached();
    link(&mut world, 0, &["gate-0", "gate-1", "sim-1"]);
    world.run(20_000);
    assert!(!world.nodes[0].core.observe().cut_off, "most of them do");
    link(&mut world, 0, &["gate-0", "sim-1"]);
    world.run(4_000);
    assert!(!world.nodes[0].core.observe().cut_off, "not for long");
    let held = world.served(0).len();
    assert!(
        world.nodes[0].drains.len() < held,
        "what is better there goes, and nothing else"
    );
    world.run(2_000);
    assert!(world.nodes[0].core.observe().cut_off);
    let drains = &world.nodes[0].drains;
    assert!(drains.iter().all(|(_, to)| &*to.0 == "sim-1"));
    assert_eq!(drains.len(), held, "as if it stopped");
    for id in 0..2 {
        assert_eq!(candidates(&world, id), ["sim-1"]);
    }
    link(&mut world, 0, &GATEWAYS);
    world.run(7_000);
    for id in 0..2 {
        assert_eq!(candidates(&world, id), ["sim-0", "sim-1"]);
    }
    check(&world);
}

/// Red when `sims` leaves out those that are cut off whether or not anybody is better off.
#[test]
fn no_sim_gives_way_to_one_that_gateways_cannot_reach_either() {
    let mut world = reached();
    link(&mut world, 0, &["sim-1"]);
    link(&mut world, 1, &["sim-0"]);
    world.run(20_000);
    for id in 0..2 {
        assert!(world.nodes[id].core.observe().cut_off);
        assert_eq!(candidates(&world, id), ["sim-0", "sim-1"]);
        assert!(!world.nodes[id].core.gives_way());
    }
    check(&world);
}

/// Red when gateways count that are presumed gone.
#[test]
fn a_sim_is_not_cut_off_from_gateways_that_are_dead() {
    let mut world = reached();
    for id in [3, 4] {
        world.nodes[id].runs = Runs::Not;
    }
    link(&mut world, 0, &["gate-0", "sim-1"]);
    world.run(20_000);
    assert!(!world.nodes[0].core.observe().cut_off);
}

#[test]
fn a_restart_after_an_orderly_stop_does_not_wait() {
    let mut world = cluster(11, 1);
    world.stop(0);
    world.run(500);
    let next = world.start("sim-0");
    world.run(500);
    assert!(world.acts(next));
    assert_eq!(world.unserved(), []);
}

#[test]
fn a_gateway_beats_and_observes_and_never_acts() {
    let mut world = cluster(12, 2);
    let gateway = world.start_as("gate-0", Role::Gateway, |_| {});
    world.run(1_000);
    let see = |world: &World, id: usize| world.nodes[id].core.members().len();
    assert_eq!(see(&world, gateway), 3);
    assert_eq!(see(&world, 0), 3);
    assert!(!world.nodes[gateway].core.may_act());
    world.nodes[gateway].runs = Runs::Not;
    world.run(3_000);
    assert_eq!(see(&world, 0), 2);
    assert_eq!(world.deaths.len(), 0, "it has no life to end");
}

#[test]
fn a_lease_that_names_a_boot_which_no_row_shows_is_taken() {
    let mut world = World::new(13, 1);
    let stranger = Holder {
        node: NodeName::from("sim-9"),
        boot: BootId(9),
    };
    let claim = Request::ClaimCas {
        right: crate::store::Right::Region(RegionId(0)),
        seen: None,
        to: ClaimRow {
            holder: Some(stranger.clone()),
            number: 41,
            nonce: crate::identity::Nonce(1),
        },
    };
    world.tables.apply(0, &claim).expect("it applies");
    world.start("sim-0");
    world.run(2_000);
    assert_ne!(world.unserved(), [], "it may live");
    world.run(2_000);
    assert_eq!(world.unserved(), []);
    assert!(world.deaths.contains_key(&stranger.boot));
}

#[test]
fn a_suspect_that_is_dead_already_is_known_without_a_window() {
    let mut world = cluster(14, 1);
    let boot = BootId(77);
    let buried = Request::LifeCas {
        boot,
        from: None,
        to: crate::store::Life::Dead,
    };
    world.tables.apply(0, &buried).expect("it applies");
    world.give(0, Input::Suspect { boot });
    world.run(100);
    assert!(world.nodes[0].core.is_dead(boot));
}

#[test]
fn a_row_of_a_newer_build_moves_and_stands_still_like_any_other() {
    let mut world = cluster(15, 1);
    let boot = BootId(5);
    let beat = |world: &mut World, beat: u64| {
        let request = Request::NodeBeat {
            node: NodeName::from("sim-9"),
            boot,
            beat,
            row: vec![250, beat as u8],
            ttl_s: 3_600,
        };
        let now = world.now;
        world.tables.apply(now, &request).expect("it is written");
    };
    for number in 1..20 {
        beat(&mut world, number);
        world.run(400);
    }
    assert_eq!(world.deaths.len(), 0);
    world.run(3_400);
    assert!(world.deaths.contains_key(&boot));
}

/// Two sims of a world of 8 by 8 regions that run by demand.
fn by_demand(seed: u64) -> World {
    let mut world = World::new(seed, 64);
    for name in ["sim-0", "sim-1"] {
        world.start_as(name, Role::Sim, |config| config.demand_driven = true);
    }
    world.run(3_000);
    world
}

fn all_served(world: &World) -> Vec<u32> {
    let both = [world.served(0), world.served(1)].concat();
    let mut served: Vec<u32> = both.into_iter().map(|region| region.0).collect();
    served.sort_unstable();
    served
}

#[test]
fn a_world_by_demand_runs_where_players_are_and_around_them() {
    let mut world = by_demand(16);
    assert!(all_served(&world).is_empty());
    let regions = vec![RegionId(9)];
    world.give(0, Input::Demanded { regions });
    // The other sim reads what this one wrote, and takes its share of it.
    world.run(1_500);
    assert_eq!(all_served(&world), [0, 1, 2, 8, 9, 10, 16, 17, 18]);
    assert!(!world.served(1).is_empty());
    world.run(60_000);
    assert_eq!(all_served(&world).len(), 9, "as long as they are there");
    check(&world);
}

#[test]
fn a_region_that_nobody_needs_any_more_is_retired() {
    let mut world = by_demand(17);
    let demand = |world: &mut World, regions: Vec<u32>| {
        let regions = regions.into_iter().map(RegionId).collect();
        world.give(0, Input::Demanded { regions });
    };
    demand(&mut world, vec![0, 63]);
    world.run(2_000);
    assert_eq!(all_served(&world), [0, 1, 8, 9, 54, 55, 62, 63]);
    demand(&mut world, vec![63]);
    world.run(48_000);
    assert_eq!(
        all_served(&world).len(),
        8,
        "20 s until it expires, and 30 s of nothing"
    );
    world.run(5_000);
    assert_eq!(all_served(&world), [54, 55, 62, 63]);
    demand(&mut world, vec![0]);
    world.run(1_500);
    assert_eq!(
        all_served(&world).len(),
        8,
        "it comes back when it is needed"
    );
    check(&world);
}

#[test]
fn a_frozen_world_retires_nothing() {
    let mut world = by_demand(18);
    let regions = vec![RegionId(0)];
    world.give(0, Input::Demanded { regions });
    world.run(2_000);
    world.outage = true;
    world.run(120_000);
    world.outage = false;
    world.run(4_000);
    assert_eq!(all_served(&world), [0, 1, 8, 9]);
    assert_eq!(world.deaths.len(), 0);
    check(&world);
}

#[test]
fn the_leases_are_read_no_more_often_than_they_have_to_be() {
    let mut world = cluster(19, 2);
    let before = world.lease_reads;
    world.run(30_000);
    let reads = world.lease_reads - before;
    assert!((18..=22).contains(&reads), "every 3 s by each: {reads}");
}
