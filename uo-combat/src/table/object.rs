//! What stands in the world.

use uo_proto::ObjectKind;

/// How an object takes up room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Footing {
    /// It lies flat: nobody is hindered.
    Flat,
    /// It fills its tile.
    Tile,
    /// It stands on an edge between two tiles.
    Edge,
}

/// One kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRow {
    /// In words, for `look`.
    pub name: &'static str,
    /// How much room it takes.
    pub footing: Footing,
    /// How high it stands, in sixteenths of what hides a person; it gives cover ([`cover_percent`]).
    pub height: u8,
    /// Hits of an undamaged one; 0: nothing breaks it.
    pub strength: u16,
    /// What blows leave of it; none: nothing is left.
    pub breaks_into: Option<ObjectKind>,
    /// What fire leaves of it.
    pub burns_into: Option<ObjectKind>,
    /// Whether fire does it double harm.
    pub flammable: bool,
    /// Whether it goes off when it breaks.
    pub explosive: bool,
}

/// From this height on, an object hides who stands behind it altogether.
pub const HIDING_HEIGHT: u8 = 16;

/// The cover given by something `height` high: out of 100 shots so many end in it; 100 hides.
pub const fn cover_percent(height: u8) -> u8 {
    match height {
        0..4 => 0,
        4..HIDING_HEIGHT => height * 5,
        _ => 100,
    }
}

/// The row of a kind.
pub const fn object_row(kind: ObjectKind) -> ObjectRow {
    use Footing::{Edge, Flat, Tile};
    use ObjectKind as K;
    match kind {
        K::Tree => wood("a tree", Tile, 10, 60, Some(K::Stump), Some(K::Stump)),
        K::Stump => lasting("a stump", Flat, 3),
        K::Rock => lasting("a rock", Tile, 12),
        K::Bush => wood("a bush", Flat, 3, 8, None, None),
        K::Wall => stone("a wall", Edge, 16, 150, Some(K::Rubble)),
        K::Fence => wood("a fence", Edge, 8, 30, Some(K::Rubble), None),
        K::Door => wood("a door", Edge, 16, 60, Some(K::Rubble), Some(K::Rubble)),
        K::Crate => wood("a crate", Tile, 8, 25, Some(K::Rubble), None),
        K::Chest => wood("a chest", Tile, 5, 80, Some(K::Rubble), Some(K::Rubble)),
        K::Keg => keg(),
        K::Tent => wood("a tent", Tile, 16, 40, Some(K::Rubble), Some(K::Rubble)),
        K::Campfire => lasting("a campfire", Tile, 2),
        K::Stone => stone("a raised stone", Tile, 16, 90, None),
        K::Rubble => lasting("rubble", Flat, 1),
    }
}

const fn wood(
    name: &'static str,
    footing: Footing,
    height: u8,
    strength: u16,
    breaks_into: Option<ObjectKind>,
    burns_into: Option<ObjectKind>,
) -> ObjectRow {
    ObjectRow {
        name,
        footing,
        height,
        strength,
        breaks_into,
        burns_into,
        flammable: true,
        explosive: false,
    }
}

const fn stone(
    name: &'static str,
    footing: Footing,
    height: u8,
    strength: u16,
    breaks_into: Option<ObjectKind>,
) -> ObjectRow {
    ObjectRow {
        flammable: false,
        ..wood(name, footing, height, strength, breaks_into, breaks_into)
    }
}

const fn lasting(name: &'static str, footing: Footing, height: u8) -> ObjectRow {
    stone(name, footing, height, 0, None)
}

const fn keg() -> ObjectRow {
    ObjectRow {
        explosive: true,
        ..wood("a keg", Footing::Tile, 6, 12, None, None)
    }
}
