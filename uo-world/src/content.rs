//! What a region is generated with.

use uo_combat::MobSpawn;
use uo_proto::{ObjectKey, ObjectState, Pos, RegionId};

use crate::site::Site;
use crate::tiles::{Barriers, TileSet};
use crate::{Camp, World, building, camp, nature};

/// Everything a region was generated with: the same for the same seed, size and region.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionContent {
    /// Which.
    pub region: RegionId,
    /// Sorted by key. The index of a key is the tile's number in the region times four, plus 0 for what fills the tile,
    /// 1 for what stands on its north and 2 for what stands on its west edge.
    pub objects: Vec<ObjectState>,
    /// At most two.
    pub camps: Vec<Camp>,
    /// Those of all camps; the slot in the id is the index here.
    pub mobs: Vec<MobSpawn>,
    /// Where the dead return: the tile nearest the centre of the region's largest piece of walkable ground, with a
    /// clearing around it. In a region that is all water it is the centre, and nobody can stand there.
    pub respawn: Pos,
    free: TileSet,
    barriers: Barriers,
    open: TileSet,
}

impl RegionContent {
    pub(crate) fn generate(world: &World, region: RegionId) -> RegionContent {
        let mut site = Site::new(world, region);
        let (camps, mobs) = camp::pitch(&mut site, world.seed(), region);
        building::build(&mut site, world.seed(), region);
        nature::grow(&mut site, world.seed(), region);
        let furnished = site.finish();
        RegionContent {
            region,
            objects: furnished.objects,
            camps,
            mobs,
            respawn: furnished.respawn,
            open: furnished.free.flood(furnished.respawn, &furnished.barriers),
            free: furnished.free,
            barriers: furnished.barriers,
        }
    }

    /// The object with `key`, as it was generated.
    pub fn object(&self, key: ObjectKey) -> Option<&ObjectState> {
        let index = self
            .objects
            .binary_search_by_key(&key, |object| object.key)
            .ok()?;
        Some(&self.objects[index])
    }

    /// The walkable tiles that no object fills.
    pub fn free(&self) -> &TileSet {
        &self.free
    }

    /// The edges with a wall, a fence or a closed door on them.
    pub fn barriers(&self) -> &Barriers {
        &self.barriers
    }

    /// The tiles that can be reached from the respawn point within the region, with nothing broken and no door opened.
    pub fn open(&self) -> &TileSet {
        &self.open
    }
}
