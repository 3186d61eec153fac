//! What a model contains, and how much may go wrong in it.

use std::fmt;

use uo_server::cluster::timing::Timing;
use uo_server::planted::Planted;

use super::state::letter;

/// How long a request of one kind may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speed {
    /// It is carried out and answered at once.
    Instant,
    /// It is carried out and answered within the tick, in any order with everything else.
    Prompt,
    /// As long as it likes.
    Free,
}

/// One node.
#[derive(Clone, Copy, Debug)]
pub struct NodeBounds {
    pub beats: Speed,
    pub reads: Speed,
    pub own_life: Speed,
    pub deaths: Speed,
    /// It sees only rows of its own name, and so never declares anybody else dead.
    pub is_blind: bool,
    /// It is not started yet.
    pub starts_late: bool,
    /// Ticks that its clock may miss, and that it may count twice.
    pub slow: u8,
    pub fast: u8,
}

impl NodeBounds {
    pub const fn all(speed: Speed) -> NodeBounds {
        NodeBounds {
            beats: speed,
            reads: speed,
            own_life: speed,
            deaths: speed,
            is_blind: false,
            starts_late: false,
            slow: 0,
            fast: 0,
        }
    }

    /// It beats and lives, and only its own name concerns it.
    pub const fn holder() -> NodeBounds {
        NodeBounds {
            reads: Speed::Instant,
            deaths: Speed::Instant,
            is_blind: true,
            ..NodeBounds::all(Speed::Free)
        }
    }

    /// It reads, and declares others dead; its own life is never in danger.
    pub const fn observer() -> NodeBounds {
        NodeBounds {
            beats: Speed::Instant,
            own_life: Speed::Instant,
            ..NodeBounds::all(Speed::Free)
        }
    }
}

/// Which requests fail while there is an outage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outage {
    Everything,
    /// Reads of rows still work, beats and life registers do not.
    Writes,
}

/// What may still go wrong. Recoveries are never counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Faults {
    pub crashes: u8,
    pub pauses: u8,
    /// Requests whose outcome the asker is not told: the answer is lost, or they are carried out later or never.
    pub unknown: u8,
    pub outages: u8,
    /// Nodes that stop in order, and say so.
    pub ends: u8,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub name: &'static str,
    pub timing: Timing,
    pub nodes: Vec<NodeBounds>,
    pub faults: Faults,
    pub outage: Outage,
    /// What was decided just before a fence fell takes effect in the same tick.
    pub acts_on: bool,
    /// Leases name boots that acted, and anybody may read them.
    pub leases: bool,
    /// Rows of boots that no process is any more may expire.
    pub rows_expire: bool,
    /// Rows expire this many ticks after they were written, whoever wrote them.
    pub ttl: Option<u8>,
    /// Nobody is to be declared dead.
    pub nobody_dies: bool,
    /// What must have happened when everything was explored, besides what [`Bounds::happens`] derives from the rest.
    pub sometimes: &'static [&'static str],
    pub planted: Planted,
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Timing {
            fence_ms: fence,
            gone_ms: gone,
            gone_after_outage_ms: doubled,
            outage_ms: outage,
            fenced_seen_ms: seen,
            ..
        } = &self.timing;
        let Faults {
            crashes,
            pauses,
            unknown,
            outages,
            ends,
        } = self.faults;
        write!(
            f,
            "fence {fence}, window {gone} ({doubled} after an outage of {outage}), fenced for {seen} ticks; at most \
             {crashes} crashes, {pauses} pauses, {unknown} unknown outcomes, {outages} outages, {ends} stops; "
        )?;
        for (at, node) in self.nodes.iter().enumerate() {
            let NodeBounds {
                beats,
                reads,
                own_life,
                deaths,
                slow,
                fast,
                ..
            } = node;
            write!(
                f,
                "{}: beats {beats:?}, reads {reads:?}, own life {own_life:?}, deaths {deaths:?}, {slow} ticks missed, \
                 {fast} counted twice; ",
                letter(at)
            )?;
        }
        Ok(())
    }
}

/// A tick is a millisecond here: of the fence, the window, the window after an outage, what makes an outage, and how long
/// `fenced` must be seen.
pub fn ticks(fence: u64, gone: u64, doubled: u64, outage: u64, fenced_seen: u64) -> Timing {
    Timing {
        fence_ms: fence,
        beat_ms: 1,
        beat_timeout_ms: 1,
        read_ms: 1,
        gone_ms: gone,
        gone_after_outage_ms: doubled,
        outage_ms: outage,
        fenced_seen_ms: fenced_seen,
        act_ms: 0,
        cas_retry_ms: 1,
        starts_window_ms: 0,
        settled_ms: 0,
        ..Timing::default()
    }
}

impl Bounds {
    pub fn of(name: &'static str, timing: Timing, nodes: Vec<NodeBounds>) -> Bounds {
        Bounds {
            name,
            timing,
            nodes,
            faults: Faults::default(),
            outage: Outage::Everything,
            acts_on: false,
            leases: false,
            rows_expire: false,
            ttl: None,
            nobody_dies: false,
            sometimes: &[],
            planted: Planted::NONE,
        }
    }

    /// Whether a kind of thing must have happened when everything was explored.
    pub fn happens(&self, kind: &str) -> bool {
        let any = |is: fn(&NodeBounds) -> bool| self.nodes.iter().any(is);
        let faults = self.faults;
        match kind {
            "tick" | "carried out" | "answered" => true,
            "a clock misses a tick" => any(|node| node.slow > 0),
            "a clock counts a tick twice" => any(|node| node.fast > 0),
            "unknown" | "an answer is lost" | "carried out late" => faults.unknown > 0,
            "failed by an outage" | "outage begins" | "outage ends" => faults.outages > 0,
            "pause" | "wake" => faults.pauses > 0,
            "crash" => faults.crashes > 0,
            "stop in order" | "a process exits" => faults.ends > 0,
            "a process starts" => {
                faults.crashes > 0 || faults.ends > 0 || any(|node| node.starts_late)
            }
            "a lease names a boot" => self.leases,
            "a row expires" => self.rows_expire || self.ttl.is_some(),
            _ => self.sometimes.contains(&kind),
        }
    }

    /// The relation of fence and window, in ticks: everything that a slow holder does is over before a fast observer may
    /// conclude anything.
    pub fn check(&self) {
        let slow = self.nodes.iter().map(|node| u64::from(node.slow)).max();
        let fast = self.nodes.iter().map(|node| u64::from(node.fast)).max();
        let acts = self.timing.fence_ms + slow.unwrap_or(0) + u64::from(self.acts_on);
        let concludes = self.timing.gone_ms - fast.unwrap_or(0);
        assert!(acts <= concludes, "{}: {acts} > {concludes}", self.name);
    }
}
