//! Where new characters begin.

use uo_proto::{Pos, RegionId, fnv1a};

use crate::World;
use crate::camp::camps_near;
use crate::content::RegionContent;
use crate::dice::{Dice, Purpose};

/// Regions tried before the north-west corner, which is land in every world.
const TRIES: usize = 32;
/// A region with less open ground than this, in tiles, is no place to begin.
const GROUND_MIN: u32 = 1_024;
/// Tiles between a beginning and its region's edge.
const BORDER: u16 = 4;

/// Where the new character `name` begins: spread over all regions by a hash of the name, on walkable ground at least 14
/// tiles from any camp, from where the rest of the region can be reached without breaking or opening anything.
pub fn spawn_point(world: &World, name: &str) -> Pos {
    let mut dice = Dice::new(world.seed(), Purpose::Spawn, fnv1a(name.as_bytes()));
    let regions = RegionId::count(world.size());
    let tries = [(); TRIES].map(|()| RegionId(dice.below(regions)));
    tries
        .into_iter()
        .chain([RegionId(0)])
        .find_map(|region| spawn_in(world, region, &mut dice))
        .unwrap_or_else(|| world.content(RegionId(0)).respawn)
}

fn spawn_in(world: &World, region: RegionId, dice: &mut Dice) -> Option<Pos> {
    let content: &RegionContent = &world.content(region);
    if content.open().len() < GROUND_MIN {
        return None;
    }
    let area = world.area(region);
    let inner = |pos: &Pos| {
        let (x, y) = (pos.x - area.x, pos.y - area.y);
        x.min(area.width - 1 - x) >= BORDER && y.min(area.height - 1 - y) >= BORDER
    };
    let camps = camps_near(world, region);
    let peaceful: Vec<Pos> = content
        .open()
        .iter()
        .filter(inner)
        .filter(|&pos| camps.iter().all(|camp| camp.is_clear_of(pos)))
        .collect();
    let throw = dice.below(peaceful.len() as u32) as usize;
    peaceful.get(throw).copied()
}
