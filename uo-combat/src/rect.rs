//! Rectangles of tiles.

use serde::{Deserialize, Serialize};
use uo_proto::Pos;

/// A rectangle of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rect {
    /// Column of its north-west tile.
    pub x: u16,
    /// Row of its north-west tile.
    pub y: u16,
    /// Tiles from west to east.
    pub width: u16,
    /// Tiles from north to south.
    pub height: u16,
}

impl Rect {
    /// Whether `pos` lies inside.
    pub fn contains(&self, pos: Pos) -> bool {
        pos.x.wrapping_sub(self.x) < self.width && pos.y.wrapping_sub(self.y) < self.height
    }

    /// How many tiles it has.
    pub fn tiles(&self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// Its tiles, row by row.
    pub fn positions(self) -> impl Iterator<Item = Pos> {
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

    /// All tiles at most `radius` from `center`, as far as the numbers go.
    pub fn around(center: Pos, radius: u16) -> Rect {
        let (x, y) = (
            center.x.saturating_sub(radius),
            center.y.saturating_sub(radius),
        );
        Rect {
            x,
            y,
            width: center.x.saturating_add(radius) - x + 1,
            height: center.y.saturating_add(radius) - y + 1,
        }
    }

    /// Chebyshev distance from `pos` to the nearest tile inside.
    pub fn distance(&self, pos: Pos) -> u16 {
        let axis = |at: u16, start: u16, length: u16| {
            start.saturating_sub(at) + (at.saturating_sub(start + (length - 1)))
        };
        axis(pos.x, self.x, self.width).max(axis(pos.y, self.y, self.height))
    }
}
