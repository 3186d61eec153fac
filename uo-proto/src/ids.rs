//! Ids. The 64-bit ones travel as strings in JSON, because JavaScript would round them, and as integers in MessagePack.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Pos, REGION_SIZE};

macro_rules! wide_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map($name)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                if serializer.is_human_readable() {
                    serializer.collect_str(&self.0)
                } else {
                    serializer.serialize_u64(self.0)
                }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(WideVisitor).map($name)
            }
        }
    };
}

/// Accepts both forms of a wide id: serde buffers tagged enums and forgets which format it came from.
struct WideVisitor;

impl Visitor<'_> for WideVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a 64-bit id as a decimal string")
    }
    fn visit_u64<E: de::Error>(self, value: u64) -> Result<u64, E> {
        Ok(value)
    }
    // Some MessagePack writers give every integer a sign.
    fn visit_i64<E: de::Error>(self, value: i64) -> Result<u64, E> {
        u64::try_from(value).map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<u64, E> {
        text.parse()
            .map_err(|_| E::invalid_value(de::Unexpected::Str(text), &self))
    }
}

wide_id! {
    /// A character: the durable identity of a player in the world. It is also the [`EntityId`] of its body.
    CharId
}
wide_id! {
    /// Something that moves: a character's body, or a mob.
    EntityId
}
wide_id! {
    /// Something that stands: `region << 24 | index`; bit 23 is set on objects made at run time.
    ObjectKey
}

/// A 64x64-tile square of the map, numbered row by row.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RegionId(pub u32);

impl fmt::Display for RegionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl RegionId {
    /// The region that holds `pos` on a map of `map_size` tiles a side.
    pub fn at(map_size: u16, pos: Pos) -> RegionId {
        let per_row = u32::from(map_size / REGION_SIZE);
        RegionId(u32::from(pos.y / REGION_SIZE) * per_row + u32::from(pos.x / REGION_SIZE))
    }

    /// How many regions a map of `map_size` tiles a side has.
    pub fn count(map_size: u16) -> u32 {
        let per_row = u32::from(map_size / REGION_SIZE);
        per_row * per_row
    }

    /// The north-west tile of this region.
    pub fn origin(self, map_size: u16) -> Pos {
        let per_row = u32::from(map_size / REGION_SIZE);
        Pos {
            x: (self.0 % per_row) as u16 * REGION_SIZE,
            y: (self.0 / per_row) as u16 * REGION_SIZE,
        }
    }

    /// The up to eight regions around this one, in id order.
    pub fn neighbours(self, map_size: u16) -> impl Iterator<Item = RegionId> {
        let per_row = i64::from(map_size / REGION_SIZE);
        let (column, row) = (i64::from(self.0) % per_row, i64::from(self.0) / per_row);
        (-1..=1)
            .flat_map(move |dy| (-1..=1).map(move |dx| (dx, dy)))
            .filter(|&offset| offset != (0, 0))
            .map(move |(dx, dy)| (column + dx, row + dy))
            .filter(move |&(x, y)| (0..per_row).contains(&x) && (0..per_row).contains(&y))
            .map(move |(x, y)| RegionId((y * per_row + x) as u32))
    }
}

impl CharId {
    /// The character of a name in dev mode: FNV-1a, 64 bits, over the name's bytes.
    ///
    /// Constants: Fowler, Noll, Vo, `draft-eastlake-fnv`, section 5.
    pub fn of_name(name: &str) -> CharId {
        CharId(fnv1a(name.as_bytes()))
    }

    /// The entity that is this character's body.
    pub fn entity(self) -> EntityId {
        EntityId(self.0)
    }
}

/// Ids of mobs lie below this bound, ids of characters above it: a name that hashes below it is refused at login.
pub const MOB_ID_BOUND: u64 = 1 << 40;

impl EntityId {
    /// The mob in `slot` of `region`'s roster. A mob never leaves its region, so the id also tells where it is.
    pub fn mob(region: RegionId, slot: u8) -> EntityId {
        EntityId(u64::from(region.0) << 8 | u64::from(slot))
    }

    /// The region of a mob; none for the body of a character.
    pub fn mob_region(self) -> Option<RegionId> {
        (self.0 < MOB_ID_BOUND).then_some(RegionId((self.0 >> 8) as u32))
    }

    /// The character whose body this is; none for a mob.
    pub fn character(self) -> Option<CharId> {
        (self.0 >= MOB_ID_BOUND).then_some(CharId(self.0))
    }
}

/// Bit of an object's index that says it was made at run time.
pub const RUNTIME_OBJECT_BIT: u32 = 1 << 23;

impl ObjectKey {
    /// The key of the object with `index` (24 bits) in `region`.
    pub fn new(region: RegionId, index: u32) -> ObjectKey {
        debug_assert!(index < 1 << 24);
        ObjectKey(u64::from(region.0) << 24 | u64::from(index))
    }

    /// The region that owns the object.
    pub fn region(self) -> RegionId {
        RegionId((self.0 >> 24) as u32)
    }

    /// The object's index in its region.
    pub fn index(self) -> u32 {
        self.0 as u32 & 0xff_ffff
    }

    /// Whether the object was made at run time rather than generated with the region.
    pub fn is_runtime(self) -> bool {
        self.index() & RUNTIME_OBJECT_BIT != 0
    }
}

/// The number on a coin: made once, never again, because an epoch of a region has one holder that counts.
///
/// A string `region.epoch.counter` in JSON, an array of three integers in MessagePack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CoinSerial {
    /// Where it was made.
    pub region: RegionId,
    /// Under which lease.
    pub epoch: u64,
    /// Which one of that lease.
    pub counter: u32,
}

impl fmt::Display for CoinSerial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.region, self.epoch, self.counter)
    }
}

impl FromStr for CoinSerial {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANT: &str = "a coin serial is `region.epoch.counter`";
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(WANT);
        Ok(CoinSerial {
            region: RegionId(part()?.parse().map_err(|_| WANT)?),
            epoch: part()?.parse().map_err(|_| WANT)?,
            counter: part()?.parse().map_err(|_| WANT)?,
        })
    }
}

impl Serialize for CoinSerial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.region, self.epoch, self.counter).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for CoinSerial {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CoinVisitor;
        impl<'de> Visitor<'de> for CoinVisitor {
            type Value = CoinSerial;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a coin serial `region.epoch.counter`")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<CoinSerial, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<CoinSerial, A::Error> {
                let next = |at| {
                    move |value: Option<u64>| {
                        value.ok_or_else(|| de::Error::invalid_length(at, &"three integers"))
                    }
                };
                let region = next(0)(seq.next_element()?)?;
                let epoch = next(1)(seq.next_element()?)?;
                let counter = next(2)(seq.next_element()?)?;
                Ok(CoinSerial {
                    region: RegionId(u32::try_from(region).map_err(de::Error::custom)?),
                    epoch,
                    counter: u32::try_from(counter).map_err(de::Error::custom)?,
                })
            }
        }
        deserializer.deserialize_any(CoinVisitor)
    }
}

/// FNV-1a over `bytes`, 64 bits.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
