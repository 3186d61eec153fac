//! Ways through an arena: a bounded A* whose buffers are kept, and which fails at once when there is nothing to find.
//!
//! Every step takes the same time, so lengths are Chebyshev distances. Among equally short ways the one that keeps
//! closest to the straight line is found first.

use uo_proto::{Dir, Pos};

use crate::{Arena, Rect};

/// Steps that a way costs more where somebody stands now who may have moved on by then.
const CROWD_COST: u16 = 1;
/// Who stands within this many tiles of the start is in the way; who stands further off only costs.
const CROWD_TILES: u16 = 6;
/// A goal is enclosed if no more than this many tiles are connected to it.
const POCKET_TILES: usize = 24;
/// Ways may be this much longer than the straight line.
const DETOUR_MAX: usize = 256;

/// Where a way shall end.
#[derive(Clone, Copy)]
pub(crate) enum Goal<'a> {
    /// On one of these tiles.
    Tiles(&'a [Pos]),
    /// Anywhere within so many tiles of a place.
    Within(Pos, u16),
}

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The way leads to the goal.
    Whole,
    /// The budget ran out; the way leads nearer.
    Part,
    /// People are in the way.
    Crowded,
    /// No way at all: ground or objects are in the way.
    Walled,
}

/// One search.
pub(crate) struct Search<'a> {
    pub(crate) arena: &'a Arena,
    /// Who stands where, by tile; 0 is nobody.
    pub(crate) occupied: &'a [u16],
    pub(crate) from: Pos,
    /// The way does not leave these tiles.
    pub(crate) limit: Rect,
    pub(crate) goal: Goal<'a>,
    /// How many tiles are looked at before it ends.
    pub(crate) budget: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// The search that last saw it.
    stamp: u16,
    cost: u16,
    /// The step that led here.
    dir: Dir,
    done: bool,
}

/// The buffers of searches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    stamp: u16,
    nodes: Vec<Node>,
    /// Tiles to look at, by estimated length of the way over them less that of the straight line.
    open: Vec<Vec<u32>>,
}

/// Finds ways as the battle does, for those who plan or predict walks; its buffers are kept from one to the next.
#[derive(Clone, Debug, Default)]
pub struct Finder {
    occupied: Vec<u16>,
    scratch: Scratch,
    way: Vec<Dir>,
}

impl Finder {
    /// A finder that walks around those who stand on the `taken` tiles of an arena.
    pub fn new(arena: &Arena, taken: impl IntoIterator<Item = Pos>) -> Finder {
        let mut occupied = vec![0; arena.bounds().tiles()];
        for index in taken.into_iter().filter_map(|pos| arena.index(pos)) {
            occupied[index] = 1;
        }
        Finder {
            occupied,
            ..Finder::default()
        }
    }

    /// The steps from `from` to `to` in an arena of the same bounds; none if there is no way, or none within `budget`
    /// tiles looked at.
    pub fn find(&mut self, arena: &Arena, from: Pos, to: Pos, budget: usize) -> Option<&[Dir]> {
        let search = Search {
            arena,
            occupied: &self.occupied,
            from,
            limit: arena.bounds(),
            goal: Goal::Tiles(&[to]),
            budget,
        };
        let found = search.run(&mut self.scratch, &mut self.way);
        self.way.reverse();
        (found == Found::Whole).then_some(&self.way)
    }
}

/// A way from `from` to `to` (people do not count), as the battle would walk it; none if there is none.
pub fn find_way(arena: &Arena, from: Pos, to: Pos) -> Option<Vec<Dir>> {
    Finder::default()
        .find(arena, from, to, arena.bounds().tiles())
        .map(<[Dir]>::to_vec)
}

impl Search<'_> {
    /// Finds a way and writes its steps to `way`, the first one last.
    pub(crate) fn run(&self, scratch: &mut Scratch, way: &mut Vec<Dir>) -> Found {
        way.clear();
        let Some(start) = self.arena.index(self.from) else {
            return Found::Walled;
        };
        scratch.begin(self.arena.bounds().tiles());
        if let Some(hopeless) = self.hopeless(scratch) {
            return hopeless;
        }
        let target = self.area();
        let straight = target.distance(self.from);
        let (mut nearest, mut nearest_left) = (start, straight);
        scratch.restart();
        scratch.reach(start, 0, Dir::N);
        scratch.push(0, start);
        let mut level = 0;
        let mut budget = self.budget;
        while level < scratch.open.len() {
            let Some(index) = scratch.open[level].pop() else {
                level += 1;
                continue;
            };
            let index = index as usize;
            if std::mem::replace(&mut scratch.nodes[index].done, true) {
                continue;
            }
            let pos = self.arena.pos(index);
            let left = target.distance(pos);
            if left == 0 && self.is_goal(pos) {
                scratch.trace(self.arena, start, index, way);
                return Found::Whole;
            }
            if left < nearest_left {
                (nearest, nearest_left) = (index, left);
            }
            if budget == 0 {
                break;
            }
            budget -= 1;
            self.expand(scratch, index, pos, straight, &target);
        }
        if budget == 0 && nearest != start {
            scratch.trace(self.arena, start, nearest, way);
            return Found::Part;
        }
        Found::Crowded
    }

    /// What can be said without a search: the goal is walled off, or no tile of it is free, or people enclose it.
    fn hopeless(&self, scratch: &mut Scratch) -> Option<Found> {
        let component = self.arena.component(self.from);
        let tiles = match self.goal {
            Goal::Tiles(tiles) => tiles,
            Goal::Within(center, _) => {
                let there = self.arena.component(center);
                return (there != 0 && there != component).then_some(Found::Walled);
            }
        };
        let connected = |&&tile: &&Pos| self.arena.component(tile) == component;
        if !tiles.iter().any(|tile| connected(&tile)) {
            return Some(Found::Walled);
        }
        let mut free = tiles
            .iter()
            .filter(connected)
            .filter(|&&tile| self.is_free(tile));
        let Some(first) = free.next() else {
            return Some(Found::Crowded);
        };
        let pocket = self.enclosed(scratch, std::iter::once(first).chain(free));
        pocket.then_some(Found::Crowded)
    }

    fn is_free(&self, pos: Pos) -> bool {
        pos == self.from
            || (self.limit.contains(pos)
                && self
                    .arena
                    .index(pos)
                    .is_some_and(|index| !self.taken(index)))
    }

    fn taken(&self, index: usize) -> bool {
        self.occupied.get(index).is_some_and(|&who| who != 0)
    }

    /// Whether a flood from the goal runs dry within a few tiles without meeting the start.
    fn enclosed<'p>(&self, scratch: &mut Scratch, goals: impl Iterator<Item = &'p Pos>) -> bool {
        let mut pocket = [Pos::default(); POCKET_TILES];
        let mut known = 0;
        for &goal in goals {
            if !self.note(scratch, goal, &mut pocket, &mut known) {
                return false;
            }
        }
        let mut next = 0;
        while next < known {
            let pos = pocket[next];
            next += 1;
            for dir in Dir::ALL {
                if !self.arena.blocked_step(pos, dir)
                    && let Some(to) = pos.step(dir)
                    && self.is_free(to)
                    && !self.note(scratch, to, &mut pocket, &mut known)
                {
                    return false;
                }
            }
        }
        true
    }

    /// Adds a tile to the pocket; false if it is the start or there is no more room: it is no pocket then.
    fn note(
        &self,
        scratch: &mut Scratch,
        pos: Pos,
        pocket: &mut [Pos; POCKET_TILES],
        known: &mut usize,
    ) -> bool {
        let Some(index) = self.arena.index(pos) else {
            return true;
        };
        if pos == self.from || *known == POCKET_TILES {
            return false;
        }
        if scratch.nodes[index].stamp != scratch.stamp {
            scratch.reach(index, 0, Dir::N);
            pocket[*known] = pos;
            *known += 1;
        }
        true
    }

    /// The rectangle that holds all goal tiles.
    fn area(&self) -> Rect {
        match self.goal {
            Goal::Within(center, radius) => Rect::around(center, radius),
            Goal::Tiles(tiles) => {
                let axis = |value: fn(&Pos) -> u16| {
                    let low = tiles.iter().map(value).min().unwrap_or(0);
                    (low, tiles.iter().map(value).max().unwrap_or(0) - low + 1)
                };
                let ((x, width), (y, height)) = (axis(|pos| pos.x), axis(|pos| pos.y));
                Rect {
                    x,
                    y,
                    width,
                    height,
                }
            }
        }
    }

    fn is_goal(&self, pos: Pos) -> bool {
        match self.goal {
            Goal::Tiles(tiles) => tiles.contains(&pos),
            Goal::Within(..) => true,
        }
    }

    fn expand(&self, scratch: &mut Scratch, index: usize, pos: Pos, straight: u16, target: &Rect) {
        let exits = self.arena.exits()[index];
        let width = self.arena.bounds().width as isize;
        let ahead = pos.dir_to(middle(target)).unwrap_or_default();
        let cost = scratch.nodes[index].cost;
        // The last one pushed is looked at first: straight ahead.
        for turn in [4, 3, -3, 2, -2, 1, -1, 0] {
            let dir = ahead.turned(turn);
            if exits & (1 << dir as u8) == 0 {
                continue;
            }
            let (dx, dy) = dir.offset();
            let next = index.wrapping_add_signed(isize::from(dy) * width + isize::from(dx));
            let to = Pos::new(pos.x.wrapping_add_signed(dx), pos.y.wrapping_add_signed(dy));
            let mut length = cost + 1;
            if self.taken(next) {
                if to.distance(self.from) <= CROWD_TILES || target.distance(to) == 0 {
                    continue;
                }
                length += CROWD_COST;
            }
            if !self.limit.contains(to) || !scratch.reach(next, length, dir) {
                continue;
            }
            let level = usize::from(length + target.distance(to)) - usize::from(straight);
            scratch.push(level, next);
        }
    }
}

impl Scratch {
    fn begin(&mut self, tiles: usize) {
        self.nodes.resize(tiles, Node::default());
        self.open.iter_mut().for_each(Vec::clear);
        self.restart();
    }

    /// Forgets every node.
    fn restart(&mut self) {
        self.stamp = self.stamp.wrapping_add(1);
        if self.stamp == 0 {
            self.nodes.fill(Node::default());
            self.stamp = 1;
        }
    }

    /// Notes a way to a node; false if one as short is known.
    fn reach(&mut self, index: usize, cost: u16, dir: Dir) -> bool {
        let node = &mut self.nodes[index];
        let known = node.stamp == self.stamp && (node.done || node.cost <= cost);
        if !known {
            *node = Node {
                stamp: self.stamp,
                cost,
                dir,
                done: false,
            };
        }
        !known
    }

    fn push(&mut self, level: usize, index: usize) {
        if level >= DETOUR_MAX {
            return;
        }
        if level >= self.open.len() {
            self.open.resize_with(level + 1, Vec::new);
        }
        self.open[level].push(index as u32);
    }

    /// Writes the steps from `start` to `end`, the last one first.
    fn trace(&self, arena: &Arena, start: usize, end: usize, way: &mut Vec<Dir>) {
        let width = arena.bounds().width as isize;
        let mut index = end;
        while index != start {
            let dir = self.nodes[index].dir;
            way.push(dir);
            let (dx, dy) = dir.offset();
            index = index.wrapping_add_signed(-(isize::from(dy) * width + isize::from(dx)));
        }
    }
}

fn middle(area: &Rect) -> Pos {
    Pos::new(area.x + area.width / 2, area.y + area.height / 2)
}
