//! What is cast. The protocol's [`SpellInfo`] is the public half of a row.

use uo_proto::{Spell, SpellInfo};

/// One spell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpellRow {
    /// What clients are told.
    pub info: SpellInfo,
    /// Harm or healing before skill and armour, from and to.
    pub power: (u16, u16),
    /// How long what it leaves lasts, before skill.
    pub lasting_ms: u32,
    /// Whether it is cast against somebody: fighting, and not on oneself.
    pub hostile: bool,
}

/// All spells, in the order of the enum.
pub const ALL: [Spell; 5] = [
    Spell::Bolt,
    Spell::Fireball,
    Spell::Heal,
    Spell::StoneWall,
    Spell::Frost,
];

/// What clients are told in `welcome.spells`.
pub fn spells() -> Vec<SpellInfo> {
    ALL.iter().map(|&spell| spell_row(spell).info).collect()
}

/// The row of a spell.
pub const fn spell_row(spell: Spell) -> SpellRow {
    match spell {
        Spell::Bolt => SpellRow {
            info: info(spell, (750, 1500), 9, 0, (true, false)),
            power: (16, 24),
            lasting_ms: 0,
            hostile: true,
        },
        Spell::Fireball => SpellRow {
            info: info(spell, (1500, 6000), 9, 2, (true, true)),
            power: (18, 28),
            lasting_ms: 0,
            hostile: true,
        },
        Spell::Heal => SpellRow {
            info: info(spell, (1000, 5000), 6, 0, (true, false)),
            power: (25, 35),
            lasting_ms: 0,
            hostile: false,
        },
        Spell::StoneWall => SpellRow {
            info: info(spell, (1000, 8000), 6, 0, (false, true)),
            power: (0, 0),
            lasting_ms: 12_000,
            hostile: false,
        },
        Spell::Frost => SpellRow {
            info: info(spell, (750, 5000), 8, 0, (true, false)),
            power: (5, 9),
            lasting_ms: 4_000,
            hostile: true,
        },
    }
}

const fn info(
    spell: Spell,
    (cast_ms, cooldown_ms): (u32, u32),
    range: u16,
    radius: u16,
    (targets_entity, targets_tile): (bool, bool),
) -> SpellInfo {
    SpellInfo {
        spell,
        cast_ms,
        cooldown_ms,
        range,
        radius,
        targets_entity,
        targets_tile,
    }
}
