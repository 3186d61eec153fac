//! Where bots meet that have never spoken to each other: each finds the same places from where it stands.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Pos, RegionId};
use uo_world::{Camp, Rect, World};

use crate::LocalWorld;

/// Who is in the same square of this side meets, in tiles: wide enough that a few bots in a hundred find each other, and
/// small enough to walk.
const SQUARE: u16 = 256;

/// The place where those meet who are in the same square of the map: where the dead of its middle region come back, so
/// that nobody is far from it after a death. None before the first login.
pub fn ground(world: &LocalWorld) -> Option<Pos> {
    let map = world.content()?.world();
    let square = square(map, world.pos());
    let middle = Pos::new(
        square.x + square.width / 2 - 1,
        square.y + square.height / 2 - 1,
    );
    Some(map.content(map.region_at(middle)).respawn)
}

/// The camps of the square of the map that the character is in, in the order in which they are visited: from the middle of
/// the square outwards.
pub fn camps(world: &LocalWorld) -> Vec<Camp> {
    let Some(content) = world.content() else {
        return Vec::new();
    };
    let map = content.world();
    let square = square(map, world.pos());
    let middle = Pos::new(square.x + square.width / 2, square.y + square.height / 2);
    let mut camps: Vec<Camp> = regions(map, square)
        .flat_map(|region| map.content(region).camps.clone())
        .collect();
    camps.sort_by_key(|camp| (camp.gate.distance(middle), camp.gate));
    camps
}

/// The square around `pos`; smaller at the edges of the map.
fn square(map: &World, pos: Pos) -> Rect {
    let last = map.size() - 1;
    let corner = |at: u16| at.min(last) / SQUARE * SQUARE;
    let (x, y) = (corner(pos.x), corner(pos.y));
    Rect {
        x,
        y,
        width: SQUARE.min(map.size() - x),
        height: SQUARE.min(map.size() - y),
    }
}

fn regions(map: &World, square: Rect) -> impl Iterator<Item = RegionId> {
    let side = usize::from(uo_proto::REGION_SIZE);
    let rows = (square.y..square.y + square.height).step_by(side);
    rows.flat_map(move |y| {
        let columns = (square.x..square.x + square.width).step_by(side);
        columns.map(move |x| map.region_at(Pos::new(x, y)))
    })
}

#[cfg(test)]
mod tests {
    use uo_proto::Class;

    use super::*;
    use crate::bots::Idle;
    use crate::bots::scene::Scene;

    #[test]
    fn everybody_of_a_square_finds_the_same_places() {
        let places = |x, y| {
            let world = Scene::new(Idle, Class::Mage, Pos::new(x, y)).world;
            let gates: Vec<Pos> = camps(&world).iter().map(|camp| camp.gate).collect();
            (ground(&world), gates)
        };
        let (ground, gates) = places(3, 3);
        assert_eq!(places(250, 199), (ground, gates.clone()));
        let ground = ground.unwrap();
        assert!(ground.distance(Pos::new(128, 128)) <= 64, "{ground:?}");
        assert!(gates.len() >= 4, "{gates:?}");
        let apart = |gate: &Pos| gate.distance(Pos::new(128, 128));
        assert!(gates.is_sorted_by_key(apart));
    }

    #[test]
    fn a_map_of_one_region_is_one_square() {
        let map = World::new(7, 64).unwrap();
        let square = square(&map, Pos::new(63, 0));
        assert_eq!((square.width, square.height), (64, 64));
        assert_eq!(regions(&map, square).count(), 1);
    }
}
