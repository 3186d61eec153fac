//! Which character stands for what on the map.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Class, ObjectKind, ObjectState, Terrain};
use uo_sdk::Entity;

/// The own character.
pub const MYSELF: char = '@';
/// Beyond the edge of the map.
pub const NOWHERE: char = ' ';

/// Ground.
pub fn of_terrain(terrain: Terrain) -> char {
    match terrain {
        Terrain::Water => '~',
        Terrain::Sand => ':',
        Terrain::Grass => '.',
        Terrain::Dirt => ',',
        Terrain::Forest => ';',
        Terrain::Rock => '\'',
        Terrain::Cliff => '^',
    }
}

/// Somebody: players in upper case, mobs in lower case.
pub fn of_entity(entity: &Entity) -> char {
    if !entity.is_alive() {
        return '%';
    }
    match entity.info.class {
        Class::Warrior => 'W',
        Class::Archer => 'A',
        Class::Mage => 'M',
        Class::Bandit => 'b',
        Class::BanditArcher => 'a',
        Class::BanditChief => 'c',
    }
}

/// Something that fills its tile. Something on an edge is drawn by [`of_edge`].
pub fn of_object(kind: ObjectKind) -> char {
    match kind {
        ObjectKind::Tree => '&',
        ObjectKind::Stump => 'u',
        ObjectKind::Rock => 'O',
        ObjectKind::Bush => '"',
        ObjectKind::Crate => '=',
        ObjectKind::Chest => '$',
        ObjectKind::Keg => '!',
        ObjectKind::Tent => 'n',
        ObjectKind::Campfire => '*',
        ObjectKind::Stone => '0',
        ObjectKind::Rubble => '_',
        ObjectKind::Wall | ObjectKind::Fence | ObjectKind::Door => '#',
    }
}

/// What stands on the west edge of a tile, on its north edge, or on both: drawn left of the tile.
pub fn of_edge(west: Option<ObjectState>, north: Option<ObjectState>) -> char {
    match (west, north) {
        (None, None) => ' ',
        (Some(_), Some(_)) => '┌',
        (Some(object), None) => of_side(object, '│', '┆'),
        (None, Some(object)) => of_side(object, '─', '┄'),
    }
}

fn of_side(object: ObjectState, wall: char, fence: char) -> char {
    match object.kind {
        ObjectKind::Door if object.active => '/',
        ObjectKind::Door => '+',
        ObjectKind::Fence => fence,
        ObjectKind::Wall => wall,
        _ => ' ',
    }
}
