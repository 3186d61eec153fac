//! The closing summary: a line per step with its time, then `N passed, M failed`.

use std::fmt;
use std::time::Duration;

/// How many checks or tests passed and failed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Passed.
    pub passed: u64,
    /// Failed.
    pub failed: u64,
    /// What was printed of those that failed, a line each, as far as the program that ran them has one.
    pub failures: Vec<String>,
}

impl Tally {
    /// So many passed and failed.
    pub const fn of(passed: u64, failed: u64) -> Tally {
        Tally {
            passed,
            failed,
            failures: Vec::new(),
        }
    }

    /// Adds those of another program.
    pub fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.failures.extend(other.failures);
    }
}

/// How one suite went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It ran to its end.
    Ran(Tally),
    /// It broke off; why.
    Broken(String),
    /// It was never started; why.
    NotRun(String),
}

impl Outcome {
    /// Whether it ran and nothing failed.
    pub fn passed(&self) -> bool {
        matches!(self, Outcome::Ran(tally) if tally.failed == 0)
    }

    /// A suite that broke off or never ran counts as one failure.
    fn tally(&self) -> Tally {
        match self {
            Outcome::Ran(tally) => tally.clone(),
            Outcome::Broken(_) | Outcome::NotRun(_) => Tally::of(0, 1),
        }
    }
}

/// All steps of a run.
#[derive(Default, Debug)]
pub struct Report {
    steps: Vec<(&'static str, Outcome, Duration)>,
}

impl Report {
    /// Adds a step.
    pub fn add(&mut self, name: &'static str, outcome: Outcome, took: Duration) {
        self.steps.push((name, outcome, took));
    }

    /// Whether every step passed.
    pub fn all_passed(&self) -> bool {
        self.steps.iter().all(|(_, outcome, _)| outcome.passed())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut total = Tally::default();
        writeln!(f, "\n== summary")?;
        for (name, outcome, took) in &self.steps {
            let tally = outcome.tally();
            total.add(tally);
            let word = match outcome {
                Outcome::NotRun(_) => "not run",
                _ if outcome.passed() => "ok",
                _ => "FAILED",
            };
            write!(f, "{name:<10} {word:<8} {:>7.1} s  ", took.as_secs_f64())?;
            match outcome {
                Outcome::Ran(tally) => {
                    writeln!(f, "{} passed, {} failed", tally.passed, tally.failed)?
                }
                Outcome::Broken(why) | Outcome::NotRun(why) => writeln!(f, "{}", first_line(why))?,
            }
        }
        for line in &total.failures {
            writeln!(f, "{line}")?;
        }
        // Alone on its line and in this form: programs that read the log of a run look for it.
        writeln!(f, "{} passed, {} failed", total.passed, total.failed)
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
