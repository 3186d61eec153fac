//! What is explored: the bounds of each model, and in which of them each rule that is left out is missed.

use super::bounds::{Bounds, Faults, NodeBounds, Outage, Speed, ticks};

const FREEZES: &[&str] = &[
    "a fence falls",
    "a thaw at the same boot",
    "a row says fenced",
    "a boot that stands still is ended",
    "a boot that stands still is ended after an outage",
    "a boot that says fenced is ended",
    "a life is ended",
    "an end is refused",
    "a death is known",
    "a dead boot is reborn as another",
    "an observer's outage is over",
];

/// Without all faults.
const NONE: Faults = Faults {
    crashes: 0,
    pauses: 0,
    unknown: 0,
    outages: 0,
    ends: 0,
};

/// One sim that holds, one that observes; the holder's beats and lives take as long as they like. The narrowest window
/// that the relation of the two allows, what was decided before a fence fell included.
pub fn holder() -> Bounds {
    let mut bounds = Bounds::of(
        "one holder, one observer",
        ticks(2, 3, 4, 2, 1),
        vec![
            NodeBounds::holder(),
            NodeBounds {
                reads: Speed::Prompt,
                deaths: Speed::Prompt,
                ..NodeBounds::observer()
            },
        ],
    );
    bounds.acts_on = true;
    bounds.sometimes = FREEZES;
    bounds
}

/// Reads that take as long as they like, too.
fn slow_reads() -> Bounds {
    let mut bounds = holder();
    bounds.name = "one holder, one observer, and slow reads";
    bounds.nodes[0].beats = Speed::Prompt;
    bounds.nodes[1].reads = Speed::Free;
    bounds
}

/// Requests of unknown outcome: carried out later, or never, or answered to nobody.
pub fn unknown() -> Bounds {
    let mut bounds = holder();
    bounds.name = "one holder, one observer, and unknown outcomes";
    bounds.timing = ticks(2, 2, 3, 2, 1);
    bounds.acts_on = false;
    bounds.nodes[1].deaths = Speed::Instant;
    bounds.faults = Faults { unknown: 1, ..NONE };
    bounds
}

/// A holder that pauses, and wakes to late answers.
fn paused() -> Bounds {
    let mut bounds = holder();
    bounds.name = "a holder that pauses";
    bounds.nodes[0].own_life = Speed::Prompt;
    bounds.faults = Faults { pauses: 1, ..NONE };
    bounds
}

/// A slow holder and a fast observer.
fn clocks() -> Bounds {
    let mut bounds = holder();
    bounds.name = "a slow holder, a fast observer";
    bounds.timing = ticks(2, 5, 6, 2, 1);
    bounds.nodes[0].own_life = Speed::Prompt;
    (bounds.nodes[0].slow, bounds.nodes[1].fast) = (1, 1);
    bounds
}

/// A holder that starts while the other observes, and leases that name it.
pub fn newcomer() -> Bounds {
    let mut bounds = holder();
    bounds.name = "a holder that starts";
    bounds.nodes[0].starts_late = true;
    bounds.leases = true;
    bounds
}

/// A holder that crashes or stops, and starts again; its rows may expire.
pub fn restarted() -> Bounds {
    let mut bounds = holder();
    bounds.name = "a holder that starts again";
    bounds.nodes[0].beats = Speed::Prompt;
    bounds.nodes[0].own_life = Speed::Instant;
    bounds.leases = true;
    bounds.rows_expire = true;
    bounds.faults = Faults {
        crashes: 1,
        ends: 1,
        ..NONE
    };
    bounds
}

/// Two sims, each of which holds and observes.
fn two() -> Bounds {
    let mut bounds = Bounds::of(
        "two sims",
        ticks(2, 3, 4, 2, 1),
        vec![NodeBounds::all(Speed::Prompt); 2],
    );
    bounds.acts_on = true;
    bounds.sometimes = FREEZES;
    bounds
}

/// Two sims and a store that is out for a while: everybody freezes, and nobody dies.
pub fn outage() -> Bounds {
    let mut bounds = Bounds::of(
        "an outage that kills nobody",
        ticks(4, 6, 9, 2, 3),
        vec![NodeBounds::all(Speed::Prompt); 2],
    );
    bounds.outage = Outage::Writes;
    bounds.nobody_dies = true;
    bounds.faults = Faults { outages: 1, ..NONE };
    bounds
}

/// All usual forms.
pub fn usual() -> Vec<Bounds> {
    vec![holder(), slow_reads(), unknown(), paused(), clocks(), newcomer(), restarted(), two(), outage()]
}

/// Forms that are searched backwards, too.
pub fn limbo() -> Vec<Bounds> {
    vec![restarted()]
}

/// Forms for a rule that is left out.
#[cfg(feature = "planted-bugs")]
pub mod planted {
    use super::*;

    /// Rows that expire soon, as they must where a row that is there means a node that is there; and a database that looks
    /// at them has a clock that is ahead.
    pub fn short_ttl() -> Bounds {
        let mut bounds = holder();
        bounds.name = "rows that expire soon";
        bounds.ttl = Some(1);
        bounds
    }

    /// An observer that does not take the time between its reads for an outage.
    pub fn late_reads() -> Bounds {
        let mut bounds = slow_reads();
        bounds.timing = ticks(2, 3, 5, 8, 1);
        bounds
    }
}
