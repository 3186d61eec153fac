//! Terrain and height of every tile, from the world's seed alone.
//!
//! The ground is fractal value noise in integer arithmetic: every platform computes the same map, and any part of it
//! can be computed without the rest. One tile on its own costs four hashes an octave ([`tile_at`]); a [`Window`]
//! shares them between all tiles of a lattice cell.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Pos;

/// What the ground is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Terrain {
    /// Cannot be walked.
    Water,
    /// Shores.
    Sand,
    /// Meadows.
    Grass,
    /// Bare ground.
    Dirt,
    /// Ground under trees.
    Forest,
    /// Stony heights.
    Rock,
    /// Peaks; cannot be walked.
    Cliff,
}

/// One tile of the map.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Tile {
    /// What the ground is.
    pub terrain: Terrain,
    /// 0 (sea level and below) to 255.
    pub height: u8,
}

impl Terrain {
    /// Whether one can stand on it.
    pub const fn is_walkable(self) -> bool {
        !matches!(self, Terrain::Water | Terrain::Cliff)
    }
}

/// The tile at (x, y) of the world with `seed`: the same on every platform, and independent of the map's size.
///
/// The square of 64 tiles in the north-west corner is land in every world, so that the smallest map is playable too.
pub fn tile_at(seed: u64, x: u16, y: u16) -> Tile {
    let fields = LAYERS.map(|octaves| {
        octaves
            .iter()
            .map(|octave| octave.at(seed, x.into(), y.into()))
            .sum::<i32>()
    });
    classify(x, y, fields)
}

/// A rectangle of tiles, computed together: several times cheaper a tile than [`tile_at`], and equal to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    origin: Pos,
    width: u16,
    height: u16,
    tiles: Vec<Tile>,
}

impl Window {
    /// The `width` x `height` tiles whose north-west one is `origin`; cut off where coordinates end at 65,535.
    pub fn new(seed: u64, origin: Pos, width: u16, height: u16) -> Window {
        let cut =
            |start: u16, length: u16| length.min(u16::MAX.saturating_sub(start).saturating_add(1));
        let (width, height) = (cut(origin.x, width), cut(origin.y, height));
        let mut strips = LAYERS.map(|octaves| {
            octaves
                .iter()
                .map(|octave| Strip::new(octave, seed, origin.x, width))
                .collect::<Vec<_>>()
        });
        let mut sums = [const { Vec::new() }; LAYERS.len()];
        let mut tiles = Vec::with_capacity(usize::from(width) * usize::from(height));
        for y in (0..height).map(|row| origin.y + row) {
            for (sums, strips) in sums.iter_mut().zip(&mut strips) {
                sums.clear();
                sums.resize(width.into(), 0);
                for strip in strips {
                    strip.add_row(y.into(), sums);
                }
            }
            let [elevation, moisture, detail] = &sums;
            tiles.extend((0..width).map(|column| {
                let at = usize::from(column);
                classify(
                    origin.x + column,
                    y,
                    [elevation[at], moisture[at], detail[at]],
                )
            }));
        }
        Window {
            origin,
            width,
            height,
            tiles,
        }
    }

    /// The north-west tile.
    pub fn origin(&self) -> Pos {
        self.origin
    }

    /// Columns.
    pub fn width(&self) -> u16 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u16 {
        self.height
    }

    /// The tile at `pos` of the map; none outside the window.
    pub fn get(&self, pos: Pos) -> Option<Tile> {
        let column = pos.x.checked_sub(self.origin.x)?;
        let row = pos.y.checked_sub(self.origin.y)?;
        if column >= self.width || row >= self.height {
            return None;
        }
        Some(self.tiles[usize::from(row) * usize::from(self.width) + usize::from(column)])
    }

    /// All tiles, row by row from the north-west.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }
}

/// Fixed-point one of the interpolation weights.
const ONE: i32 = 1 << 12;

/// Noise of one wavelength: hashed values on a square lattice, smoothly interpolated between its points.
struct Octave {
    /// Binary logarithm of the lattice's spacing in tiles.
    shift: u32,
    /// Share of its layer, in 256ths.
    weight: i32,
    /// Tells octaves of equal spacing apart.
    salt: u64,
}

const fn octave(shift: u32, weight: i32, salt: u64) -> Octave {
    Octave {
        shift,
        weight,
        salt,
    }
}

/// Land, sea and mountains; woods; and small patches. The weights of each layer sum to 256.
const LAYERS: [&[Octave]; 3] = [
    &[
        octave(8, 52, 1),
        octave(7, 68, 2),
        octave(6, 62, 3),
        octave(5, 42, 4),
        octave(4, 20, 5),
        octave(3, 12, 6),
    ],
    &[octave(6, 130, 7), octave(4, 86, 8), octave(2, 40, 9)],
    &[octave(4, 176, 10), octave(2, 80, 11)],
];

impl Octave {
    /// What this octave adds to its layer at (x, y).
    fn at(&self, seed: u64, x: u32, y: u32) -> i32 {
        let lattice = Lattice::new(self, seed);
        let (column, across) = lattice.split(x + lattice.offset_x);
        let (row, down) = lattice.split(y + lattice.offset_y);
        let west = lattice.between_rows(column, row, down);
        let east = lattice.between_rows(column + 1, row, down);
        self.weighted(west, east, across)
    }

    fn weighted(&self, west: i32, east: i32, across: i32) -> i32 {
        (mix(west, east, across) * self.weight) >> 8
    }
}

/// An octave in one world. Its origin is moved by the seed, so that the lattices of different octaves do not share
/// lines, which the eye would find.
struct Lattice {
    seed: u64,
    shift: u32,
    offset_x: u32,
    offset_y: u32,
}

impl Lattice {
    fn new(octave: &Octave, seed: u64) -> Lattice {
        let seed = scramble(seed ^ octave.salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Lattice {
            seed,
            shift: octave.shift,
            offset_x: seed as u32 & 0xff,
            offset_y: (seed >> 8) as u32 & 0xff,
        }
    }

    /// The lattice cell of a shifted coordinate, and the eased way across it in `0..ONE`.
    fn split(&self, coordinate: u32) -> (u32, i32) {
        let within = (coordinate & ((1 << self.shift) - 1)) as i32;
        let t = (within << 12) >> self.shift;
        let eased = (((t * t) >> 12) * (3 * ONE - 2 * t)) >> 12;
        (coordinate >> self.shift, eased)
    }

    fn between_rows(&self, column: u32, row: u32, down: i32) -> i32 {
        mix(self.value(column, row), self.value(column, row + 1), down)
    }

    /// The value at a lattice point, 0 to 65,535.
    fn value(&self, column: u32, row: u32) -> i32 {
        let point = u64::from(column) << 32 | u64::from(row);
        (scramble(self.seed ^ point) >> 48) as i32
    }
}

/// An octave over the columns of a window. It gives the same values as [`Octave::at`], but hashes each lattice point
/// and eases each column only once.
struct Strip<'a> {
    octave: &'a Octave,
    lattice: Lattice,
    /// The way across its cell, for each tile.
    eased: Vec<i32>,
    /// How many tiles lie in the first cell.
    cut: usize,
    /// The lattice columns to hash.
    columns: Range<u32>,
    /// The lattice row whose values, and those of the next, are in `north` and `south`.
    row: Option<u32>,
    north: Vec<i32>,
    south: Vec<i32>,
}

impl<'a> Strip<'a> {
    fn new(octave: &'a Octave, seed: u64, x: u16, width: u16) -> Strip<'a> {
        let lattice = Lattice::new(octave, seed);
        let start = u32::from(x) + lattice.offset_x;
        let end = start + u32::from(width);
        let first = start >> octave.shift;
        Strip {
            octave,
            eased: (start..end).map(|at| lattice.split(at).1).collect(),
            cut: (((first + 1) << octave.shift) - start) as usize,
            columns: first..(end >> octave.shift) + 2,
            row: None,
            north: Vec::new(),
            south: Vec::new(),
            lattice,
        }
    }

    /// Adds the octave to the sums of one row of tiles.
    fn add_row(&mut self, y: u32, sums: &mut [i32]) {
        let (row, down) = self.lattice.split(y + self.lattice.offset_y);
        if self.row != Some(row) {
            self.row = Some(row);
            let values = |row| self.columns.clone().map(move |column| (column, row));
            let hash = |(column, row)| self.lattice.value(column, row);
            self.north = values(row).map(hash).collect();
            self.south = values(row + 1).map(hash).collect();
        }
        let corners = self.north.iter().zip(&self.south);
        let mut edges = corners.map(|(&north, &south)| mix(north, south, down));
        let mut west = edges.next().unwrap_or_default();
        let (mut at, mut end) = (0, self.cut);
        for east in edges {
            let cell = at..end.min(sums.len());
            for (sum, &across) in sums[cell.clone()].iter_mut().zip(&self.eased[cell]) {
                *sum += self.octave.weighted(west, east, across);
            }
            if end >= sums.len() {
                break;
            }
            (west, at, end) = (east, end, end + (1 << self.octave.shift));
        }
    }
}

/// `a` to `b` as `t` goes from 0 to [`ONE`].
fn mix(a: i32, b: i32, t: i32) -> i32 {
    a + (((b - a) * t) >> 12)
}

/// A bijection of 64 bits in which each bit of the input moves half of the output.
fn scramble(value: u64) -> u64 {
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let value = (value ^ (value >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

/// Elevations (0 to 65,535) at which the ground changes.
mod elevation {
    pub const SEA: i32 = 26_000;
    pub const SHORE: i32 = SEA + 1_300;
    pub const MEADOW: i32 = 33_500;
    pub const HEIGHTS: i32 = 40_300;
    pub const SCARP: i32 = 42_000;
    pub const SCARP_TOP: i32 = SCARP + 700;
    pub const PEAK: i32 = 46_500;
}

/// What the ground is where the three layers have these values.
fn classify(x: u16, y: u16, [elevation, moisture, detail]: [i32; 3]) -> Tile {
    use elevation::*;
    let elevation = homeland(x, y, elevation);
    let terrain = match elevation {
        ..SEA => Terrain::Water,
        SEA..SHORE => Terrain::Sand,
        PEAK.. => Terrain::Cliff,
        // A scarp is a contour line that cannot be climbed but where the detail leaves a pass.
        SCARP..SCARP_TOP if detail > 30_000 => Terrain::Cliff,
        HEIGHTS.. => Terrain::Rock,
        _ if moisture > 35_500 => Terrain::Forest,
        _ if detail < 19_500 => Terrain::Dirt,
        _ => Terrain::Grass,
    };
    let above_sea = (elevation - SEA).max(0);
    let height = match terrain {
        Terrain::Water => 0,
        _ => (1 + above_sea / 90).min(255) as u8,
    };
    Tile { terrain, height }
}

/// Draws the elevation of the north-west corner towards that of a meadow: wholly in its first 64 tiles, fading until
/// the 128th.
fn homeland(x: u16, y: u16, elevation: i32) -> i32 {
    let fade = i32::from(x.max(y)) - 64;
    if fade >= 64 {
        return elevation;
    }
    let gentle = elevation::MEADOW + (elevation - elevation::MEADOW) / 5;
    mix(gentle, elevation, fade.max(0) * (ONE / 64))
}

#[cfg(test)]
mod tests;
