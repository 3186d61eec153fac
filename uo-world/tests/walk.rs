//! The walk planner: whoever follows its legs arrives, if there is a way at all.

use std::collections::BTreeMap;

use uo_combat::Arena;
use uo_proto::{Dir, Edge, ObjectKey, ObjectKind, ObjectState, Pos, RegionId};
use uo_world::walk::plan_leg;
use uo_world::{Rect, World, build_arena};

const SIZE: u16 = 512;

/// A world with all its arenas, and the truth about what is connected, found tile by tile over the whole map.
struct Atlas {
    world: World,
    arenas: BTreeMap<RegionId, Arena>,
    /// By tile; 0 where nobody can stand.
    labels: Vec<u32>,
}

impl Atlas {
    fn new(seed: u64) -> Atlas {
        let world = World::new(seed, SIZE).expect("a good size");
        let arenas = world
            .regions()
            .map(|region| (region, build_arena(&world, region, std::iter::empty())))
            .collect();
        let mut atlas = Atlas {
            world,
            arenas,
            labels: vec![0; usize::from(SIZE) * usize::from(SIZE)],
        };
        let map = Rect {
            x: 0,
            y: 0,
            width: SIZE,
            height: SIZE,
        };
        for (label, start) in (1..).zip(map.positions()) {
            atlas.label(start, label);
        }
        atlas
    }

    /// Labels everything that can be reached from `start` without opening or breaking anything.
    fn label(&mut self, start: Pos, label: u32) {
        let mut open = vec![start];
        while let Some(pos) = open.pop() {
            let arena = &self.arenas[&self.world.region_at(pos)];
            let known = &mut self.labels[index(pos)];
            if *known != 0 || !arena.passable(pos) {
                continue;
            }
            *known = label;
            for dir in [Dir::N, Dir::E, Dir::S, Dir::W] {
                if !arena.blocked_step(pos, dir) {
                    open.extend(pos.step(dir));
                }
            }
        }
    }

    fn joined(&self, a: Pos, b: Pos) -> bool {
        self.labels[index(a)] != 0 && self.labels[index(a)] == self.labels[index(b)]
    }

    /// Follows legs from `from`: how far they went, or none when the planner gave up. The walker stays in an arena
    /// until it is `depth` tiles outside of that arena's region.
    fn follow(&self, from: Pos, goal: Pos, depth: u16) -> Option<u32> {
        let mut region = self.world.region_at(from);
        let (mut pos, mut legs, mut length) = (from, 0, 0);
        while pos != goal {
            let arena = &self.arenas[&region];
            let leg = plan_leg(&self.world, arena, pos, goal)?;
            assert!(arena.reachable(pos, leg), "from {pos:?} to {leg:?}");
            assert_ne!(pos, leg, "a leg leads somewhere");
            length += u32::from(pos.distance(leg));
            legs += 1;
            assert!(legs <= 150, "{from:?} to {goal:?}: going round at {pos:?}");
            pos = leg;
            if arena.owned().distance(pos) >= depth {
                region = self.world.region_at(pos);
            }
        }
        Some(length)
    }
}

fn index(pos: Pos) -> usize {
    usize::from(pos.y) * usize::from(SIZE) + usize::from(pos.x)
}

/// Places all over the map, the same every time.
fn places(count: u32) -> Vec<Pos> {
    let place = |number: u32| {
        let hash = uo_proto::fnv1a(&number.to_le_bytes());
        Pos::new((hash >> 8) as u16 % SIZE, (hash >> 40) as u16 % SIZE)
    };
    (0..count).map(place).collect()
}

#[test]
fn legs_lead_to_the_goal_wherever_there_is_a_way() {
    let (mut arrived, mut gave_up) = (0, 0);
    for seed in 0..6 {
        let atlas = Atlas::new(seed);
        let places = places(600);
        for (&from, &goal) in places[..300].iter().zip(&places[300..]) {
            let joined = atlas.joined(from, goal) || from == goal;
            for depth in [1, 2, 10] {
                let followed = atlas.follow(from, goal, depth);
                assert_eq!(
                    followed.is_some(),
                    joined,
                    "seed {seed}, {from:?} to {goal:?}, {depth}"
                );
            }
            if joined { arrived += 1 } else { gave_up += 1 }
        }
    }
    assert!(
        arrived > 300 && gave_up > 100,
        "{arrived} arrived, {gave_up} gave up"
    );
}

/// Over land that is mostly open, ways are not much longer than the straight line.
#[test]
fn ways_are_near_the_straight_line() {
    let (mut walked, mut straight) = (0, 0);
    for seed in 0..6 {
        let atlas = Atlas::new(seed);
        let places = places(200);
        for (&from, &goal) in places[..100].iter().zip(&places[100..]) {
            if let Some(length) = atlas.follow(from, goal, 2) {
                walked += length;
                straight += u32::from(from.distance(goal));
            }
        }
    }
    assert!(
        walked * 100 <= straight * 120,
        "{walked} tiles for {straight}"
    );
}

/// A wall that the world was not generated with: the planner says no instead of leading around in circles.
#[test]
fn a_goal_walled_off_by_hand_is_given_up() {
    let world = World::new(1, SIZE).expect("a good size");
    let region = RegionId(0);
    let content = world.content(region);
    let goal = content.respawn;
    let ring = Dir::ALL.into_iter().filter_map(|dir| goal.step(dir));
    let stones = (0..).zip(ring).map(|(number, pos)| ObjectState {
        key: ObjectKey::new(region, uo_proto::RUNTIME_OBJECT_BIT | number),
        kind: ObjectKind::Stone,
        x: pos.x,
        y: pos.y,
        edge: None,
        hits: 1,
        active: false,
        gone: false,
    });
    let arena = build_arena(&world, region, stones);
    let mut open = content.open().iter();
    let from = open
        .find(|pos| pos.distance(goal) > 2)
        .expect("open ground");
    assert_eq!(plan_leg(&world, &arena, from, goal), None);
    assert_eq!(plan_leg(&world, &arena, goal, from), None);
    let free = build_arena(&world, region, std::iter::empty());
    assert_eq!(plan_leg(&world, &free, from, goal), Some(goal));
}

#[test]
fn goals_off_the_map_and_in_the_water_are_given_up() {
    let world = World::new(1, SIZE).expect("a good size");
    let region = RegionId(0);
    let arena = build_arena(&world, region, std::iter::empty());
    let from = world.content(region).respawn;
    let places = places(1_000);
    let is_water = |pos: &&Pos| !world.tile(**pos).terrain.is_walkable();
    let water = *places.iter().find(is_water).expect("there is water");
    for goal in [water, Pos::new(SIZE, 3), Pos::new(u16::MAX, u16::MAX)] {
        assert_eq!(plan_leg(&world, &arena, from, goal), None);
    }
    assert_eq!(plan_leg(&world, &arena, water, from), None);
}

#[test]
fn a_closed_door_is_no_way_and_an_open_one_is() {
    let world = World::new(1, SIZE).expect("a good size");
    let mut houses = 0;
    for region in world.regions() {
        let content = world.content(region);
        let closed = build_arena(&world, region, std::iter::empty());
        for door in content
            .objects
            .iter()
            .filter(|object| object.kind == ObjectKind::Door)
        {
            let across = match door.edge {
                Some(Edge::North) => Dir::N,
                _ => Dir::W,
            };
            let sides = [Some(door.pos()), door.pos().step(across)];
            let mut inside = sides
                .into_iter()
                .flatten()
                .filter(|&side| closed.passable(side) && !closed.reachable(content.respawn, side));
            let opened = ObjectState {
                active: true,
                ..*door
            };
            let open = build_arena(&world, region, std::iter::once(opened));
            if let Some(inside) = inside
                .next()
                .filter(|&side| open.reachable(content.respawn, side))
            {
                houses += 1;
                assert_eq!(plan_leg(&world, &closed, content.respawn, inside), None);
                assert_eq!(
                    plan_leg(&world, &open, content.respawn, inside),
                    Some(inside)
                );
            }
        }
    }
    assert!(houses > 10, "{houses} houses");
}
