//! Seeded dice: the only source of chance in the world's content.

/// What a row of throws is for. Each purpose has dice of its own, so that a change in one kind of content moves no other.
#[derive(Clone, Copy)]
pub enum Purpose {
    Camps = 1,
    Buildings = 2,
    Nature = 3,
    Spawn = 4,
}

/// A generator of throws: SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Dice that fall the same way for the same arguments.
    pub fn new(seed: u64, purpose: Purpose, number: u64) -> Dice {
        let mut dice = Dice { state: seed };
        for part in [purpose as u64, number] {
            dice.state = dice.next() ^ part.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly among `0..sides`; 0 when there are no sides.
    pub fn below(&mut self, sides: u32) -> u32 {
        (((self.next() >> 32) * u64::from(sides)) >> 32) as u32
    }

    /// Evenly among `low..=high`.
    pub fn between(&mut self, low: u16, high: u16) -> u16 {
        low + self.below(u32::from(high - low) + 1) as u16
    }

    /// True `per_mille` times in a thousand.
    pub fn chance(&mut self, per_mille: u32) -> bool {
        self.below(1_000) < per_mille
    }
}
