//! Who fights how.

use uo_proto::{Class, Equipment, Inventory, ItemKind, ItemStack, fnv1a};

/// One class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassRow {
    /// Hits when unhurt.
    pub hits_max: u16,
    /// Percent of a weapon's harm.
    pub weapon_percent: u16,
    /// Percent of a spell's harm, healing and length.
    pub spell_percent: u16,
    /// Percent of blows and shots at it that go wide.
    pub dodge_percent: u32,
}

/// What every character has more than its class would give.
const CHARACTER_BONUS: u16 = 120;

/// The row of a class.
pub const fn class_row(class: Class) -> ClassRow {
    match class {
        Class::Warrior => row(80 + CHARACTER_BONUS, 100, 40, 8),
        Class::Archer => row(60 + CHARACTER_BONUS, 100, 40, 15),
        Class::Mage => row(50 + CHARACTER_BONUS, 100, 100, 12),
        Class::Bandit => row(75, 90, 0, 8),
        Class::BanditArcher => row(60, 65, 0, 10),
        Class::BanditChief => row(140, 85, 0, 10),
    }
}

const fn row(
    hits_max: u16,
    weapon_percent: u16,
    spell_percent: u16,
    dodge_percent: u32,
) -> ClassRow {
    ClassRow {
        hits_max,
        weapon_percent,
        spell_percent,
        dodge_percent,
    }
}

/// The class of the character of that name.
pub fn class_of_name(name: &str) -> Class {
    // The low bits of FNV-1a mix least; the modulus takes all of them.
    match fnv1a(name.as_bytes()) % 3 {
        0 => Class::Warrior,
        1 => Class::Archer,
        _ => Class::Mage,
    }
}

/// What one of that class starts with.
pub fn kit(class: Class) -> Inventory {
    use ItemKind as K;
    let (weapon, armour, shield) = match class {
        Class::Warrior => (K::Sword, Some(K::ChainArmour), Some(K::KiteShield)),
        Class::Archer => (K::Bow, Some(K::LeatherArmour), Some(K::Buckler)),
        Class::Mage => (K::Staff, Some(K::Robe), None),
        Class::Bandit => (K::Sword, Some(K::LeatherArmour), None),
        Class::BanditArcher => (K::Bow, None, None),
        Class::BanditChief => (K::Axe, Some(K::ChainArmour), Some(K::Buckler)),
    };
    let items: &[(ItemKind, u16)] = match class {
        Class::Warrior => &[(K::Axe, 1), (K::RingOfIron, 1), (K::Potion, 5), (K::Keg, 1)],
        Class::Archer => &[
            (K::Dagger, 1),
            (K::RingOfIron, 1),
            (K::Potion, 5),
            (K::Keg, 1),
        ],
        Class::Mage => &[
            (K::Dagger, 1),
            (K::RingOfLife, 1),
            (K::Potion, 5),
            (K::Keg, 1),
        ],
        Class::Bandit | Class::BanditArcher | Class::BanditChief => &[],
    };
    Inventory {
        version: 1,
        items: items
            .iter()
            .map(|&(item, count)| ItemStack { item, count })
            .collect(),
        equipment: Equipment {
            weapon: Some(weapon),
            armour,
            shield,
            ring: None,
        },
        coins: Vec::new(),
    }
}
