//! What regions are generated with: the same for everyone, and nothing that is in the way.

use std::collections::BTreeSet;

use proptest::prelude::*;
use uo_combat::table::{Footing, Scene, object_row, roster};
use uo_combat::{ARENA_MARGIN, LEASH};
use uo_proto::{
    Dir, Edge, EntityId, ObjectKey, ObjectKind, ObjectState, Pos, REGION_SIZE, RegionId,
};
use uo_world::build::arena_bounds;
use uo_world::camp::CAMP_DISTANCE;
use uo_world::tiles::TileSet;
use uo_world::{BadSize, RegionContent, World, build_arena};

const SIZE: u16 = 512;

fn world(seed: u64) -> World {
    World::new(seed, SIZE).expect("a good size")
}

/// Every region of a few worlds.
fn each_content(mut check: impl FnMut(&World, &RegionContent)) {
    for seed in 0..4 {
        let world = world(seed);
        for region in world.regions() {
            check(&world, &world.content(region));
        }
    }
}

/// The region's ground without anything on it.
fn ground(world: &World, region: RegionId) -> TileSet {
    let window = world.window(world.area(region));
    TileSet::walkable(region.origin(world.size()), &window)
}

#[test]
fn sizes_are_multiples_of_a_region() {
    let made = |size| World::new(1, size).map(|world| world.size());
    for size in [64, 128, 1024, 16_384] {
        assert_eq!(made(size), Ok(size));
    }
    for size in [0, 1, 63, 65, 1000, 16_448, u16::MAX] {
        assert_eq!(made(size), Err(BadSize(size)));
    }
}

#[test]
fn keys_are_sorted_unique_and_tell_the_place() {
    each_content(|world, content| {
        let origin = content.region.origin(world.size());
        assert!(content.objects.is_sorted_by(|a, b| a.key < b.key));
        for object in &content.objects {
            let slot = match object.edge {
                None => 0,
                Some(Edge::North) => 1,
                Some(Edge::West) => 2,
            };
            let tile = u32::from(object.y - origin.y) * 64 + u32::from(object.x - origin.x);
            assert_eq!(object.key, ObjectKey::new(content.region, tile * 4 + slot));
            assert!(!object.key.is_runtime());
            assert_eq!(content.object(object.key), Some(object));
        }
    });
}

#[test]
fn content_is_equal_whatever_was_asked_before() {
    let (forth, back) = (world(3), world(3));
    let ahead: Vec<_> = forth
        .regions()
        .map(|region| forth.content(region))
        .collect();
    let mut behind: Vec<_> = (0..RegionId::count(SIZE))
        .rev()
        .map(|region| back.content(RegionId(region)))
        .collect();
    behind.reverse();
    assert_eq!(ahead, behind);
    assert_ne!(ahead[0].objects, world(4).content(RegionId(0)).objects);
}

#[test]
fn what_the_cache_forgot_is_made_again() {
    let world = World::new(9, 16_384).expect("a good size");
    let (near, far) = (RegionId(5), RegionId(5 + 64));
    let first = world.content(near);
    assert_eq!(world.content(far).region, far);
    assert_eq!(first, world.content(near));
}

/// Stored damage is told by key: this number changes together with `CONTENT_VERSION`, and only then.
#[test]
fn content_of_this_version_never_changes() {
    assert_eq!(uo_world::CONTENT_VERSION, 1);
    let world = world(1);
    let digest = world.regions().fold(0, |digest, region| {
        let content = world.content(region);
        let text = format!("{digest}{:?}{}", content.respawn, content.camps.len());
        let text = content.objects.iter().fold(text, |text, object| {
            format!("{text}{} {:?}, ", object.key, object.kind)
        });
        uo_proto::fnv1a(text.as_bytes())
    });
    assert_eq!(digest, 4_245_324_203_150_919_260);
}

#[test]
fn objects_stand_whole_on_walkable_ground_of_their_region() {
    each_content(|world, content| {
        for object in &content.objects {
            let row = object_row(object.kind);
            assert_eq!(world.region_at(object.pos()), content.region);
            assert_eq!(object.hits, row.strength);
            assert_eq!(object.edge.is_some(), row.footing == Footing::Edge);
            assert!(world.tile(object.pos()).terrain.is_walkable());
            assert!(!object.gone && !object.active);
        }
    });
}

#[test]
fn camps_are_open_and_keep_away_from_where_the_dead_return() {
    let mut camps = 0;
    each_content(|world, content| {
        let arena = build_arena(world, content.region, std::iter::empty());
        assert!(content.camps.len() <= 2);
        for camp in &content.camps {
            camps += 1;
            assert!(camp.area.distance(content.respawn) >= CAMP_DISTANCE);
            assert!(arena.reachable(camp.gate, content.respawn));
            assert!(arena.reachable(camp.gate, camp.centre().step(Dir::N).expect("a tile")));
        }
    });
    assert!(camps > 100, "{camps} camps in 256 regions");
}

#[test]
fn bandits_are_at_home_within_the_reach_of_their_leash() {
    each_content(|world, content| {
        let arena = build_arena(world, content.region, std::iter::empty());
        let area = world.area(content.region);
        let per_camp = roster(Scene::Camp).len();
        assert_eq!(content.mobs.len(), content.camps.len() * per_camp);
        for (slot, mob) in content.mobs.iter().enumerate() {
            let camp = &content.camps[slot / per_camp];
            assert!((camp.slots.0..camp.slots.0 + camp.slots.1).contains(&(slot as u8)));
            assert_eq!(mob.id, EntityId::mob(content.region, slot as u8));
            assert!(camp.area.contains(mob.home));
            assert!(arena.reachable(mob.home, camp.gate), "{mob:?}");
            // The leash ends before the arena does.
            let inside = |at: u16, start: u16| (at - start).min(start + REGION_SIZE - 1 - at);
            let border = inside(mob.home.x, area.x).min(inside(mob.home.y, area.y));
            assert!(border + ARENA_MARGIN >= LEASH, "{mob:?}");
        }
    });
}

#[test]
fn the_dead_return_to_the_largest_open_ground() {
    each_content(|world, content| {
        let origin = content.region.origin(world.size());
        let main = ground(world, content.region).largest_piece();
        if main.is_empty() {
            assert_eq!(content.respawn, Pos::new(origin.x + 32, origin.y + 32));
            assert!(content.camps.is_empty());
            return;
        }
        let arena = build_arena(world, content.region, std::iter::empty());
        assert!(main.contains(content.respawn) && arena.passable(content.respawn));
        let (open, all) = (content.open().len(), main.len());
        assert!(open * 10 >= all * 7, "{open} of {all} tiles are open");
        for pos in content.open().iter() {
            assert!(arena.reachable(content.respawn, pos));
        }
    });
}

/// Red when `can_fill` always agrees.
#[test]
fn objects_separate_nothing_that_the_terrain_joins() {
    each_content(|world, content| {
        // With the doors open: inside of a house one is shut in, and meant to be.
        let doors = content
            .objects
            .iter()
            .filter(|object| object.kind == ObjectKind::Door);
        let opened = doors.map(|door| ObjectState {
            active: true,
            ..*door
        });
        let arena = build_arena(world, content.region, opened);
        for piece in ground(world, content.region).pieces() {
            let mut passable = piece.iter().filter(|&pos| arena.passable(pos));
            let first = passable.next().expect("no piece is filled up");
            for pos in passable {
                assert!(arena.reachable(first, pos), "{first:?} and {pos:?}");
            }
        }
    });
}

/// Red when `can_fill` does not ask `keeps_crossing`.
#[test]
fn objects_close_no_border_that_the_terrain_leaves_open() {
    each_content(|world, content| {
        let area = world.area(content.region);
        let pieces: Vec<TileSet> = ground(world, content.region).pieces().collect();
        for (dir, last) in [
            (Dir::E, area.x + REGION_SIZE),
            (Dir::S, area.y + REGION_SIZE),
        ] {
            if last == SIZE {
                continue;
            }
            let border: Vec<(Pos, Pos)> = area
                .positions()
                .filter_map(|pos| Some((pos, pos.step(dir)?)))
                .filter(|(_, beyond)| !area.contains(*beyond))
                .collect();
            let neighbour = world.content(world.region_at(border[0].1));
            for far in ground(world, neighbour.region).pieces() {
                for near in &pieces {
                    let mut joints = border
                        .iter()
                        .filter(|(here, there)| near.contains(*here) && far.contains(*there))
                        .peekable();
                    let joined = joints.peek().is_some();
                    let open = joints.any(|(here, there)| {
                        content.free().contains(*here) && neighbour.free().contains(*there)
                    });
                    assert_eq!(joined, open, "between {:?} and {dir:?}", content.region);
                }
            }
        }
    });
}

#[test]
fn there_is_something_to_find_in_every_world() {
    use ObjectKind::*;
    for seed in 0..4 {
        let world = world(seed);
        let kinds: BTreeSet<ObjectKind> = world
            .regions()
            .flat_map(|region| world.content(region).objects.clone())
            .map(|object| object.kind)
            .collect();
        for kind in [
            Tree, Rock, Bush, Wall, Fence, Door, Crate, Chest, Keg, Tent, Campfire,
        ] {
            assert!(kinds.contains(&kind), "seed {seed} has no {kind:?}");
        }
    }
}

/// Red when the neighbours' content is left out, or `gone` objects are placed.
#[test]
fn an_arena_is_the_content_under_what_changed() {
    let world = world(1);
    for region in world.regions() {
        let bounds = arena_bounds(&world, region);
        let mut expected: BTreeSet<ObjectKey> = world
            .neighbours(region)
            .chain([region])
            .flat_map(|near| world.content(near).objects.clone())
            .filter(|object| bounds.contains(object.pos()))
            .map(|object| object.key)
            .collect();
        let content = world.content(region);
        let Some(&felled) = content.objects.first() else {
            continue;
        };
        let gone = ObjectState {
            gone: true,
            ..felled
        };
        let neighbour = world
            .neighbours(region)
            .next()
            .expect("there are several regions");
        let raised = ObjectState {
            key: ObjectKey::new(neighbour, uo_proto::RUNTIME_OBJECT_BIT),
            kind: ObjectKind::Stone,
            x: bounds.x,
            y: bounds.y,
            edge: None,
            ..felled
        };
        let elsewhere = ObjectState {
            key: ObjectKey::new(region, uo_proto::RUNTIME_OBJECT_BIT),
            x: if bounds.x == 0 { SIZE - 1 } else { 0 },
            ..raised
        };
        let arena = build_arena(&world, region, [raised, gone, elsewhere].into_iter());
        expected.remove(&felled.key);
        expected.insert(raised.key);
        let placed: BTreeSet<ObjectKey> = arena.objects().map(|object| object.key).collect();
        assert_eq!(placed, expected);
        assert!(!arena.passable(raised.pos()));
        assert_eq!(arena.owned(), world.area(region));
    }
}

/// Red when `Arena::furnished` forgets what stands on edges.
#[test]
fn an_arena_furnished_at_once_is_one_furnished_piece_by_piece() {
    let world = world(2);
    for region in world.regions() {
        let at_once = build_arena(&world, region, std::iter::empty());
        let bounds = at_once.bounds();
        let ground = bounds.positions().map(|pos| at_once.ground(pos)).collect();
        let mut by_piece = uo_combat::Arena::new(region, bounds, at_once.owned(), ground);
        for object in at_once.objects() {
            by_piece.place(*object);
        }
        assert_eq!(at_once, by_piece);
        for pos in bounds.positions() {
            assert_eq!(at_once.passable(pos), by_piece.passable(pos));
            for dir in Dir::ALL {
                assert_eq!(
                    at_once.blocked_step(pos, dir),
                    by_piece.blocked_step(pos, dir)
                );
            }
        }
    }
}

proptest! {
    #[test]
    fn an_arena_has_the_ground_of_the_world(seed: u64, region in 0u32..64, x in 0..SIZE, y in 0..SIZE) {
        let world = world(seed);
        let arena = build_arena(&world, RegionId(region), std::iter::empty());
        let pos = Pos::new(x, y);
        let tile = world.tile(pos);
        if arena.contains(pos) {
            prop_assert_eq!(arena.ground(pos).walkable, tile.terrain.is_walkable());
            prop_assert_eq!(arena.ground(pos).height, tile.height);
        } else {
            prop_assert!(world.area(RegionId(region)).distance(pos) > ARENA_MARGIN);
        }
    }
}
