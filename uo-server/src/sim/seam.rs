//! The two functions of `uo-world` that are still on their way: this file goes when they land.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_combat::{ARENA_MARGIN, Arena, Ground, Rect};
use uo_proto::{ObjectState, Pos, RegionId};
use uo_world::World;

/// The arena of `region`: its tiles and a margin, with every generated object and then the changed ones.
pub fn build_arena(
    world: &World,
    region: RegionId,
    changed: impl Iterator<Item = ObjectState>,
) -> Arena {
    let area = world.area(region);
    let owned = Rect {
        x: area.x,
        y: area.y,
        width: area.width,
        height: area.height,
    };
    let (left, top) = (
        area.x.saturating_sub(ARENA_MARGIN),
        area.y.saturating_sub(ARENA_MARGIN),
    );
    let right = (area.x + area.width + ARENA_MARGIN).min(world.size());
    let bottom = (area.y + area.height + ARENA_MARGIN).min(world.size());
    let bounds = Rect {
        x: left,
        y: top,
        width: right - left,
        height: bottom - top,
    };
    let tiles = (top..bottom).flat_map(|y| (left..right).map(move |x| Pos::new(x, y)));
    let ground = tiles
        .map(|pos| {
            let tile = world.tile(pos);
            Ground {
                walkable: tile.terrain.is_walkable(),
                height: tile.height,
            }
        })
        .collect();
    let mut arena = Arena::new(region, bounds, owned, ground);
    for near in std::iter::once(region).chain(world.neighbours(region)) {
        for object in &world.content(near).objects {
            arena.place(*object);
        }
    }
    for object in changed {
        arena.place(object);
    }
    arena
}

/// The goal itself if it is in the arena, else the passable tile of the arena that is nearest to it.
pub fn plan_leg(world: &World, arena: &Arena, from: Pos, goal: Pos) -> Option<Pos> {
    if arena.contains(goal) {
        return arena.reachable(from, goal).then_some(goal);
    }
    let bounds = arena.bounds();
    let tiles = (0..bounds.height)
        .flat_map(|y| (0..bounds.width).map(move |x| Pos::new(bounds.x + x, bounds.y + y)));
    tiles
        .filter(|&tile| world.contains(tile) && arena.reachable(from, tile))
        .min_by_key(|&tile| (tile.distance(goal), tile.distance(from), tile.y, tile.x))
        .filter(|&leg| leg != from)
}
