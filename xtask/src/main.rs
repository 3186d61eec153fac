//! Developer commands: `cargo xtask test`, `ci`, `nightly`, `bench`.
//!
//! Reading order:
//! - [`suite`]: what a suite is, what it may need, and the tables of all of them;
//! - [`suites`]: what each one does;
//! - [`runner`]: runs a list of suites and says how it went;
//! - [`report`]: the closing summary;
//! - [`command`]: child processes;
//! - [`workspace`]: where the files are.

mod command;
mod report;
mod runner;
mod suite;
mod suites;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::runner::OnFailure;
use crate::suite::{Depth, LINTS, NIGHTLY, SUITES, Suite};
use crate::workspace::Workspace;

/// Developer commands of Felucca.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need and run them all, whatever fails on the way.
    Test {
        /// Run this suite only; may be repeated.
        #[arg(long, value_name = "SUITE", value_parser = suite_names())]
        only: Vec<String>,
    },
    /// Formatting, lints and documentation, then every test; stops at the first failure.
    Ci,
    /// Everything of `ci` with many more seeds, then the benchmarks. Hours, not minutes.
    Nightly,
    /// The benchmarks of every crate.
    Bench {
        /// Passed on to `cargo bench`, for example `-p uo-combat`.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn suite_names() -> Vec<&'static str> {
    let all = SUITES.iter().chain(NIGHTLY);
    all.map(|suite| suite.name).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether everything passed.
fn run(task: Task) -> anyhow::Result<bool> {
    let workspace = Workspace::find()?;
    let report = match task {
        Task::Test { only } => {
            let is_named = |suite: &&Suite| only.iter().any(|name| name == suite.name);
            let chosen: Vec<&Suite> = match only.is_empty() {
                true => SUITES.iter().collect(),
                false => SUITES.iter().chain(NIGHTLY).filter(is_named).collect(),
            };
            runner::run(&workspace, Depth::Usual, &chosen, OnFailure::GoOn)
        }
        Task::Ci => {
            let chosen: Vec<&Suite> = LINTS.iter().chain(SUITES).collect();
            runner::run(&workspace, Depth::Usual, &chosen, OnFailure::Stop)
        }
        Task::Nightly => {
            let chosen: Vec<&Suite> = LINTS.iter().chain(SUITES).chain(NIGHTLY).collect();
            runner::run(&workspace, Depth::Deep, &chosen, OnFailure::GoOn)
        }
        Task::Bench { arguments } => {
            suites::cargo::bench(&workspace, &arguments)?;
            return Ok(true);
        }
    };
    print!("{report}");
    Ok(report.all_passed())
}
