//! What is searched: how much may go wrong.

/// How much may go wrong.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub name: &'static str,
    pub crashes: u8,
    pub fences: u8,
    /// Messages and answers that are lost.
    pub losses: u8,
    /// Nodes that stop in order.
    pub stops: u8,
    /// Regions that are drained to the other node.
    pub drains: u8,
    /// Regions that are released because nobody is in them.
    pub retires: u8,
}

const NOTHING: Bounds = Bounds {
    name: "limbo",
    crashes: 0,
    fences: 0,
    losses: 0,
    stops: 0,
    drains: 0,
    retires: 0,
};

/// What is searched in minutes.
pub const USUAL: &[Bounds] = &[
    Bounds {
        name: "limbo: a drain and a loss",
        drains: 1,
        losses: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a drain and a retirement",
        drains: 1,
        retires: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a drain and a stop",
        drains: 1,
        stops: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a crash and a loss",
        crashes: 1,
        losses: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a freeze and a loss",
        fences: 1,
        losses: 1,
        ..NOTHING
    },
];

/// What is searched at night.
pub const DEEP: &[Bounds] = &[
    Bounds {
        name: "limbo: a drain, a retirement and a loss",
        drains: 1,
        retires: 1,
        losses: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a crash, a drain and a loss",
        crashes: 1,
        drains: 1,
        losses: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a freeze, a drain and a loss",
        fences: 1,
        drains: 1,
        losses: 1,
        ..NOTHING
    },
    Bounds {
        name: "limbo: a stop, a drain and two losses",
        stops: 1,
        drains: 1,
        losses: 2,
        ..NOTHING
    },
];
