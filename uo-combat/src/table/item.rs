//! What is carried and worn.

use uo_proto::{ItemKind, Slot};

/// How a weapon strikes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weapon {
    /// Reach in tiles; a reach of 1 is melee.
    pub reach: u16,
    /// Whether it shoots: it needs a line of sight, and cover counts.
    pub ranged: bool,
    /// Harm of a hit before skill and armour, from and to.
    pub damage: (u16, u16),
    /// From the start of a blow to its effect.
    pub windup_ms: u32,
    /// From the effect to the next action.
    pub recover_ms: u32,
    /// Harm to objects, in percent of that to people.
    pub object_percent: u16,
}

/// One kind of item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItemRow {
    /// In words.
    pub name: &'static str,
    /// Where it is worn; none: it is used up.
    pub slot: Option<Slot>,
    /// For what sits in the hand.
    pub weapon: Option<Weapon>,
    /// Percent of a hit's harm that it takes away.
    pub armour_percent: u16,
    /// Percent of blows and shots that it stops.
    pub block_percent: u32,
    /// Percent by which it shortens casting.
    pub cast_percent: u32,
    /// Percent by which it hastens regeneration.
    pub regen_percent: u32,
}

/// What an empty hand does.
const FIST: Weapon = melee((3, 6), 250, 500, 50);

/// How the hand that holds `item` strikes.
pub const fn weapon(item: Option<ItemKind>) -> Weapon {
    match item {
        Some(item) => match item_row(item).weapon {
            Some(weapon) => weapon,
            None => FIST,
        },
        None => FIST,
    }
}

/// The row of a kind.
pub const fn item_row(kind: ItemKind) -> ItemRow {
    use ItemKind as K;
    match kind {
        K::Dagger => hand("a dagger", melee((8, 13), 250, 500, 50)),
        K::Sword => hand("a sword", melee((12, 19), 250, 750, 75)),
        K::Axe => hand("an axe", melee((17, 28), 500, 1000, 300)),
        K::Bow => hand("a bow", shooting(10, (12, 19), 500, 750, 50)),
        K::Staff => ItemRow {
            cast_percent: 25,
            ..hand("a staff", shooting(7, (10, 16), 500, 750, 50))
        },
        K::LeatherArmour => armour("leather armour", Slot::Armour, 12),
        K::ChainArmour => armour("chain armour", Slot::Armour, 24),
        K::Robe => armour("a robe", Slot::Armour, 6),
        K::Buckler => shield("a buckler", 7),
        K::KiteShield => shield("a kite shield", 12),
        K::RingOfIron => armour("a ring of iron", Slot::Ring, 5),
        K::RingOfLife => ItemRow {
            regen_percent: 100,
            ..armour("a ring of life", Slot::Ring, 0)
        },
        K::Potion => plain("a potion"),
        K::Keg => plain("a keg"),
    }
}

const fn plain(name: &'static str) -> ItemRow {
    ItemRow {
        name,
        slot: None,
        weapon: None,
        armour_percent: 0,
        block_percent: 0,
        cast_percent: 0,
        regen_percent: 0,
    }
}

const fn hand(name: &'static str, weapon: Weapon) -> ItemRow {
    ItemRow {
        slot: Some(Slot::Weapon),
        weapon: Some(weapon),
        ..plain(name)
    }
}

const fn armour(name: &'static str, slot: Slot, percent: u16) -> ItemRow {
    ItemRow {
        slot: Some(slot),
        armour_percent: percent,
        ..plain(name)
    }
}

const fn shield(name: &'static str, block_percent: u32) -> ItemRow {
    ItemRow {
        block_percent,
        ..armour(name, Slot::Shield, 0)
    }
}

const fn melee(damage: (u16, u16), windup_ms: u32, recover_ms: u32, object_percent: u16) -> Weapon {
    Weapon {
        reach: 1,
        ranged: false,
        damage,
        windup_ms,
        recover_ms,
        object_percent,
    }
}

const fn shooting(
    reach: u16,
    damage: (u16, u16),
    windup_ms: u32,
    recover_ms: u32,
    object_percent: u16,
) -> Weapon {
    Weapon {
        reach,
        ranged: true,
        ..melee(damage, windup_ms, recover_ms, object_percent)
    }
}
