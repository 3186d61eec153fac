//! `crash`: kills a server again and again under load, and holds every restart against what was promised.
//!
//! One server on one `local:` folder, one swarm of fighting bots that lives through all of it: `kill -9` at a random
//! moment, start, resume, compare; as often as asked. The promises are those of [`crate::proof`].

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::Value;
use tokio::time::sleep;
use uo_proto::ObjectKey;

use crate::crowd::Crowd;
use crate::dice::Dice;
use crate::http;
use crate::interrupt;
use crate::node::ports::free_address;
use crate::node::{Node, Plan, server_program};

/// How long a start and the return of every bot may take.
const RETURN_MAX: Duration = Duration::from_secs(60);

/// Kills a server under load, again and again, and checks what it had promised.
#[derive(Args)]
pub struct Arguments {
    /// How often it is killed.
    #[arg(long, default_value_t = 50, value_name = "N")]
    times: u32,
    /// How many bots fight meanwhile.
    #[arg(long, default_value_t = 100, value_name = "N")]
    bots: usize,
    /// Shortest and longest time between a start and a kill, in milliseconds.
    #[arg(long, default_value = "1500-6000", value_name = "MIN-MAX", value_parser = range)]
    alive_ms: (u64, u64),
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// The folder of the world and of the server's log. It should be empty or absent.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Of the bots' play and of the moments.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let parts = text
        .split_once('-')
        .and_then(|(min, max)| Some((min.parse().ok()?, max.parse().ok()?)));
    match parts {
        Some((min, max)) if min <= max => Ok((min, max)),
        _ => Err("it is two numbers of milliseconds, like 1500-6000".into()),
    }
}

/// Runs the command; true when every promise was kept.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    interrupt::run(crashes(arguments))
}

async fn crashes(arguments: Arguments) -> anyhow::Result<bool> {
    let listen = free_address()?;
    let store = format!("local:{}", arguments.dir.join("world").display());
    let mut node = Node::new(Plan {
        program: server_program(arguments.server.as_deref())?,
        name: "server".into(),
        arguments: ["--listen", &listen, "--store", &store]
            .map(Into::into)
            .into(),
        out: arguments.dir.clone(),
    })?;
    node.start()?;
    node.wait_ready(RETURN_MAX).await?;
    let gateway = format!("ws://{listen}");
    let crowd = Crowd::enter(&gateway, "crash", arguments.bots, arguments.seed);
    let mut dice = Dice::new(arguments.seed);
    for time in 1..=arguments.times {
        crowd
            .all_in(RETURN_MAX)
            .await
            .with_context(|| format!("after {} kills", time - 1))?;
        let (min, max) = arguments.alive_ms;
        sleep(Duration::from_millis(dice.between(min, max))).await;
        crowd.expect_everybody();
        node.kill()?;
        let promised = crowd.broken();
        node.start()?;
        let ready = node.wait_ready(RETURN_MAX).await;
        let ready = ready.with_context(|| format!("after kill {time}"))?;
        let intact = intact_of(&node, &promised).await?;
        let failures = failures(&crowd, &intact);
        println!(
            "kill {time:>3}: up again in {:>4} ms, {} promises so far, {} broken things kept, {} failures",
            ready.as_millis(),
            crowd.promises(),
            promised.len() - intact.len(),
            failures.len()
        );
        failures.iter().for_each(|failure| println!("  {failure}"));
        if !failures.is_empty() {
            return Ok(false);
        }
    }
    crowd.all_in(RETURN_MAX).await?;
    let failures = crowd.failures();
    failures.iter().for_each(|failure| println!("  {failure}"));
    ensure!(
        crowd.promises() > 0,
        "nothing was promised, so nothing was proved"
    );
    println!(
        "{} kills, {} promises, every one kept: {}",
        arguments.times,
        crowd.promises(),
        failures.is_empty()
    );
    Ok(failures.is_empty())
}

/// Those of `keys` that the server shows as if nothing had ever happened to them.
async fn intact_of(node: &Node, keys: &BTreeSet<ObjectKey>) -> anyhow::Result<BTreeSet<ObjectKey>> {
    let state: Value = serde_json::from_str(&http::get(node.admin(), "/state?full").await?)?;
    let regions = state["sim"]["regions"]
        .as_array()
        .context("/state?full has no regions")?;
    let changed: BTreeSet<ObjectKey> = regions
        .iter()
        .flat_map(|region| region["objects"].as_array().into_iter().flatten())
        .filter_map(|object| object["key"].as_str()?.parse().ok())
        .collect();
    Ok(keys.difference(&changed).copied().collect())
}

/// What was promised and is not so.
fn failures(crowd: &Crowd, intact: &BTreeSet<ObjectKey>) -> Vec<String> {
    let whole_again = intact
        .iter()
        .map(|key| format!("object {key} was broken, saved, and is whole again"));
    crowd.failures().into_iter().chain(whole_again).collect()
}
