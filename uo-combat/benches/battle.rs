//! What a battle costs: a step of a large fight, an idle region, ways. `cargo bench -p uo-combat`.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use uo_combat::path::Finder;
use uo_combat::table::object_row;
use uo_combat::*;
use uo_proto::*;

const REGION: RegionId = RegionId(1);
/// A region with its margin on both sides.
const SIZE: u16 = REGION_SIZE + 2 * ARENA_MARGIN;

/// A region with trees, crates and walls on every eighth tile or so.
fn arena() -> Arena {
    let bounds = Rect {
        x: 0,
        y: 0,
        width: SIZE,
        height: SIZE,
    };
    let owned = Rect {
        x: ARENA_MARGIN,
        y: ARENA_MARGIN,
        width: REGION_SIZE,
        height: REGION_SIZE,
    };
    let ground = vec![
        Ground {
            walkable: true,
            height: 100
        };
        bounds.tiles()
    ];
    let mut arena = Arena::new(REGION, bounds, owned, ground);
    for index in 0..900_u32 {
        let hash = fnv1a(&index.to_le_bytes());
        let kinds = [
            ObjectKind::Tree,
            ObjectKind::Crate,
            ObjectKind::Wall,
            ObjectKind::Fence,
        ];
        let kind = kinds[(hash >> 20) as usize % 4];
        let edge = matches!(kind, ObjectKind::Wall | ObjectKind::Fence).then_some(Edge::North);
        let (x, y) = ((hash >> 32) as u16 % SIZE, (hash >> 48) as u16 % SIZE);
        place(&mut arena, index, kind, Pos::new(x, y), edge);
    }
    arena
}

fn place(arena: &mut Arena, index: u32, kind: ObjectKind, at: Pos, edge: Option<Edge>) {
    arena.place(ObjectState {
        key: ObjectKey::new(REGION, index),
        kind,
        x: at.x,
        y: at.y,
        edge,
        hits: object_row(kind).strength,
        active: false,
        gone: false,
    });
}

fn battle(mobs: u8) -> Battle {
    let mobs = (0..mobs).map(|slot| MobSpawn {
        id: EntityId::mob(REGION, slot),
        class: [Class::Bandit, Class::BanditArcher][usize::from(slot) % 2],
        name: String::from("Bandit"),
        home: Pos::new(40 + u16::from(slot) % 8, 40 + u16::from(slot) / 8),
    });
    let mobs = mobs.collect();
    Battle::open(Setup {
        region: REGION,
        epoch: 1,
        seed: 1,
        arena: arena(),
        mobs,
        respawn: Pos::new(44, 44),
    })
}

/// 100 characters and 40 bandits, all in the midst of it, a few of them walking.
fn fight() -> Battle {
    let mut battle = battle(40);
    let mut ids = Vec::new();
    for player in 0..100_u16 {
        let name = format!("player-{player}");
        let at = Pos::new(34 + player % 20, 34 + player / 20 * 4);
        let fighter = Fighter::new(CharId::of_name(&name), &name, at);
        ids.push(fighter.id);
        battle.admit(fighter).unwrap();
    }
    give_orders(&mut battle, &ids);
    let mut report = Report::default();
    for _ in 0..60 {
        battle.step(&mut report);
    }
    battle
}

fn give_orders(battle: &mut Battle, ids: &[EntityId]) {
    for (seq, &id) in (1..).zip(ids) {
        let target = Target::Entity(EntityId::mob(REGION, (seq % 40) as u8));
        let order = match seq % 10 {
            0 => Order::WalkTo {
                x: 20 + seq as u16 % 50,
                y: 60,
            },
            1..6 => Order::Attack {
                target: Target::Entity(ids[(seq * 7 % 100) as usize]),
            },
            _ => Order::Attack { target },
        };
        let _ = battle.order(id, seq, &order);
    }
}

fn steps(c: &mut Criterion) {
    let start = fight();
    c.bench_function("step, 100 players and 40 bandits fighting", |b| {
        let mut report = Report::default();
        let mut battle = start.clone();
        let mut left = 0;
        b.iter(|| {
            // The same five seconds again and again: much longer, and half of them lie dead.
            if left == 0 {
                battle.clone_from(&start);
                let ids: Vec<EntityId> = battle.players().collect();
                give_orders(&mut battle, &ids);
                left = 100;
            }
            left -= 1;
            battle.step(&mut report);
            black_box(&report);
        });
    });
    let mut end = start.clone();
    let mut report = Report::default();
    (0..100).for_each(|_| end.step(&mut report));
    let alive = |battle: &Battle| {
        battle
            .entities()
            .filter_map(|id| battle.state(id))
            .filter(|state| state.hits > 0)
            .count()
    };
    println!(
        "alive at the start {}, after five seconds {}",
        alive(&start),
        alive(&end)
    );
    let mut idle = battle(12);
    for _ in 0..3 {
        idle.step(&mut report);
    }
    assert!(idle.is_idle());
    c.bench_function("step, idle region", |b| {
        b.iter(|| black_box(&mut idle).step(&mut report))
    });
    let mut standing = battle(12);
    for player in 0..40_u16 {
        let name = format!("player-{player}");
        let at = Pos::new(14 + player, 70);
        standing
            .admit(Fighter::new(CharId::of_name(&name), &name, at))
            .unwrap();
    }
    c.bench_function("step, 40 players standing", |b| {
        b.iter(|| black_box(&mut standing).step(&mut report))
    });
}

fn ways(c: &mut Criterion) {
    let mut arena = arena();
    let crowd = |pos: &Pos| (pos.x * 7 + pos.y * 3).is_multiple_of(9);
    let tiles = (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| Pos::new(x, y)));
    let (from, to) = (Pos::new(4, 5), Pos::new(80, 79));
    let taken: Vec<Pos> = tiles.filter(crowd).filter(|&pos| pos != to).collect();
    let mut finder = Finder::new(&arena, taken);
    assert!(finder.find(&arena, from, to, 10_000).is_some());
    c.bench_function("way across a crowded arena", |b| {
        b.iter(|| black_box(finder.find(&arena, from, to, 10_000).map(<[Dir]>::len)));
    });
    let goal = Pos::new(60, 60);
    let around: Vec<Pos> = Dir::ALL.iter().filter_map(|&dir| goal.step(dir)).collect();
    let mut enclosed = Finder::new(&arena, around.iter().copied());
    assert!(enclosed.find(&arena, from, goal, 10_000).is_none());
    c.bench_function("way to a goal in a crowd", |b| {
        b.iter(|| black_box(enclosed.find(&arena, from, goal, 10_000).is_some()));
    });
    for (index, &pos) in (2_000..).zip(&around) {
        place(&mut arena, index, ObjectKind::Rock, pos, None);
    }
    let mut finder = Finder::new(&arena, []);
    assert!(finder.find(&arena, from, goal, 10_000).is_none());
    c.bench_function("way to a walled-off goal", |b| {
        b.iter(|| black_box(finder.find(&arena, from, goal, 10_000).is_some()));
    });
    c.bench_function("components of an arena", |b| {
        b.iter_batched(
            || {
                let mut arena = arena.clone();
                place(&mut arena, 3_000, ObjectKind::Rock, Pos::new(30, 30), None);
                arena
            },
            |arena| arena.reachable(from, goal),
            BatchSize::LargeInput,
        );
    });
}

criterion_group! {
    name = battles;
    config = Criterion::default().sample_size(50);
    targets = steps, ways
}
criterion_main!(battles);
