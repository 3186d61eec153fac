//! The run second by second.

use std::sync::Arc;
use std::time::Instant;

use super::nodes;
use super::summary::Counted;
use super::tally::Tally;
use crate::admin::{self, Reading};
use crate::report::Quantiles;
use crate::report::series::Second;

/// Seconds that are kept: four hours.
const SECONDS_MAX: usize = 14_400;

/// See the module.
pub struct Pulse {
    tally: Arc<Tally>,
    admin: Vec<String>,
    counted: Counted,
    reading: Option<Reading>,
    seconds: Vec<Second>,
}

impl Pulse {
    /// Takes the pulse of a swarm, and of the nodes with these admin addresses.
    pub fn new(tally: Arc<Tally>, admin: Vec<String>) -> Pulse {
        Pulse {
            counted: Counted::now(&tally),
            tally,
            admin,
            reading: None,
            seconds: Vec::new(),
        }
    }

    /// What happened since the last beat.
    pub async fn beat(&mut self, began: Instant) -> Second {
        let now = Counted::now(&self.tally);
        let since = now.since(&self.counted);
        let window = self.tally.take_window();
        let gaps = window.gap_us_max.into_iter();
        let mut second = Second {
            at_s: began.elapsed().as_secs_f64(),
            sessions: self.tally.in_world(),
            orders_per_s: since.per_second(since.orders),
            deltas_per_s: since.per_second(since.deltas),
            order_to_delta_ms: Quantiles::of_us(&window.latencies),
            gap_ms_max: gaps
                .map(|(cause, us)| (cause.name().to_owned(), us as f64 / 1e3))
                .collect(),
            ..Second::default()
        };
        self.counted = now;
        // A node that does not answer leaves a hole in the plot.
        let reading = match self.admin.is_empty() {
            true => None,
            false => admin::read(&self.admin).await.ok(),
        };
        if let Some((before, after)) = self.reading.as_ref().zip(reading.as_ref()) {
            nodes::fill_second(&mut second, before, after);
        }
        self.reading = reading;
        if self.seconds.len() < SECONDS_MAX {
            self.seconds.push(second.clone());
        }
        second
    }

    /// Every second so far.
    pub fn seconds(&self) -> Vec<Second> {
        self.seconds.clone()
    }
}
