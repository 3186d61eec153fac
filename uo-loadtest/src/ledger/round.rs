//! One round: everybody says so many lines a second for a while, and all of it is to arrive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uo_proto::{CharId, Encoding};

use super::line::Form;
use super::talker::{Heard, Script, Talker};

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
    /// What all of them heard.
    heard: Heard,
    /// From the moment when the first line was due to the last delivery.
    completion: Duration,
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
    let mut heard = Heard::new();
    let mut back: BTreeMap<usize, Talker> = BTreeMap::new();
    while let Some(played) = playing.join_next().await {
        let (number, of_one, talker) = played?;
        heard.add(of_one);
        back.insert(number, talker);
    }
    let outcome = Outcome {
        plan,
        clients,
        completion: heard.last.saturating_duration_since(start),
        heard,
        server: None,
    };
    Ok((outcome, back.into_values().collect()))
}

impl Outcome {
    /// What the server had and used, between two looks.
    pub fn used(&mut self, before: Option<Usage>, after: Option<Usage>) {
        self.server = before.zip(after).map(|(before, after)| Usage {
            resident_bytes: after.resident_bytes,
            cpu_us: after.cpu_us.saturating_sub(before.cpu_us),
        });
    }

    /// Whether every line came to everybody once and in order, and nobody was cut off.
    pub fn is_exact(&self) -> bool {
        self.heard.balance.is_exact()
            && self.heard.evicted == 0
            && self.heard.refused == 0
            && self.heard.troubles.is_empty()
    }

    fn latency_ms(&self, quantile: f64) -> Option<f64> {
        let us = self.heard.latency_us.value_at_quantile(quantile);
        let us = us.min(self.heard.latency_us.max());
        (!self.heard.latency_us.is_empty()).then_some(us as f64 / 1e3)
    }

    fn deliveries_per_s(&self) -> f64 {
        self.heard.balance.delivered as f64 / self.completion.as_secs_f64().max(1e-9)
    }

    /// Tells people, in one line and one more for each trouble.
    pub fn print(&self) {
        let ms = |quantile| {
            self.latency_ms(quantile)
                .map_or("-".into(), |ms| format!("{ms:.1}"))
        };
        let balance = &self.heard.balance;
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
            self.heard.under_way_max,
            self.heard.held,
            self.heard.late_max.as_secs_f64() * 1e3,
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
                self.heard.refused,
                self.heard.evicted
            );
        }
        for (what, times) in &self.heard.troubles {
            println!("        {times} x {what}");
        }
    }

    /// The same for programs.
    pub fn report(&self) -> Value {
        let balance = &self.heard.balance;
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
            "evicted": self.heard.evicted,
            "completion_s": self.completion.as_secs_f64(),
            "deliveries_per_s": self.deliveries_per_s(),
            "latency_ms": {
                "p50": self.latency_ms(0.5),
                "p95": self.latency_ms(0.95),
                "p99": self.latency_ms(0.99),
                "max": self.latency_ms(1.0),
            },
            "backpressure": {
                "under_way_max": self.heard.under_way_max,
                "held": self.heard.held,
                "refused": self.heard.refused,
                "late_ms_max": self.heard.late_max.as_secs_f64() * 1e3,
            },
            "server": self.server.map(|server| json!({
                "rss_bytes": server.resident_bytes,
                "cpu_s": server.cpu_us as f64 / 1e6,
            })),
            "troubles": self.heard.troubles,
        })
    }
}

fn name(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Json => "json",
        Encoding::MessagePack => "msgpack",
    }
}
