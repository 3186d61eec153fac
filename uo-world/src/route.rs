//! Coarse ways over the whole map: from region to region, over terrain alone.
//!
//! The nodes are the *parts* of regions, pieces of walkable ground that hang together within their region and touch its
//! border. Two parts are joined where they touch across a border. [`Site`](crate::site::Site) promises that objects
//! separate nothing of this, so that a coarse way is a way.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use uo_proto::{Dir, Pos, REGION_SIZE, RegionId};

use crate::World;
use crate::tiles::TileSet;

/// Parts looked at before a search gives up: goals behind a coast of this many regions are out of reach.
const EXPANSIONS_MAX: usize = 8_192;
/// Parts looked at around the goal, to see at once that it lies on an island.
const ISLAND_MAX: usize = 64;
/// The headings that lead from region to region.
const SIDES: [Dir; 4] = [Dir::N, Dir::E, Dir::S, Dir::W];
/// Says that a border tile cannot be walked.
const NO_PART: u8 = u8::MAX;

/// A part of a region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Node {
    /// Where.
    pub region: RegionId,
    part: u8,
}

impl Node {
    /// A number that differs for most pairs of nodes.
    pub fn mix(self, other: Node) -> u32 {
        let number = |node: Node| node.region.0 << 7 ^ u32::from(node.part);
        number(self).wrapping_mul(0x9e37_79b1).rotate_left(15)
            ^ number(other).wrapping_mul(0x85eb_ca6b) >> 8
    }
}

/// The parts of one region.
pub struct Survey {
    parts: Vec<TileSet>,
    /// For each of [`SIDES`], the part of each border tile from west to east or north to south.
    borders: [[u8; REGION_SIZE as usize]; 4],
}

impl Survey {
    /// Surveys a region.
    pub fn new(world: &World, region: RegionId) -> Survey {
        let origin = region.origin(world.size());
        let ground = world.window(world.area(region));
        let mut survey = Survey {
            parts: Vec::new(),
            borders: [[NO_PART; REGION_SIZE as usize]; 4],
        };
        for piece in TileSet::walkable(origin, &ground).pieces() {
            survey.add(origin, piece);
        }
        survey
    }

    /// Takes in a piece of ground, if it touches the border. There are at most 128 such pieces: every other border tile.
    fn add(&mut self, origin: Pos, piece: TileSet) {
        let number = self.parts.len() as u8;
        let mut touches = false;
        for (side, border) in SIDES.into_iter().zip(&mut self.borders) {
            for (along, part) in (0..).zip(border) {
                if piece.contains(border_tile(origin, side, along)) {
                    *part = number;
                    touches = true;
                }
            }
        }
        if touches {
            self.parts.push(piece);
        }
    }

    fn border(&self, side: Dir) -> &[u8; REGION_SIZE as usize] {
        &self.borders[side as usize / 2]
    }
}

/// The border tile number `along` on one side of the region at `origin`.
fn border_tile(origin: Pos, side: Dir, along: u16) -> Pos {
    let last = REGION_SIZE - 1;
    match side {
        Dir::N => Pos::new(origin.x + along, origin.y),
        Dir::S => Pos::new(origin.x + along, origin.y + last),
        Dir::W => Pos::new(origin.x, origin.y + along),
        _ => Pos::new(origin.x + last, origin.y + along),
    }
}

/// The part that `pos` belongs to; none on water, on cliffs, and on ground that is enclosed within its region.
pub fn node_at(world: &World, pos: Pos) -> Option<Node> {
    if !world.contains(pos) {
        return None;
    }
    let region = world.region_at(pos);
    let parts = &world.survey(region).parts;
    let part = parts.iter().position(|part| part.contains(pos))?;
    Some(Node {
        region,
        part: part as u8,
    })
}

/// The tiles of `to` that are one step across the border from `from`, with the heading of that step.
pub fn crossings(world: &World, from: Node, to: Node) -> impl Iterator<Item = (Pos, Dir)> {
    SIDES
        .into_iter()
        .filter(move |&side| beyond(world, from.region, side) == Some(to.region))
        .flat_map(move |side| {
            let here = world.survey(from.region).border(side);
            let there = world.survey(to.region).border(side.turned(4));
            let origin = to.region.origin(world.size());
            (0..REGION_SIZE)
                .filter(move |&along| {
                    here[usize::from(along)] == from.part && there[usize::from(along)] == to.part
                })
                .map(move |along| (border_tile(origin, side.turned(4), along), side))
        })
}

/// The first part to enter on a shortest way from `from` to another part `goal`; none if there is no way, or none within
/// the search's bound.
///
/// Shortest is what crosses the fewest borders, and of such ways the one nearest the straight line. So whoever enters
/// that part and asks again is one border nearer, and the asking ends.
pub fn first_step(world: &World, from: Node, goal: Node) -> Option<Node> {
    if is_island_without(world, goal, from) {
        return None;
    }
    let (start, end) = (place(world, from), place(world, goal));
    let rank = |node: Node, crossed: u32| {
        let at = place(world, node);
        let ahead = at.0.abs_diff(end.0) + at.1.abs_diff(end.1);
        let off_line = (at.0 - end.0) * (start.1 - end.1) - (at.1 - end.1) * (start.0 - end.0);
        (crossed + ahead, off_line.unsigned_abs())
    };
    let mut open = BinaryHeap::from([Reverse((rank(from, 0), from, 0))]);
    // The fewest borders to each part seen, and the first part of that way.
    let mut seen = BTreeMap::from([(from, (0, from))]);
    for _ in 0..EXPANSIONS_MAX {
        let Reverse((_, node, crossed)) = open.pop()?;
        let (fewest, first) = seen[&node];
        if node == goal {
            return Some(first);
        }
        if crossed > fewest {
            continue;
        }
        for next in joined(world, node) {
            let first = if node == from { next } else { first };
            let known = seen.entry(next).or_insert((u32::MAX, first));
            if crossed + 1 < known.0 {
                *known = (crossed + 1, first);
                open.push(Reverse((rank(next, crossed + 1), next, crossed + 1)));
            }
        }
    }
    None
}

/// Whether the parts joined to `goal` are few and `other` is none of them.
fn is_island_without(world: &World, goal: Node, other: Node) -> bool {
    let mut seen = BTreeSet::from([goal]);
    let mut open = vec![goal];
    while let Some(node) = open.pop() {
        if node == other || seen.len() > ISLAND_MAX {
            return false;
        }
        open.extend(
            joined(world, node)
                .into_iter()
                .filter(|&next| seen.insert(next)),
        );
    }
    true
}

/// The parts that touch `node` across a border.
fn joined(world: &World, node: Node) -> Vec<Node> {
    let mut joined: Vec<Node> = Vec::with_capacity(4);
    for side in SIDES {
        let Some(region) = beyond(world, node.region, side) else {
            continue;
        };
        let here = world.survey(node.region).border(side);
        let there = world.survey(region).border(side.turned(4));
        for (&part, &next) in here.iter().zip(there) {
            let next = Node { region, part: next };
            if part == node.part && next.part != NO_PART && !joined.contains(&next) {
                joined.push(next);
            }
        }
    }
    joined
}

/// The region on one side of another.
fn beyond(world: &World, region: RegionId, side: Dir) -> Option<RegionId> {
    let origin = region.origin(world.size());
    let (dx, dy) = side.offset();
    let neighbour = Pos::new(
        origin.x.checked_add_signed(dx * REGION_SIZE as i16)?,
        origin.y.checked_add_signed(dy * REGION_SIZE as i16)?,
    );
    world
        .contains(neighbour)
        .then(|| world.region_at(neighbour))
}

/// Column and row of a part's region.
fn place(world: &World, node: Node) -> (i32, i32) {
    let origin = node.region.origin(world.size());
    (
        i32::from(origin.x / REGION_SIZE),
        i32::from(origin.y / REGION_SIZE),
    )
}
