//! Counts checks and says what is wrong.

use std::fmt::Display;

use crate::report::Tally;

/// What a suite of our own checks found.
#[derive(Default, Debug)]
pub struct Findings {
    passed: u64,
    problems: Vec<String>,
}

impl Findings {
    /// One check at `place` (a file, a line of it); a problem is told in a sentence that says what to do.
    pub fn check(&mut self, place: impl Display, result: Result<(), String>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(problem) => self.problems.push(format!("{place}: {problem}")),
        }
    }

    /// The problems so far.
    #[cfg(test)]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Prints the problems and counts.
    pub fn tell(self) -> Tally {
        for problem in &self.problems {
            println!("{problem}");
        }
        println!(
            "{} checks, {} problems",
            self.passed + self.problems.len() as u64,
            self.problems.len()
        );
        Tally::of(self.passed, self.problems.len() as u64)
    }
}
