//! `uo-loadtest swarm`: protocol bots against running gateways.
//!
//! Reading order:
//! - this file: the arguments, and the course of a run;
//! - [`mix`]: which bot plays what;
//! - [`tally`]: what the bots send, get and see, and how latency is taken;
//! - [`felt`]: what players feel of crossings, failures and restarts: gaps, resumes, fights that were reset;
//! - [`pulse`]: the run second by second;
//! - [`summary`]: what the run comes to; [`nodes`]: what the nodes say of themselves meanwhile.

pub mod felt;
pub mod mix;
pub mod nodes;
mod pulse;
pub mod summary;
pub mod tally;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use tokio::task::JoinSet;
use uo_proto::Encoding;
use uo_sdk::bots::{BotKind, Deaf, deaf};
use uo_sdk::{Bot, Options, Runner};

use crate::admin::{self, Reading};
use crate::report::{self, Bar};
use crate::system;
use mix::Mix;
use pulse::Pulse;
use summary::{Counted, Summary};
use tally::{Tally, Watch};

/// Most bots of one process: each needs a port of its own towards a gateway.
const BOTS_MAX: usize = 20_000;

/// What `swarm` is told.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Gateways, as `ws://host:port,..`; bots begin at them in turn.
    #[arg(long, value_delimiter = ',', default_value = "ws://127.0.0.1:7777")]
    pub gateways: Vec<String>,
    /// How many bots.
    #[arg(long, default_value_t = 100)]
    pub bots: usize,
    /// Kinds of bots and their shares: combat, wander, duel, siege, churn, border, idle, deaf.
    #[arg(long, default_value = "combat=1,wander=1")]
    pub mix: Mix,
    /// Over what time the bots log in, one after the other.
    #[arg(long, value_parser = duration, default_value = "10s")]
    pub ramp: Duration,
    /// How long after the ramp the last bots may still be on their way in.
    #[arg(long, value_parser = duration, default_value = "15s")]
    pub grace: Duration,
    /// How long to measure after the ramp, in seconds.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
    /// Encoding: json or msgpack.
    #[arg(long, value_parser = encoding, default_value = "json")]
    pub encoding: Encoding,
    /// Admin addresses of the nodes, as `http://host:port,..`: their tick figures since the ramp join the summary.
    #[arg(long, value_delimiter = ',')]
    pub admin: Vec<String>,
    /// Where to write the summary as JSON. `player_gap_ms` is felt by bots that walk (a step in time is 50 ms, one tick; what
    /// it came too late is added) or that lost their connection or their part of the world (from the last state to the
    /// next), by cause: crossing, crash, gateway, store, other. `resume_ms` runs from the loss of a connection to the first
    /// state after the resume. `fights_reset` counts fights whose target was gone without an order, a refusal or a death.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Where to write it as a page with plots.
    #[arg(long)]
    pub html: Option<PathBuf>,
    /// What a figure of the report must not exceed, as `order_to_delta_ms.p99<=100`; may be given again.
    #[arg(long, value_name = "NAME<=VALUE")]
    pub bar: Vec<Bar>,
    /// What the bots' names and decisions follow from.
    #[arg(long, default_value_t = 7)]
    pub seed: u64,
    /// Worker threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,
    /// When a deaf bot stops reading, from its login.
    #[arg(long, value_parser = duration, default_value = "15s")]
    pub deaf_after: Duration,
    /// How long it does not read; for ever if not given.
    #[arg(long, value_parser = duration)]
    pub deaf_for: Option<Duration>,
}

/// Runs the swarm; false if a bot could not get in, was lost, or saw a protocol error.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    ensure!(
        (1..=BOTS_MAX).contains(&arguments.bots),
        "--bots must be from 1 to {BOTS_MAX}"
    );
    system::raise_open_files();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(arguments.threads as usize)
        .enable_all()
        .build()
        .context("no runtime")?
        .block_on(async { Swarm::start(arguments).course().await })
}

/// A swarm under way.
struct Swarm {
    arguments: Arguments,
    tally: Arc<Tally>,
    bots: JoinSet<()>,
    awakenings: mpsc::Receiver<deaf::Awakening>,
    pulse: Pulse,
    began: Instant,
}

impl Swarm {
    /// Sets all bots going; each waits for its turn in the ramp.
    fn start(arguments: Arguments) -> Swarm {
        let tally = Tally::new();
        let (report, awakenings) = mpsc::channel();
        let mut bots = JoinSet::new();
        for number in 0..arguments.bots {
            let start = arguments
                .ramp
                .mul_f64(number as f64 / arguments.bots as f64);
            let player = player(&arguments, number, &report);
            let watch = Watch::new(tally.clone(), player.kind);
            let runner = Runner::new(player.options, player.bot).observed(watch);
            let tally = tally.clone();
            bots.spawn(async move {
                tokio::time::sleep(start).await;
                if let Err(error) = runner.run().await {
                    tally.note(format!("a bot could not begin: {error}"));
                }
            });
        }
        Swarm {
            pulse: Pulse::new(tally.clone(), arguments.admin.clone()),
            arguments,
            tally,
            bots,
            awakenings,
            began: Instant::now(),
        }
    }

    /// Ramp, measurement, summary.
    async fn course(mut self) -> anyhow::Result<bool> {
        self.watch_until(self.began + self.arguments.ramp).await;
        let patience = Instant::now() + self.arguments.grace;
        while !self.all_in() && Instant::now() < patience {
            self.watch_until(Instant::now() + Duration::from_secs(1))
                .await;
        }
        // With nobody in there is nothing to measure.
        let measure = if self.tally.in_world() > 0 {
            Duration::from_secs(self.arguments.seconds)
        } else {
            Duration::ZERO
        };
        let before = self.reading().await;
        self.tally.begin();
        let start = self.counted();
        println!(
            "{:>4}s  the ramp is over: measuring",
            self.began.elapsed().as_secs()
        );
        let measured = Instant::now();
        self.watch_until(measured + measure).await;
        let end = self.counted();
        let after = self.reading().await;
        let in_at_end = self.tally.in_world();
        // Watches count what was left unanswered when they go.
        self.bots.shutdown().await;
        let summary = Summary {
            arguments: &self.arguments,
            tally: &self.tally,
            growth: end.since(&start),
            measured: measured.elapsed(),
            in_at_end,
            readings: before.zip(after),
            awakenings: self.awakenings.try_iter().collect(),
            series: self.pulse.seconds(),
        };
        let report = summary.report();
        println!("\n{}", report::text(&report, report::Style::of_stdout()));
        if let Some(path) = &self.arguments.json {
            report::write_json(&report, path)?;
        }
        if let Some(path) = &self.arguments.html {
            report::write_html(&report, path)?;
        }
        Ok(report.has_passed())
    }

    fn all_in(&self) -> bool {
        self.tally.counters.welcomed.load(Relaxed) >= self.arguments.bots as u64
    }

    /// Draws the live line each second.
    async fn watch_until(&mut self, end: Instant) {
        while Instant::now() < end {
            let next = (Instant::now() + Duration::from_secs(1)).min(end);
            tokio::time::sleep_until(next.into()).await;
            let second = self.pulse.beat(self.began).await;
            println!(
                "{:>4}s  in {}/{}  orders {:.0}/s  deltas {:.0}/s  p50 {} ms  p99 {} ms  lost {}",
                self.began.elapsed().as_secs(),
                second.sessions,
                self.arguments.bots,
                second.orders_per_s,
                second.deltas_per_s,
                report::ms_text(second.order_to_delta_ms.p50),
                report::ms_text(second.order_to_delta_ms.p99),
                self.tally.counters.lost.load(Relaxed),
            );
        }
    }

    fn counted(&self) -> Counted {
        Counted::now(&self.tally)
    }

    /// The nodes' figures; none if they were not asked for or do not answer, which is said.
    async fn reading(&self) -> Option<Reading> {
        if self.arguments.admin.is_empty() {
            return None;
        }
        match admin::read(&self.arguments.admin).await {
            Ok(reading) => Some(reading),
            Err(error) => {
                self.tally
                    .note(format!("no figures of the nodes: {error:#}"));
                None
            }
        }
    }
}

/// One bot and its way in.
pub struct Player {
    /// What it plays.
    pub kind: BotKind,
    /// Its character's name.
    pub name: String,
    /// Where it logs in, and how.
    pub options: Options,
    /// What decides for it.
    pub bot: Box<dyn Bot>,
}

/// The bot with this number.
pub fn player(
    arguments: &Arguments,
    number: usize,
    report: &mpsc::Sender<deaf::Awakening>,
) -> Player {
    let kind = arguments.mix.kind(number);
    let seed = arguments.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number as u64;
    let mut gateways = arguments.gateways.clone();
    let turn = number % gateways.len();
    gateways.rotate_left(turn);
    let name = format!("swarm{}-{number}", arguments.seed);
    let mut options = Options {
        gateways,
        encoding: arguments.encoding,
        seed,
        ..Options::new("", name.clone())
    };
    let bot = match kind {
        BotKind::Deaf => {
            options.receive_buffer_bytes = Some(deaf::RECEIVE_BUFFER_BYTES);
            let plan = deaf::Plan {
                after_ms: arguments.deaf_after.as_millis() as u64,
                for_ms: arguments.deaf_for.map(|time| time.as_millis() as u64),
                report: Some(report.clone()),
            };
            Box::new(Deaf::new(seed, plan)) as Box<dyn Bot>
        }
        kind => kind.make(seed),
    };
    Player {
        kind,
        name,
        options,
        bot,
    }
}

/// `json` or `msgpack`.
pub fn encoding(text: &str) -> Result<Encoding, String> {
    match text {
        "json" => Ok(Encoding::Json),
        "msgpack" => Ok(Encoding::MessagePack),
        _ => Err("json or msgpack".into()),
    }
}

/// A time as it is written: `90s`, `250ms`, `2m`, or seconds without a unit.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits
        .parse()
        .map_err(|_| format!("`{text}` is no time such as 10s"))?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" | "" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number.saturating_mul(60))),
        unit => Err(format!("`{unit}` is no unit: ms, s or m")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("7"), Ok(Duration::from_secs(7)));
        assert!(duration("s").is_err());
        assert!(duration("5h").is_err());
    }
}
