//! What a run comes to.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::attempt::Outcome;
use super::{Arguments, Fault};

/// The report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    seed: u64,
    store: String,
    sims: u32,
    regions: usize,
    fault: Fault,
    bar_ms: u64,
    /// One for each fault.
    pub tries: Vec<Outcome>,
}

impl Report {
    /// A report without tries.
    pub fn new(arguments: &Arguments, regions: usize) -> Report {
        Report {
            seed: arguments.seed,
            store: arguments.store.clone(),
            sims: arguments.sims,
            regions,
            fault: arguments.fault,
            bar_ms: arguments.bar_ms(),
            tries: Vec::new(),
        }
    }

    /// Whether nothing was wrong, and something was tried.
    pub fn has_passed(&self) -> bool {
        !self.tries.is_empty()
            && self
                .tries
                .iter()
                .all(|outcome| outcome.violations.is_empty())
    }

    /// The last lines.
    pub fn summary(&self) -> String {
        let of = |time: fn(&Outcome) -> Option<u64>| spread(self.tries.iter().filter_map(time));
        let good = self
            .tries
            .iter()
            .filter(|outcome| outcome.violations.is_empty());
        format!(
            "{} of {} tries kept every rule and the bar of {} ms\n\
             its death known: {}\nfirst region held again: {}\nevery region held again: {}\nback: {}",
            good.count(),
            self.tries.len(),
            self.bar_ms,
            of(|outcome| outcome.detected_ms),
            of(|outcome| outcome.first_ms),
            of(|outcome| outcome.held_ms),
            of(|outcome| Some(outcome.back_ms)),
        )
    }

    /// Writes it as `failover.json`.
    pub fn write(&self, out: &Path) -> anyhow::Result<()> {
        let path = out.join("failover.json");
        let text = serde_json::to_vec_pretty(self)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// One try in one line.
pub fn line(outcome: &Outcome, bar_ms: u64) -> String {
    let ms = |time: Option<u64>| time.map_or("never".into(), |ms| format!("{ms} ms"));
    format!(
        "try {:>2}: {} with {} regions; known dead after {}, the first held again after {}, all after {} (bar {bar_ms} ms); back in {} ms{}",
        outcome.number,
        outcome.sim,
        outcome.regions,
        ms(outcome.detected_ms),
        ms(outcome.first_ms),
        ms(outcome.held_ms),
        outcome.back_ms,
        if outcome.violations.is_empty() {
            ""
        } else {
            "; WRONG:"
        }
    )
}

/// Least, middle and most.
fn spread(times: impl Iterator<Item = u64>) -> String {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    match times[..] {
        [] => "never".into(),
        [first, ..] => format!(
            "{first} ms at least, {} ms in the middle, {} ms at most",
            times[times.len() / 2],
            times[times.len() - 1]
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_most_are_told() {
        assert_eq!(spread([].into_iter()), "never");
        assert_eq!(
            spread([30, 10, 20].into_iter()),
            "10 ms at least, 20 ms in the middle, 30 ms at most"
        );
    }
}
