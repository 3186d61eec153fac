//! What a frame costs: a delta of ten movers by serde and from fragments, and an order and a delta read, in both
//! encodings.
#![allow(
    missing_docs,
    reason = "the macros of criterion write functions without"
)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use uo_proto::*;

fn movers() -> Vec<EntityState> {
    let mover = |at: u16| EntityState {
        id: CharId::of_name(&format!("mover{at}")).entity(),
        x: 500 + at,
        y: 400 + at,
        heading: Dir::ALL[usize::from(at % 8)],
        hits: 180 + at,
        action: Action::Run,
        target: None,
    };
    (0..10).map(mover).collect()
}

fn delta() -> ServerMsg {
    ServerMsg::Delta(Delta {
        tick: 123_456,
        ack: 789,
        update: movers(),
        ..Delta::default()
    })
}

fn order() -> ClientMsg {
    ClientMsg::Order(NumberedOrder {
        seq: 790,
        order: Order::Cast {
            spell: Spell::Bolt,
            target: Target::Entity(CharId::of_name("mover3").entity()),
        },
    })
}

fn benches(criterion: &mut Criterion) {
    for encoding in Encoding::ALL {
        let name = match encoding {
            Encoding::Json => "json",
            Encoding::MessagePack => "msgpack",
        };
        let mut group = criterion.benchmark_group(name);

        let whole = delta();
        group.bench_function("delta of 10 by serde", |bencher| {
            let mut out = Vec::with_capacity(4_096);
            bencher.iter(|| {
                out.clear();
                encoding.write(black_box(&whole), &mut out);
                out.len()
            });
        });

        let fragments: Vec<Vec<u8>> = movers().iter().map(|m| encoding.encode(m)).collect();
        let none: [&[u8]; 0] = [];
        group.bench_function("delta of 10 from fragments", |bencher| {
            let mut out = Vec::with_capacity(4_096);
            bencher.iter(|| {
                out.clear();
                encoding.write_delta(
                    &mut out,
                    DeltaParts {
                        tick: 123_456,
                        ack: 789,
                        enter: none.iter(),
                        update: black_box(&fragments).iter(),
                        leave: &[],
                        objects: none.iter(),
                    },
                );
                out.len()
            });
        });

        let state = movers()[0];
        group.bench_function("one fragment", |bencher| {
            bencher.iter_batched_ref(
                || Vec::with_capacity(256),
                |out| encoding.write(black_box(&state), out),
                BatchSize::SmallInput,
            );
        });

        let frame = encoding.encode(&whole);
        group.bench_function("delta of 10 read", |bencher| {
            bencher.iter(|| encoding.decode_server(black_box(&frame)));
        });
        group.bench_function("delta of 10 read by way of serde's buffer", |bencher| {
            bencher.iter(|| encoding.decode::<ServerMsg>(black_box(&frame)));
        });

        let frame = encoding.encode_client(&order());
        group.bench_function("order read", |bencher| {
            bencher.iter(|| encoding.decode_client(black_box(&frame)));
        });
        group.finish();
    }
}

criterion_group!(frames, benches);
criterion_main!(frames);
