//! Sessions that wander, more and more of them, and what they and their server come to over a while.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::bail;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use uo_proto::Encoding;
use uo_sdk::bots::BotKind;
use uo_sdk::{Options, Runner};

use super::figures::Figures;
use super::subject::Subject;
use crate::admin::{self, Reading};
use crate::report::run::{PerSession, Report};
use crate::report::{Quantiles, Spread};
use crate::swarm::nodes;
use crate::swarm::summary::Counted;
use crate::swarm::tally::{Tally, Watch};
use crate::system;

/// Sessions that begin in a second.
const LOGINS_PER_S: u64 = 200;
/// How long the last ones may take to be in.
const IN_WITHIN: Duration = Duration::from_secs(20);
/// How long they walk before anything is measured.
const SETTLE: Duration = Duration::from_secs(3);

/// See the module.
pub struct Walk<'a> {
    subject: &'a Subject,
    encoding: Encoding,
    seed: u64,
    tally: Arc<Tally>,
    bots: JoinSet<()>,
    rss_before_bytes: u64,
}

impl<'a> Walk<'a> {
    /// Nobody walks yet.
    pub fn new(subject: &'a Subject, encoding: Encoding, seed: u64) -> anyhow::Result<Walk<'a>> {
        Ok(Walk {
            subject,
            encoding,
            seed,
            tally: Tally::new(),
            bots: JoinSet::new(),
            rss_before_bytes: subject.cost()?.rss_bytes,
        })
    }

    /// Lets as many in as are missing to `sessions`, and waits until all walk.
    pub async fn grow(&mut self, sessions: u64) -> anyhow::Result<()> {
        for number in self.bots.len() as u64..sessions {
            // The same bot takes the same decisions, whoever the server is.
            let seed = self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number;
            let options = Options {
                encoding: self.encoding,
                seed,
                ..Options::new(
                    self.subject.gateway.clone(),
                    format!("walk{}-{number}", self.seed),
                )
            };
            let kind = BotKind::Wander;
            let runner = Runner::new(options, kind.make(seed));
            let runner = runner.observed(Watch::new(self.tally.clone(), kind));
            let tally = self.tally.clone();
            self.bots.spawn(async move {
                if let Err(error) = runner.run().await {
                    tally.note(format!("a bot could not begin: {error}"));
                }
            });
            sleep(Duration::from_micros(1_000_000 / LOGINS_PER_S)).await;
        }
        let deadline = Instant::now() + IN_WITHIN;
        while self.tally.in_world() < sessions {
            if Instant::now() > deadline {
                let notes = self.tally.notes();
                let is_in = self.tally.in_world();
                bail!("only {is_in} of {sessions} sessions are in: {notes:?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
        sleep(SETTLE).await;
        Ok(())
    }

    /// Measures for a while.
    pub async fn measure(&mut self, seconds: u64) -> anyhow::Result<Figures> {
        let before = self.look().await?;
        self.tally.begin();
        let mut in_view = 0.0;
        for _ in 0..seconds {
            sleep(Duration::from_secs(1)).await;
            in_view += self.tally.others_in_view();
        }
        let after = self.look().await?;
        let growth = after.counted.since(&before.counted);
        let mut servers = Report::default();
        if let Some((before, after)) = before.reading.zip(after.reading) {
            nodes::fill(&mut servers, &before, &after);
        }
        let session = |us: u64| growth.per_session(us);
        let grown = after.cost.rss_bytes.saturating_sub(self.rss_before_bytes);
        let counters = &self.tally.counters;
        Ok(Figures {
            sessions: self.tally.in_world(),
            seconds,
            order_to_delta_ms: Quantiles::of_us(&self.tally.latencies()),
            tick_ms: servers.tick_ms,
            late_ticks: servers.late_ticks,
            per_session: PerSession {
                server_cpu_us_per_s: Some(session(after.cost.cpu_us() - before.cost.cpu_us())),
                bytes_per_s: Some(session(growth.bytes)),
                rss_bytes: Some(grown as f64 / growth.sessions_mean().max(1.0)),
            },
            server_kernel_us_per_s: session(after.cost.kernel_us - before.cost.kernel_us),
            frames_per_s: session(growth.frames),
            entities_per_delta: growth.entities as f64 / growth.deltas.max(1) as f64,
            orders_per_s: growth.per_second(growth.orders),
            others_in_view: in_view / seconds.max(1) as f64,
            bots_cpu_us_per_s: growth.cpu_us.map(session),
            crossing_gap_ms: Spread::of_us(&self.tally.gaps(crate::swarm::felt::Cause::Crossing)),
            lost: counters.lost.load(Relaxed) + counters.stopped.load(Relaxed),
            protocol_errors: counters.violations.load(Relaxed),
        })
    }

    async fn look(&self) -> anyhow::Result<Look> {
        let admin = self.subject.admin();
        let reading = match admin.is_empty() {
            true => None,
            false => Some(admin::read(&admin).await?),
        };
        debug_assert!(system::cpu_us().is_some());
        Ok(Look {
            counted: Counted::now(&self.tally),
            cost: self.subject.cost()?,
            reading,
        })
    }
}

/// Everything that is counted, at one moment.
struct Look {
    counted: Counted,
    cost: super::cost::Cost,
    reading: Option<Reading>,
}
