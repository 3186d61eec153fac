//! Runs a list of suites: first gets what they need, then runs one after the other.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::report::{Outcome, Report, Tally};
use crate::suite::{Depth, Suite};
use crate::workspace::Workspace;

/// What a failed suite means for those after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnFailure {
    /// They are not run: the answer is wanted soon.
    Stop,
    /// They are run all the same: everything that is wrong is wanted at once.
    GoOn,
}

/// Runs `suites` in order. What is missing on this machine is said before the first of them starts.
pub fn run(
    workspace: &Workspace,
    depth: Depth,
    suites: &[&Suite],
    on_failure: OnFailure,
) -> Report {
    let missing = get_needs(workspace, suites);
    let mut report = Report::default();
    let mut stopped = false;
    for suite in suites {
        let started = Instant::now();
        let outcome = if let Some(reasons) = missing.get(suite.name) {
            Outcome::NotRun(format!("could not get {}", reasons.join("; ")))
        } else if stopped {
            Outcome::NotRun("an earlier step failed".into())
        } else {
            println!("\n== {}: {}", suite.name, suite.about);
            run_one(workspace, depth, suite)
        };
        stopped |= on_failure == OnFailure::Stop && !outcome.passed();
        report.add(suite.name, outcome, started.elapsed());
    }
    report
}

fn run_one(workspace: &Workspace, depth: Depth, suite: &Suite) -> Outcome {
    match (suite.run)(workspace, depth) {
        // A suite that found nothing to do has lost its tests, and must not look like a success.
        Ok(tally) if tally == Tally::default() => {
            println!("{}: nothing was tested", suite.name);
            Outcome::Broken("nothing was tested".into())
        }
        Ok(tally) => Outcome::Ran(tally),
        Err(error) => {
            println!("{}: {error:#}", suite.name);
            Outcome::Broken(format!("{error:#}"))
        }
    }
}

/// Gets what the suites need; the answer names, per suite, what could not be got and why.
fn get_needs(workspace: &Workspace, suites: &[&Suite]) -> BTreeMap<&'static str, Vec<String>> {
    let mut tried: BTreeMap<&'static str, Option<String>> = BTreeMap::new();
    let mut missing: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    for suite in suites {
        for need in suite.needs {
            let failure = tried.entry(need.name).or_insert_with(|| {
                if (need.present)(workspace) {
                    return None;
                }
                println!("getting {} ...", need.name);
                let failure = match (need.get)(workspace) {
                    Ok(()) if (need.present)(workspace) => return None,
                    Ok(()) => format!("{} (installed, and still not found)", need.name),
                    Err(error) => format!("{} ({error:#})", need.name),
                };
                println!("could not get {failure}");
                Some(failure)
            });
            if let Some(failure) = failure {
                missing.entry(suite.name).or_default().push(failure.clone());
            }
        }
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Need;

    const ABSENT: Need = Need {
        name: "a unicorn",
        present: |_| false,
        get: |_| anyhow::bail!("there is none"),
    };
    const PASSES: Suite = suite("passes", &[], |_, _| Ok(Tally::of(3, 0)));
    const FAILS: Suite = suite("fails", &[], |_, _| Ok(Tally::of(1, 1)));
    const EMPTY: Suite = suite("empty", &[], |_, _| Ok(Tally::default()));
    const NEEDY: Suite = suite("needy", &[ABSENT], |_, _| Ok(Tally::of(1, 0)));

    const fn suite(
        name: &'static str,
        needs: &'static [Need],
        run: fn(&Workspace, Depth) -> anyhow::Result<Tally>,
    ) -> Suite {
        Suite {
            name,
            about: "a suite of the runner's own tests",
            needs,
            run,
        }
    }

    fn report(suites: &[&Suite], on_failure: OnFailure) -> Report {
        run(&Workspace::at("."), Depth::Usual, suites, on_failure)
    }

    #[test]
    fn a_failure_stops_a_run_that_wants_to_stop() {
        let text = report(&[&FAILS, &PASSES], OnFailure::Stop).to_string();
        assert!(text.contains("an earlier step failed"), "{text}");
        assert!(text.ends_with("\n1 passed, 2 failed\n"), "{text}");
    }

    #[test]
    fn a_failure_does_not_stop_a_run_that_wants_to_know_everything() {
        let text = report(&[&FAILS, &PASSES], OnFailure::GoOn).to_string();
        assert!(text.ends_with("\n4 passed, 1 failed\n"), "{text}");
    }

    #[test]
    fn what_could_not_be_got_is_named_and_fails() {
        let report = report(&[&NEEDY, &PASSES], OnFailure::GoOn);
        assert!(!report.all_passed());
        let text = report.to_string();
        assert!(
            text.contains("could not get a unicorn (there is none)"),
            "{text}"
        );
        assert!(text.ends_with("\n3 passed, 1 failed\n"), "{text}");
    }

    #[test]
    fn a_suite_without_a_test_fails() {
        assert!(!report(&[&EMPTY], OnFailure::GoOn).all_passed());
    }

    #[test]
    fn a_run_where_everything_passes_passes() {
        assert!(report(&[&PASSES], OnFailure::Stop).all_passed());
    }
}
