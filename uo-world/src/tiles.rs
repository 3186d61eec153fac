//! Sets of a region's tiles, one bit each: a row is a machine word, so that a flood moves 64 tiles at a time.

use uo_proto::map::Window;
use uo_proto::{Dir, Edge, Pos, REGION_SIZE};

use uo_combat::Rect;

const SIDE: usize = REGION_SIZE as usize;
const _: () = assert!(SIDE == u64::BITS as usize, "a row of a region is one word");

/// Some of the 64x64 tiles of one region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TileSet {
    origin: Pos,
    rows: [u64; SIDE],
}

/// The edges between a region's tiles that cannot be crossed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Barriers {
    origin: Pos,
    north: [u64; SIDE],
    west: [u64; SIDE],
}

impl Barriers {
    /// No barriers in the region whose north-west tile is `origin`.
    pub fn none(origin: Pos) -> Barriers {
        Barriers {
            origin,
            north: [0; SIDE],
            west: [0; SIDE],
        }
    }

    /// Bars the `edge` of `pos`, which must be a tile of the region.
    pub fn insert(&mut self, pos: Pos, edge: Edge) {
        let (row, bit) = place(self.origin, pos).expect("the tile is in the region");
        match edge {
            Edge::North => self.north[row] |= bit,
            Edge::West => self.west[row] |= bit,
        }
    }
}

impl Barriers {
    /// Whether there is a barrier between a tile of the region and the one beside it on the side `dir`, one of north, east,
    /// south and west. What stands on the far side of the region's south and east edges is its neighbours' business.
    pub fn between(&self, pos: Pos, dir: Dir) -> bool {
        let barred = |from: Option<Pos>, rows: &[u64; SIDE]| {
            from.and_then(|from| place(self.origin, from))
                .is_some_and(|(row, bit)| rows[row] & bit != 0)
        };
        match dir {
            Dir::N => barred(Some(pos), &self.north),
            Dir::S => barred(pos.step(dir), &self.north),
            Dir::E => barred(pos.step(dir), &self.west),
            _ => barred(Some(pos), &self.west),
        }
    }
}

impl TileSet {
    /// No tiles of the region whose north-west tile is `origin`.
    pub fn empty(origin: Pos) -> TileSet {
        TileSet {
            origin,
            rows: [0; SIDE],
        }
    }

    /// The tiles of the region at `origin` that can be walked, as `window` has them.
    pub fn walkable(origin: Pos, window: &Window) -> TileSet {
        let mut set = TileSet::empty(origin);
        for (y, row) in (origin.y..).zip(&mut set.rows) {
            for (x, bit) in (origin.x..).zip(0..SIDE) {
                let walks = window
                    .get(Pos::new(x, y))
                    .is_some_and(|tile| tile.terrain.is_walkable());
                *row |= u64::from(walks) << bit;
            }
        }
        set
    }

    /// The north-west tile of the region.
    pub fn origin(&self) -> Pos {
        self.origin
    }

    /// Whether `pos` is in the set; false for tiles of other regions.
    pub fn contains(&self, pos: Pos) -> bool {
        place(self.origin, pos).is_some_and(|(row, bit)| self.rows[row] & bit != 0)
    }

    /// Whether all tiles of `area` are in the set.
    pub fn contains_all(&self, area: Rect) -> bool {
        area.positions().all(|pos| self.contains(pos))
    }

    /// Adds a tile of the region.
    pub fn insert(&mut self, pos: Pos) {
        let (row, bit) = place(self.origin, pos).expect("the tile is in the region");
        self.rows[row] |= bit;
    }

    /// Takes a tile out; tiles of other regions are not in it anyway.
    pub fn remove(&mut self, pos: Pos) {
        if let Some((row, bit)) = place(self.origin, pos) {
            self.rows[row] &= !bit;
        }
    }

    /// Takes out all tiles of `area`, which may reach beyond the region.
    pub fn remove_all(&mut self, area: Rect) {
        for pos in area.positions() {
            self.remove(pos);
        }
    }

    /// Takes out the tiles of `other`, a set of the same region.
    pub fn subtract(&mut self, other: &TileSet) {
        for (row, others) in self.rows.iter_mut().zip(&other.rows) {
            *row &= !others;
        }
    }

    /// How many tiles.
    pub fn len(&self) -> u32 {
        self.rows.iter().map(|row| row.count_ones()).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|&row| row == 0)
    }

    /// The tiles, row by row.
    pub fn iter(&self) -> impl Iterator<Item = Pos> + '_ {
        self.rows.iter().enumerate().flat_map(move |(y, &row)| {
            let mut rest = row;
            std::iter::from_fn(move || {
                let x = rest.trailing_zeros();
                (rest != 0).then(|| {
                    rest &= rest - 1;
                    Pos::new(self.origin.x + x as u16, self.origin.y + y as u16)
                })
            })
        })
    }

    /// The tiles of the set that can be reached from `start` by steps to the four sides within it, without crossing a
    /// barrier.
    ///
    /// Four sides, not eight headings: whatever a battle's rule about squeezing past a corner, these can be walked.
    pub fn flood(&self, start: Pos, barriers: &Barriers) -> TileSet {
        let mut reached = TileSet::empty(self.origin);
        let Some((start_row, bit)) = place(self.origin, start) else {
            return reached;
        };
        reached.rows[start_row] = self.spread(start_row, bit, barriers);
        loop {
            let mut grown = false;
            for row in 1..SIDE {
                let enters = reached.rows[row - 1] & !barriers.north[row];
                grown |= self.grow(&mut reached, row, enters, barriers);
            }
            for row in (0..SIDE - 1).rev() {
                let enters = reached.rows[row + 1] & !barriers.north[row + 1];
                grown |= self.grow(&mut reached, row, enters, barriers);
            }
            if !grown {
                return reached;
            }
        }
    }

    /// Lets the bits `enters` into a row that `reached` may know already; whether there was anything new.
    fn grow(&self, reached: &mut TileSet, row: usize, enters: u64, barriers: &Barriers) -> bool {
        let new = enters & self.rows[row] & !reached.rows[row];
        if new != 0 {
            reached.rows[row] |= self.spread(row, new, barriers);
        }
        new != 0
    }

    /// All bits of a row that are reached from `from` sideways: a carry that doubles its stride each time.
    fn spread(&self, row: usize, from: u64, barriers: &Barriers) -> u64 {
        let free = self.rows[row];
        let (mut east, mut west) = (from & free, from & free);
        let mut opens_east = free & !barriers.west[row];
        let mut opens_west = free & !(barriers.west[row] >> 1);
        for shift in [1, 2, 4, 8, 16, 32] {
            east |= opens_east & (east << shift);
            west |= opens_west & (west >> shift);
            opens_east &= opens_east << shift;
            opens_west &= opens_west >> shift;
        }
        east | west
    }

    /// The pieces that hang together (see [`TileSet::flood`]), by their first tile.
    pub fn pieces(&self) -> impl Iterator<Item = TileSet> + use<> {
        let barriers = Barriers::none(self.origin);
        let mut rest = self.clone();
        std::iter::from_fn(move || {
            let first = rest.iter().next()?;
            let piece = rest.flood(first, &barriers);
            rest.subtract(&piece);
            Some(piece)
        })
    }

    /// The largest piece that hangs together; empty if the set is.
    pub fn largest_piece(&self) -> TileSet {
        self.pieces()
            .reduce(|best, piece| {
                if piece.len() > best.len() {
                    piece
                } else {
                    best
                }
            })
            .unwrap_or_else(|| TileSet::empty(self.origin))
    }
}

/// The row and the bit of a tile; none outside the region.
fn place(origin: Pos, pos: Pos) -> Option<(usize, u64)> {
    let column = pos.x.checked_sub(origin.x)?;
    let row = pos.y.checked_sub(origin.y)?;
    (column < REGION_SIZE && row < REGION_SIZE).then(|| (usize::from(row), 1 << column))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A flood one tile at a time, over edges written down one by one.
    fn flood_slowly(set: &TileSet, start: Pos, bars: &[(Pos, Edge)]) -> TileSet {
        let mut reached = TileSet::empty(set.origin());
        let mut open = vec![start];
        while let Some(pos) = open.pop() {
            if !set.contains(pos) || reached.contains(pos) {
                continue;
            }
            reached.insert(pos);
            for (dir, bar) in [
                (Dir::N, (pos, Edge::North)),
                (Dir::W, (pos, Edge::West)),
                (Dir::S, (Pos::new(pos.x, pos.y + 1), Edge::North)),
                (Dir::E, (Pos::new(pos.x + 1, pos.y), Edge::West)),
            ] {
                if !bars.contains(&bar) {
                    open.extend(pos.step(dir));
                }
            }
        }
        reached
    }

    fn any_pos() -> impl Strategy<Value = Pos> {
        (0..REGION_SIZE, 0..REGION_SIZE).prop_map(|(x, y)| Pos::new(128 + x, 64 + y))
    }

    proptest! {
        /// Red when `spread` does not look at the barriers, or `flood` goes over the rows only once.
        #[test]
        fn a_flood_reaches_what_steps_reach(
            holes in prop::collection::vec(any_pos(), 0..2_500),
            bars in prop::collection::vec((any_pos(), prop_oneof![Just(Edge::North), Just(Edge::West)]), 0..40),
            start in any_pos(),
        ) {
            let origin = Pos::new(128, 64);
            let mut set = TileSet { origin, rows: [u64::MAX; SIDE] };
            for hole in holes {
                set.remove(hole);
            }
            let mut barriers = Barriers::none(origin);
            for &(pos, edge) in &bars {
                barriers.insert(pos, edge);
            }
            let reached = set.flood(start, &barriers);
            prop_assert_eq!(&reached, &flood_slowly(&set, start, &bars));
            for pos in reached.iter() {
                for dir in [Dir::N, Dir::E, Dir::S, Dir::W] {
                    let beside = pos.step(dir).filter(|&beside| set.contains(beside));
                    if beside.is_some_and(|beside| !reached.contains(beside)) {
                        prop_assert!(barriers.between(pos, dir));
                    }
                }
            }
        }

        #[test]
        fn pieces_are_a_partition(tiles in prop::collection::vec(any_pos(), 0..2_500)) {
            let mut set = TileSet::empty(Pos::new(128, 64));
            for &pos in &tiles {
                set.insert(pos);
            }
            let mut rest = set.clone();
            for piece in set.pieces() {
                prop_assert!(!piece.is_empty() && piece.iter().all(|pos| rest.contains(pos)));
                rest.subtract(&piece);
            }
            prop_assert!(rest.is_empty());
            prop_assert!(set.iter().all(|pos| tiles.contains(&pos)));
        }
    }
}
