//! Sets of a region's tiles, one bit each: a row is a machine word, so that a flood moves 64 tiles at a time.

use uo_proto::map::Window;
use uo_proto::{Edge, Pos, REGION_SIZE};

use crate::Rect;

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
        area.tiles().all(|pos| self.contains(pos))
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
        for pos in area.tiles() {
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

impl Rect {
    /// Its tiles, row by row.
    pub fn tiles(self) -> impl Iterator<Item = Pos> {
        (self.y..self.y + self.height)
            .flat_map(move |y| (self.x..self.x + self.width).map(move |x| Pos::new(x, y)))
    }

    /// This rectangle and the tiles up to `by` away from it, cut off at the map's north and west edge.
    pub fn grown(self, by: u16) -> Rect {
        let (x, y) = (self.x.saturating_sub(by), self.y.saturating_sub(by));
        Rect {
            x,
            y,
            width: self.x + self.width + by - x,
            height: self.y + self.height + by - y,
        }
    }

    /// How far `pos` is from the nearest tile of the rectangle.
    pub fn distance(self, pos: Pos) -> u16 {
        let along = |start: u16, length: u16, at: u16| {
            start
                .saturating_sub(at)
                .max(at.saturating_sub(start + length - 1))
        };
        along(self.x, self.width, pos.x).max(along(self.y, self.height, pos.y))
    }
}
