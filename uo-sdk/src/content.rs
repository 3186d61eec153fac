//! What can be generated of the world: the seam to `uo_world`.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::{Arc, Mutex, PoisonError};

use uo_proto::{MapInfo, ObjectKey, ObjectState, Pos, RegionId};
use uo_world::{RegionContent, World};

/// Worlds remembered by the process; a client meets another one only when its server was given another.
const WORLDS_MAX: usize = 4;

/// Many clients of one process play in one world and generate it once.
static WORLDS: Mutex<Vec<World>> = Mutex::new(Vec::new());

/// The generated content of one world, shared by all clients of the process.
#[derive(Clone, Debug)]
pub struct Content {
    world: World,
}

impl Content {
    /// The content of the world that `map` describes; none if there cannot be such a world.
    pub fn of(map: MapInfo) -> Option<Content> {
        let mut worlds = WORLDS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = worlds
            .iter()
            .find(|world| (world.seed(), world.size()) == (map.seed, map.size));
        if let Some(world) = known {
            let world = world.clone();
            return Some(Content { world });
        }
        let world = World::new(map.seed, map.size).ok()?;
        if worlds.len() >= WORLDS_MAX {
            worlds.remove(0);
        }
        worlds.push(world.clone());
        Some(Content { world })
    }

    /// The world itself.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The object as generated; none if nothing of that key is.
    pub fn object(&self, key: ObjectKey) -> Option<ObjectState> {
        self.region(key.region())?.object(key).copied()
    }

    /// Calls `take` with every generated object within `radius` tiles (Chebyshev) of `center`.
    pub fn each_object_near(&self, center: Pos, radius: u16, mut take: impl FnMut(ObjectState)) {
        for region in self.regions_near(center, radius) {
            let near = |object: &&ObjectState| object.pos().distance(center) <= radius;
            region
                .objects
                .iter()
                .filter(near)
                .copied()
                .for_each(&mut take);
        }
    }

    /// The tiles before the gates of the bandit camps in the regions within `radius` tiles of `center`, in the order of
    /// regions.
    pub fn camp_gates_near(&self, center: Pos, radius: u16) -> Vec<Pos> {
        self.regions_near(center, radius)
            .flat_map(|region| {
                region
                    .camps
                    .iter()
                    .map(|camp| camp.gate)
                    .collect::<Vec<_>>()
            })
            .collect()
    }

    /// Whether `pos` could be reached from its region's respawn point before anything was broken or built there.
    pub fn is_open(&self, pos: Pos) -> bool {
        self.world.contains(pos)
            && self
                .region(self.world.region_at(pos))
                .is_some_and(|region| region.open().contains(pos))
    }

    fn region(&self, region: RegionId) -> Option<Arc<RegionContent>> {
        (region.0 < RegionId::count(self.world.size())).then(|| self.world.content(region))
    }

    /// The regions that overlap the square around `center`.
    fn regions_near(&self, center: Pos, radius: u16) -> impl Iterator<Item = Arc<RegionContent>> {
        let last = self.world.size() - 1;
        let span = |at: u16| {
            let (low, high) = (
                at.saturating_sub(radius),
                at.saturating_add(radius).min(last),
            );
            (low.min(last) / uo_proto::REGION_SIZE)..=(high / uo_proto::REGION_SIZE)
        };
        let columns = span(center.x);
        span(center.y).flat_map(move |row| {
            columns.clone().map(move |column| {
                let corner = Pos::new(column * uo_proto::REGION_SIZE, row * uo_proto::REGION_SIZE);
                self.world.content(self.world.region_at(corner))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        Content::of(MapInfo { seed: 5, size: 256 }).unwrap()
    }

    #[test]
    fn objects_near_are_those_of_every_region_within_reach() {
        let content = content();
        // Where four regions meet, and in a corner of the map.
        for center in [Pos::new(128, 128), Pos::new(0, 255)] {
            let mut near = Vec::new();
            content.each_object_near(center, 40, |object| near.push(object.key));
            near.sort();
            let mut all: Vec<_> = content
                .world()
                .regions()
                .flat_map(|region| content.world().content(region).objects.clone())
                .filter(|object| object.pos().distance(center) <= 40)
                .map(|object| object.key)
                .collect();
            all.sort();
            assert_eq!(near, all);
            assert!(!near.is_empty());
        }
    }

    #[test]
    fn what_cannot_be_is_none() {
        assert!(Content::of(MapInfo { seed: 1, size: 100 }).is_none());
        let content = content();
        assert!(content.object(ObjectKey::new(RegionId(16), 0)).is_none());
        assert!(!content.is_open(Pos::new(256, 0)));
    }
}
