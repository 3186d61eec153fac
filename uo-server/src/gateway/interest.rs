//! Who is near what: a grid over the map with what stands in each cell, which sessions look from there, and what changed
//! since the last flush. Work follows change: nobody far from a change is looked at.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{AOI_RADIUS, Pos, REGION_SIZE, RegionId};

/// Side of a cell in tiles.
pub const CELL_SIZE: u16 = 8;
const CELLS_PER_REGION: u16 = REGION_SIZE / CELL_SIZE;
const BLOCK: usize = (CELLS_PER_REGION * CELLS_PER_REGION) as usize;
/// From how many cells away something in a cell can be seen.
const REACH: u16 = AOI_RADIUS.div_ceil(CELL_SIZE);

const _: () = assert!(REGION_SIZE.is_multiple_of(CELL_SIZE));

/// What a session has to look at again, as bits.
pub mod look {
    /// Entities around it.
    pub const ENTITIES: u8 = 1;
    /// Objects around it.
    pub const OBJECTS: u8 = 2;
    /// The number of the last order taken.
    pub const ACK: u8 = 4;
    /// Reliable messages that may wait for a flush.
    pub const EVENTS: u8 = 8;
}

/// A cell of the grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CellId {
    x: u16,
    y: u16,
}

impl CellId {
    /// The cell that holds `pos`.
    pub fn at(pos: Pos) -> CellId {
        CellId {
            x: pos.x / CELL_SIZE,
            y: pos.y / CELL_SIZE,
        }
    }
}

/// The members of a cell that are named by a slot.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Entities of the view.
    Entities,
    /// Objects of the view.
    Objects,
    /// Sessions that look from here.
    Sessions,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    members: [Vec<u32>; 3],
    /// What changed here since the last flush, as bits of [`look`].
    changed: u8,
}

/// The grid. Memory is taken for regions where something is, and given back by [`Grid::trim`].
#[derive(Clone, Debug)]
pub struct Grid {
    regions_per_row: usize,
    blocks: Vec<Option<Box<[Cell; BLOCK]>>>,
    changed: Vec<CellId>,
}

impl Grid {
    /// An empty grid over a map of `map_size` tiles a side.
    pub fn new(map_size: u16) -> Grid {
        Grid {
            regions_per_row: usize::from(map_size / REGION_SIZE),
            blocks: vec![None; RegionId::count(map_size) as usize],
            changed: Vec::new(),
        }
    }

    /// Puts a member into a cell.
    pub fn insert(&mut self, kind: Kind, slot: u32, cell: CellId) {
        self.cell_mut(cell).members[kind as usize].push(slot);
    }

    /// Takes a member out of the cell it was put into.
    pub fn remove(&mut self, kind: Kind, slot: u32, cell: CellId) {
        let members = &mut self.cell_mut(cell).members[kind as usize];
        if let Some(at) = members.iter().position(|&member| member == slot) {
            members.swap_remove(at);
        }
    }

    /// Notes that something changed in a cell.
    pub fn mark(&mut self, cell: CellId, bits: u8) {
        let changed = &mut self.cell_mut(cell).changed;
        let before = *changed;
        *changed |= bits;
        if before == 0 {
            self.changed.push(cell);
        }
    }

    /// Whether there are marks to take.
    pub fn is_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Takes the marks: calls `visit` for every session that may see a changed cell, with what changed there. A session
    /// is visited once for each such cell.
    pub fn drain_changed(&mut self, mut visit: impl FnMut(u32, u8)) {
        let mut changed = std::mem::take(&mut self.changed);
        for &cell in &changed {
            let bits = std::mem::take(&mut self.cell_mut(cell).changed);
            let from = CellId {
                x: cell.x.saturating_sub(REACH),
                y: cell.y.saturating_sub(REACH),
            };
            let to = CellId {
                x: cell.x.saturating_add(REACH),
                y: cell.y.saturating_add(REACH),
            };
            self.each_in(Kind::Sessions, from, to, |session| visit(session, bits));
        }
        changed.clear();
        self.changed = changed;
    }

    /// Calls `visit` for the members of every cell that reaches into the area of interest around `centre`. Some of them
    /// are farther away than its radius.
    pub fn each_near(&self, kind: Kind, centre: Pos, visit: impl FnMut(u32)) {
        let corner = |x: u16, y: u16| CellId::at(Pos::new(x, y));
        let (x, y, radius) = (centre.x, centre.y, AOI_RADIUS);
        let from = corner(x.saturating_sub(radius), y.saturating_sub(radius));
        let to = corner(x.saturating_add(radius), y.saturating_add(radius));
        self.each_in(kind, from, to, visit);
    }

    /// Calls `visit` for the members of every cell from which the area of interest reaches into a region. Some of them are
    /// a little farther away.
    pub fn each_around(&self, kind: Kind, region: RegionId, map_size: u16, visit: impl FnMut(u32)) {
        let (low, reach) = (region.origin(map_size), AOI_RADIUS);
        let corner = |x: u16, y: u16| CellId::at(Pos::new(x, y));
        let from = corner(low.x.saturating_sub(reach), low.y.saturating_sub(reach));
        let past = REGION_SIZE - 1 + reach;
        let to = corner(low.x.saturating_add(past), low.y.saturating_add(past));
        self.each_in(kind, from, to, visit);
    }

    /// Gives back the memory of a region's cells, if nothing is there.
    pub fn trim(&mut self, region: RegionId) {
        let Some(slot) = self.blocks.get_mut(region.0 as usize) else {
            return;
        };
        let is_empty = |cell: &Cell| cell.changed == 0 && cell.members.iter().all(Vec::is_empty);
        if slot
            .as_ref()
            .is_some_and(|block| block.iter().all(is_empty))
        {
            *slot = None;
        }
    }

    /// Region by region and row by row, from `from` to `to` inclusive, as far as the map goes.
    fn each_in(&self, kind: Kind, from: CellId, to: CellId, mut visit: impl FnMut(u32)) {
        let (to_x, to_y) = (to.x.min(self.cell_last()), to.y.min(self.cell_last()));
        for block_y in from.y / CELLS_PER_REGION..=to_y / CELLS_PER_REGION {
            for block_x in from.x / CELLS_PER_REGION..=to_x / CELLS_PER_REGION {
                let index = usize::from(block_y) * self.regions_per_row + usize::from(block_x);
                let Some(block) = &self.blocks[index] else {
                    continue;
                };
                let (origin_x, origin_y) = (block_x * CELLS_PER_REGION, block_y * CELLS_PER_REGION);
                let last = CELLS_PER_REGION - 1;
                let columns = from.x.saturating_sub(origin_x)..=(to_x - origin_x).min(last);
                for row in from.y.saturating_sub(origin_y)..=(to_y - origin_y).min(last) {
                    let start = usize::from(row * CELLS_PER_REGION);
                    let cells =
                        start + usize::from(*columns.start())..=start + usize::from(*columns.end());
                    for cell in &block[cells] {
                        cell.members[kind as usize]
                            .iter()
                            .copied()
                            .for_each(&mut visit);
                    }
                }
            }
        }
    }

    /// The last column and row of cells.
    fn cell_last(&self) -> u16 {
        self.regions_per_row as u16 * CELLS_PER_REGION - 1
    }

    fn cell_mut(&mut self, cell: CellId) -> &mut Cell {
        // A peer that names a tile off the map is wrong, but no reason to fall over.
        let (x, y) = (cell.x.min(self.cell_last()), cell.y.min(self.cell_last()));
        let (block_x, block_y) = (x / CELLS_PER_REGION, y / CELLS_PER_REGION);
        let block = usize::from(block_y) * self.regions_per_row + usize::from(block_x);
        let inner = (y % CELLS_PER_REGION) * CELLS_PER_REGION + x % CELLS_PER_REGION;
        let make = || Box::new(std::array::from_fn(|_| Cell::default()));
        &mut self.blocks[block].get_or_insert_with(make)[usize::from(inner)]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: u16 = 256;

    fn pos() -> impl Strategy<Value = Pos> {
        (0..SIZE, 0..SIZE).prop_map(|(x, y)| Pos::new(x, y))
    }

    proptest! {
        /// Red when `REACH` is one less, or when `each_near` takes the radius one shorter.
        #[test]
        fn nothing_in_sight_is_overlooked(
            offsets in prop::collection::vec((-40..=40_i16, -40..=40_i16), 1..20),
            change in pos(),
        ) {
            let around = |at: u16, by: i16| at.saturating_add_signed(by).min(SIZE - 1);
            let centre = |&(x, y): &(i16, i16)| Pos::new(around(change.x, x), around(change.y, y));
            let centres: Vec<Pos> = offsets.iter().map(centre).collect();
            let mut grid = Grid::new(SIZE);
            for (slot, &centre) in centres.iter().enumerate() {
                grid.insert(Kind::Sessions, slot as u32, CellId::at(centre));
            }
            grid.insert(Kind::Entities, 7, CellId::at(change));
            grid.mark(CellId::at(change), look::ENTITIES);
            let mut visited = Vec::new();
            grid.drain_changed(|session, bits| visited.push((session, bits)));
            for (slot, &centre) in centres.iter().enumerate() {
                let mut seen = Vec::new();
                grid.each_near(Kind::Entities, centre, |entity| seen.push(entity));
                if centre.distance(change) <= AOI_RADIUS {
                    prop_assert!(visited.contains(&(slot as u32, look::ENTITIES)));
                    prop_assert_eq!(seen, [7]);
                } else if centre.distance(change) >= AOI_RADIUS + 2 * CELL_SIZE {
                    prop_assert!(seen.is_empty());
                    prop_assert!(!visited.contains(&(slot as u32, look::ENTITIES)));
                }
            }
            grid.drain_changed(|_, _| panic!("marks are taken once"));
        }
    }

    #[test]
    fn memory_goes_when_nothing_is_left() {
        let mut grid = Grid::new(SIZE);
        let cell = CellId::at(Pos::new(70, 3));
        grid.insert(Kind::Objects, 1, cell);
        grid.trim(RegionId(1));
        assert!(grid.blocks[1].is_some());
        grid.remove(Kind::Objects, 1, cell);
        grid.trim(RegionId(1));
        assert!(grid.blocks.iter().all(Option::is_none));
    }
}
