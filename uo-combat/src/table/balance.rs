//! Every number of a fight that belongs to no row.

/// Percent of blows that find their target before its dodge.
pub const MELEE_HIT_PERCENT: u32 = 90;
/// Percent of shots that find their target before its dodge and its cover.
pub const RANGED_HIT_PERCENT: u32 = 85;
/// However nimble the target, so many blows of a hundred hit.
pub const HIT_PERCENT_MIN: u32 = 5;
/// Percent of blows that a raised guard stops.
pub const GUARD_MELEE_PERCENT: u32 = 60;
/// Percent of shots that a raised guard stops.
pub const GUARD_RANGED_PERCENT: u32 = 40;
/// Percent of the harm that comes through a raised guard, spells included.
pub const GUARD_HARM_PERCENT: u16 = 50;
/// Percent of hits that break a cast.
pub const INTERRUPT_PERCENT: u32 = 30;
/// No armour takes away more than this.
pub const ARMOUR_PERCENT_MAX: u16 = 60;

/// Hits given back by a potion.
pub const POTION_HITS: u16 = 40;
/// Time to drink it.
pub const DRINK_MS: u32 = 500;
/// From one potion to the next.
pub const POTION_COOLDOWN_MS: u32 = 6_000;

/// A rested fighter gets hits back this often.
pub const REGEN_MS: u32 = 1_000;
/// A fighting one.
pub const REGEN_FIGHT_MS: u32 = 2_500;
/// So many hits at rest.
pub const REGEN_HITS: u16 = 2;
/// So many in a fight.
pub const REGEN_FIGHT_HITS: u16 = 1;
/// So many for a mob on its way home or back there.
pub const REGEN_HOME_HITS: u16 = 10;

/// A slowed fighter takes this much longer for its steps and blows, in percent.
pub const SLOW_PERCENT: u32 = 100;

/// Time to plant a keg.
pub const PLANT_MS: u32 = 500;
/// From planting to the bang.
pub const FUSE_MS: u32 = 3_000;
/// What a keg that breaks still waits, so that a row of them goes off one after the other.
pub const CHAIN_FUSE_MS: u32 = 150;
/// Reach of the bang in tiles.
pub const KEG_RADIUS: u16 = 2;
/// Harm in its middle, from and to; it falls by [`KEG_FALL_PERCENT`] with each tile.
pub const KEG_DAMAGE: (u16, u16) = (50, 70);
/// See [`KEG_DAMAGE`].
pub const KEG_FALL_PERCENT: u16 = 30;
/// Harm to objects, in percent of that to people.
pub const KEG_OBJECT_PERCENT: u16 = 250;
/// Harm of fire to what burns, in percent.
pub const FIRE_PERCENT: u16 = 200;

/// A mob notices who comes this near, if it sees them.
pub const AGGRO_TILES: u16 = 8;
/// A mob that is attacked calls those who are this near.
pub const ALARM_TILES: u16 = 6;
/// A mob looks around this often.
pub const LOOK_MS: u32 = 500;
/// Percent of killed bandits that carry coins.
pub const LOOT_PERCENT: u32 = 60;
/// How many, from and to.
pub const LOOT_COINS: (u16, u16) = (1, 4);
/// How many a chief carries; a chief always does.
pub const LOOT_CHIEF_COINS: (u16, u16) = (5, 10);
/// Percent of killed bandits that carry a potion.
pub const LOOT_POTION_PERCENT: u32 = 25;
/// A purse holds no more: the inventory travels whole.
pub const COINS_MAX: usize = 1_000;

/// An attack on somebody who is not there is kept this long: in a drain the fighters of a fight arrive one by one.
pub const ABSENT_MS: u32 = 2_000;
/// A failed path search is not repeated from the same tile for this long.
pub const SEARCH_AGAIN_MS: u32 = 1_000;
/// So many failed searches end a walk or an attack.
pub const SEARCH_FAILURES_MAX: u8 = 5;
/// How many foes a fighter remembers.
pub const FOES_MAX: usize = 8;
