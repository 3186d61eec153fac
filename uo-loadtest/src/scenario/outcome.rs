//! What comes of it all.

use super::Arguments;
use super::watching::Watching;
use crate::proof::{Broken, Kind};
use crate::report::quantile_text;
use crate::swarm::summary::Counted;

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
#[derive(Default)]
pub struct Findings {
    /// Bots that were in when the time was over.
    pub in_at_end: u64,
    /// Entities and objects of views that were compared.
    pub compared: u64,
    /// What was wrong with views.
    pub view_errors: Vec<String>,
    /// Promises that were not kept.
    pub broken: Vec<Broken>,
    /// Promises received.
    pub promises: u64,
}

/// See the module.
pub struct Outcome<'a> {
    /// What was asked for.
    pub arguments: &'a Arguments,
    /// What was seen all the time.
    pub course: &'a Watching,
    /// What was done.
    pub done: &'a [Done],
    /// How long stops took.
    pub stops_ms: &'a [u64],
    /// What the closing found.
    pub findings: &'a Findings,
    /// How long all of it took.
    pub seconds: f64,
}

impl Outcome<'_> {
    /// Tells people; true when nothing was violated.
    pub fn tell(&self) -> anyhow::Result<bool> {
        let Findings {
            compared,
            view_errors,
            broken,
            promises,
            in_at_end,
        } = self.findings;
        let of = |kind: Kind| broken.iter().filter(|one| one.kind == kind).count();
        println!(
            "\n{:.0} s; {} in at the end; {} promises, {} coins lost, {} doubled, {} saved lost; {compared} compared, {} view errors",
            self.seconds,
            in_at_end,
            promises,
            of(Kind::Coin),
            of(Kind::Doubled),
            of(Kind::Saved),
            view_errors.len()
        );
        let failover: &[u64] = self
            .course
            .coverage
            .as_ref()
            .map_or(&[], |coverage| coverage.failover_ms());
        println!(
            "failover {failover:?} ms; stops {:?} ms; fences {}; rounds {}, transients {}",
            self.stops_ms,
            self.course.fences(),
            self.course.rounds.count,
            self.course.rounds.transients,
        );
        for Done {
            at_ms,
            step,
            outcome,
        } in self.done
        {
            println!("  {:>6.1} s  {step}: {outcome}", *at_ms as f64 / 1e3);
        }
        let Watching {
            usage,
            measured,
            bots,
            ..
        } = self.course;
        let growth = Counted::now(&bots.tally).since(&measured.counted);
        let ticks = |name| {
            self.course
                .collected
                .reading()
                .growth(&measured.reading, name)
        };
        println!(
            "{} bots: {:.0} orders/s, p99 {} ms; {:?} of {:?} ticks late; servers used {:?} us and {:?} bytes",
            self.arguments.bots,
            growth.per_second(growth.orders),
            quantile_text(&bots.tally.latencies(), 0.99),
            ticks("uo_ticks_late_total"),
            ticks("uo_ticks_total"),
            usage.cpu_us(),
            usage.rss_bytes(),
        );
        for wrong in view_errors.iter().take(20) {
            println!("  view: {wrong}");
        }
        for broken in broken.iter().take(20) {
            println!("  proof: {}", broken.text);
        }
        for (second, violation) in &self.course.violations {
            println!("  {second:>4}s {violation}");
        }
        Ok(self.course.violations.is_empty() && view_errors.is_empty() && broken.is_empty())
    }
}
