//! A run second by second, for plots.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use serde::Serialize;

use super::Quantiles;

/// One second of a run.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Second {
    /// When it ended, in seconds since the run began; the same clock as that of chaos steps.
    pub at_s: f64,
    /// Bots in the world at its end.
    pub sessions: u64,
    /// Orders that bots sent, a second.
    pub orders_per_s: f64,
    /// Deltas that bots received, a second.
    pub deltas_per_s: f64,
    /// From an order to the delta that shows it, of those answered in this second.
    pub order_to_delta_ms: Quantiles,
    /// Work of the ticks of this second; upper bounds of the servers' buckets.
    pub tick_ms: Quantiles,
    /// Ticks that ran late in this second.
    pub late_ticks: Option<u64>,
    /// The longest gap that a player felt and that ended in this second, by cause.
    pub gap_ms_max: BTreeMap<String, f64>,
    /// How many regions each node served at its end.
    pub regions: BTreeMap<String, u64>,
}
