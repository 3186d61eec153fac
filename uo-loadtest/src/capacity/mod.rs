//! `uo-loadtest capacity`: how many sessions one server carries, and what each of them costs.
//!
//! Reading order:
//! - this file: the arguments, and the course of a run;
//! - [`subject`]: the server that is measured, ours or the floor; [`cost`]: what its process uses;
//! - [`walk`]: the sessions, and measuring them;
//! - [`figures`]: what that comes to.

mod cost;
mod figures;
mod subject;
mod walk;

use std::path::PathBuf;

use anyhow::{Context, ensure};
use clap::Args;
use uo_proto::{Encoding, REGION_SIZE};

use crate::{interrupt, report, swarm, system};
use figures::{Capacity, Figures, HEAD};
use subject::Subject;
use walk::Walk;

/// Most sessions of one process: each needs a port of its own.
const SESSIONS_MAX: u64 = 20_000;

/// Finds how many wandering sessions a server of its own carries, and what each costs.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Side of the map in tiles.
    #[arg(long, default_value_t = 256, value_name = "N")]
    pub(crate) map: u16,
    /// Measures at so many sessions; without it, more and more of them until they are too many.
    #[arg(long, value_name = "SESSIONS", value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    at: Option<u64>,
    /// How many sessions more each step of the ramp has.
    #[arg(long, default_value_t = 250, value_name = "SESSIONS", value_parser = clap::value_parser!(u64).range(1..=SESSIONS_MAX))]
    step: u64,
    /// How long each number of sessions is measured.
    #[arg(long, default_value_t = 15, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// The same walk against the least that a server can do, `examples/floor.rs`, at as many sessions.
    #[arg(long)]
    floor: bool,
    /// Encoding: json or msgpack.
    #[arg(long, value_parser = swarm::encoding, default_value = "json")]
    encoding: Encoding,
    /// Where to write the figures.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// An earlier run, as it was written: prints how this one compares.
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// What names and decisions follow from.
    #[arg(long, default_value_t = 7, value_name = "N")]
    seed: u64,
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,
    /// Further flags for the server.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    pub(crate) server_flag: Vec<String>,
    /// The floor's program; the default is the example beside this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) floor_program: Option<PathBuf>,
    /// Where the server's log goes.
    #[arg(long, default_value = "target/capacity", value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Runs the command; false if sessions were lost, saw a protocol error, or were too many where a number was asked for.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    ensure!(
        arguments.map > 0 && arguments.map.is_multiple_of(REGION_SIZE),
        "--map must be a multiple of {REGION_SIZE}"
    );
    let earlier = match &arguments.compare {
        Some(path) => {
            let text =
                std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
            let earlier = serde_json::from_slice(&text);
            Some(earlier.with_context(|| format!("{} is not JSON", path.display()))?)
        }
        None => None,
    };
    system::raise_open_files();
    let capacity = interrupt::run(course(&arguments))?;
    println!("\n{}", capacity.text());
    if let Some(earlier) = earlier {
        println!("{}", capacity.compared(&earlier));
    }
    if let Some(path) = &arguments.json {
        report::write_json(&capacity, path)?;
    }
    let is_carried = arguments.at.is_none() || capacity.limit.is_none();
    Ok(is_carried && capacity.at.lost == 0 && capacity.at.protocol_errors == 0)
}

async fn course(arguments: &Arguments) -> anyhow::Result<Capacity> {
    println!("{HEAD}");
    let subject = Subject::ours(arguments).await?;
    let mut walk = Walk::new(&subject, arguments.encoding, arguments.seed)?;
    let mut capacity = match arguments.at {
        Some(sessions) => at(arguments, &subject, &mut walk, sessions).await?,
        None => ramp(arguments, &subject, &mut walk).await?,
    };
    drop(walk);
    drop(subject);
    if arguments.floor {
        let floor = Subject::floor(arguments).await?;
        let mut walk = Walk::new(&floor, arguments.encoding, arguments.seed)?;
        walk.grow(capacity.at.sessions).await?;
        let figures = measured(arguments, &floor, &mut walk).await?;
        capacity.floor_ratio = Some(capacity.at.cpu_us() / figures.cpu_us().max(1e-9));
        capacity.floor = Some(figures);
    }
    Ok(capacity)
}

async fn measured(
    arguments: &Arguments,
    subject: &Subject,
    walk: &mut Walk<'_>,
) -> anyhow::Result<Figures> {
    let figures = walk.measure(arguments.seconds).await?;
    println!("{}", figures.row(subject.name));
    Ok(figures)
}

/// Measures at so many sessions.
async fn at(
    arguments: &Arguments,
    subject: &Subject,
    walk: &mut Walk<'_>,
    sessions: u64,
) -> anyhow::Result<Capacity> {
    walk.grow(sessions).await?;
    let figures = measured(arguments, subject, walk).await?;
    let limit = figures.overload();
    Ok(capacity(arguments, None, limit, figures, Vec::new()))
}

/// Lets more and more in, until they are too many twice in a row: a single bad stretch may be another program's.
async fn ramp(
    arguments: &Arguments,
    subject: &Subject,
    walk: &mut Walk<'_>,
) -> anyhow::Result<Capacity> {
    let mut steps: Vec<Figures> = Vec::new();
    let mut carried: Option<Figures> = None;
    let mut limit = None;
    let mut sessions = arguments.step;
    while sessions <= SESSIONS_MAX {
        if let Err(error) = walk.grow(sessions).await {
            limit = Some(format!("{error:#}"));
            break;
        }
        let mut figures = measured(arguments, subject, walk).await?;
        if figures.overload().is_some() {
            steps.push(figures);
            figures = measured(arguments, subject, walk).await?;
        }
        steps.push(figures.clone());
        limit = figures.overload();
        if limit.is_some() {
            break;
        }
        carried = Some(figures);
        sessions += arguments.step;
    }
    let knee = carried.as_ref().map(|figures| figures.sessions);
    let last = carried.or_else(|| steps.last().cloned());
    let last = last.context("nothing could be measured")?;
    Ok(capacity(arguments, knee.or(Some(0)), limit, last, steps))
}

fn capacity(
    arguments: &Arguments,
    knee: Option<u64>,
    limit: Option<String>,
    at: Figures,
    steps: Vec<Figures>,
) -> Capacity {
    Capacity {
        map: arguments.map,
        encoding: match arguments.encoding {
            Encoding::Json => "json",
            Encoding::MessagePack => "msgpack",
        },
        knee,
        limit,
        at,
        steps,
        floor: None,
        floor_ratio: None,
    }
}
