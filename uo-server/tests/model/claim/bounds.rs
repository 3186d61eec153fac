//! What is explored: how much may go wrong, and how much is going on.

/// The bounds of one exploration.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub name: &'static str,
    pub nodes: u8,
    pub crashes: u8,
    pub fences: u8,
    /// Answers that are late or lost.
    pub unknown: u8,
    /// Deeds whose fate is in doubt at a time; 0: nobody does anything.
    pub deeds: u8,
    /// Whether the object comes and goes; not while a write of it is under way that nobody waits for.
    pub objects: bool,
    /// Whether holders offer what they have.
    pub offers: bool,
    /// Whether the safety net reads rows back.
    pub lease_check: bool,
    /// Whether stamps run out.
    pub renews: bool,
    /// Whether a load may see a write that only some replicas have, and that another load does not see.
    pub glimpses: bool,
    /// Whether the registers come from a backup that is older than the rows.
    pub restored: bool,
}

/// One of each fault, and everything to lose.
pub const SMALL: Bounds = Bounds {
    name: "claims",
    nodes: 2,
    crashes: 1,
    fences: 1,
    unknown: 1,
    deeds: 1,
    objects: true,
    offers: true,
    lease_check: false,
    renews: false,
    glimpses: false,
    restored: false,
};

/// What is explored in minutes.
pub const USUAL: &[Bounds] = &[
    Bounds {
        name: "claims: unknown outcomes",
        deeds: 0,
        objects: false,
        ..SMALL
    },
    Bounds {
        name: "claims: what was saved",
        unknown: 0,
        objects: false,
        ..SMALL
    },
    Bounds {
        name: "claims: late writes",
        unknown: 0,
        deeds: 0,
        ..SMALL
    },
    Bounds {
        name: "claims: after a restored backup",
        unknown: 0,
        objects: false,
        restored: true,
        ..SMALL
    },
    Bounds {
        name: "claims: stamps run out",
        unknown: 0,
        objects: false,
        renews: true,
        ..SMALL
    },
];

/// What is explored at night.
pub const DEEP: &[Bounds] = &[
    Bounds {
        name: "claims: what was saved, unknown outcomes, stamps run out",
        objects: false,
        renews: true,
        ..SMALL
    },
    Bounds {
        name: "claims: what was saved, late writes",
        unknown: 0,
        ..SMALL
    },
    Bounds {
        name: "claims: what was saved, writes on some replicas",
        unknown: 0,
        glimpses: true,
        ..SMALL
    },
    Bounds {
        name: "claims: lease check, unknown outcomes",
        deeds: 0,
        objects: false,
        lease_check: true,
        ..SMALL
    },
    Bounds {
        name: "claims: two crashes, two unknown outcomes",
        crashes: 2,
        unknown: 2,
        deeds: 0,
        objects: false,
        ..SMALL
    },
    Bounds {
        name: "claims: three sims, unknown outcomes",
        nodes: 3,
        deeds: 0,
        objects: false,
        ..SMALL
    },
    Bounds {
        name: "claims: three sims, what was saved",
        nodes: 3,
        unknown: 0,
        objects: false,
        ..SMALL
    },
];
