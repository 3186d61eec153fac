//! Whatever is ordered: no panic, and what must hold holds at every step. Arenas, ways and sight against plain oracles.

mod support;

use std::collections::{BTreeSet, VecDeque};

use proptest::prelude::*;
use support::skirmish::{Dice, SIZE, random_arena, random_object, random_order, skirmish};
use support::{NEIGHBOUR, REGION, through_bytes};
use uo_combat::path::find_way;
use uo_combat::table::{Scene, roster};
use uo_combat::*;
use uo_proto::*;

fn check(battle: &Battle, report: &Report) {
    let mut tiles = BTreeSet::new();
    let mut coins = BTreeSet::new();
    for id in battle.entities() {
        let (state, info) = (battle.state(id).unwrap(), battle.info(id).unwrap());
        assert!(state.hits <= info.hits_max);
        assert_eq!(state.hits == 0, state.action == Action::Dead);
        assert!(battle.arena().contains(state.pos()));
        if state.hits > 0 {
            assert!(tiles.insert(state.pos()), "two on {:?}", state.pos());
            assert!(
                battle.arena().passable(state.pos()),
                "{id:?} stands in something"
            );
        }
        if let (EntityKind::Mob, slot) = (info.kind, id.0 as usize & 0xff) {
            let entry = roster(Scene::Camp)[slot];
            let home = Pos::new(
                (SIZE / 2).wrapping_add_signed(entry.dx),
                (SIZE / 2).wrapping_add_signed(entry.dy),
            );
            assert!(state.pos().distance(home) <= LEASH);
        }
        let inventory = battle.inventory(id).unwrap();
        assert!(inventory.items.iter().all(|stack| stack.count > 0));
        assert!(inventory.items.is_sorted_by(|a, b| a.item < b.item));
        assert!(inventory.coins.is_sorted_by(|a, b| a < b));
        assert!(
            inventory.coins.iter().all(|&coin| coins.insert(coin)),
            "a coin twice"
        );
    }
    assert!(report.changed.is_sorted_by(|a, b| a < b));
    assert!(report.objects.is_sorted_by(|a, b| a.key < b.key));
    assert!(
        report
            .objects
            .iter()
            .all(|object| object.key.region() == REGION)
    );
    assert!(
        report
            .foreign_hits
            .iter()
            .all(|hit| hit.key.region() == NEIGHBOUR)
    );
    for object in &report.objects {
        assert_eq!(battle.arena().object(object.key).is_none(), object.gone);
    }
}

/// Something from outside: a neighbour's object, a hit, a character that leaves and comes back.
fn meddle(battle: &mut Battle, dice: &mut Dice, ids: &[EntityId]) {
    match dice.below(4) {
        0 => {
            let at = dice.pos();
            let stands = battle.entities().any(|id| battle.pos(id) == Some(at));
            if at.x >= SIZE * 3 / 4 && !stands {
                let index = dice.below(1000) as u32;
                battle.place_object(random_object(dice, NEIGHBOUR, index, at));
            }
        }
        1 => {
            let key = ObjectKey::new(REGION, dice.below(150) as u32);
            let (damage, fire) = (dice.below(80) as u16, dice.one_in(2));
            battle.hit_object(&ObjectHit {
                key,
                damage,
                fire,
                by: None,
            });
        }
        2 => {
            let id = dice.pick(ids);
            if let Some(mut fighter) = battle.withdraw(id) {
                fighter.pos = dice.pos();
                battle.admit(through_bytes(&fighter)).unwrap();
                assert!(battle.admit(fighter).is_err());
            }
        }
        _ => battle.set_epoch(battle.epoch() + dice.below(2)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_must_hold_holds(seed: u64) {
        let (mut battle, ids) = skirmish(seed, 14);
        let mut dice = Dice(seed ^ 3);
        let mut report = Report::default();
        let mut versions = vec![0; ids.len()];
        for step in 0..500 {
            for &id in &ids {
                if dice.one_in(10) {
                    let order = random_order(&mut dice, &battle, &ids);
                    let _ = battle.order(id, step, &order);
                }
            }
            if dice.one_in(10) {
                meddle(&mut battle, &mut dice, &ids);
            }
            battle.step(&mut report);
            check(&battle, &report);
            for (version, &id) in versions.iter_mut().zip(&ids) {
                let now = battle.inventory(id).unwrap().version;
                prop_assert!(now >= *version);
                *version = now;
            }
        }
        // What the arena derived bit by bit is what it would derive afresh.
        let arena = battle.arena();
        let afresh: Arena = through_bytes(arena);
        for pos in all_tiles() {
            prop_assert_eq!(arena.passable(pos), afresh.passable(pos));
            for dir in Dir::ALL {
                prop_assert_eq!(arena.blocked_step(pos, dir), afresh.blocked_step(pos, dir));
            }
            prop_assert_eq!(arena.line_of_sight(pos, Pos::new(20, 20)), afresh.line_of_sight(pos, Pos::new(20, 20)));
        }
    }

    #[test]
    fn ways_are_as_short_as_a_flood_says(seed: u64) {
        let mut dice = Dice(seed);
        let arena = random_arena(&mut dice, 350);
        let from = free(&arena, &mut dice);
        let steps = flood(&arena, from);
        for _ in 0..40 {
            let to = free(&arena, &mut dice);
            let known = steps[index(to)];
            prop_assert_eq!(arena.reachable(from, to), known.is_some());
            let way = find_way(&arena, from, to);
            prop_assert_eq!(way.as_ref().map(Vec::len), known);
            let mut at = from;
            for dir in way.unwrap_or_default() {
                prop_assert!(!arena.blocked_step(at, dir));
                at = at.step(dir).unwrap();
            }
            prop_assert!(known.is_none() || at == to);
        }
    }

    #[test]
    fn nobody_is_hidden_in_one_direction_only(seed: u64) {
        let mut dice = Dice(seed);
        let arena = random_arena(&mut dice, 250);
        for _ in 0..200 {
            let (a, b) = (dice.pos(), dice.pos());
            if a.distance(b) <= 12 && arena.line_of_sight(a, b) == Sight::Clear {
                prop_assert!(arena.line_of_sight(b, a).sees());
            }
        }
    }
}

fn all_tiles() -> impl Iterator<Item = Pos> {
    (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| Pos::new(x, y)))
}

fn index(pos: Pos) -> usize {
    usize::from(pos.y) * usize::from(SIZE) + usize::from(pos.x)
}

fn free(arena: &Arena, dice: &mut Dice) -> Pos {
    loop {
        let pos = dice.pos();
        if arena.passable(pos) {
            return pos;
        }
    }
}

/// Steps to every tile, breadth first.
fn flood(arena: &Arena, from: Pos) -> Vec<Option<usize>> {
    let mut steps = vec![None; usize::from(SIZE) * usize::from(SIZE)];
    let mut open = VecDeque::from([from]);
    steps[index(from)] = Some(0);
    while let Some(pos) = open.pop_front() {
        for dir in Dir::ALL
            .into_iter()
            .filter(|&dir| !arena.blocked_step(pos, dir))
        {
            let to = pos.step(dir).unwrap();
            if steps[index(to)].is_none() {
                steps[index(to)] = steps[index(pos)].map(|steps| steps + 1);
                open.push_back(to);
            }
        }
    }
    steps
}
