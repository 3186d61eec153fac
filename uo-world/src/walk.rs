//! Ways across the map, leg by leg. The client plans with this to draw a way, and the server to walk it.

use std::collections::VecDeque;

use uo_combat::Arena;
use uo_proto::{Dir, Pos, REGION_SIZE};

use crate::route::{self, Node};
use crate::tiles::TileSet;
use crate::{RegionContent, World};

/// How far beyond a border a leg ends: further than a battle needs to hand a walker on, so that nobody stops on a border.
const DEPTH: u16 = 4;

/// The next tile inside `arena` to walk to on the way from `from`, a tile of it, to `goal`, anywhere on the map.
///
/// It is the goal itself once that can be reached inside the arena. None says that there is no way: the goal cannot be
/// stood on, lies across water or cliffs, or is walled off by what stands in this arena now. A walker who is held in an
/// arena that ends in front of it gets none as well.
///
/// Whoever walks to the tile, changes to the arena of the region it is in, and asks again, arrives: each leg but the
/// last crosses a border of a shortest way over the terrain (or goes further into the margin), so there are no circles.
///
/// The cost is bounded: a search over regions, remembered for repetition, and at most a look at the tiles of one.
pub fn plan_leg(world: &World, arena: &Arena, from: Pos, goal: Pos) -> Option<Pos> {
    if arena.reachable(from, goal) {
        return Some(goal);
    }
    let here = route::node_at(world, from)?;
    let there = route::node_at(world, goal)?;
    let next = if here == there {
        None
    } else {
        Some(world.first_step(here, there)?)
    };
    next.and_then(|next| leg_across(world, arena, from, goal, here, next))
        .or_else(|| leg_within_margin(world, arena, from, goal, here, next))
}

/// The best tile beyond the border to the next part, if it can be reached inside the arena.
fn leg_across(
    world: &World,
    arena: &Arena,
    from: Pos,
    goal: Pos,
    here: Node,
    next: Node,
) -> Option<Pos> {
    route::crossings(world, here, next)
        .filter(|&(pos, _)| arena.reachable(from, pos))
        .map(|(pos, dir)| deeper(arena, pos, dir))
        .min_by_key(|&pos| (way_length(from, pos) + way_length(pos, goal), pos))
}

/// The tile up to [`DEPTH`] straight on from a crossing, as far as nothing is in the way: it is of the same part, because
/// tiles beside each other in a region are.
fn deeper(arena: &Arena, crossing: Pos, dir: Dir) -> Pos {
    let mut end = crossing;
    for _ in 1..DEPTH {
        match end.step(dir) {
            Some(next) if arena.reachable(end, next) => end = next,
            _ => break,
        }
    }
    end
}

/// For one who stands in the arena's margin, and not in its region: as far along the way as the arena goes. The way is
/// one through the margin's region, to the goal or to the border of the next part.
fn leg_within_margin(
    world: &World,
    arena: &Arena,
    from: Pos,
    goal: Pos,
    here: Node,
    next: Option<Node>,
) -> Option<Pos> {
    if arena.owned().contains(from) {
        return None;
    }
    let content = world.content(here.region);
    let ends: Vec<Pos> = match next {
        None => vec![goal],
        Some(next) => {
            let beyond = world.content(next.region);
            route::crossings(world, here, next)
                .filter(|&(pos, _)| beyond.free().contains(pos))
                .filter_map(|(pos, dir)| pos.step(dir.turned(4)))
                .collect()
        }
    };
    let steps = steps_to(&content, arena, ends);
    let ahead = |pos: Pos| steps[index(content.free(), pos)];
    content
        .free()
        .iter()
        .filter(|&pos| ahead(pos) < ahead(from) && arena.reachable(from, pos))
        .min_by_key(|&pos| (ahead(pos), way_length(from, pos)))
}

/// For each tile of a region, how many steps to the four sides within the region lead to the nearest of `ends`. What
/// blocks is what `arena` knows, and beyond it what was generated.
fn steps_to(content: &RegionContent, arena: &Arena, ends: Vec<Pos>) -> Vec<u16> {
    let free = content.free();
    let mut steps = vec![u16::MAX; usize::from(REGION_SIZE) * usize::from(REGION_SIZE)];
    let mut queue: VecDeque<Pos> = ends.into_iter().filter(|&end| free.contains(end)).collect();
    for &end in &queue {
        steps[index(free, end)] = 0;
    }
    while let Some(pos) = queue.pop_front() {
        let next_steps = steps[index(free, pos)] + 1;
        for dir in [Dir::N, Dir::E, Dir::S, Dir::W] {
            let Some(near) = pos.step(dir).filter(|&near| free.contains(near)) else {
                continue;
            };
            let barred = if arena.contains(pos) && arena.contains(near) {
                arena.blocked_step(near, dir.turned(4))
            } else {
                content.barriers().between(pos, dir)
            };
            let known = &mut steps[index(free, near)];
            if *known == u16::MAX && !barred {
                *known = next_steps;
                queue.push_back(near);
            }
        }
    }
    steps
}

/// Where a tile of a set's region is kept.
fn index(set: &TileSet, pos: Pos) -> usize {
    let origin = set.origin();
    usize::from(pos.y - origin.y) * usize::from(REGION_SIZE) + usize::from(pos.x - origin.x)
}

/// Length of the way over open ground, in tenths of a tile; a diagonal step counts a little more than a straight one,
/// which keeps ways near the straight line.
fn way_length(a: Pos, b: Pos) -> u32 {
    let (dx, dy) = (a.x.abs_diff(b.x), a.y.abs_diff(b.y));
    u32::from(dx.max(dy)) * 10 + u32::from(dx.min(dy)) * 4
}
