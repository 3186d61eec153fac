//! What can be generated of the world: the seam to `uo_world`.

use uo_proto::{MapInfo, ObjectKey, ObjectState, Pos};

/// The generated content of one world, shared by all clients of the process.
#[derive(Clone, Debug)]
pub struct Content {
    map: MapInfo,
}

impl Content {
    /// The content of the world that `map` describes.
    pub fn of(map: MapInfo) -> Content {
        Content { map }
    }

    /// What the world is made from.
    pub fn map(&self) -> MapInfo {
        self.map
    }

    /// The object as generated; none if nothing of that key is.
    pub fn object(&self, _key: ObjectKey) -> Option<ObjectState> {
        None
    }

    /// Calls `take` with every generated object within `radius` tiles (Chebyshev) of `center`.
    pub fn each_object_near(&self, _center: Pos, _radius: u16, _take: impl FnMut(ObjectState)) {}

    /// The centres of the bandit camps in the region of `near` and those around it.
    pub fn camps_near(&self, _near: Pos) -> Vec<Pos> {
        Vec::new()
    }
}
