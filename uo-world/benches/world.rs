//! What generating the world costs, and planning ways across it.
#![allow(missing_docs, reason = "benchmarks")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use uo_combat::Rect;
use uo_proto::map::{Window, tile_at};
use uo_proto::{Pos, RegionId};
use uo_world::walk::plan_leg;
use uo_world::{RegionContent, World, build_arena, spawn_point};

const SEED: u64 = 1;
const SIZE: u16 = 1024;

fn fresh_world() -> World {
    World::new(SEED, SIZE).expect("a good size")
}

fn ground(criterion: &mut Criterion) {
    let mut at = 0u16;
    criterion.bench_function("tile_at", |bencher| {
        bencher.iter(|| {
            at = at.wrapping_add(251);
            tile_at(SEED, at, at >> 3)
        });
    });
    criterion.bench_function("window of a region, 64x64 tiles", |bencher| {
        bencher.iter(|| Window::new(SEED, black_box(Pos::new(640, 640)), 64, 64));
    });
}

fn content(criterion: &mut Criterion) {
    let mut number = 0;
    criterion.bench_function("content of a region, generated", |bencher| {
        bencher.iter_batched(
            || {
                number = (number + 1) % RegionId::count(SIZE);
                (fresh_world(), RegionId(number))
            },
            |(world, region)| world.content(region),
            BatchSize::SmallInput,
        );
    });
    let world = fresh_world();
    criterion.bench_function("content of a region, remembered", |bencher| {
        bencher.iter(|| world.content(black_box(RegionId(100))));
    });
    criterion.bench_function("spawn point, content remembered", |bencher| {
        bencher.iter(|| spawn_point(&world, black_box("somebody")));
    });
    criterion.bench_function("build an arena, content remembered", |bencher| {
        bencher.iter(|| build_arena(&world, black_box(RegionId(100)), std::iter::empty()));
    });
}

/// The open tile of some region that is nearest to a corner of the map.
fn ends(world: &World) -> (Pos, Pos) {
    let land = |region: RegionId| {
        let content: &RegionContent = &world.content(region);
        content.respawn
    };
    let count = RegionId::count(world.size());
    let mut far = (0..count).rev().map(RegionId);
    let from = land(RegionId(0));
    let arena = build_arena(world, RegionId(0), std::iter::empty());
    let goal = far
        .by_ref()
        .map(land)
        .find(|&goal| plan_leg(world, &arena, from, goal).is_some())
        .expect("some far region can be reached");
    (from, goal)
}

/// Somewhere that can be stood on and not be reached.
fn island(world: &World, from: Pos) -> Pos {
    let arena = build_arena(world, world.region_at(from), std::iter::empty());
    let map = Rect {
        x: 0,
        y: 0,
        width: world.size(),
        height: world.size(),
    };
    map.positions()
        .find(|&pos| {
            world.tile(pos).terrain.is_walkable() && plan_leg(world, &arena, from, pos).is_none()
        })
        .expect("there is an island")
}

fn legs(criterion: &mut Criterion) {
    let world = fresh_world();
    let (from, far) = ends(&world);
    let island = island(&world, from);
    let arena = build_arena(&world, world.region_at(from), std::iter::empty());
    let near = Pos::new(from.x + 10, from.y + 10);
    for (name, goal) in [
        ("inside the arena", near),
        ("across the map", far),
        ("to an island", island),
    ] {
        criterion.bench_function(&format!("plan a leg, {name}"), |bencher| {
            bencher.iter(|| plan_leg(&world, &arena, black_box(from), goal));
        });
    }
    criterion.bench_function("plan a leg, across a map never looked at", |bencher| {
        bencher.iter_batched(
            fresh_world,
            |world| plan_leg(&world, &arena, black_box(from), far),
            BatchSize::SmallInput,
        );
    });
    criterion.bench_function("plan a leg, across a prepared map, first time", |bencher| {
        bencher.iter_batched(
            || {
                let world = fresh_world();
                world.regions().for_each(|region| world.prepare(region));
                world
            },
            |world| plan_leg(&world, &arena, black_box(from), far),
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(world, ground, content, legs);
criterion_main!(world);
