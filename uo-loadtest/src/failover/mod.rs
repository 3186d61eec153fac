//! `failover`: loses a sim again and again, and measures how long its regions are held by nobody.
//!
//! Reading order:
//! - this file: the arguments, and the course of a run;
//! - [`attempt`]: one fault, what is measured of it, and how the sim comes back;
//! - [`report`]: what the run comes to.

mod attempt;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use uo_proto::{REGION_SIZE, RegionId};

use crate::dice::Dice;
use crate::fleet::Fleet;
use crate::interrupt;
use crate::node::{Node, Plan, server_program};
use attempt::Attempt;
use report::Report;

/// How long the cluster may take to be whole at the beginning, and after each try.
const WHOLE_WITHIN: Duration = Duration::from_secs(90);
/// The bar of a fault that declares itself.
const BAR_PANIC_MS: u64 = 1_500;
/// The bar of one that has to be found out.
const BAR_SILENT_MS: u64 = 4_000;

/// What happens to a sim.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// `kill -9`.
    Kill,
    /// Its tick thread panics (a server built with the feature `planted-bugs`).
    Panic,
    /// It stands still for a while and wakes up.
    Pause,
}

/// Loses a sim again and again, and measures how long its regions are held by nobody.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The store of all sims, as the server's flag.
    #[arg(long, value_name = "STORE")]
    store: String,
    /// How many sims.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=32))]
    sims: u32,
    /// How many faults.
    #[arg(long, default_value_t = 20, value_name = "N")]
    tries: u32,
    /// What happens to a sim.
    #[arg(long, value_enum, default_value = "kill")]
    fault: Fault,
    /// How long a paused sim stands still.
    #[arg(long, default_value_t = 10, value_name = "S")]
    pause_seconds: u64,
    /// Longest time from the fault until every region is held again; 4000, and 1500 for a panic.
    #[arg(long, value_name = "MS")]
    bar_ms: Option<u64>,
    /// Side of the map in tiles.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    map: u16,
    /// Of the moments, and of who is hit.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Further flags for every sim.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    server_flag: Vec<String>,
    /// Where the logs and `failover.json` go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

impl Arguments {
    fn bar_ms(&self) -> u64 {
        self.bar_ms.unwrap_or(match self.fault {
            Fault::Panic => BAR_PANIC_MS,
            Fault::Kill | Fault::Pause => BAR_SILENT_MS,
        })
    }
}

/// Runs the command; true when every try met the bar and nothing was wrong.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    ensure!(
        arguments.map > 0 && arguments.map.is_multiple_of(REGION_SIZE),
        "--map must be a multiple of {REGION_SIZE}"
    );
    interrupt::run(failovers(arguments))
}

async fn failovers(arguments: Arguments) -> anyhow::Result<bool> {
    let regions = RegionId::count(arguments.map) as usize;
    let mut fleet = Fleet::new(sims(&arguments)?)?;
    for node in &mut fleet.nodes {
        node.start()?;
    }
    fleet.steady(regions, WHOLE_WITHIN).await?;
    println!("{regions} regions are held by {} sims", arguments.sims);
    let mut report = Report::new(&arguments, regions);
    let mut dice = Dice::new(arguments.seed);
    for number in 1..=arguments.tries {
        let attempt = Attempt::begin(number, &arguments, regions, &mut dice)
            .carry_out(&mut fleet)
            .await;
        let attempt = attempt.with_context(|| format!("try {number}"))?;
        println!("{}", report::line(&attempt, arguments.bar_ms()));
        attempt
            .violations
            .iter()
            .for_each(|what| println!("    {what}"));
        report.tries.push(attempt);
        // Written each time: a run that breaks off tells what it had.
        report.write(&arguments.out)?;
    }
    println!("{}", report.summary());
    Ok(report.has_passed())
}

fn sims(arguments: &Arguments) -> anyhow::Result<Vec<Node>> {
    let program = server_program(arguments.server.as_deref())?;
    let map = arguments.map.to_string();
    let flags = ["--role", "sim", "--store", &arguments.store, "--map", &map];
    (1..=arguments.sims)
        .map(|number| {
            let given = arguments.server_flag.iter().map(String::as_str);
            Node::new(Plan {
                program: program.clone(),
                name: format!("sim-{number}"),
                arguments: flags.into_iter().chain(given).map(Into::into).collect(),
                out: arguments.out.clone(),
            })
        })
        .collect()
}
