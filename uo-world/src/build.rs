//! Arenas: the ground and the objects of a battle.

use std::collections::BTreeMap;

use uo_combat::{ARENA_MARGIN, Arena, Ground};
use uo_proto::{ObjectKey, ObjectState, RegionId};

use crate::{Rect, World};

/// The arena of `region`: its tiles and `ARENA_MARGIN` around them, as far as the map goes, with what they were generated
/// with. Over that lie the `changed` objects, the region's own and its neighbours', made at run time or not; those that
/// stand elsewhere are left out.
pub fn build_arena(
    world: &World,
    region: RegionId,
    changed: impl Iterator<Item = ObjectState>,
) -> Arena {
    let owned = world.area(region);
    let bounds = arena_bounds(world, region);
    let ground = world
        .window(bounds)
        .tiles()
        .iter()
        .map(|tile| Ground {
            walkable: tile.terrain.is_walkable(),
            height: tile.height,
        })
        .collect();
    let mut objects: BTreeMap<ObjectKey, ObjectState> = std::iter::once(region)
        .chain(world.neighbours(region))
        .flat_map(|near| {
            let content = world.content(near);
            let objects = content.objects.iter();
            let inside = objects.filter(|object| bounds.contains(object.pos()));
            inside
                .map(|object| (object.key, *object))
                .collect::<Vec<_>>()
        })
        .collect();
    objects.extend(changed.map(|object| (object.key, object)));
    Arena::furnished(region, bounds, owned, ground, objects.into_values())
}

/// The tiles of a region's arena.
pub fn arena_bounds(world: &World, region: RegionId) -> Rect {
    let grown = world.area(region).grown(ARENA_MARGIN);
    Rect {
        width: grown.width.min(world.size() - grown.x),
        height: grown.height.min(world.size() - grown.y),
        ..grown
    }
}
