//! Bandit camps: a palisade, what the bandits took, and the bandits.

use uo_combat::MobSpawn;
use uo_combat::table::{Scene, roster};
use uo_proto::{Edge, EntityId, ObjectKind, Pos, RegionId};

use crate::dice::{Dice, Purpose};
use crate::site::Site;
use crate::{Rect, World};

/// Nothing of a camp is nearer than this to the region's respawn point, or to where a new character begins.
pub const CAMP_DISTANCE: u16 = 14;
/// Tiles between a camp and its region's edge: a chase to the end of the leash stays within the region's arena.
const BORDER: u16 = 6;
/// Tiles between two camps of a region, so that they are two fights.
const APART: u16 = 12;
/// Places tried for each camp.
const TRIES: u32 = 24;
/// Regions with less ground than this are too small to share with bandits.
const GROUND_MIN: u32 = 1_200;

/// A camp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Camp {
    /// The tiles inside the palisade.
    pub area: Rect,
    /// The tile outside the opening of the palisade.
    pub gate: Pos,
    /// Slots of its mobs: the first, and how many.
    pub slots: (u8, u8),
}

/// The inside of a camp, seen from the north, with the fire in its middle: homes of `roster(Scene::Camp)` are relative to
/// it and must be empty here. The palisade runs around; `=` in the last row is where it is open to
/// the south, and a door leads out to the north above the `|`.
const LAYOUT: [&str; 9] = [
    "T...|..c..T",
    "...........",
    "T.......C..",
    ".........c.",
    ".....F.....",
    "...........",
    "k.........T",
    "cc.........",
    "T....==...k",
];
const WIDTH: u16 = LAYOUT[0].len() as u16;
const HEIGHT: u16 = LAYOUT.len() as u16;

/// Pitches up to two camps.
pub fn pitch(site: &mut Site, seed: u64, region: RegionId) -> (Vec<Camp>, Vec<MobSpawn>) {
    let mut dice = Dice::new(seed, Purpose::Camps, region.0.into());
    let (mut camps, mut mobs) = (Vec::new(), Vec::new());
    if site.main_size() < GROUND_MIN {
        return (camps, mobs);
    }
    let wanted = [0, 1, 1, 1, 2, 2][dice.below(6) as usize];
    for _ in 0..wanted {
        let place = (0..TRIES)
            .map(|_| random_plot(&mut dice, site.area()))
            .find(|&plot| {
                site.is_vacant(plot, BORDER)
                    && plot.distance(site.respawn()) >= CAMP_DISTANCE + 2
                    && camps.iter().all(|camp: &Camp| {
                        plot.grown(APART)
                            .positions()
                            .all(|pos| camp.area.distance(pos) > 0)
                    })
            });
        let turn = Turn {
            mirrored: dice.chance(500),
            upside_down: dice.chance(500),
        };
        if let Some(area) = place {
            camps.push(pitch_one(site, region, area, turn, &mut mobs));
        }
    }
    (camps, mobs)
}

fn random_plot(dice: &mut Dice, area: Rect) -> Rect {
    Rect {
        x: area.x + dice.between(BORDER, area.width - WIDTH - BORDER),
        y: area.y + dice.between(BORDER, area.height - HEIGHT - BORDER),
        width: WIDTH,
        height: HEIGHT,
    }
}

/// How a camp's layout lies on the ground.
#[derive(Clone, Copy)]
struct Turn {
    mirrored: bool,
    upside_down: bool,
}

fn pitch_one(
    site: &mut Site,
    region: RegionId,
    area: Rect,
    turn: Turn,
    mobs: &mut Vec<MobSpawn>,
) -> Camp {
    site.reserve(area);
    let slot_first = mobs.len() as u8;
    let (mut open, mut door) = (Vec::new(), Vec::new());
    for (row, line) in (0..).zip(LAYOUT) {
        for (column, mark) in (0..).zip(line.bytes()) {
            let x = if turn.mirrored {
                WIDTH - 1 - column
            } else {
                column
            };
            let y = if turn.upside_down {
                HEIGHT - 1 - row
            } else {
                row
            };
            let pos = Pos::new(area.x + x, area.y + y);
            match mark {
                b'T' => site.fill(ObjectKind::Tent, pos),
                b'F' => site.fill(ObjectKind::Campfire, pos),
                b'c' => site.fill(ObjectKind::Crate, pos),
                b'C' => site.fill(ObjectKind::Chest, pos),
                b'k' => site.fill(ObjectKind::Keg, pos),
                b'=' => open.push(pos),
                b'|' => door.push(pos.x),
                _ => {}
            }
        }
    }
    fence_in(site, area, turn, &open, &door);
    let fire = middle(area);
    for entry in roster(Scene::Camp) {
        let dx = if turn.mirrored { -entry.dx } else { entry.dx };
        let dy = if turn.upside_down {
            -entry.dy
        } else {
            entry.dy
        };
        mobs.push(MobSpawn {
            id: EntityId::mob(region, mobs.len() as u8),
            class: entry.class,
            name: entry.name.to_owned(),
            home: Pos::new(
                fire.x.saturating_add_signed(dx),
                fire.y.saturating_add_signed(dy),
            ),
        });
    }
    let gate_y = if turn.upside_down {
        area.y - 1
    } else {
        area.y + area.height
    };
    Camp {
        area,
        gate: Pos::new(open[0].x, gate_y),
        slots: (slot_first, mobs.len() as u8 - slot_first),
    }
}

/// The palisade: walls to the north and south, fences, which can be shot over, to the west and east.
fn fence_in(site: &mut Site, area: Rect, turn: Turn, open: &[Pos], door: &[u16]) {
    let (north, south) = (area.y, area.y + area.height);
    let (opening, door_side) = if turn.upside_down {
        (north, south)
    } else {
        (south, north)
    };
    for x in area.x..area.x + area.width {
        for y in [north, south] {
            let pos = Pos::new(x, y);
            if y == opening && open.iter().any(|gap| gap.x == x) {
                continue;
            }
            let is_door = y == door_side && door.contains(&x);
            site.bar(
                if is_door {
                    ObjectKind::Door
                } else {
                    ObjectKind::Wall
                },
                pos,
                Edge::North,
            );
        }
    }
    for y in north..south {
        for x in [area.x, area.x + area.width] {
            site.bar(ObjectKind::Fence, Pos::new(x, y), Edge::West);
        }
    }
}

/// The tile of the fire.
fn middle(area: Rect) -> Pos {
    Pos::new(area.x + area.width / 2, area.y + area.height / 2)
}

impl Camp {
    /// The tile of its fire.
    pub fn centre(&self) -> Pos {
        middle(self.area)
    }

    /// Whether `pos` is as far from the camp as a peaceful beginning has to be.
    pub fn is_clear_of(&self, pos: Pos) -> bool {
        self.area.distance(pos) >= CAMP_DISTANCE
    }
}

/// The camps that could be seen from `region`: its own and its neighbours'.
pub fn camps_near(world: &World, region: RegionId) -> Vec<Camp> {
    std::iter::once(region)
        .chain(world.neighbours(region))
        .flat_map(|near| world.content(near).camps.clone())
        .collect()
}
