//! What a run comes to, for people and as JSON.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use uo_sdk::bots::deaf::Awakening;

use super::Arguments;
use super::felt::Cause;
use super::tally::Tally;
use crate::admin::Reading;
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
    entities: u64,
    frames: u64,
    bytes: u64,
    cpu_us: Option<u64>,
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
            cpu_us: self.cpu_us.zip(earlier.cpu_us).map(|(now, old)| now - old),
        }
    }

    /// A count of this stretch of time, by the second.
    pub fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.elapsed.as_secs_f64().max(1e-9)
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
    pub awakenings: Vec<Awakening>,
}

/// Why a gateway counts gaps.
const SERVER_CAUSES: [&str; 7] = [
    "border", "pin", "drain", "forward", "failover", "freeze", "resume",
];

/// Counters of the world that the nodes keep, and what they are called in the summary.
const WORLD_COUNTERS: [(&str, &str); 4] = [
    ("fights", "uo_fights_total"),
    ("deaths", "uo_deaths_total"),
    ("respawns", "uo_respawns_total"),
    ("objects_broken", "uo_objects_broken_total"),
];

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

    /// The names of `report.json` that apply to a swarm alone, and the swarm's own.
    pub fn report(&self) -> Value {
        let counters = &self.tally.counters;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
        let mut report = json!({
            "seed": self.arguments.seed,
            "gateways": self.arguments.gateways.len(),
            "bots": self.arguments.bots,
            "seconds": self.measured.as_secs_f64().round(),
            "sessions": {
                "peak": self.tally.peak(),
                "logins": count(&counters.logins),
                "resumes": count(&counters.resumes),
                "refused": count(&counters.refused),
                "lost": count(&counters.lost),
            },
            "order_to_delta_ms": quantiles(&self.tally.latencies()),
            "player_gap_ms": self.player_gaps(),
            "resume_ms": counted_quantiles(&self.tally.resumes()),
            "fights_reset": count(&counters.fights_reset),
            "per_session": { "bytes_per_s": self.per_session(self.growth.bytes) },
            "swarm": {
                "bots_in": count(&counters.welcomed),
                "bots_in_at_end": self.in_at_end,
                "logouts": count(&counters.logouts),
                "protocol_errors": count(&counters.violations),
                "orders_per_s": self.growth.per_second(self.growth.orders),
                "orders_unanswered": count(&counters.orders_unanswered),
                "fights": count(&counters.fights),
                "deltas_per_s": self.growth.per_second(self.growth.deltas),
                "frames_per_s": self.growth.per_second(self.growth.frames),
                "entities_per_delta": ratio(self.growth.entities, self.growth.deltas),
                "cpu_us_per_frame": self.growth.cpu_us.map(|us| ratio(us, self.growth.frames)),
                "awakenings": self.awakenings.iter().map(awakening).collect::<Vec<_>>(),
                "notes": self.tally.notes(),
            },
            "failures": self.failures(),
        });
        if let Some(nodes) = self.nodes()
            && let (Value::Object(report), Value::Object(nodes)) = (&mut report, nodes)
        {
            report.extend(nodes);
        }
        report
    }

    /// What bots felt of crossings and failures, by cause.
    fn player_gaps(&self) -> Value {
        let gaps = Cause::ALL.map(|cause| {
            let gaps = counted_quantiles(&self.tally.gaps(cause));
            (cause.name().to_owned(), gaps)
        });
        Value::Object(gaps.into_iter().collect())
    }

    /// The same as the nodes' gateways measured it: upper bounds of buckets, by the nodes' own causes.
    fn server_gaps(&self) -> Option<Value> {
        let (before, after) = self.readings.as_ref()?;
        let gaps = SERVER_CAUSES.map(|cause| {
            let series = format!("uo_player_gap_seconds{{cause=\"{cause}\"}}");
            let ms = |share| Some(after.quantile(before, &series, share)? * 1e3);
            let gaps = json!({
                "count": whole(after.count(before, &series)),
                "p50": ms(0.5),
                "p99": ms(0.99),
                "max": ms(1.0),
            });
            (cause.to_owned(), gaps)
        });
        Some(Value::Object(gaps.into_iter().collect()))
    }

    /// What the nodes say of themselves since the ramp.
    fn nodes(&self) -> Option<Value> {
        let (before, after) = self.readings.as_ref()?;
        let tick_ms = |share| Some(after.quantile(before, "uo_tick_seconds", share)? * 1e3);
        let total = after.growth(before, "uo_ticks_total");
        let late = after.growth(before, "uo_ticks_late_total");
        let world = WORLD_COUNTERS
            .map(|(name, metric)| (name.to_owned(), whole(after.growth(before, metric))));
        Some(json!({
            "tick_ms": { "p50": tick_ms(0.5), "p99": tick_ms(0.99), "max": self.longest_tick_ms() },
            "late_ticks": late.zip(total).map(|(late, total)| late / total.max(1.0)),
            "ticks": { "late": whole(late), "total": whole(total) },
            "world": Value::Object(world.into_iter().collect()),
            "server_gap_ms": self.server_gaps(),
        }))
    }

    /// The longest tick since the ramp. The histogram knows for sure in which bucket it is; the gauge of the nodes' last
    /// minute is exact, but may be of another time: it counts if it falls into that bucket.
    fn longest_tick_ms(&self) -> Option<f64> {
        let (before, after) = self.readings.as_ref()?;
        let (low, high) = after.longest(before, "uo_tick_seconds")?;
        let exact = after.peak("uo_tick_max_seconds");
        let exact = exact.filter(|seconds| *seconds > low && *seconds <= high);
        Some(exact.unwrap_or(high) * 1e3)
    }

    /// Tells people.
    pub fn print(&self) {
        let counters = &self.tally.counters;
        let growth = &self.growth;
        println!("\n{:.0} s after the ramp:", self.measured.as_secs_f64());
        println!(
            "  bots       {} of {} got in, {} in at the end; {} logins, {} logouts, {} resumes, {} put off, {} lost",
            counters.welcomed.load(Relaxed),
            self.arguments.bots,
            self.in_at_end,
            counters.logins.load(Relaxed),
            counters.logouts.load(Relaxed),
            counters.resumes.load(Relaxed),
            counters.refused.load(Relaxed),
            counters.lost.load(Relaxed),
        );
        println!(
            "  traffic    {:.0} orders/s, {:.0} deltas/s with {:.1} entities each, {:.0} frames/s, {:.0} B/s a bot",
            growth.per_second(growth.orders),
            growth.per_second(growth.deltas),
            ratio(growth.entities, growth.deltas),
            growth.per_second(growth.frames),
            self.per_session(growth.bytes),
        );
        let latency = self.tally.latencies();
        println!(
            "  order to delta, at the client: p50 {} ms, p99 {} ms, max {} ms over {} orders; {} unanswered",
            quantile_text(&latency, 0.5),
            quantile_text(&latency, 0.99),
            quantile_text(&latency, 1.0),
            latency.len(),
            counters.orders_unanswered.load(Relaxed),
        );
        self.print_felt();
        if let Some(us) = growth.cpu_us {
            println!(
                "  bots' CPU  {:.0} % of a core, {:.1} us a frame received",
                us as f64 / growth.elapsed.as_secs_f64() / 1e4,
                ratio(us, growth.frames),
            );
        }
        if let Some(nodes) = self.nodes() {
            self.print_nodes(&nodes);
        }
        for awakening in &self.awakenings {
            println!(
                "  deaf       {:.1} s, then {} stale deltas and {} others before the present, after {} ms",
                awakening.deaf_ms as f64 / 1e3,
                awakening.stale_deltas,
                awakening.stale_others,
                awakening.caught_up_ms,
            );
        }
        for (note, times) in self.tally.notes() {
            println!("  noted      {times} x {note}");
        }
        let failures = self.failures();
        if failures.is_empty() {
            println!("passed");
        } else {
            println!("FAILED: {}", failures.join("; "));
        }
    }

    fn print_felt(&self) {
        let all = Cause::ALL.map(|cause| (cause.name(), self.tally.gaps(cause)));
        let resumes = ("resume", self.tally.resumes());
        for (name, felt) in all.iter().chain([&resumes]) {
            if !felt.is_empty() {
                println!(
                    "  felt       {name}: p50 {} ms, p99 {} ms, max {} ms, {} times",
                    quantile_text(felt, 0.5),
                    quantile_text(felt, 0.99),
                    quantile_text(felt, 1.0),
                    felt.len(),
                );
            }
        }
        let counters = &self.tally.counters;
        println!(
            "  fights     {} begun by bots, {} reset",
            counters.fights.load(Relaxed),
            counters.fights_reset.load(Relaxed),
        );
    }

    fn print_nodes(&self, nodes: &Value) {
        let number = |value: &Value| {
            value
                .as_f64()
                .map_or("?".into(), |value| format!("{value:.1}"))
        };
        let (tick, ticks, world) = (&nodes["tick_ms"], &nodes["ticks"], &nodes["world"]);
        println!(
            "  tick       p50 <= {} ms, p99 <= {} ms, max {} ms; {} late of {}",
            number(&tick["p50"]),
            number(&tick["p99"]),
            number(&tick["max"]),
            ticks["late"],
            ticks["total"],
        );
        println!(
            "  world      {} fights, {} deaths, {} respawns, {} objects broken",
            world["fights"], world["deaths"], world["respawns"], world["objects_broken"],
        );
    }

    fn per_session(&self, count: u64) -> f64 {
        self.growth.per_second(count) / self.in_at_end.max(1) as f64
    }
}

/// A count that came as a floating-point number.
fn whole(count: Option<f64>) -> Value {
    count.map_or(Value::Null, |count| (count as u64).into())
}

/// A quantile in milliseconds; none where nothing was recorded.
fn quantile_ms(latency: &Histogram<u64>, quantile: f64) -> Option<f64> {
    let us = latency.value_at_quantile(quantile).min(latency.max());
    (!latency.is_empty()).then_some(us as f64 / 1e3)
}

/// The same for people.
pub fn quantile_text(latency: &Histogram<u64>, quantile: f64) -> String {
    quantile_ms(latency, quantile).map_or("-".into(), |ms| format!("{ms:.1}"))
}

fn ratio(count: u64, of: u64) -> f64 {
    count as f64 / of.max(1) as f64
}

fn quantiles(latency: &Histogram<u64>) -> Value {
    json!({
        "p50": quantile_ms(latency, 0.5),
        "p99": quantile_ms(latency, 0.99),
        "max": quantile_ms(latency, 1.0),
    })
}

fn counted_quantiles(latency: &Histogram<u64>) -> Value {
    let mut value = quantiles(latency);
    value["count"] = latency.len().into();
    value
}

fn awakening(awakening: &Awakening) -> Value {
    json!({
        "deaf_ms": awakening.deaf_ms,
        "stale_deltas": awakening.stale_deltas,
        "stale_others": awakening.stale_others,
        "caught_up_ms": awakening.caught_up_ms,
    })
}
