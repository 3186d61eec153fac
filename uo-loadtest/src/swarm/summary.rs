//! What a run comes to, for people and as JSON.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use uo_sdk::bots::deaf;

use super::Arguments;
use super::felt::Cause;
use super::nodes;
use super::tally::Tally;
use crate::admin::Reading;
use crate::report::run::{Awakening, PerSession, PlayerGaps, Sessions, Swarm};
use crate::report::series::Second;
use crate::report::{Quantiles, Report, Spread, bar};
use crate::system;

/// Counters at one moment, or what they grew by between two.
#[derive(Clone, Copy)]
pub struct Counted {
    at: Instant,
    elapsed: Duration,
    /// Orders sent.
    pub orders: u64,
    /// Deltas received.
    pub deltas: u64,
    /// Entities received.
    pub entities: u64,
    /// Frames received.
    pub frames: u64,
    /// Bytes received.
    pub bytes: u64,
    session_us: u64,
    /// Processor time of this process, in microseconds.
    pub cpu_us: Option<u64>,
}

impl Counted {
    /// The counters now.
    pub fn now(tally: &Tally) -> Counted {
        let counters = &tally.counters;
        Counted {
            at: Instant::now(),
            elapsed: Duration::ZERO,
            orders: counters.orders.load(Relaxed),
            deltas: counters.deltas.load(Relaxed),
            entities: counters.entities.load(Relaxed),
            frames: counters.frames.load(Relaxed),
            bytes: counters.bytes.load(Relaxed),
            session_us: tally.session_us(),
            cpu_us: system::cpu_us(),
        }
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Counted) -> Counted {
        Counted {
            at: self.at,
            elapsed: self.at.duration_since(earlier.at),
            orders: self.orders - earlier.orders,
            deltas: self.deltas - earlier.deltas,
            entities: self.entities - earlier.entities,
            frames: self.frames - earlier.frames,
            bytes: self.bytes - earlier.bytes,
            session_us: self.session_us - earlier.session_us,
            cpu_us: self.cpu_us.zip(earlier.cpu_us).map(|(now, old)| now - old),
        }
    }

    /// How long this stretch of time is.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }

    /// A count of this stretch of time, by the second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The mean number of sessions of this stretch of time.
    pub fn sessions_mean(&self) -> f64 {
        self.session_us as f64 / 1e6 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// A count of this stretch of time, by the second and the session.
    pub fn per_session(&self, count: u64) -> f64 {
        count as f64 / (self.session_us as f64 / 1e6).max(1e-9)
    }
}

/// What a run comes to.
pub struct Summary<'a> {
    /// What was asked for.
    pub arguments: &'a Arguments,
    /// What was counted over the whole run.
    pub tally: &'a Tally,
    /// What was counted after the ramp.
    pub growth: Counted,
    /// How long that was.
    pub measured: Duration,
    /// Bots in the world when the measurement ended.
    pub in_at_end: u64,
    /// The nodes' figures at the ramp's end and at the end.
    pub readings: Option<(Reading, Reading)>,
    /// What deaf bots got when they read again.
    pub awakenings: Vec<deaf::Awakening>,
    /// Every second of the run.
    pub series: Vec<Second>,
}

impl Summary<'_> {
    /// Why the run counts as failed; empty if it does not.
    pub fn failures(&self) -> Vec<String> {
        let counters = &self.tally.counters;
        let bots = self.arguments.bots as u64;
        let mut failures = Vec::new();
        let mut fail = |count: u64, what: &str| {
            if count > 0 {
                failures.push(format!("{count} {what}"));
            }
        };
        let welcomed = counters.welcomed.load(Relaxed);
        fail(bots.saturating_sub(welcomed), "bots could not get in");
        fail(counters.lost.load(Relaxed), "connections were lost");
        fail(counters.stopped.load(Relaxed), "sessions ended for good");
        fail(
            counters.violations.load(Relaxed),
            "protocol errors were seen",
        );
        if self.readings.is_none() && !self.arguments.admin.is_empty() {
            failures.push("the nodes' figures could not be read".into());
        }
        failures
    }

    /// The report; what only a scenario knows is left empty.
    pub fn report(&self) -> Report {
        let counters = &self.tally.counters;
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let mut report = Report {
            seed: self.arguments.seed,
            gateways: self.arguments.gateways.len() as u64,
            bots: self.arguments.bots as u64,
            seconds: self.measured.as_secs_f64().round(),
            sessions: Sessions {
                peak: self.tally.peak(),
                logins: count(&counters.logins),
                resumes: count(&counters.resumes),
                refused: count(&counters.refused),
                lost: count(&counters.lost),
            },
            order_to_delta_ms: Quantiles::of_us(&self.tally.latencies()),
            player_gap_ms: self.player_gaps(),
            resume_ms: Spread::of_us(&self.tally.resumes()),
            fights_reset: count(&counters.fights_reset),
            per_session: PerSession {
                bytes_per_s: Some(self.growth.per_session(self.growth.bytes)),
                ..PerSession::default()
            },
            swarm: self.swarm(),
            series: self.series.clone(),
            ..Report::default()
        };
        if let Some((before, after)) = &self.readings {
            nodes::fill(&mut report, before, after);
        }
        report.bars = bar::judge(&self.arguments.bar, &report);
        report.failures = self.failures();
        let missed = report.bars.iter().filter(|judged| !judged.is_met);
        report.failures.extend(missed.map(ToString::to_string));
        report
    }

    fn swarm(&self) -> Swarm {
        let counters = &self.tally.counters;
        let growth = &self.growth;
        Swarm {
            bots_in: counters.welcomed.load(Relaxed),
            bots_in_at_end: self.in_at_end,
            logouts: counters.logouts.load(Relaxed),
            sessions_mean: growth.sessions_mean(),
            protocol_errors: counters.violations.load(Relaxed),
            orders_per_s: growth.per_second(growth.orders),
            orders_unanswered: counters.orders_unanswered.load(Relaxed),
            fights: counters.fights.load(Relaxed),
            deltas_per_s: growth.per_second(growth.deltas),
            frames_per_s: growth.per_second(growth.frames),
            entities_per_delta: ratio(growth.entities, growth.deltas),
            cpu_us_per_frame: growth.cpu_us.map(|us| ratio(us, growth.frames)),
            awakenings: self.awakenings.iter().map(awakening).collect(),
            notes: self.tally.notes(),
        }
    }

    /// What bots felt of crossings and failures, by cause.
    fn player_gaps(&self) -> PlayerGaps {
        let of = |cause| Spread::of_us(&self.tally.gaps(cause));
        PlayerGaps {
            crossing: of(Cause::Crossing),
            crash: of(Cause::Crash),
            gateway: of(Cause::Gateway),
            store: of(Cause::Store),
            other: of(Cause::Other),
            drain: of(Cause::Drain),
        }
    }
}

fn ratio(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

fn awakening(awakening: &deaf::Awakening) -> Awakening {
    Awakening {
        deaf_ms: awakening.deaf_ms,
        stale_deltas: awakening.stale_deltas,
        stale_others: awakening.stale_others,
        caught_up_ms: awakening.caught_up_ms,
    }
}
