//! The report. Its names are stable: scripts and bars go by them.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use serde::Serialize;

use super::bar::Judged;
use super::series::Second;
use super::{Quantiles, Spread};

/// What a run with bots comes to. Every name is always there: what was not measured is null, zero or empty.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Report {
    /// What names, decisions and moments follow from.
    pub seed: u64,
    /// The store of the cluster; null if the run did not start it.
    pub store: Option<String>,
    /// How many sims; null if the run did not start them.
    pub sims: Option<u64>,
    /// How many gateways the bots were told of.
    pub gateways: u64,
    /// How many bots.
    pub bots: u64,
    /// How long was measured.
    pub seconds: f64,
    /// Bots' sessions.
    pub sessions: Sessions,
    /// Work of a tick; upper bounds of the servers' buckets.
    pub tick_ms: Quantiles,
    /// The share of ticks that ran late.
    pub late_ticks: Option<f64>,
    /// From the moment a bot sends an order to the delta that shows it, taken at the client.
    pub order_to_delta_ms: Quantiles,
    /// How long servers took to hand a character from one region to another.
    pub handoff_ms: Spread,
    /// How long players saw nothing of their own character, by cause, taken at the client.
    pub player_gap_ms: PlayerGaps,
    /// From each loss of a sim until every region was held again.
    pub failover_ms: Vec<f64>,
    /// How long each drain of a node took.
    pub drain_ms: Vec<f64>,
    /// From the loss of a connection to the first state on the next one.
    pub resume_ms: Spread,
    /// From each order to stop until the process had ended.
    pub stop_ms: Vec<f64>,
    /// What one session costs.
    pub per_session: PerSession,
    /// What was judged from what the nodes show.
    pub invariants: Invariants,
    /// What was promised to bots and whether it was kept.
    pub proof: Proof,
    /// How often a node's fence came down.
    pub fences: Option<u64>,
    /// Ticks of all nodes.
    pub ticks: Ticks,
    /// What was done to the cluster.
    pub chaos: Vec<ChaosStep>,
    /// Fights whose target was gone for no reason.
    pub fights_reset: u64,
    /// What the gateways measured meanwhile, by their own causes; upper bounds of buckets.
    pub server_gap_ms: ServerGaps,
    /// What happened in the world, by the nodes' counters.
    pub world: World,
    /// What the bots sent and received.
    pub swarm: Swarm,
    /// Bars, and whether they were met.
    pub bars: Vec<Judged>,
    /// Why the run counts as failed; empty if it passed.
    pub failures: Vec<String>,
    /// Every second of the run, for plots.
    pub series: Vec<Second>,
}

impl Report {
    /// Whether nothing failed.
    pub fn has_passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Bots' sessions.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Sessions {
    /// Most at once.
    pub peak: u64,
    /// Sessions begun.
    pub logins: u64,
    /// Sessions that went on over a new connection.
    pub resumes: u64,
    /// Logins that a full server put off.
    pub refused: u64,
    /// A swarm counts connections lost while in the world; a scenario, sessions that never came back.
    pub lost: u64,
}

/// Gaps by cause, as far as a client can know.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PlayerGaps {
    /// It crossed into another region.
    pub crossing: Spread,
    /// Its part of the world was lost with a sim.
    pub crash: Spread,
    /// Its part of the world was handed on in order.
    pub drain: Spread,
    /// Its connection was lost.
    pub gateway: Spread,
    /// The world stood still.
    pub store: Spread,
    /// None of these.
    pub other: Spread,
}

impl PlayerGaps {
    /// Each cause by its name.
    pub fn by_cause(&self) -> [(&'static str, &Spread); 6] {
        [
            ("crossing", &self.crossing),
            ("crash", &self.crash),
            ("drain", &self.drain),
            ("gateway", &self.gateway),
            ("store", &self.store),
            ("other", &self.other),
        ]
    }
}

/// Gaps by the gateways' causes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ServerGaps {
    /// A border was crossed.
    pub border: Spread,
    /// A character was drawn into another region's battle.
    pub pin: Spread,
    /// A region was drained.
    pub drain: Spread,
    /// An owner without the region passed orders on.
    pub forward: Spread,
    /// A sim was lost.
    pub failover: Spread,
    /// The world stood still.
    pub freeze: Spread,
    /// A connection was resumed.
    pub resume: Spread,
}

/// What one session costs; by the mean number of sessions while it was measured.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct PerSession {
    /// Processor time of the servers.
    pub server_cpu_us_per_s: Option<f64>,
    /// Payload bytes that it received.
    pub bytes_per_s: Option<f64>,
    /// Resident memory of the servers.
    pub rss_bytes: Option<f64>,
}

/// What was judged from what the nodes show.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Invariants {
    /// How often every node was looked at; zero: nothing was judged.
    pub samples: u64,
    /// What was wrong.
    pub violations: Vec<String>,
    /// What one look showed and the next did not: a handoff between two reads.
    pub transients: u64,
}

/// What was promised to bots and whether it was kept; null: not checked.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Proof {
    /// Coins that were told as saved and are gone.
    pub coins_lost: Option<u64>,
    /// Coins that two characters have.
    pub coins_duplicated: Option<u64>,
    /// Other things that were told as saved and are not so.
    pub saved_lost: Option<u64>,
    /// Entities that a bot saw otherwise than the nodes have them.
    pub view_errors: Option<u64>,
    /// Fights whose target was gone for no reason.
    pub fights_reset: Option<u64>,
}

/// Ticks of all nodes.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Ticks {
    /// That ran late.
    pub late: Option<u64>,
    /// All.
    pub total: Option<u64>,
}

/// Something that was done to the cluster.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct ChaosStep {
    /// When, in seconds since the run began.
    pub at_s: f64,
    /// What, as it was asked for: `kill:sim-3`.
    pub step: String,
    /// What came of it.
    pub outcome: String,
}

/// What happened in the world.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct World {
    /// Fights begun.
    pub fights: Option<u64>,
    /// Deaths.
    pub deaths: Option<u64>,
    /// Returns to life.
    pub respawns: Option<u64>,
    /// Objects broken.
    pub objects_broken: Option<u64>,
}

/// What the bots sent and received.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Swarm {
    /// Bots that got in at least once.
    pub bots_in: u64,
    /// Bots that were in when the measurement ended.
    pub bots_in_at_end: u64,
    /// Sessions that their bot ended in order, to log in again.
    pub logouts: u64,
    /// The mean number of sessions while it was measured.
    pub sessions_mean: f64,
    /// Broken promises of the protocol.
    pub protocol_errors: u64,
    /// Orders sent.
    pub orders_per_s: f64,
    /// Orders that no delta answered.
    pub orders_unanswered: u64,
    /// Fights that bots began.
    pub fights: u64,
    /// Deltas received.
    pub deltas_per_s: f64,
    /// Frames received.
    pub frames_per_s: f64,
    /// Entities that a delta told of, the own one included.
    pub entities_per_delta: f64,
    /// Processor time of the bots for each frame they received.
    pub cpu_us_per_frame: Option<f64>,
    /// What deaf bots got when they read again.
    pub awakenings: Vec<Awakening>,
    /// What was out of the ordinary, and how often.
    pub notes: BTreeMap<String, u64>,
}

/// What a deaf bot got when it read again.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Awakening {
    /// For how long it had not read.
    pub deaf_ms: u64,
    /// Deltas of the past before the first of the present.
    pub stale_deltas: u64,
    /// Other frames of the past.
    pub stale_others: u64,
    /// How long it took to be in the present.
    pub caught_up_ms: u64,
}
