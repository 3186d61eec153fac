//! What is explored. Each usual form has a deep one, in which less happens at once and more goes wrong.

use super::bounds::{Bounds, Faults, NodeBounds, Outage, Speed, ticks};
use Speed::{Free, Instant, Prompt};

/// A holder that freezes thaws, or dies of it, of either evidence.
const FREEZES: &[&str] = &[
    "a fence falls",
    "a thaw at the same boot",
    "a row says fenced",
    "a boot that stands still is ended",
    "a boot that says fenced is ended",
    "a life is ended",
    "an end is refused",
    "a death is known",
    "a dead boot is reborn as another",
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
                reads: Prompt,
                deaths: Prompt,
                ..NodeBounds::observer()
            },
        ],
    );
    bounds.acts_on = true;
    bounds.sometimes = FREEZES;
    bounds
}

/// Reads that take as long as they like, too.
pub fn slow_reads() -> Bounds {
    let mut bounds = holder();
    bounds.name = "slow reads";
    bounds.nodes[0].own_life = Instant;
    bounds.nodes[1].reads = Free;
    bounds.nodes[1].deaths = Instant;
    bounds
}

/// An observer that does not take the time between its slow reads for an outage.
pub fn late_reads() -> Bounds {
    let mut bounds = slow_reads();
    bounds.timing = ticks(2, 3, 4, 4, 1);
    bounds
}

/// Requests of unknown outcome: carried out later, or never, or answered to nobody.
pub fn unknown() -> Bounds {
    let mut bounds = holder();
    bounds.name = "unknown outcomes";
    bounds.timing = ticks(2, 2, 3, 2, 1);
    bounds.acts_on = false;
    bounds.nodes[1].reads = Instant;
    bounds.nodes[1].deaths = Instant;
    bounds.faults = Faults { unknown: 1, ..NONE };
    bounds
}

/// A holder that pauses, and wakes to late answers.
fn paused() -> Bounds {
    let mut bounds = holder();
    bounds.name = "a holder that pauses";
    bounds.nodes[0].own_life = Instant;
    bounds.nodes[1].reads = Instant;
    bounds.nodes[1].deaths = Instant;
    bounds.faults = Faults { pauses: 1, ..NONE };
    bounds
}

/// A slow holder and a fast observer.
fn clocks() -> Bounds {
    let mut bounds = holder();
    bounds.name = "a slow holder, a fast observer";
    bounds.timing = ticks(2, 5, 6, 2, 1);
    bounds.nodes[0].own_life = Prompt;
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
    bounds.nodes[0].beats = Prompt;
    bounds.nodes[0].own_life = Instant;
    bounds.nodes[1].reads = Instant;
    bounds.nodes[1].deaths = Instant;
    bounds.leases = true;
    bounds.rows_expire = true;
    bounds.faults = Faults {
        crashes: 1,
        ends: 1,
        ..NONE
    };
    bounds.sometimes = &[
        "an absent boot is ended",
        "a boot that stands still is ended",
        "a boot that is done is ended",
        "a life is ended",
        "a death is known",
    ];
    bounds
}

/// Rows that expire as soon as a fence falls, which must mean nothing: only what stands still, or is absent, for the
/// whole window is gone.
pub fn short_ttl() -> Bounds {
    let mut bounds = holder();
    bounds.name = "rows that expire soon";
    bounds.nodes[0].own_life = Instant;
    bounds.ttl = Some(2);
    bounds
}

/// Two sims, each of which holds and observes; the beats of one take as long as they like.
fn two() -> Bounds {
    let mut bounds = Bounds::of(
        "two sims",
        ticks(2, 3, 4, 2, 1),
        vec![
            NodeBounds {
                deaths: Instant,
                reads: Instant,
                beats: Free,
                ..NodeBounds::all(Prompt)
            },
            NodeBounds {
                deaths: Instant,
                ..NodeBounds::all(Prompt)
            },
        ],
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
        vec![NodeBounds::all(Prompt); 2],
    );
    bounds.outage = Outage::Writes;
    bounds.nobody_dies = true;
    bounds.faults = Faults { outages: 1, ..NONE };
    bounds.sometimes = &[
        "a fence falls",
        "a thaw at the same boot",
        "a row says fenced",
        "an observer's outage is over",
    ];
    bounds
}

/// All usual forms.
pub fn usual() -> Vec<Bounds> {
    vec![
        holder(),
        slow_reads(),
        unknown(),
        paused(),
        clocks(),
        newcomer(),
        restarted(),
        short_ttl(),
        two(),
        outage(),
    ]
}

/// All deep forms.
pub fn deep() -> Vec<Bounds> {
    vec![
        with(late_reads(), |it| {
            (it.nodes[0].own_life, it.nodes[1].deaths) = (Prompt, Prompt);
        }),
        with(unknown(), |it| {
            it.timing = ticks(2, 3, 4, 2, 2);
            it.acts_on = true;
            (it.nodes[1].reads, it.nodes[1].deaths) = (Prompt, Prompt);
        }),
        with(paused(), |it| {
            it.nodes[0].own_life = Prompt;
            (it.nodes[1].reads, it.nodes[1].deaths) = (Prompt, Prompt);
            it.timing = ticks(2, 3, 5, 3, 1);
        }),
        with(clocks(), |it| it.faults.unknown = 1),
        with(newcomer(), |it| it.faults.unknown = 1),
        deep_restarted(),
        with(short_ttl(), |it| {
            it.nodes[0].own_life = Free;
            it.faults.unknown = 1;
        }),
        with(two(), |it| {
            it.timing = ticks(2, 3, 4, 2, 2);
            it.nodes[0].reads = Prompt;
        }),
        // Not three: they can strike the beats of one sim alone for all of a window, and then it is right to end it.
        with(outage(), |it| {
            it.timing = ticks(5, 7, 10, 2, 4);
            it.faults.outages = 2;
        }),
    ]
}

fn deep_restarted() -> Bounds {
    with(restarted(), |it| {
        (it.nodes[1].reads, it.nodes[1].deaths) = (Prompt, Prompt);
    })
}

/// Forms that are searched backwards, too.
pub fn usual_limbo() -> Vec<Bounds> {
    vec![restarted(), unknown()]
}

/// The same, deep.
pub fn deep_limbo() -> Vec<Bounds> {
    vec![deep_restarted()]
}

fn with(mut bounds: Bounds, change: fn(&mut Bounds)) -> Bounds {
    change(&mut bounds);
    bounds
}
