//! What comes of it all: the report, and whether the run has passed.

use std::time::Duration;

use super::Arguments;
use super::clients::Ended;
use super::watching::Watching;
use crate::cluster::Stopped;
use crate::proof::{Broken, Kind};
use crate::report::run::{ChaosStep, Invariants, Proof};
use crate::report::{self, Report, Style, bar};
use crate::swarm;
use crate::swarm::summary::{Counted, Summary};

/// Failures of one kind that are told; the first ones tell most.
const TOLD_MAX: usize = 20;

/// A step that was performed.
pub struct Done {
    /// When, since the run began.
    pub at_ms: u64,
    /// What.
    pub step: String,
    /// What came of it, in words.
    pub outcome: String,
}

/// What the closing found.
pub struct Findings {
    /// What was counted when the time was over.
    pub counted: Counted,
    /// How long was measured.
    pub measured: Duration,
    /// Bots that were in then.
    pub in_at_end: u64,
    /// Entities and objects of views that were compared.
    pub compared: u64,
    /// What was wrong with views.
    pub view_errors: Vec<String>,
    /// Promises that were not kept.
    pub broken: Vec<Broken>,
    /// Promises received.
    pub promises: u64,
    /// Sessions that were lost.
    pub sessions_lost: u64,
    /// How game clients ended.
    pub clients: Vec<Ended>,
}

/// See the module.
pub struct Outcome<'a> {
    /// What was asked for.
    pub arguments: &'a Arguments,
    /// What the bots were told.
    pub swarm: &'a swarm::Arguments,
    /// What was seen all the time.
    pub watching: &'a Watching,
    /// What was done.
    pub done: &'a [Done],
    /// The stops in order.
    pub stops: &'a [Stopped],
    /// What the closing found.
    pub findings: &'a Findings,
}

impl Outcome<'_> {
    /// Writes the report, and tells people; true when nothing was violated.
    pub fn tell(&self) -> anyhow::Result<bool> {
        let report = self.report();
        println!("\n{}", report::text(&report, Style::of_stdout()));
        let Findings {
            compared, promises, ..
        } = self.findings;
        println!("{promises} promises, {compared} things seen were compared with what there is");
        let out = &self.arguments.out;
        report::write_json(&report, &out.join("report.json"))?;
        report::write_html(&report, &out.join("report.html"))?;
        println!("{} and report.json", out.join("report.html").display());
        Ok(report.has_passed())
    }

    fn report(&self) -> Report {
        let Outcome {
            arguments,
            watching,
            findings,
            ..
        } = self;
        let ms = |times: &[u64]| times.iter().map(|&ms| ms as f64).collect();
        let shape = arguments.shape();
        let mut report = self.bots();
        report.store = Some(arguments.store.to_string());
        let is_alone = arguments.store.is_alone();
        report.sims = Some(if is_alone { 1 } else { shape.sims.into() });
        report.sessions.lost = findings.sessions_lost;
        if let Some(coverage) = &watching.coverage {
            report.failover_ms = ms(coverage.failover_ms());
        }
        let drains = self.stops.iter().filter(|stop| stop.is_sim);
        report.drain_ms = ms(&drains.map(|stop| stop.took_ms).collect::<Vec<_>>());
        let stops = self.stops.iter().map(|stop| stop.took_ms);
        report.stop_ms = ms(&stops.collect::<Vec<_>>());
        self.add_usage(&mut report);
        report.invariants = self.invariants();
        report.proof = self.proof(report.fights_reset);
        report.fences = Some(watching.fences());
        report.chaos = self.done.iter().map(ChaosStep::from).collect();
        report.bars = bar::judge(&arguments.bar, &report);
        report.failures = self.failures(&report);
        report
    }

    /// What a swarm alone would report.
    fn bots(&self) -> Report {
        let watching = self.watching;
        let summary = Summary {
            arguments: self.swarm,
            tally: &watching.bots.tally,
            growth: self.findings.counted.since(&watching.measured.counted),
            measured: self.findings.measured,
            in_at_end: self.findings.in_at_end,
            readings: Some((
                watching.measured.reading.clone(),
                watching.collected.reading(),
            )),
            awakenings: Vec::new(),
            series: watching.series.clone(),
        };
        summary.report()
    }

    /// What the servers used for each session, where they are processes of their own.
    fn add_usage(&self, report: &mut Report) {
        let usage = &self.watching.usage;
        let seconds = self.findings.measured.as_secs_f64().max(1.0);
        let sessions = report.swarm.sessions_mean.max(1.0);
        let each = |count: u64| count as f64 / sessions;
        report.per_session.server_cpu_us_per_s =
            usage.cpu_us().map(|cpu_us| each(cpu_us) / seconds);
        report.per_session.rss_bytes = usage.rss_bytes().map(each);
    }

    fn invariants(&self) -> Invariants {
        let told = self
            .watching
            .violations
            .iter()
            .map(|(second, what)| format!("{second} s: {what}"));
        Invariants {
            samples: self.watching.rounds.count,
            violations: told.collect(),
            transients: self.watching.rounds.transients,
        }
    }

    fn proof(&self, fights_reset: u64) -> Proof {
        let broken = &self.findings.broken;
        let of = |kind: Kind| broken.iter().filter(|one| one.kind == kind).count() as u64;
        Proof {
            coins_lost: Some(of(Kind::Coin)),
            coins_duplicated: Some(of(Kind::Doubled)),
            saved_lost: Some(of(Kind::Saved)),
            view_errors: Some(self.findings.view_errors.len() as u64),
            fights_reset: Some(fights_reset),
        }
    }

    fn failures(&self, report: &Report) -> Vec<String> {
        let mut failures = report.invariants.violations.clone();
        let broken = self.findings.broken.iter().map(|one| one.text.clone());
        failures.extend(broken.take(TOLD_MAX));
        failures.extend(self.findings.view_errors.iter().take(TOLD_MAX).cloned());
        let clients = self.findings.clients.iter().filter(|ended| !ended.is_good);
        failures.extend(clients.map(|ended| format!("{}: {}", ended.name, ended.how)));
        let missed = report.bars.iter().filter(|judged| !judged.is_met);
        failures.extend(missed.map(ToString::to_string));
        if report.invariants.samples == 0 {
            failures.push("no node ever answered, so nothing was judged".into());
        }
        if self.findings.promises == 0 {
            failures.push("nothing was promised, so nothing was proved".into());
        }
        if self.findings.compared == 0 {
            failures.push("nothing stood still, so no view was compared".into());
        }
        failures
    }
}

impl From<&Done> for ChaosStep {
    fn from(done: &Done) -> ChaosStep {
        ChaosStep {
            at_s: done.at_ms as f64 / 1e3,
            step: done.step.clone(),
            outcome: done.outcome.clone(),
        }
    }
}
