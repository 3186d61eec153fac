//! Who sees whom: the straight line between two tiles and what stands in it.

use uo_proto::Pos;

use crate::Arena;

/// How well one tile sees another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// Nothing is in the way.
    Clear,
    /// So many of a hundred shots end in what is in the way.
    Cover(u8),
    /// It is hidden.
    Blocked,
}

impl Sight {
    /// Whether anything of it can be seen.
    pub fn sees(self) -> bool {
        self != Sight::Blocked
    }

    /// Percent of cover; 100 is hidden.
    pub fn cover_percent(self) -> u32 {
        match self {
            Sight::Clear => 0,
            Sight::Cover(percent) => u32::from(percent),
            Sight::Blocked => 100,
        }
    }
}

/// Eyes are so far above the ground, in the units of the ground's height.
const EYES: i32 = 10;
/// With less than this left to aim at, a target is hidden.
const VISIBLE_PERCENT_MIN: u32 = 10;

impl Arena {
    /// How `from` sees `to`. What stands right beside `from` and can be looked over gives `to` no cover: whoever stands
    /// behind a fence leans over it, and has its cover against others.
    pub fn line_of_sight(&self, from: Pos, to: Pos) -> Sight {
        if from == to {
            return Sight::Clear;
        }
        if !self.contains(from) || !self.contains(to) {
            return Sight::Blocked;
        }
        let mut line = Line::new(from, to);
        let (eyes_from, eyes_to) = (self.eyes(from), self.eyes(to));
        let length = i32::from(from.distance(to));
        let mut visible = 100_u32;
        let mut at = from;
        while at != to {
            let next = line.advance();
            let mut cover = self.crossing(at, next, to);
            if next != to {
                cover = sum(cover, self.tile_cover(next));
                let gone = i32::from(from.distance(next));
                let ray = eyes_from + (eyes_to - eyes_from) * gone / length;
                if i32::from(self.ground(next).height) > ray {
                    return Sight::Blocked;
                }
            }
            if cover >= 100 {
                return Sight::Blocked;
            }
            if at != from {
                visible = visible * (100 - u32::from(cover)) / 100;
            }
            at = next;
        }
        match 100 - visible {
            0 => Sight::Clear,
            _ if visible < VISIBLE_PERCENT_MIN => Sight::Blocked,
            cover => Sight::Cover(cover as u8),
        }
    }

    fn eyes(&self, pos: Pos) -> i32 {
        i32::from(self.ground(pos).height) + EYES
    }

    /// Cover met between two tiles that touch; over a corner the better of the two ways around it counts.
    fn crossing(&self, at: Pos, next: Pos, to: Pos) -> u8 {
        if at.x == next.x || at.y == next.y {
            return self.edge_cover(at, next);
        }
        let around = |side: Pos| {
            let tile = if side == to { 0 } else { self.tile_cover(side) };
            let edges = sum(self.edge_cover(at, side), self.edge_cover(side, next));
            sum(edges, tile)
        };
        around(Pos::new(next.x, at.y)).min(around(Pos::new(at.x, next.y)))
    }
}

/// Two covers one behind the other.
fn sum(a: u8, b: u8) -> u8 {
    let visible = (100 - u16::from(a.min(100))) * (100 - u16::from(b.min(100)));
    100 - (visible / 100) as u8
}

/// The tiles that the line between two tiles' middles crosses, in integers: where it meets a corner exactly it goes on
/// diagonally, so that the line is the same in both directions.
struct Line {
    at: Pos,
    step: (i16, i16),
    size: (i32, i32),
    gone: (i32, i32),
}

impl Line {
    fn new(from: Pos, to: Pos) -> Line {
        let (dx, dy) = (
            i32::from(to.x) - i32::from(from.x),
            i32::from(to.y) - i32::from(from.y),
        );
        Line {
            at: from,
            step: (dx.signum() as i16, dy.signum() as i16),
            size: (dx.abs(), dy.abs()),
            gone: (0, 0),
        }
    }

    fn advance(&mut self) -> Pos {
        let across = (1 + 2 * self.gone.0) * self.size.1;
        let down = (1 + 2 * self.gone.1) * self.size.0;
        if across <= down {
            self.gone.0 += 1;
            self.at.x = self.at.x.wrapping_add_signed(self.step.0);
        }
        if down <= across {
            self.gone.1 += 1;
            self.at.y = self.at.y.wrapping_add_signed(self.step.1);
        }
        self.at
    }
}
