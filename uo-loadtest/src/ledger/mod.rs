//! `uo-loadtest ledger`: everything that is said is heard by everybody, once and in order.
//!
//! Reading order:
//! - this file: the arguments, and the course of a run;
//! - [`book`]: the bookkeeping; [`mod@line`]: what is said;
//! - [`party`]: who takes part, within earshot of each other;
//! - [`talker`]: one client; [`round`]: all of them for a while, and what came of it.

mod book;
mod line;
mod party;
mod round;
mod talker;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use uo_proto::{CharId, Encoding};
use uo_sdk::Options;
use uo_world::World;

use crate::node::ports::free_address;
use crate::node::{Node, Plan as NodePlan, server_program};
use crate::{interrupt, system};
use round::{Outcome, Plan, Usage};
use talker::Talker;

/// What the server is started with. Every client hears every other: on a map of one region that is soon done.
const MAP: u16 = 64;
const SEED: u64 = 7;
/// The server of a crowd that talks on and on has to keep more than usual for whoever lags for a moment.
const RELIABLE_LANE: u32 = 65_536;
/// Starting, logging in, and coming into view each take this long at most.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two rounds: the server has told everybody about the last one by then.
const REST: Duration = Duration::from_millis(300);
/// The rates of `--grid`, in lines a second and client.
const GRID_RATES: [u32; 5] = [30, 60, 120, 240, 480];
/// The clients of `--matrix`, and their rate.
const MATRIX_CLIENTS: [usize; 3] = [2, 8, 16];
const MATRIX_RATE: u32 = 30;
/// Most clients, rates and seconds.
const CLIENTS_MAX: u64 = 32;
const RATE_MAX: i64 = 2_000;
const SECONDS_MAX: i64 = 600;

/// What `ledger` is told.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// How many clients stand in one place.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=CLIENTS_MAX))]
    clients: u64,
    /// Lines that each says a second.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=RATE_MAX))]
    rate: u32,
    /// For how many seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=SECONDS_MAX))]
    seconds: u32,
    /// Bytes of a line.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(line::BYTES_MIN as i64..=4_096))]
    payload: u32,
    /// Encoding, json or msgpack; both if not given.
    #[arg(long, value_parser = crate::swarm::encoding)]
    encoding: Option<Encoding>,
    /// 30, 60, 120, 240 and 480 lines a second, one after the other.
    #[arg(long, conflicts_with = "rate")]
    grid: bool,
    /// 2, 8 and 16 clients at 30 lines a second.
    #[arg(long, conflicts_with_all = ["grid", "rate", "clients"])]
    matrix: bool,
    /// Where to write the rounds as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Where the server's log goes; the default is a folder among the system's temporary ones.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A gateway that runs already, of an empty world of one region with seed 7, instead of a server of its own: started
    /// with `--map 64 --limit-say-bytes 1024 --limit-reliable-lane 65536`.
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    gateway: Option<String>,
}

/// Runs the rounds; false when a delivery was missing, came twice or out of order, or a client was cut off.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    interrupt::run(rounds(arguments))
}

/// The server whose clients talk.
struct Host {
    gateway: String,
    /// Its process, if it is ours.
    node: Option<Node>,
}

impl Host {
    async fn start(arguments: &Arguments) -> anyhow::Result<Host> {
        if let Some(gateway) = &arguments.gateway {
            let gateway = gateway.clone();
            return Ok(Host {
                gateway,
                node: None,
            });
        }
        let listen = free_address()?;
        let say_bytes = arguments.payload.max(256).to_string();
        let (map, seed) = (MAP.to_string(), SEED.to_string());
        let lane = RELIABLE_LANE.to_string();
        let temporary = || std::env::temp_dir().join(format!("uo-ledger-{}", std::process::id()));
        let mut node = Node::new(NodePlan {
            program: server_program(arguments.server.as_deref())?,
            name: "server".into(),
            arguments: [
                ["--listen", &listen],
                ["--store", "mem"],
                ["--map", &map],
                ["--seed", &seed],
                ["--limit-say-bytes", &say_bytes],
                ["--limit-reliable-lane", &lane],
            ]
            .concat()
            .into_iter()
            .map(Into::into)
            .collect(),
            out: arguments.out.clone().unwrap_or_else(temporary),
        })?;
        node.start()?;
        node.wait_ready(PATIENCE).await?;
        Ok(Host {
            gateway: format!("ws://{listen}"),
            node: Some(node),
        })
    }

    fn usage(&self) -> Option<Usage> {
        let (cpu_us, resident_bytes) = system::process_usage(self.node.as_ref()?.pid()?)?;
        Some(Usage {
            resident_bytes,
            cpu_us,
        })
    }
}

async fn rounds(arguments: Arguments) -> anyhow::Result<bool> {
    let host = Host::start(&arguments).await?;
    let world = World::new(SEED, MAP)?;
    let encodings = arguments
        .encoding
        .map_or(Encoding::ALL.to_vec(), |it| vec![it]);
    let parties = if arguments.matrix {
        MATRIX_CLIENTS.to_vec()
    } else {
        vec![arguments.clients as usize]
    };
    let rates = match (arguments.grid, arguments.matrix) {
        (true, _) => GRID_RATES.to_vec(),
        (_, true) => vec![MATRIX_RATE],
        _ => vec![arguments.rate],
    };
    let mut outcomes: Vec<Outcome> = Vec::new();
    for encoding in encodings {
        for &clients in &parties {
            let names = party::names(&world, clients)?;
            let mut talkers = assemble(&host.gateway, names, encoding).await?;
            for &rate in &rates {
                let plan = Plan {
                    encoding,
                    rate,
                    seconds: arguments.seconds,
                    bytes: arguments.payload as usize,
                };
                let allowed = talkers.first().map_or(0, Talker::say_bytes_max);
                ensure!(
                    plan.bytes <= allowed,
                    "the server takes lines of {allowed} bytes at most; start it with --limit-say-bytes {}",
                    plan.bytes
                );
                let before = host.usage();
                let number = outcomes.len() as u32;
                let (mut outcome, back) = round::play(number, plan, talkers).await?;
                outcome.used(before, host.usage());
                outcome.print();
                outcomes.push(outcome);
                talkers = rest(back).await?;
            }
        }
    }
    let passed = outcomes.iter().all(Outcome::is_exact);
    if let Some(path) = &arguments.json {
        let rounds: Vec<_> = outcomes.iter().map(Outcome::report).collect();
        let report = json!({ "passed": passed, "rounds": rounds });
        let text = serde_json::to_vec_pretty(&report)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {path:?}"))?;
    }
    println!("{}", if passed { "passed" } else { "FAILED" });
    Ok(passed)
}

/// Logs everybody in, and waits until all see all.
async fn assemble(
    gateway: &str,
    names: Vec<String>,
    encoding: Encoding,
) -> anyhow::Result<Vec<Talker>> {
    let logins = async {
        let mut talkers = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            let options = Options {
                encoding,
                ..Options::new(gateway, name)
            };
            talkers.push(Talker::enter(options, number).await?);
        }
        anyhow::Ok(talkers)
    };
    let talkers = timeout(PATIENCE, logins)
        .await
        .context("the clients could not log in in time")??;
    let all: Vec<CharId> = talkers.iter().filter_map(Talker::char_id).collect();
    let back = each(talkers, move |mut talker| {
        let all = all.clone();
        async move {
            talker.see(&all).await;
            talker
        }
    });
    timeout(PATIENCE, back)
        .await
        .context("the clients do not see each other")?
}

/// A pause in which everybody still listens.
async fn rest(talkers: Vec<Talker>) -> anyhow::Result<Vec<Talker>> {
    let until = Instant::now() + REST;
    each(talkers, move |mut talker| async move {
        talker.rest(until).await;
        talker
    })
    .await
}

/// Lets everybody do something at once; they come back in their order.
async fn each<F, Done>(talkers: Vec<Talker>, act: F) -> anyhow::Result<Vec<Talker>>
where
    F: Fn(Talker) -> Done,
    Done: Future<Output = Talker> + Send + 'static,
{
    let mut acting = JoinSet::new();
    for (number, talker) in talkers.into_iter().enumerate() {
        let done = act(talker);
        acting.spawn(async move { (number, done.await) });
    }
    let mut back = std::collections::BTreeMap::new();
    while let Some(done) = acting.join_next().await {
        let (number, talker) = done?;
        back.insert(number, talker);
    }
    Ok(back.into_values().collect())
}
