//! Tiles, headings and distances. x grows to the east, y to the south.

use serde::{Deserialize, Serialize};

/// A tile of the map.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Pos {
    /// Column, growing to the east.
    pub x: u16,
    /// Row, growing to the south.
    pub y: u16,
}

impl Pos {
    /// The tile at (x, y).
    pub const fn new(x: u16, y: u16) -> Pos {
        Pos { x, y }
    }

    /// Chebyshev distance in tiles: what the area of interest, reach and leash are measured in.
    pub fn distance(self, other: Pos) -> u16 {
        self.x.abs_diff(other.x).max(self.y.abs_diff(other.y))
    }

    /// The next tile in `dir`; none beyond the map's west and north edge or the number range.
    pub fn step(self, dir: Dir) -> Option<Pos> {
        let (dx, dy) = dir.offset();
        Some(Pos {
            x: self.x.checked_add_signed(dx)?,
            y: self.y.checked_add_signed(dy)?,
        })
    }

    /// The heading that leads most directly to `other`; none if it is this tile.
    pub fn dir_to(self, other: Pos) -> Option<Dir> {
        let dx = i32::from(other.x) - i32::from(self.x);
        let dy = i32::from(other.y) - i32::from(self.y);
        // A heading is straight when one axis is more than twice the other (tan 22.5 degrees is about 0.41).
        let (ax, ay) = (dx.abs(), dy.abs());
        let sx = if ax * 12 > ay * 5 { dx.signum() } else { 0 };
        let sy = if ay * 12 > ax * 5 { dy.signum() } else { 0 };
        Dir::ALL
            .into_iter()
            .find(|dir| dir.offset() == (sx as i16, sy as i16))
    }
}

/// One of the eight headings, clockwise from north.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Dir {
    /// North: y shrinks.
    N,
    /// North-east.
    Ne,
    /// East: x grows.
    E,
    /// South-east.
    Se,
    /// South: y grows.
    #[default]
    S,
    /// South-west.
    Sw,
    /// West: x shrinks.
    W,
    /// North-west.
    Nw,
}

impl Dir {
    /// All headings, clockwise from north.
    pub const ALL: [Dir; 8] = [
        Dir::N,
        Dir::Ne,
        Dir::E,
        Dir::Se,
        Dir::S,
        Dir::Sw,
        Dir::W,
        Dir::Nw,
    ];

    /// The step this heading makes, as (x, y).
    pub const fn offset(self) -> (i16, i16) {
        match self {
            Dir::N => (0, -1),
            Dir::Ne => (1, -1),
            Dir::E => (1, 0),
            Dir::Se => (1, 1),
            Dir::S => (0, 1),
            Dir::Sw => (-1, 1),
            Dir::W => (-1, 0),
            Dir::Nw => (-1, -1),
        }
    }

    /// Whether a step in this heading changes both axes.
    pub const fn is_diagonal(self) -> bool {
        let (x, y) = self.offset();
        x != 0 && y != 0
    }

    /// This heading turned clockwise by `eighths` of a circle (negative: the other way).
    pub fn turned(self, eighths: i8) -> Dir {
        Dir::ALL[(self as i8 + eighths).rem_euclid(8) as usize]
    }
}
