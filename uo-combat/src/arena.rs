//! The tiles of a battle: the region and a margin around it, what stands on them, what blocks and what is connected.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use uo_proto::{Dir, Edge, ObjectKey, ObjectKind, ObjectState, Pos, RegionId};

use crate::Rect;
use crate::table::{Footing, cover_percent, object_row};

/// The ground of one tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "u16", into = "u16")]
pub struct Ground {
    /// Whether one can stand on it.
    pub walkable: bool,
    /// As in `uo_proto::Tile`; ridges hide what lies behind them.
    pub height: u8,
}

impl From<u16> for Ground {
    fn from(packed: u16) -> Ground {
        Ground {
            walkable: packed & 0x100 != 0,
            height: packed as u8,
        }
    }
}

impl From<Ground> for u16 {
    fn from(ground: Ground) -> u16 {
        u16::from(ground.walkable) << 8 | u16::from(ground.height)
    }
}

/// What objects do to one tile: to the tile itself, its north edge and its west edge.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// Bits [`TILE`], [`NORTH`] and [`WEST`]: nobody passes.
    blocks: u8,
    /// Percent of cover at each of them; 100 hides.
    cover: [u8; 3],
}

const TILE: usize = 0;
const NORTH: usize = 1;
const WEST: usize = 2;

/// Tiles of one battle: the region and `ARENA_MARGIN` around it, clipped to the map.
#[derive(Clone, Serialize, Deserialize)]
#[serde(from = "Kept")]
pub struct Arena {
    region: RegionId,
    bounds: Rect,
    owned: Rect,
    ground: Vec<Ground>,
    objects: BTreeMap<ObjectKey, ObjectState>,
    /// Derived from ground and objects: what they do to each tile.
    #[serde(skip)]
    cells: Vec<Cell>,
    /// Derived from the cells: bit `dir` of a tile is set if a step that way is free.
    #[serde(skip)]
    exits: Vec<u8>,
    /// Derived from the exits when it is asked for: the connected component of each tile, 0 where nobody can stand.
    #[serde(skip)]
    components: OnceLock<Vec<u16>>,
}

/// What an arena is made from again.
#[derive(Deserialize)]
struct Kept {
    region: RegionId,
    bounds: Rect,
    owned: Rect,
    ground: Vec<Ground>,
    objects: BTreeMap<ObjectKey, ObjectState>,
}

impl From<Kept> for Arena {
    fn from(kept: Kept) -> Arena {
        Arena::furnished(
            kept.region,
            kept.bounds,
            kept.owned,
            kept.ground,
            kept.objects.into_values(),
        )
    }
}

impl fmt::Debug for Arena {
    /// Without the thousands of tiles.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("region", &self.region)
            .field("bounds", &self.bounds)
            .field("owned", &self.owned)
            .field("objects", &self.objects)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Arena {
    fn eq(&self, other: &Arena) -> bool {
        // Everything else is derived from these.
        (self.region, self.bounds, self.owned) == (other.region, other.bounds, other.owned)
            && self.ground == other.ground
            && self.objects == other.objects
    }
}

impl Arena {
    /// An arena without objects. `ground` covers `bounds` row by row; what is missing cannot be walked.
    pub fn new(region: RegionId, bounds: Rect, owned: Rect, ground: Vec<Ground>) -> Arena {
        Arena::furnished(region, bounds, owned, ground, std::iter::empty())
    }

    /// An arena with objects: as if each was [placed](Arena::place), but what blocks is found out once at the end.
    pub fn furnished(
        region: RegionId,
        bounds: Rect,
        owned: Rect,
        mut ground: Vec<Ground>,
        objects: impl IntoIterator<Item = ObjectState>,
    ) -> Arena {
        ground.resize(bounds.tiles(), Ground::default());
        let mut arena = Arena {
            region,
            bounds,
            owned,
            cells: vec![Cell::default(); ground.len()],
            exits: vec![0; ground.len()],
            ground,
            objects: BTreeMap::new(),
            components: OnceLock::new(),
        };
        arena.objects = objects
            .into_iter()
            .filter(|object| !object.gone && bounds.contains(object.pos()))
            .map(|object| (object.key, object))
            .collect();
        for object in arena.objects.values() {
            if let (Some(index), Some((part, blocks, cover))) =
                (arena.index(object.pos()), shape(object))
            {
                let cell = &mut arena.cells[index];
                cell.blocks |= u8::from(blocks) << part;
                cell.cover[part] = cell.cover[part].max(cover);
            }
        }
        for index in 0..arena.exits.len() {
            arena.exits[index] = arena.exits_of(arena.pos(index));
        }
        arena
    }

    /// The region whose battle this is.
    pub fn region(&self) -> RegionId {
        self.region
    }

    /// All its tiles.
    pub fn bounds(&self) -> Rect {
        self.bounds
    }

    /// The tiles of the region itself.
    pub fn owned(&self) -> Rect {
        self.owned
    }

    /// Whether `pos` is one of its tiles.
    pub fn contains(&self, pos: Pos) -> bool {
        self.bounds.contains(pos)
    }

    /// The ground of a tile; outside nothing can be walked.
    pub fn ground(&self, pos: Pos) -> Ground {
        self.index(pos)
            .map(|index| self.ground[index])
            .unwrap_or_default()
    }

    /// The object of that key.
    pub fn object(&self, key: ObjectKey) -> Option<&ObjectState> {
        self.objects.get(&key)
    }

    /// All objects, in the order of their keys.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectState> {
        self.objects.values()
    }

    /// Inserts or replaces an object; one that is `gone` is removed. One outside the bounds is ignored.
    pub fn place(&mut self, object: ObjectState) {
        let old = if object.gone {
            self.objects.remove(&object.key)
        } else if self.contains(object.pos()) {
            self.objects.insert(object.key, object)
        } else {
            None
        };
        match old {
            None if object.gone => {}
            None => self.stand(&object),
            Some(old)
                if !object.gone && (old.pos(), shape(&old)) == (object.pos(), shape(&object)) => {}
            Some(old) => {
                self.look_again(old.pos());
                self.look_again(object.pos());
            }
        }
    }

    /// Whether a step from `from` in `dir` is blocked by ground, objects or the arena's end; people do not count.
    pub fn blocked_step(&self, from: Pos, dir: Dir) -> bool {
        self.index(from)
            .is_none_or(|index| self.exits[index] & (1 << dir as u8) == 0)
    }

    /// The step that a fighter takes who holds `dir`: straight on; else an eighth to either side, along the obstacle;
    /// else a quarter aside, if the heading is free again from there. None: it stands before a wall.
    /// `taken` says where somebody stands.
    pub fn slide(&self, from: Pos, dir: Dir, taken: impl Fn(Pos) -> bool) -> Option<Dir> {
        let go = |from: Pos, way: Dir| {
            from.step(way)
                .filter(|&pos| !self.blocked_step(from, way) && !taken(pos))
        };
        let along = [0, 1, -1].map(|eighths| dir.turned(eighths));
        let aside = [2, -2].map(|eighths| dir.turned(eighths));
        let slides = along.into_iter().find(|&way| go(from, way).is_some());
        slides.or_else(|| {
            let leads_on = |&way: &Dir| go(from, way).and_then(|pos| go(pos, dir)).is_some();
            aside.into_iter().find(leads_on)
        })
    }

    /// Whether somebody could stand there: ground and objects allow it.
    pub fn passable(&self, pos: Pos) -> bool {
        self.index(pos).is_some_and(|index| self.passable_at(index))
    }

    fn passable_at(&self, index: usize) -> bool {
        self.ground[index].walkable && self.cells[index].blocks & (1 << TILE) == 0
    }

    /// Whether nothing stands on the edge between two tiles that touch: an arm reaches across. Diagonally it reaches if
    /// one of the two ways around the corner has no edge in it.
    pub fn touches(&self, a: Pos, b: Pos) -> bool {
        if a.distance(b) > 1 || !self.contains(a) || !self.contains(b) {
            return false;
        }
        if a.x == b.x || a.y == b.y {
            return !self.edge_blocks(a, b);
        }
        [Pos::new(b.x, a.y), Pos::new(a.x, b.y)]
            .into_iter()
            .any(|corner| !self.edge_blocks(a, corner) && !self.edge_blocks(corner, b))
    }

    /// Whether ground and objects leave a way from `a` to `b`, however long.
    pub fn reachable(&self, a: Pos, b: Pos) -> bool {
        let component = self.component(a);
        component != 0 && component == self.component(b)
    }

    /// The connected component of a tile; 0 where nobody can stand.
    pub(crate) fn component(&self, pos: Pos) -> u16 {
        let components = self.components.get_or_init(|| self.connect());
        self.index(pos).map_or(0, |index| components[index])
    }

    /// Where a tile is kept.
    pub(crate) fn index(&self, pos: Pos) -> Option<usize> {
        self.contains(pos).then(|| {
            usize::from(pos.y - self.bounds.y) * usize::from(self.bounds.width)
                + usize::from(pos.x - self.bounds.x)
        })
    }

    /// The tile kept at `index`.
    pub(crate) fn pos(&self, index: usize) -> Pos {
        let width = usize::from(self.bounds.width);
        Pos::new(
            self.bounds.x + (index % width) as u16,
            self.bounds.y + (index / width) as u16,
        )
    }

    /// The free steps of each tile, as bits of [`Dir`].
    pub(crate) fn exits(&self) -> &[u8] {
        &self.exits
    }

    /// Cover of what fills a tile, in percent.
    pub(crate) fn tile_cover(&self, pos: Pos) -> u8 {
        self.index(pos)
            .map_or(0, |index| self.cells[index].cover[TILE])
    }

    /// Cover of what stands on the edge between two tiles that share one, in percent.
    pub(crate) fn edge_cover(&self, a: Pos, b: Pos) -> u8 {
        self.edge(a, b).map_or(0, |(cell, edge)| cell.cover[edge])
    }

    fn edge_blocks(&self, a: Pos, b: Pos) -> bool {
        self.edge(a, b)
            .is_some_and(|(cell, edge)| cell.blocks & (1 << edge) != 0)
    }

    /// The cell and the part of it that is the edge between `a` and `b`, tiles beside each other.
    fn edge(&self, a: Pos, b: Pos) -> Option<(&Cell, usize)> {
        let (pos, edge) = if a.y == b.y {
            (if a.x > b.x { a } else { b }, WEST)
        } else {
            (if a.y > b.y { a } else { b }, NORTH)
        };
        self.index(pos).map(|index| (&self.cells[index], edge))
    }

    /// Takes in an object that was not there before.
    fn stand(&mut self, object: &ObjectState) {
        let Some(index) = self.index(object.pos()) else {
            return;
        };
        let Some((part, blocks, cover)) = shape(object) else {
            return;
        };
        let cell = &mut self.cells[index];
        cell.cover[part] = cell.cover[part].max(cover);
        if blocks && cell.blocks & (1 << part) == 0 {
            cell.blocks |= 1 << part;
            self.open_up(object.pos());
        }
    }

    /// Finds out again what the objects of one tile do to it.
    fn look_again(&mut self, pos: Pos) {
        let Some(index) = self.index(pos) else {
            return;
        };
        let mut cell = Cell::default();
        for object in self.objects.values().filter(|object| object.pos() == pos) {
            if let Some((part, blocks, cover)) = shape(object) {
                cell.blocks |= u8::from(blocks) << part;
                cell.cover[part] = cell.cover[part].max(cover);
            }
        }
        let blocked = self.cells[index].blocks;
        self.cells[index] = cell;
        if cell.blocks != blocked {
            self.open_up(pos);
        }
    }

    /// Finds out again which steps are free around a tile whose obstacles changed.
    fn open_up(&mut self, pos: Pos) {
        for near in std::iter::once(pos).chain(Dir::ALL.into_iter().filter_map(|d| pos.step(d))) {
            if let Some(index) = self.index(near) {
                self.exits[index] = self.exits_of(near);
            }
        }
        self.components = OnceLock::new();
    }

    fn exits_of(&self, from: Pos) -> u8 {
        Dir::ALL
            .into_iter()
            .filter(|&dir| self.step_is_free(from, dir))
            .fold(0, |exits, dir| exits | 1 << dir as u8)
    }

    fn step_is_free(&self, from: Pos, dir: Dir) -> bool {
        let Some(to) = from.step(dir).filter(|&to| self.passable(to)) else {
            return false;
        };
        if !dir.is_diagonal() {
            return !self.edge_blocks(from, to);
        }
        // No corner is cut: both tiles beside the way are free, and no edge ends at the corner that it crosses.
        [Pos::new(to.x, from.y), Pos::new(from.x, to.y)]
            .into_iter()
            .all(|side| {
                self.passable(side) && !self.edge_blocks(from, side) && !self.edge_blocks(side, to)
            })
    }

    /// Labels the connected components. A free diagonal step implies free straight ones around the corner, so straight
    /// steps are enough.
    fn connect(&self) -> Vec<u16> {
        let width = self.bounds.width as isize;
        let steps = [(Dir::N, -width), (Dir::E, 1), (Dir::S, width), (Dir::W, -1)];
        let mut labels = vec![0_u16; self.exits.len()];
        let mut label = 0_u16;
        let mut open = Vec::new();
        for start in 0..labels.len() {
            if labels[start] != 0 || !self.passable_at(start) {
                continue;
            }
            label = label.saturating_add(1);
            labels[start] = label;
            open.push(start);
            while let Some(index) = open.pop() {
                for (dir, offset) in steps {
                    if self.exits[index] & (1 << dir as u8) == 0 {
                        continue;
                    }
                    let next = index.wrapping_add_signed(offset);
                    if labels[next] == 0 {
                        labels[next] = label;
                        open.push(next);
                    }
                }
            }
        }
        labels
    }
}

/// What an object does to its tile: which part of it, whether it blocks, and its cover.
fn shape(object: &ObjectState) -> Option<(usize, bool, u8)> {
    let row = object_row(object.kind);
    if object.kind == ObjectKind::Door && object.active {
        return None;
    }
    let part = match (row.footing, object.edge) {
        (Footing::Flat, _) => return None,
        (Footing::Edge, Some(Edge::West)) => WEST,
        (Footing::Edge, _) => NORTH,
        (Footing::Tile, _) => TILE,
    };
    Some((part, true, cover_percent(row.height)))
}

/// Whether a closed door or whatever stands there hinders: for tests of tables and for clients that draw it.
pub fn blocks(object: &ObjectState) -> bool {
    !object.gone && shape(object).is_some()
}
