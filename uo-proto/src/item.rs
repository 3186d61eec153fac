//! What a character can carry and wear. What an item does stands in `uo-combat`'s item table.

use serde::{Deserialize, Serialize};

use crate::CoinSerial;

/// A kind of thing that can be carried. Kinds are added at the end; none is ever removed (rows name them).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A short blade; quick and weak.
    Dagger,
    /// The warrior's weapon.
    Sword,
    /// Slow, heavy, good against walls.
    Axe,
    /// The archer's weapon; needs a line of sight.
    Bow,
    /// The mage's weapon; shortens casting.
    Staff,
    /// Light armour.
    LeatherArmour,
    /// Heavy armour.
    ChainArmour,
    /// A mage's clothes.
    Robe,
    /// A small shield.
    Buckler,
    /// A large shield.
    KiteShield,
    /// Worn: a little more protection.
    RingOfIron,
    /// Worn: heals faster.
    RingOfLife,
    /// Drunk: gives back hits. Stacks.
    Potion,
    /// Can be planted and goes off. Stacks.
    Keg,
}

/// Where a worn item sits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    /// In the hand.
    Weapon,
    /// On the body.
    Armour,
    /// On the arm.
    Shield,
    /// On a finger.
    Ring,
}

/// So many of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ItemStack {
    /// What.
    pub item: ItemKind,
    /// How many; at least one.
    pub count: u16,
}

/// What is worn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Equipment {
    /// In the hand.
    #[serde(default)]
    pub weapon: Option<ItemKind>,
    /// On the body.
    #[serde(default)]
    pub armour: Option<ItemKind>,
    /// On the arm.
    #[serde(default)]
    pub shield: Option<ItemKind>,
    /// On a finger.
    #[serde(default)]
    pub ring: Option<ItemKind>,
}

/// Everything a character has.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Inventory {
    /// Grows by at least one with every change; never falls, not over a restart either.
    pub version: u64,
    /// What is carried but not worn, one stack a kind, in the order of kinds.
    pub items: Vec<ItemStack>,
    /// What is worn.
    pub equipment: Equipment,
    /// Coins, each with its serial, in the order of the serials.
    pub coins: Vec<CoinSerial>,
}

impl Equipment {
    /// What sits in `slot`.
    pub fn get(&self, slot: Slot) -> Option<ItemKind> {
        match slot {
            Slot::Weapon => self.weapon,
            Slot::Armour => self.armour,
            Slot::Shield => self.shield,
            Slot::Ring => self.ring,
        }
    }

    /// Where `slot` is kept.
    pub fn get_mut(&mut self, slot: Slot) -> &mut Option<ItemKind> {
        match slot {
            Slot::Weapon => &mut self.weapon,
            Slot::Armour => &mut self.armour,
            Slot::Shield => &mut self.shield,
            Slot::Ring => &mut self.ring,
        }
    }
}

impl Inventory {
    /// How many of `item` are carried (not worn).
    pub fn count(&self, item: ItemKind) -> u16 {
        self.items
            .iter()
            .find(|stack| stack.item == item)
            .map_or(0, |stack| stack.count)
    }

    /// Adds `count` of `item`. The caller raises the version.
    pub fn put(&mut self, item: ItemKind, count: u16) {
        match self.items.binary_search_by_key(&item, |stack| stack.item) {
            Ok(at) => self.items[at].count = self.items[at].count.saturating_add(count),
            Err(at) => self.items.insert(at, ItemStack { item, count }),
        }
    }

    /// Takes one of `item`; false if there is none. The caller raises the version.
    pub fn take(&mut self, item: ItemKind) -> bool {
        let Ok(at) = self.items.binary_search_by_key(&item, |stack| stack.item) else {
            return false;
        };
        self.items[at].count -= 1;
        if self.items[at].count == 0 {
            self.items.remove(at);
        }
        true
    }
}
