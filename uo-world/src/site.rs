//! A region while it is being furnished. It holds the one promise that everything else builds on: objects never
//! separate what the terrain joins, neither within the region nor across its borders. So the walk planner may plan
//! over terrain alone, and every arena lets its plans come true.

use uo_combat::table::{Footing, object_row};
use uo_proto::map::Window;
use uo_proto::{Edge, ObjectKey, ObjectKind, ObjectState, Pos, REGION_SIZE, RegionId, Terrain};

use crate::tiles::{Barriers, TileSet};
use crate::{Rect, World};

/// Tiles around the respawn point on which nothing stands.
const RESPAWN_CLEARING: u16 = 2;

/// A region, its ground, and what was placed so far.
pub struct Site {
    region: RegionId,
    area: Rect,
    /// The region and one tile around it.
    ground: Window,
    main: TileSet,
    respawn: Pos,
    /// Walkable, and filled by nothing.
    free: TileSet,
    /// Free, and not set apart for anything.
    plots: TileSet,
    barriers: Barriers,
    objects: Vec<ObjectState>,
}

/// What a site leaves behind.
pub struct Furnished {
    pub respawn: Pos,
    pub free: TileSet,
    pub barriers: Barriers,
    /// Sorted by key.
    pub objects: Vec<ObjectState>,
}

impl Site {
    /// The bare ground of `region`.
    pub fn new(world: &World, region: RegionId) -> Site {
        let area = world.area(region);
        let origin = region.origin(world.size());
        let ground = world.window(area.grown(1));
        let free = TileSet::walkable(origin, &ground);
        let main = free.largest_piece();
        let centre = Pos::new(origin.x + REGION_SIZE / 2, origin.y + REGION_SIZE / 2);
        let respawn = main
            .iter()
            .min_by_key(|pos| (pos.distance(centre), *pos))
            .unwrap_or(centre);
        let mut plots = free.clone();
        plots.remove_all(around(respawn).grown(RESPAWN_CLEARING));
        Site {
            region,
            area,
            ground,
            main,
            respawn,
            free,
            plots,
            barriers: Barriers::none(origin),
            objects: Vec::new(),
        }
    }

    /// The region's tiles.
    pub fn area(&self) -> Rect {
        self.area
    }

    /// Where the dead return.
    pub fn respawn(&self) -> Pos {
        self.respawn
    }

    /// What the ground is at a tile of the region.
    pub fn terrain(&self, pos: Pos) -> Terrain {
        self.ground
            .get(pos)
            .map_or(Terrain::Water, |tile| tile.terrain)
    }

    /// How many tiles the largest piece of walkable ground has.
    pub fn main_size(&self) -> u32 {
        self.main.len()
    }

    /// Whether `plot` and the tiles around it lie on the region's largest piece of ground, unused, with at least
    /// `border` tiles between the plot and the region's edge.
    pub fn is_vacant(&self, plot: Rect, border: u16) -> bool {
        let Rect { x, y, .. } = self.area;
        let inside = plot.x >= x + border
            && plot.y >= y + border
            && plot.x + plot.width + border <= x + REGION_SIZE
            && plot.y + plot.height + border <= y + REGION_SIZE;
        inside
            && plot
                .grown(1)
                .positions()
                .all(|pos| self.plots.contains(pos) && self.main.contains(pos))
    }

    /// Sets `plot` apart, with a ring around it that nothing will ever fill: whatever stands on the plot, one can walk
    /// around it.
    pub fn reserve(&mut self, plot: Rect) {
        self.plots.remove_all(plot.grown(1));
    }

    /// Fills a tile of a reserved plot. The plot's layout answers for its being passable.
    pub fn fill(&mut self, kind: ObjectKind, pos: Pos) {
        if blocks(kind) {
            self.free.remove(pos);
        }
        self.push(kind, pos, None);
    }

    /// Puts a wall, a fence or a door on an edge within or around a reserved plot.
    pub fn bar(&mut self, kind: ObjectKind, pos: Pos, edge: Edge) {
        self.barriers.insert(pos, edge);
        self.push(kind, pos, Some(edge));
    }

    /// Scatters one object over unreserved ground, if that cuts nothing off.
    pub fn scatter(&mut self, kind: ObjectKind, pos: Pos) {
        if self.plots.contains(pos) && (!blocks(kind) || self.can_fill(pos)) {
            self.fill(kind, pos);
        }
    }

    /// Whether what is walkable around `pos` hangs together without it. By induction this keeps whole pieces together:
    /// a way through `pos` can always go around it.
    fn can_fill(&self, pos: Pos) -> bool {
        // Clockwise from north; sides at even, corners at odd places. What lies beyond the region does not count.
        let ring = uo_proto::Dir::ALL
            .map(|dir| pos.step(dir).is_some_and(|near| self.free.contains(near)));
        let sides = (0..8).step_by(2).filter(|&at| ring[at]).count();
        let joints = (0..8)
            .step_by(2)
            .filter(|&at| ring[at] && ring[at + 1] && ring[(at + 2) % 8])
            .count();
        let together = match sides {
            0 => false,
            4 => joints >= 3,
            _ => sides - joints == 1,
        };
        together && self.keeps_crossing(pos)
    }

    /// On the region's border: whether both neighbouring ways over it stay open.
    ///
    /// Either side of a border fills only tiles of its own remainder modulo four, so a filled tile and the one across
    /// from it always have an unfilled pair beside them.
    fn keeps_crossing(&self, pos: Pos) -> bool {
        let (last_x, last_y) = (self.area.x + REGION_SIZE - 1, self.area.y + REGION_SIZE - 1);
        let west_east = pos.x == self.area.x || pos.x == last_x;
        let north_south = pos.y == self.area.y || pos.y == last_y;
        if !west_east && !north_south {
            return true;
        }
        if west_east && north_south {
            return false;
        }
        let (along, far_side) = if west_east {
            (pos.y, pos.x == last_x)
        } else {
            (pos.x, pos.y == last_y)
        };
        along % 4 == if far_side { 2 } else { 0 }
            && around(pos).grown(1).positions().all(|near| {
                self.ground
                    .get(near)
                    .is_none_or(|tile| tile.terrain.is_walkable())
            })
    }

    /// The key tells the place, so it stays the same whatever else the generator puts into the region.
    fn push(&mut self, kind: ObjectKind, pos: Pos, edge: Option<Edge>) {
        let tile = u32::from(pos.y - self.area.y) * u32::from(REGION_SIZE)
            + u32::from(pos.x - self.area.x);
        let slot = match edge {
            None => 0,
            Some(Edge::North) => 1,
            Some(Edge::West) => 2,
        };
        self.objects.push(ObjectState {
            key: ObjectKey::new(self.region, tile * 4 + slot),
            kind,
            x: pos.x,
            y: pos.y,
            edge,
            hits: object_row(kind).strength,
            active: false,
            gone: false,
        });
    }

    /// Ends the work.
    pub fn finish(mut self) -> Furnished {
        self.objects.sort_unstable_by_key(|object| object.key);
        Furnished {
            respawn: self.respawn,
            free: self.free,
            barriers: self.barriers,
            objects: self.objects,
        }
    }
}

/// Whether nobody can stand where one is.
fn blocks(kind: ObjectKind) -> bool {
    object_row(kind).footing == Footing::Tile
}

/// The tile as a rectangle, to grow.
fn around(pos: Pos) -> Rect {
    Rect {
        x: pos.x,
        y: pos.y,
        width: 1,
        height: 1,
    }
}
