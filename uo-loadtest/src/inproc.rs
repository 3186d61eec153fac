//! `inproc`: a whole cluster in this process. Its store is in memory; between its nodes are real sockets.

use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use tokio::time::{Instant, sleep};
use uo_proto::REGION_SIZE;

use crate::chaos::Step;
use crate::cluster::{Cluster, Shape};
use crate::interrupt;

/// Between two looks at something that can only be looked at.
const LOOK: Duration = Duration::from_millis(50);
/// The world's seed.
const WORLD_SEED: u64 = 7;

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
    let shape = Shape {
        sims: arguments.sims,
        gateways: arguments.gateways,
        map: arguments.map,
        seed: WORLD_SEED,
    };
    let mut cluster = Cluster::inproc(shape, Some(arguments.port))?;
    let steps = cluster.stage().check(arguments.chaos)?;
    cluster.start_all().await?;
    println!("{}", cluster.describe());
    let began = Instant::now();
    let ends = began + Duration::from_secs(arguments.seconds);
    for step in steps {
        let at = began + Duration::from_secs(step.second);
        if at >= ends {
            break;
        }
        wait(&mut cluster, at).await?;
        let took = Instant::now();
        cluster.perform(&step).await?;
        println!("{step}: done after {} ms", took.elapsed().as_millis());
    }
    wait(&mut cluster, ends).await?;
    cluster.end().await?;
    Ok(true)
}

/// Waits, and for requests to stop a node meanwhile. A node that ends by itself ends the run.
async fn wait(cluster: &mut Cluster, until: Instant) -> anyhow::Result<()> {
    while Instant::now() < until {
        sleep(LOOK).await;
        for name in cluster.asked_to_stop().await {
            let began = Instant::now();
            cluster.stop(&name).await?;
            let took_ms = began.elapsed().as_millis();
            println!("{name} was asked to stop: done after {took_ms} ms");
        }
        if let Some(why) = cluster.ended().await {
            bail!(why);
        }
    }
    Ok(())
}
