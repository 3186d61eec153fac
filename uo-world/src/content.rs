//! What a region is generated with.

use uo_proto::{Class, EntityId, ObjectKey, ObjectState, Pos, RegionId};

use crate::site::Site;
use crate::tiles::TileSet;
use crate::{Camp, World, building, camp, nature};

/// A mob that lives in a region.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MobSpawn {
    /// Its id, which tells its region.
    pub id: EntityId,
    /// How it fights.
    pub class: Class,
    /// Shown above its head.
    pub name: String,
    /// Where it appears, and what its leash is tied to.
    pub home: Pos,
}

/// Everything a region was generated with: the same for the same seed, size and region.
#[derive(Clone, PartialEq, Eq, Debug)]
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
            open: furnished.open,
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

    /// The tiles that can be reached from the respawn point within the region, with nothing broken and no door opened.
    pub fn open(&self) -> &TileSet {
        &self.open
    }
}
