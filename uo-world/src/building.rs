//! Houses and ruins: things to walk into and to break.

use uo_proto::{Edge, ObjectKind, Pos, RegionId};

use crate::Rect;
use crate::dice::{Dice, Purpose};
use crate::site::Site;

/// Tiles between a building and its region's edge.
const BORDER: u16 = 3;
/// Places tried for each building.
const TRIES: u32 = 10;

/// Builds up to three houses or ruins.
pub fn build(site: &mut Site, seed: u64, region: RegionId) {
    let mut dice = Dice::new(seed, Purpose::Buildings, region.0.into());
    for _ in 0..dice.below(4) {
        let width = dice.between(4, 7);
        let height = dice.between(4, 6);
        let plot = (0..TRIES)
            .map(|_| Rect {
                x: site.area().x + dice.between(BORDER, site.area().width - width - BORDER),
                y: site.area().y + dice.between(BORDER, site.area().height - height - BORDER),
                width,
                height,
            })
            .find(|&plot| site.is_vacant(plot, BORDER));
        let Some(plot) = plot else { continue };
        site.reserve(plot);
        if dice.chance(550) {
            build_house(site, &mut dice, plot);
        } else {
            build_ruin(site, &mut dice, plot);
        }
    }
}

/// Whole walls, a door, and goods in the corners.
fn build_house(site: &mut Site, dice: &mut Dice, plot: Rect) {
    let door = way_in(dice, plot);
    for (pos, edge) in outline(plot) {
        let kind = if (pos, edge) == door {
            ObjectKind::Door
        } else {
            ObjectKind::Wall
        };
        site.bar(kind, pos, edge);
    }
    let goods = [
        ObjectKind::Chest,
        ObjectKind::Crate,
        ObjectKind::Crate,
        ObjectKind::Keg,
    ];
    let share = [900, 700, 400, 150];
    for ((corner, kind), per_mille) in corners(plot).into_iter().zip(goods).zip(share) {
        if dice.chance(per_mille) {
            site.fill(kind, corner);
        }
    }
}

/// What is left of a house: more gaps than one, and rubble under them.
fn build_ruin(site: &mut Site, dice: &mut Dice, plot: Rect) {
    let breach = way_in(dice, plot);
    for (pos, edge) in outline(plot) {
        if (pos, edge) != breach && dice.chance(650) {
            site.bar(ObjectKind::Wall, pos, edge);
        }
    }
    for corner in corners(plot) {
        match dice.below(6) {
            0 => site.fill(ObjectKind::Crate, corner),
            1 => site.fill(ObjectKind::Bush, corner),
            2 => site.fill(ObjectKind::Rock, corner),
            _ => {}
        }
    }
}

/// The edges around a plot, clockwise from its north-west corner.
fn outline(plot: Rect) -> Vec<(Pos, Edge)> {
    let (east, south) = (plot.x + plot.width, plot.y + plot.height);
    let rows = plot.y..south;
    let columns = plot.x..east;
    let mut edges = Vec::with_capacity(2 * usize::from(plot.width + plot.height));
    edges.extend(columns.clone().map(|x| (Pos::new(x, plot.y), Edge::North)));
    edges.extend(rows.clone().map(|y| (Pos::new(east, y), Edge::West)));
    edges.extend(columns.rev().map(|x| (Pos::new(x, south), Edge::North)));
    edges.extend(rows.rev().map(|y| (Pos::new(plot.x, y), Edge::West)));
    edges
}

/// An edge around a plot that does not lead into a corner, because corners may be filled.
fn way_in(dice: &mut Dice, plot: Rect) -> (Pos, Edge) {
    let mut edges = outline(plot);
    edges.retain(|&(pos, edge)| match edge {
        Edge::North => pos.x > plot.x && pos.x + 1 < plot.x + plot.width,
        Edge::West => pos.y > plot.y && pos.y + 1 < plot.y + plot.height,
    });
    edges[dice.below(edges.len() as u32) as usize]
}

/// The corner tiles. Buildings are at least four tiles wide and high, so filled corners leave every other tile inside
/// reachable.
fn corners(plot: Rect) -> [Pos; 4] {
    let (east, south) = (plot.x + plot.width - 1, plot.y + plot.height - 1);
    [
        Pos::new(plot.x, plot.y),
        Pos::new(east, plot.y),
        Pos::new(east, south),
        Pos::new(plot.x, south),
    ]
}
