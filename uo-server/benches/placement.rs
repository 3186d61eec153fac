//! Placement at scale: 1,000 sims and 65,536 regions ranked by one sim (the bar: less than a second), and what a step
//! costs a sim of a full small world when nothing changes and when a sim joins.

#![allow(missing_docs, reason = "benchmarks")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use uo_proto::RegionId;
use uo_server::cluster::demand::Demand;
use uo_server::cluster::placement::{Around, Placement, Sim};
use uo_server::cluster::rank::{self, NodeKey};
use uo_server::cluster::timing::Timing;
use uo_server::identity::{BootId, Holder, NodeName};
use uo_server::planted::Planted;

fn sims(count: u128) -> Vec<Sim> {
    let sim = |boot: u128| {
        let node = NodeName::from(format!("sim-{boot}").as_str());
        Sim {
            key: NodeKey::of(&node),
            holder: Holder {
                node,
                boot: BootId(boot),
            },
            is_settled: true,
            is_linked: true,
        }
    };
    (0..count).map(sim).collect()
}

fn ranks(c: &mut Criterion) {
    let keys: Vec<NodeKey> = sims(1_000).iter().map(|sim| sim.key).collect();
    let mut group = c.benchmark_group("placement");
    group.sample_size(10);
    group.bench_function("rank 65,536 regions among 1,000 sims", |b| {
        b.iter(|| {
            let rank = |region| rank::rank(RegionId(region), keys[7], black_box(&keys));
            (0..65_536).map(rank).max()
        });
    });
    group.finish();
}

/// A sim among `count` that serves its share of 4,096 regions; the others' are theirs.
fn serving(count: u128) -> (Placement, Vec<Sim>) {
    let sims = sims(count);
    let timing = Timing::default();
    let mut placement = Placement::new(4_096, false, Planted::NONE);
    placement.set_sims(sims.clone());
    let around = Around {
        me: &sims[0].holder,
        is_dead: &|_| false,
        timing: &timing,
    };
    placement.leases_read(Vec::new(), around);
    let keys: Vec<NodeKey> = sims.iter().map(|sim| sim.key).collect();
    for region in (0..4_096).map(RegionId) {
        match rank::best(region, &keys) {
            Some(0) => placement.served(region, 1, around),
            Some(best) => placement.told(region, 1, Some(sims[best].holder.clone()), around),
            None => {}
        }
    }
    (placement, sims)
}

fn steps(c: &mut Criterion) {
    let (placement, sims) = serving(20);
    let timing = Timing::default();
    let around = Around {
        me: &sims[0].holder,
        is_dead: &|_| false,
        timing: &timing,
    };
    let demand = Demand::default();
    let mut group = c.benchmark_group("placement");
    group.bench_function("step of 4,096 regions among 20 sims", |b| {
        let mut placement = placement.clone();
        b.iter(|| {
            placement.step(200, &demand, around);
            placement.moves()
        });
    });
    group.bench_function("step after one of 20 sims left", |b| {
        let mut placement = placement.clone();
        let fewer = sims[..19].to_vec();
        b.iter(|| {
            placement.set_sims(fewer.clone());
            placement.step(200, &demand, around);
            placement.set_sims(sims.clone());
            placement.step(200, &demand, around);
        });
    });
    group.finish();
}

criterion_group!(benches, ranks, steps);
criterion_main!(benches);
