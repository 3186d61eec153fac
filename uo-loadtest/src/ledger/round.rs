//! One round: everybody says so many lines a second for a while, and all of it is to arrive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uo_proto::{CharId, Encoding};

use super::book::Balance;
use super::line::Form;
use super::talker::{Heard, Script, Talker, histogram};

/// From the call to the first line: everybody has begun to listen by then.
const PRELUDE: Duration = Duration::from_millis(100);
/// How long what was said last may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// What a round is to be.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The encoding of all its clients.
    pub encoding: Encoding,
    /// Lines a second and client.
    pub rate: u32,
    /// For how many seconds.
    pub seconds: u32,
    /// Bytes of a line.
    pub bytes: usize,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    plan: Plan,
    clients: usize,
    balance: Balance,
    /// From the moment when the first line was due to the last delivery.
    completion: Duration,
    latency_us: Histogram<u64>,
    under_way_max: i64,
    refused: u64,
    held: u64,
    late_max: Duration,
    evicted: u64,
    troubles: BTreeMap<String, u64>,
    /// Memory of the server at the end, and processor time that it used; none where the system does not tell.
    server: Option<Usage>,
}

/// What a process has and used.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Processor time, in microseconds.
    pub cpu_us: u64,
}

/// Plays round `number`; the talkers come back when it is over.
pub async fn play(
    number: u32,
    plan: Plan,
    talkers: Vec<Talker>,
) -> anyhow::Result<(Outcome, Vec<Talker>)> {
    let speakers: Vec<CharId> = talkers.iter().filter_map(Talker::char_id).collect();
    let clients = talkers.len();
    let start = Instant::now() + PRELUDE;
    let said_by = start + Duration::from_secs(plan.seconds.into());
    let script = Arc::new(Script {
        form: Form::new(number, plan.bytes),
        speakers,
        lines: u64::from(plan.rate) * u64::from(plan.seconds),
        pause: Duration::from_secs(1) / plan.rate.max(1),
        start,
        said_by,
        end: said_by + PATIENCE,
        under_way: AtomicI64::new(0),
    });
    let mut playing = JoinSet::new();
    for (number, mut talker) in talkers.into_iter().enumerate() {
        let script = script.clone();
        playing.spawn(async move { (number, talker.talk(script).await, talker) });
    }
    let mut outcome = Outcome::new(plan, clients);
    let mut back: BTreeMap<usize, Talker> = BTreeMap::new();
    while let Some(played) = playing.join_next().await {
        let (number, heard, talker) = played?;
        outcome.add(start, heard);
        back.insert(number, talker);
    }
    Ok((outcome, back.into_values().collect()))
}

impl Outcome {
    fn new(plan: Plan, clients: usize) -> Outcome {
        Outcome {
            plan,
            clients,
            balance: Balance::default(),
            completion: Duration::ZERO,
            latency_us: histogram(),
            under_way_max: 0,
            refused: 0,
            held: 0,
            late_max: Duration::ZERO,
            evicted: 0,
            troubles: BTreeMap::new(),
            server: None,
        }
    }

    fn add(&mut self, start: Instant, heard: Heard) {
        self.balance += heard.balance;
        let took = heard.last.saturating_duration_since(start);
        self.completion = self.completion.max(took);
        self.latency_us += heard.latency_us;
        self.under_way_max = self.under_way_max.max(heard.under_way_max);
        self.refused += heard.refused;
        self.held += heard.held;
        self.late_max = self.late_max.max(heard.late_max);
        self.evicted += heard.evicted;
        for (what, times) in heard.troubles {
            *self.troubles.entry(what).or_default() += times;
        }
    }

    /// What the server had and used, between two looks.
    pub fn used(&mut self, before: Option<Usage>, after: Option<Usage>) {
        self.server = before.zip(after).map(|(before, after)| Usage {
            resident_bytes: after.resident_bytes,
            cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
        });
    }

    /// Whether every line came to everybody once and in order, and nobody was cut off.
    pub fn is_exact(&self) -> bool {
        self.balance.is_exact()
            && self.evicted == 0
            && self.refused == 0
            && self.troubles.is_empty()
    }

    fn latency_ms(&self, quantile: f64) -> Option<f64> {
        let us = self.latency_us.value_at_quantile(quantile);
        let us = us.min(self.latency_us.max());
        (!self.latency_us.is_empty()).then_some(us as f64 / 1e3)
    }

    fn deliveries_per_s(&self) -> f64 {
        self.balance.delivered as f64 / self.completion.as_secs_f64().max(1e-9)
    }

    /// Tells people, in one line and one more for each trouble.
    pub fn print(&self) {
        let ms = |quantile| {
            self.latency_ms(quantile)
                .map_or("-".into(), |ms| format!("{ms:.1}"))
        };
        let balance = &self.balance;
        let server = self.server.map_or(String::new(), |server| {
            format!(
                ", server {:.0} MiB and {:.2} s of CPU",
                server.resident_bytes as f64 / f64::from(1 << 20),
                server.cpu_us as f64 / 1e6
            )
        });
        println!(
            "{:<7} {:>2} clients {:>3}/s: {} in {:.3} s, {:.0} deliveries/s, p50 {} p95 {} p99 {} max {} ms; \
             {} under way at most, {} held, {:.1} ms behind{server}",
            name(self.plan.encoding),
            self.clients,
            self.plan.rate,
            if self.is_exact() {
                "exact"
            } else {
                "NOT EXACT"
            },
            self.completion.as_secs_f64(),
            self.deliveries_per_s(),
            ms(0.5),
            ms(0.95),
            ms(0.99),
            ms(1.0),
            self.under_way_max,
            self.held,
            self.late_max.as_secs_f64() * 1e3,
        );
        if !self.is_exact() {
            println!(
                "        of {} deliveries {} are missing, {} doubled, {} out of order, {} of nobody; \
                 {} lines refused, {} connections lost",
                balance.expected,
                balance.missing(),
                balance.doubled,
                balance.disordered,
                balance.unknown,
                self.refused,
                self.evicted
            );
        }
        for (what, times) in &self.troubles {
            println!("        {times} x {what}");
        }
    }

    /// The same for programs.
    pub fn report(&self) -> Value {
        let balance = &self.balance;
        json!({
            "encoding": name(self.plan.encoding),
            "clients": self.clients,
            "rate_per_s": self.plan.rate,
            "seconds": self.plan.seconds,
            "payload_bytes": self.plan.bytes,
            "is_exact": self.is_exact(),
            "deliveries": {
                "expected": balance.expected,
                "delivered": balance.delivered,
                "missing": balance.missing(),
                "doubled": balance.doubled,
                "disordered": balance.disordered,
                "unknown": balance.unknown,
            },
            "evicted": self.evicted,
            "completion_s": self.completion.as_secs_f64(),
            "deliveries_per_s": self.deliveries_per_s(),
            "latency_ms": {
                "p50": self.latency_ms(0.5),
                "p95": self.latency_ms(0.95),
                "p99": self.latency_ms(0.99),
                "max": self.latency_ms(1.0),
            },
            "backpressure": {
                "under_way_max": self.under_way_max,
                "held": self.held,
                "refused": self.refused,
                "late_ms_max": self.late_max.as_secs_f64() * 1e3,
            },
            "server": self.server.map(|server| json!({
                "rss_bytes": server.resident_bytes,
                "cpu_s": server.cpu_us as f64 / 1e6,
            })),
            "troubles": self.troubles,
        })
    }
}

fn name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "json",
        Encoding::MessagePack => "msgpack",
    }
}
