//! Walks over borders: who begins near one, and where on the other side they can go.

use std::collections::BTreeMap;

use uo_proto::{Pos, RegionId};
use uo_world::{World, build_arena, spawn_point};

/// Names tried before it is said that there is no such walk.
const NAMES_MAX: usize = 20_000;
/// How far a goal may be from its start, in tiles: a walk of a few seconds.
const WALK_MAX: u16 = 12;
/// How deep in the other region a goal lies, in tiles: deep enough that its region takes over.
const DEPTH: u16 = 3;

/// A new name, where it begins, and where it can walk to on the other side of a border.
#[derive(Clone, Debug)]
pub struct Walk {
    pub name: String,
    pub start: Pos,
    pub goal: Pos,
    pub from: RegionId,
    pub to: RegionId,
}

/// So many walks from one sim's region to another's.
pub fn walks(world: &World, holders: &BTreeMap<RegionId, String>, count: usize) -> Vec<Walk> {
    find(world, count, |from, to| {
        holders.get(&from) != holders.get(&to)
    })
}

/// So many walks over borders, whoever runs what lies behind them.
pub fn walks_of_one(world: &World, count: usize) -> Vec<Walk> {
    find(world, count, |_, _| true)
}

/// So many walks over wanted borders, no two of the same name.
pub fn find(
    world: &World,
    count: usize,
    is_wanted: impl Fn(RegionId, RegionId) -> bool,
) -> Vec<Walk> {
    let names = (0..NAMES_MAX).map(|number| format!("p{number}"));
    let walks = names.filter_map(|name| walk(world, name, &is_wanted));
    let walks: Vec<Walk> = walks.take(count).collect();
    assert_eq!(walks.len(), count, "there are too few walks over borders");
    walks
}

fn walk(
    world: &World,
    name: String,
    is_wanted: impl Fn(RegionId, RegionId) -> bool,
) -> Option<Walk> {
    let start = spawn_point(world, &name);
    let from = world.region_at(start);
    let is_far = |&to: &RegionId| is_wanted(from, to);
    let to_goal = |to: RegionId| goal(world, start, from, to).map(|goal| (to, goal));
    let mut beside = world.neighbours(from).filter(is_far);
    let (to, goal) = beside.find_map(to_goal)?;
    Some(Walk {
        name,
        start,
        goal,
        from,
        to,
    })
}

fn goal(world: &World, start: Pos, from: RegionId, to: RegionId) -> Option<Pos> {
    let around = |at: u16| at.saturating_sub(WALK_MAX)..=at.saturating_add(WALK_MAX);
    let size = world.size();
    let tiles = around(start.y).flat_map(|y| around(start.x).map(move |x| Pos { x, y }));
    let mut deep = tiles
        .filter(|pos| pos.x.max(pos.y) + DEPTH < size)
        .filter(|pos| is_deep(world, *pos, to))
        .peekable();
    // Building an arena is dear.
    deep.peek()?;
    let arena = build_arena(world, from, std::iter::empty());
    let mut good = deep.filter(|&pos| arena.passable(pos) && arena.reachable(start, pos));
    good.next()
}

fn is_deep(world: &World, pos: Pos, region: RegionId) -> bool {
    let shifted = |at: u16| [at.saturating_sub(DEPTH), at + DEPTH];
    let corners = shifted(pos.x)
        .into_iter()
        .flat_map(|x| shifted(pos.y).map(|y| Pos { x, y }));
    corners
        .map(|corner| world.region_at(corner))
        .all(|at| at == region)
}

/// A new name that begins in one of these regions.
pub fn name_in(world: &World, regions: impl Fn(RegionId) -> bool, skip: usize) -> String {
    let names = (0..NAMES_MAX).map(|number| format!("q{number}"));
    let mut there = names.filter(|name| regions(world.region_at(spawn_point(world, name))));
    there.nth(skip).expect("somebody begins there")
}
