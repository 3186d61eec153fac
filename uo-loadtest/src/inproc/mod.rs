//! `inproc`: a whole cluster in this process. Its store is in memory; between its nodes are real sockets.
//!
//! Reading order:
//! - this file: the arguments, and the course of a run;
//! - [`step`]: what is done to which node when;
//! - [`cluster`]: the nodes, and how they end and come back.

mod cluster;
mod step;

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tokio::time::{Instant, sleep_until};
use uo_proto::REGION_SIZE;

use crate::interrupt;
use cluster::Cluster;
use step::{Step, What};

/// How long the nodes may take to hold everything and to reach each other.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Runs a whole cluster in this process, for bots to play on: sims and gateways over one store in memory, with real
/// sockets between them.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// How many sims: sim-1, sim-2 and so on.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    sims: u16,
    /// How many gateways: gw-1, gw-2 and so on.
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    gateways: u16,
    /// Side of the map in tiles.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    map: u16,
    /// The first port. Gateways listen there and on those that follow; a hundred higher each node has its admin address,
    /// sims first.
    #[arg(long, default_value_t = 9000, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1024..=65_000))]
    port: u16,
    /// How long it runs, from when it is ready.
    #[arg(long, default_value_t = 600, value_name = "S")]
    seconds: u64,
    /// What is done to which node at which second: kill, stop or start, as in `20:kill:sim-3,30:start:sim-3`; or
    /// `60:rolling`, which stops and starts one node after another, sims first.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    chaos: Vec<Step>,
}

/// Runs the command; true when nothing that was done failed.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    ensure!(
        arguments.map > 0 && arguments.map.is_multiple_of(REGION_SIZE),
        "--map must be a multiple of {REGION_SIZE}"
    );
    interrupt::run(course(arguments))
}

async fn course(arguments: Arguments) -> anyhow::Result<bool> {
    let mut cluster = Cluster::new(&arguments)?;
    for step in &arguments.chaos {
        if let Some(node) = &step.node {
            cluster.expect(node)?;
        }
    }
    cluster.start_all().await?;
    cluster.ready(READY_WITHIN).await?;
    println!("{}", cluster.describe());
    let began = Instant::now();
    let ends = began + Duration::from_secs(arguments.seconds);
    let mut steps = arguments.chaos.clone();
    steps.sort_by_key(|step| step.second);
    for step in steps {
        let at = began + Duration::from_secs(step.second);
        if at >= ends {
            break;
        }
        cluster.wait(sleep_until(at)).await?;
        let took = Instant::now();
        match (&step.what, &step.node) {
            (What::Rolling, _) => cluster.roll(READY_WITHIN).await?,
            (What::Kill, Some(node)) => cluster.kill(node).await?,
            (What::Stop, Some(node)) => cluster.stop(node).await?,
            (What::Start, Some(node)) => cluster.start(node).await?,
            (_, None) => {}
        }
        println!("{step}: done after {} ms", took.elapsed().as_millis());
    }
    cluster.wait(sleep_until(ends)).await?;
    cluster.end().await?;
    Ok(true)
}
