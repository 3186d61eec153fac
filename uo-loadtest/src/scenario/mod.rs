//! `scenario`: starts a cluster, lets bots play on it, disturbs it, and judges whether everything held that must hold.
//!
//! Reading order:
//! - this file: the arguments;
//! - [`store`]: where the world is kept;
//! - [`course`]: the run: ramp, chaos, and the closing, in which everybody stands and is looked at;
//! - [`watching`]: what goes on all the time: looks at nodes and bots, and their judgement;
//! - [`bots`], [`witness`]: the bots, what they were promised and what they see;
//! - [`clients`]: game clients that play beside them;
//! - [`usage`]: what the servers used;
//! - [`outcome`]: what comes of it all.

mod bots;
mod clients;
mod course;
mod outcome;
mod store;
mod usage;
mod watching;
mod witness;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use uo_proto::{Encoding, REGION_SIZE};

use crate::chaos::Step;
use crate::cluster::processes::{Setup, Store};
use crate::cluster::{Cluster, Shape};
use crate::node::server_program;
use crate::report::Bar;
use crate::swarm::mix::Mix;
use crate::{interrupt, swarm, system};
use store::StoreChoice;

/// Without `--seconds`, how long it goes on after the last step.
const SECONDS_AFTER: u64 = 25;
/// Most bots of one process.
const BOTS_MAX: usize = 20_000;

/// A cluster, bots, chaos, and whether everything held that must hold.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// Where the world is kept. `inproc`: all nodes in this process, on one store in memory. `mem`, `local`: one process,
    /// all-1, that is sim and gateway. `scylla://host:9042,host2`: every node a process, on a keyspace of this run; name
    /// every node of the database, they are db-1, db-2 and so on.
    #[arg(long, default_value = "inproc", value_name = "STORE")]
    store: StoreChoice,
    /// How many sims: sim-1, sim-2 and so on; 3 if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    sims: Option<u16>,
    /// How many gateways: gw-1, gw-2 and so on; 2 if not given.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=32))]
    gateways: Option<u16>,
    /// Side of the map in tiles.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    map: u16,
    /// How many bots.
    #[arg(long, default_value_t = 200, value_name = "N")]
    bots: usize,
    /// Kinds of bots and their shares.
    #[arg(long, default_value = "combat=1,wander=1")]
    mix: Mix,
    /// Over what time the bots log in, one after the other.
    #[arg(long, value_parser = swarm::duration, default_value = "10s")]
    ramp: Duration,
    /// Encoding: json or msgpack.
    #[arg(long, value_parser = swarm::encoding, default_value = "json")]
    encoding: Encoding,
    /// Threads of the bots.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    threads: u64,
    /// How long it runs, from when the cluster is ready and the first bot logs in; 25 s after the last step if not given.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// What is done to which node at which second: `70:kill:sim-3` (or stop, start, pause, resume, cut, heal),
    /// `80:slow:sim-1=40` (milliseconds), or `90:rolling`, which stops and starts one node after another, sims first.
    #[arg(long, value_name = "STEPS", value_delimiter = ',')]
    chaos: Vec<Step>,
    /// Longest time that a region may be held by nobody.
    #[arg(long, default_value_t = 4_000, value_name = "MS")]
    held_within_ms: u64,
    /// Of the bots' names and decisions.
    #[arg(long, default_value_t = 7, value_name = "N")]
    seed: u64,
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Further flags for every node.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    server_flag: Vec<String>,
    /// What disturbs nodes of the database, as `CMD kill db-2`: `deploy/cassandra/cassandra`, with `--dir` if need be.
    #[arg(long, env = "UO_SCYLLA_NODES", value_name = "CMD")]
    databases: Option<String>,
    /// How many game clients play as well, from when the ramp is over.
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=64), requires = "client_cmd")]
    clients: u16,
    /// The command of each, for the shell: {urls} stands for the gateways with commas between, {name} for a character,
    /// {out} for the folder of --out. One that does not end well, or at all, fails the run.
    #[arg(long, value_name = "CMD")]
    client_cmd: Option<String>,
    /// What a figure of the report must not exceed, as `player_gap_ms.crash.p99<=5000`; may be given again.
    #[arg(long, value_name = "NAME<=VALUE")]
    bar: Vec<Bar>,
    /// Where logs and the report go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs the command; true when nothing was violated.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    ensure!(
        arguments.map > 0 && arguments.map.is_multiple_of(REGION_SIZE),
        "--map must be a multiple of {REGION_SIZE}"
    );
    ensure!(
        (1..=BOTS_MAX).contains(&arguments.bots),
        "--bots must be from 1 to {BOTS_MAX}"
    );
    if arguments.store.is_alone() {
        ensure!(
            arguments.sims.is_none() && arguments.gateways.is_none(),
            "--store {}: no other process can share it, so it is one node; leave out --sims and --gateways",
            arguments.store
        );
    }
    system::raise_open_files();
    interrupt::run(course::run(arguments))
}

impl Arguments {
    fn shape(&self) -> Shape {
        Shape {
            sims: self.sims.unwrap_or(3),
            gateways: self.gateways.unwrap_or(2),
            map: self.map,
            seed: self.seed,
        }
    }

    /// The cluster, still to be started.
    async fn cluster(&self) -> anyhow::Result<Cluster> {
        let store = match &self.store {
            StoreChoice::Inproc => return Cluster::inproc(self.shape(), None),
            StoreChoice::Mem => Store::Mem,
            StoreChoice::Local(dir) => {
                Store::Local(dir.clone().unwrap_or_else(|| self.out.join("world")))
            }
            StoreChoice::Database(hosts) => Store::Database(hosts.clone()),
        };
        let setup = Setup {
            program: server_program(self.server.as_deref())?,
            out: self.out.clone(),
            store,
            keyspace: format!("scenario_{}_{}", self.seed, std::process::id()),
            ring: self.databases.clone(),
            flags: self.server_flag.clone(),
        };
        Cluster::processes(self.shape(), setup).await
    }

    /// The steps, if all of them can be done to this cluster in the time, and the time.
    fn plan(&self, cluster: &Cluster) -> anyhow::Result<(Vec<Step>, u64)> {
        let steps = cluster.stage().check(self.chaos.clone())?;
        let seconds = self.run_seconds(&steps);
        let late = steps.iter().find(|step| step.second >= seconds);
        match late {
            Some(late) => bail!("{late}: the run ends after {seconds} s"),
            None => Ok((steps, seconds)),
        }
    }

    fn run_seconds(&self, steps: &[Step]) -> u64 {
        let last = steps.last().map_or(self.ramp.as_secs(), |step| step.second);
        self.seconds.unwrap_or(last + SECONDS_AFTER)
    }

    /// What the bots are told.
    fn swarm(&self, gateways: Vec<String>, seconds: u64) -> swarm::Arguments {
        swarm::Arguments {
            gateways,
            bots: self.bots,
            mix: self.mix.clone(),
            ramp: self.ramp,
            grace: Duration::ZERO,
            seconds,
            encoding: self.encoding,
            admin: Vec::new(),
            json: None,
            html: None,
            bar: Vec::new(),
            seed: self.seed,
            threads: self.threads,
            deaf_after: Duration::from_secs(15),
            deaf_for: None,
        }
    }
}
