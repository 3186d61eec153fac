//! Where new characters begin.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uo_world::camp::CAMP_DISTANCE;
use uo_world::{World, build_arena, spawn_point};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Red when `spawn_in` does not look at the camps of its own region.
    #[test]
    fn one_begins_on_open_ground_away_from_camps(
        seed in 0u64..1_000, name in "[a-z]{1,12}", regions in 1u16..9,
    ) {
        let world = World::new(seed, regions * 64).expect("a good size");
        let pos = spawn_point(&world, &name);
        prop_assert!(world.contains(pos) && world.tile(pos).terrain.is_walkable());
        for region in world.regions() {
            for camp in &world.content(region).camps {
                prop_assert!(camp.area.distance(pos) >= CAMP_DISTANCE);
            }
        }
        let region = world.region_at(pos);
        let content = world.content(region);
        let arena = build_arena(&world, region, std::iter::empty());
        prop_assert!(arena.reachable(pos, content.respawn));
        prop_assert!(content.open().len() >= 1_024);
        prop_assert_eq!(spawn_point(&world.clone(), &name), pos);
    }
}

#[test]
fn characters_are_spread_over_all_regions() {
    const NAMES: usize = 4_000;
    let world = World::new(1, 512).expect("a good size");
    let mut counts = BTreeMap::new();
    for number in 0..NAMES {
        let pos = spawn_point(&world, &format!("bot-{number}"));
        *counts.entry(world.region_at(pos)).or_insert(0usize) += 1;
    }
    let habitable = world
        .regions()
        .filter(|&region| world.content(region).open().len() >= 1_024)
        .count();
    assert_eq!(
        counts.len(),
        habitable,
        "every region with ground has someone"
    );
    let most = counts.values().max().expect("there are some");
    assert!(
        most * habitable <= NAMES * 2,
        "{most} in one of {habitable}"
    );
}
