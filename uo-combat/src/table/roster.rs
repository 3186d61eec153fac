//! Who lives where.

use uo_proto::Class;

/// A place with people of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scene {
    /// A bandit camp around a fire.
    Camp,
}

/// One who lives there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RosterEntry {
    /// How it fights.
    pub class: Class,
    /// Its name.
    pub name: &'static str,
    /// Its home, in tiles east of the scene's middle.
    pub dx: i16,
    /// Its home, in tiles south of the scene's middle.
    pub dy: i16,
}

/// The people of a scene, in a fixed order.
pub const fn roster(scene: Scene) -> &'static [RosterEntry] {
    match scene {
        Scene::Camp => &CAMP,
    }
}

const CAMP: [RosterEntry; 6] = [
    entry(Class::BanditChief, "Bandit Chief", 0, -2),
    entry(Class::Bandit, "Bandit", -2, 0),
    entry(Class::Bandit, "Bandit", 2, 0),
    entry(Class::Bandit, "Bandit", 0, 2),
    entry(Class::BanditArcher, "Bandit Archer", -3, -3),
    entry(Class::BanditArcher, "Bandit Archer", 3, -3),
];

const fn entry(class: Class, name: &'static str, dx: i16, dy: i16) -> RosterEntry {
    RosterEntry {
        class,
        name,
        dx,
        dy,
    }
}
