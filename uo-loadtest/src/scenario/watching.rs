//! What goes on all the time of a run: looks at every node and every bot, their judgement, and the line of each second.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::pin;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::bots::Bots;
use super::usage::Usage;
use crate::admin::{self, Collected, Reading};
use crate::cluster::Cluster;
use crate::cluster::pids::Pids;
use crate::judge::{Coverage, Holders, Rounds, Violation};
use crate::node::{Look, Sample, Watch};
use crate::report::series::Second;
use crate::report::{Quantiles, ms_text};
use crate::swarm::nodes;
use crate::swarm::summary::Counted;
use crate::system::process_usage;

/// How often nodes are looked at while every region is held.
const CALM: Duration = Duration::from_millis(250);
/// How often while one is not.
const CLOSE: Duration = Duration::from_millis(50);
/// How often it is looked who is where.
const SECOND: Duration = Duration::from_secs(1);
/// Seconds that are kept: four hours.
const SECONDS_MAX: usize = 14_400;
/// Violations that are kept; the first ones tell most.
const VIOLATIONS_MAX: usize = 100;

/// See the module.
pub struct Watching {
    /// The bots.
    pub bots: Bots,
    /// One holder a region, and nothing goes down.
    holders: Holders,
    /// Every region is held; none where a region runs only while somebody needs it.
    pub coverage: Option<Coverage>,
    /// Nobody is with two, and nobody with none.
    pub rounds: Rounds,
    /// What was found, with the second of the run, without doubles.
    pub violations: Vec<(u64, Violation)>,
    /// The nodes' own counters.
    pub collected: Collected,
    /// What their processes used.
    pub usage: Usage,
    /// Every second so far.
    pub series: Vec<Second>,
    /// What was counted when the measurement began.
    pub measured: Measured,
    pids: Pids,
    names: Vec<String>,
    began: Instant,
    quick: Watch,
    who: Watch,
    meters: admin::Meters,
    latest: BTreeMap<usize, Sample>,
    had_gateway: bool,
    fences: BTreeMap<String, u64>,
    counted: Counted,
    reading: Reading,
    tick: Interval,
}

/// What was counted at one moment.
pub struct Measured {
    /// By the bots.
    pub counted: Counted,
    /// By the nodes.
    pub reading: Reading,
}

impl Measured {
    fn of(bots: &Bots, collected: &Collected) -> Measured {
        Measured {
            counted: Counted::now(&bots.tally),
            reading: collected.reading(),
        }
    }
}

impl Watching {
    /// Watches a cluster that is ready, and these bots, from now on.
    pub fn begin(
        cluster: &Cluster,
        bots: Bots,
        held_within_ms: u64,
        began: Instant,
    ) -> anyhow::Result<Watching> {
        let names = cluster.names();
        let admins: Vec<String> = names.iter().map(|name| cluster.admin(name)).collect();
        let mut tick = interval(SECOND);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let regions = cluster.shape().regions_held();
        Ok(Watching {
            holders: Holders::default(),
            coverage: regions.map(|regions| Coverage::new(regions, held_within_ms)),
            rounds: Rounds::default(),
            violations: Vec::new(),
            collected: Collected::default(),
            usage: Usage::default(),
            series: Vec::new(),
            reading: Reading::default(),
            measured: Measured::of(&bots, &Collected::default()),
            pids: cluster.pids(),
            began,
            quick: Watch::begin(&admins, "/state?fresh", CALM, began)?,
            who: Watch::begin(&admins, "/state?characters", SECOND, began)?,
            meters: admin::Meters::begin(&admins, SECOND)?,
            latest: BTreeMap::new(),
            had_gateway: true,
            fences: BTreeMap::new(),
            counted: Counted::now(&bots.tally),
            names,
            bots,
            tick,
        })
    }

    /// Milliseconds since the run began.
    pub fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// The ramp is over: what is measured counts from here.
    pub fn measure(&mut self) {
        self.bots.tally.begin();
        self.usage.begin();
        self.measured = Measured::of(&self.bots, &self.collected);
    }

    /// Watches while `work` is done.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                sample = self.quick.next() => self.look(&sample),
                sample = self.who.next() => {
                    self.latest.insert(sample.node, sample);
                }
                (node, text) = self.meters.next() => self.collected.take(node, &text),
                _ = self.tick.tick() => self.second(),
            }
        }
    }

    /// Watches until so long after the beginning.
    pub async fn until(&mut self, since_began: Duration) {
        let at = self.began + since_began;
        self.during(tokio::time::sleep_until(at.into())).await;
    }

    /// A node was killed, or stands still, from this moment.
    pub fn lost(&mut self, name: &str) {
        let now_ms = self.now_ms();
        if let (Some(coverage), Some(node)) = (
            &mut self.coverage,
            self.names.iter().position(|known| known == name),
        ) {
            coverage.lost(node, now_ms);
        }
    }

    /// How often fences fell, by all boots that were seen.
    pub fn fences(&self) -> u64 {
        self.fences.values().sum()
    }

    /// Notes what is wrong.
    pub fn note(&mut self, violations: impl IntoIterator<Item = Violation>) {
        let second = self.now_ms() / 1_000;
        for violation in violations {
            let is_known = self.violations.iter().any(|(_, known)| *known == violation);
            if !is_known && self.violations.len() < VIOLATIONS_MAX {
                println!("{second:>4}s  WRONG: {violation}");
                self.violations.push((second, violation));
            }
        }
    }

    fn look(&mut self, sample: &Sample) {
        let violations = self.holders.judge(sample);
        self.note(violations);
        if let Ok(look) = &sample.look {
            self.fences.insert(look.boot.clone(), look.fence_falls);
        }
        let Some(coverage) = &mut self.coverage else {
            return;
        };
        let had_gap = coverage.has_gap();
        let violation = coverage.judge(sample);
        let has_gap = coverage.has_gap();
        if has_gap != had_gap {
            self.quick.set_pace(if has_gap { CLOSE } else { CALM });
        }
        self.note(violation);
    }

    fn second(&mut self) {
        let now_ms = self.now_ms();
        self.round(now_ms);
        let overdue = self.bots.overdue(now_ms);
        self.note(overdue);
        let pids = self.pids.all();
        let used = pids.into_iter().map(|pid| (pid, process_usage(pid)));
        self.usage
            .take(used.filter_map(|(pid, used)| Some((pid, used?))));
        self.line();
    }

    /// Judges what every node showed that answered since the last round.
    fn round(&mut self, now_ms: u64) {
        let answers = std::mem::take(&mut self.latest).into_values();
        let looks: BTreeMap<String, Look> = answers
            .filter_map(|sample| Some((self.names[sample.node].clone(), sample.look.ok()?)))
            .collect();
        // A look may come a little late; twice in a row, there is nobody to come back to.
        let has_gateway = looks.keys().any(|name| !name.starts_with("sim-"));
        if !has_gateway && !self.had_gateway {
            self.bots.excuse(now_ms);
        }
        self.had_gateway = has_gateway;
        let expected = self.bots.expected();
        let violations = self.rounds.judge(now_ms, &looks, &expected);
        self.note(violations);
    }

    fn line(&mut self) {
        let second = self.last_second();
        let counts = |(name, count): (&String, &u64)| format!("{name} {count}");
        let regions: Vec<String> = second.regions.iter().map(counts).collect();
        println!(
            "{:>4.0}s  in {}  orders {:.0}/s  deltas {:.0}/s  p50 {} ms  p99 {} ms  regions {}  wrong {}",
            second.at_s,
            second.sessions,
            second.orders_per_s,
            second.deltas_per_s,
            ms_text(second.order_to_delta_ms.p50),
            ms_text(second.order_to_delta_ms.p99),
            regions.join(", "),
            self.violations.len(),
        );
        if self.series.len() < SECONDS_MAX {
            self.series.push(second);
        }
    }

    /// What bots and nodes counted since the last call.
    fn last_second(&mut self) -> Second {
        let tally = &self.bots.tally;
        let counted = Counted::now(tally);
        let since = counted.since(&self.counted);
        let window = tally.take_window();
        let gaps = window.gap_us_max.into_iter();
        let mut second = Second {
            at_s: self.began.elapsed().as_secs_f64(),
            sessions: tally.in_world(),
            orders_per_s: since.per_second(since.orders),
            deltas_per_s: since.per_second(since.deltas),
            order_to_delta_ms: Quantiles::of_us(&window.latencies),
            gap_ms_max: gaps
                .map(|(cause, us)| (cause.name().to_owned(), us as f64 / 1e3))
                .collect(),
            regions: self.regions(),
            ..Second::default()
        };
        let reading = self.collected.reading();
        nodes::fill_second(&mut second, &self.reading, &reading);
        (self.counted, self.reading) = (counted, reading);
        second
    }

    /// How many regions each sim holds.
    fn regions(&self) -> BTreeMap<String, u64> {
        let holders = self.coverage.as_ref().map(Coverage::holders);
        let holders = holders.unwrap_or_default();
        let named = self.names.iter().enumerate();
        named
            .filter(|(_, name)| !name.starts_with("gw-"))
            .map(|(node, name)| {
                let count = holders.get(&node).copied().unwrap_or_default();
                (name.clone(), count as u64)
            })
            .collect()
    }

    /// Judges sessions that were lost, whose count it returns, protocol errors, and bots that never got in.
    pub fn judge_sessions(&mut self, bots: usize) -> u64 {
        let lost = self.bots.lost();
        let lost_count = lost.len() as u64;
        self.note(lost);
        let counters = &self.bots.tally.counters;
        let welcomed = counters.welcomed.load(Relaxed);
        let errors = counters.violations.load(Relaxed);
        let mut wrong = BTreeSet::new();
        if welcomed < bots as u64 {
            wrong.insert(format!("{} bots never got in", bots as u64 - welcomed));
        }
        if errors > 0 {
            wrong.insert(format!("{errors} protocol errors were seen"));
        }
        self.note(wrong.into_iter().map(Violation::Ended));
        lost_count
    }
}
