//! What a region costs while nobody is in it, and what opening one costs.
#![allow(missing_docs, reason = "benchmarks")]

use criterion::{Criterion, criterion_group, criterion_main};
use uo_proto::RegionId;
use uo_server::sim::Region;
use uo_world::World;

fn benches(criterion: &mut Criterion) {
    let world = World::new(7, 1024).expect("a good size");
    let mut idle = Region::open(&world, RegionId(100), 1, Vec::new(), &[]);
    while !idle.is_idle() {
        idle.step();
        idle.take_output();
    }
    criterion.bench_function("idle region: one tick", |bencher| {
        bencher.iter(|| idle.step());
    });

    let mut shard: Vec<Region> = world
        .regions()
        .map(|id| Region::open(&world, id, 1, Vec::new(), &[]))
        .collect();
    for region in &mut shard {
        while !region.is_idle() {
            region.step();
            region.take_output();
        }
    }
    let mut all: Vec<&mut Region> = shard.iter_mut().collect();
    criterion.bench_function("256 idle regions: one tick and its output", |bencher| {
        bencher.iter(|| {
            uo_server::sim::tick::step_all(&mut all, false).expect("no tick panics");
            all.iter_mut()
                .map(|region| region.take_output().feeds.len())
                .sum::<usize>()
        });
    });

    criterion.bench_function("open a region", |bencher| {
        bencher.iter(|| Region::open(&world, RegionId(100), 1, Vec::new(), &[]));
    });
}

criterion_group!(region, benches);
criterion_main!(region);
