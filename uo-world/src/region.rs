//! The world as a whole: its seed, its size and its regions.

use std::fmt;
use std::sync::{Arc, OnceLock};

use uo_combat::Rect;
use uo_proto::map::{Window, tile_at};
use uo_proto::{Pos, REGION_SIZE, RegionId, Terrain, Tile};

use crate::cache::Cache;
use crate::content::RegionContent;
use crate::route::{self, Node, Survey};

/// The largest side of a map, in tiles.
pub const SIZE_MAX: u16 = 16_384;

/// Side of the square of regions whose contents are remembered. Regions this far apart share a slot, so a sim's
/// regions and all that borders on them stay in memory however large the map.
const CACHED_PER_ROW: u32 = 64;

/// How many answers of the coarse route search are remembered.
const ROUTES_CACHED: usize = 1_024;

/// A map's side must be a multiple of 64 from 64 to 16,384.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a map of {0} tiles a side: it must be a multiple of {REGION_SIZE} from {REGION_SIZE} to {SIZE_MAX}"
)]
pub struct BadSize(pub u16);

/// A seed, a size, and what was generated from them so far. Cheap to clone: clones share the memory.
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    size: u16,
    contents: Cache<RegionId, RegionContent>,
    /// One for each region of the map, a kilobyte or so once it is made.
    surveys: Vec<OnceLock<Box<Survey>>>,
    first_steps: Cache<(Node, Node), Option<Node>>,
}

impl World {
    /// The world with `seed` on a map of `size` tiles a side. Nothing is generated yet.
    pub fn new(seed: u64, size: u16) -> Result<World, BadSize> {
        if size == 0 || size > SIZE_MAX || !size.is_multiple_of(REGION_SIZE) {
            return Err(BadSize(size));
        }
        let cached_per_row = u32::from(size / REGION_SIZE).min(CACHED_PER_ROW);
        Ok(World {
            shared: Arc::new(Shared {
                seed,
                size,
                contents: Cache::new((cached_per_row * cached_per_row) as usize),
                surveys: (0..RegionId::count(size))
                    .map(|_| OnceLock::new())
                    .collect(),
                first_steps: Cache::new(ROUTES_CACHED),
            }),
        })
    }

    /// What the world is generated from.
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// The map's side, in tiles.
    pub fn size(&self) -> u16 {
        self.shared.size
    }

    /// All regions, in id order.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        (0..RegionId::count(self.size())).map(RegionId)
    }

    /// The region of a tile of the map.
    pub fn region_at(&self, pos: Pos) -> RegionId {
        debug_assert!(self.contains(pos), "{pos:?} is not on the map");
        RegionId::at(self.size(), pos)
    }

    /// The up to eight regions around `region`, in id order.
    pub fn neighbours(&self, region: RegionId) -> impl Iterator<Item = RegionId> + use<> {
        region.neighbours(self.size())
    }

    /// The tiles of `region`.
    pub fn area(&self, region: RegionId) -> Rect {
        let origin = region.origin(self.size());
        Rect {
            x: origin.x,
            y: origin.y,
            width: REGION_SIZE,
            height: REGION_SIZE,
        }
    }

    /// Whether `pos` is on the map.
    pub fn contains(&self, pos: Pos) -> bool {
        pos.x < self.size() && pos.y < self.size()
    }

    /// The ground at `pos`. Around the map there is nothing but water.
    pub fn tile(&self, pos: Pos) -> Tile {
        if self.contains(pos) {
            tile_at(self.seed(), pos.x, pos.y)
        } else {
            Tile {
                terrain: Terrain::Water,
                height: 0,
            }
        }
    }

    /// The ground of `area`, which must be on the map; much cheaper than tile by tile.
    pub fn window(&self, area: Rect) -> Window {
        Window::new(
            self.seed(),
            Pos::new(area.x, area.y),
            area.width,
            area.height,
        )
    }

    /// What `region` was generated with. Remembered for the last 4,096 regions at most, and the same at every call.
    ///
    /// # Panics
    /// If the map has no such region.
    pub fn content(&self, region: RegionId) -> Arc<RegionContent> {
        assert!(
            region.0 < RegionId::count(self.size()),
            "{region:?} is not on a map of {} tiles",
            self.size()
        );
        let per_row = u32::from(self.size() / REGION_SIZE);
        let cached_per_row = per_row.min(CACHED_PER_ROW);
        let (column, row) = (region.0 % per_row, region.0 / per_row);
        let slot = (row % cached_per_row) * cached_per_row + column % cached_per_row;
        self.shared.contents.get_or_make(slot as usize, region, || {
            RegionContent::generate(self, region)
        })
    }
}

impl World {
    /// Looks at `region`'s ground for the walk planner, unless that was done before. The planner does this by itself;
    /// a process that cannot wait 50 microseconds for each region that a way leads through does it when it starts.
    pub fn prepare(&self, region: RegionId) {
        self.survey(region);
    }

    pub(crate) fn survey(&self, region: RegionId) -> &Survey {
        self.shared.surveys[region.0 as usize].get_or_init(|| Box::new(Survey::new(self, region)))
    }

    /// [`route::first_step`], remembered.
    pub(crate) fn first_step(&self, from: Node, goal: Node) -> Option<Node> {
        let slot = from.mix(goal) as usize % ROUTES_CACHED;
        *self
            .shared
            .first_steps
            .get_or_make(slot, (from, goal), || route::first_step(self, from, goal))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("seed", &self.seed())
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}
