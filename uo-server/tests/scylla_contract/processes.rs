//! Races between two processes: this program, started a second time.

use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use uo_proto::RegionId;
use uo_server::store::scylla::{Access, Place, ScyllaStore};
use uo_server::store::{Right, Store};

use crate::contract::{a_region, cas_until_final, claim, holder, row};
use crate::harness::{Bench, Case, Needs};

/// The first argument of the second process.
pub const CHILD: &str = "--race";

const ROUNDS: u64 = 20;
/// Of each process.
const RACERS: u128 = 16;

pub fn cases() -> Vec<Case> {
    vec![Case::new(
        "processes::races_have_one_winner",
        Needs::Database,
        races_have_one_winner,
    )]
}

/// How many racers of this process won each round.
async fn race<S: Store>(store: Arc<S>, right: Right, name: &'static str) -> Vec<u32> {
    let mut wins = Vec::new();
    let mut seen = None;
    for round in 1..=ROUNDS {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (store, seen) = (store.clone(), seen.clone());
                let nonce = u128::from(std::process::id()) << 64 | u128::from(round) << 32 | racer;
                let to = row(Some(holder(name, racer)), round, nonce);
                tokio::spawn(async move { cas_until_final(&*store, right, seen, to).await })
            })
            .collect();
        let mut won = 0;
        for racer in racers {
            won += u32::from(racer.await.expect("a racer ends"));
        }
        wins.push(won);
        let there = claim(&*store, right).await.expect("somebody holds it");
        // The other process may be rounds ahead: then what was seen is stale, and nobody here wins until it is caught up.
        seen = Some(there.seen());
        if there.number > round {
            wins.resize(there.number.min(ROUNDS) as usize, 0);
        }
        if there.number >= ROUNDS {
            break;
        }
    }
    wins.resize(ROUNDS as usize, 0);
    wins
}

async fn races_have_one_winner(bench: Arc<Bench>) {
    let region = a_region();
    let place = bench.access.place.clone();
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args([CHILD, &place.hosts.join(","), &place.keyspace])
        .arg(region.0.to_string())
        .stdout(Stdio::piped());
    let child = command.spawn().expect("it starts");
    let ours = race(bench.store.clone(), Right::Region(region), "parent").await;
    let output = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = output.await.expect("the task ends").expect("it ran");
    assert!(output.status.success(), "the other process failed");
    let said = String::from_utf8(output.stdout).expect("it is text");
    let theirs: Vec<u32> = said
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    println!(
        "  rounds won: {} here, {} there",
        total(&ours),
        total(&theirs)
    );
    for (round, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours + theirs, 1, "round {}", round + 1);
    }
}

fn total(wins: &[u32]) -> u32 {
    wins.iter().sum()
}

/// The second process: races, and prints how many of its racers won each round.
pub fn child(arguments: &[String]) -> ExitCode {
    let [hosts, keyspace, region] = arguments else {
        return ExitCode::FAILURE;
    };
    let place = Place::parse(&format!("{hosts}/{keyspace}")).expect("a place");
    let region = RegionId(region.parse().expect("a region"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let wins = runtime.block_on(async {
        let access = Access { place, login: None };
        let store = ScyllaStore::open(access).await.expect("it opens");
        race(Arc::new(store), Right::Region(region), "child").await
    });
    let wins: Vec<_> = wins.iter().map(u32::to_string).collect();
    println!("{}", wins.join(" "));
    ExitCode::SUCCESS
}
