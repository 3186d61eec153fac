//! Races between two processes: this program, started a second time.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;

use uo_proto::RegionId;
use uo_server::store::scylla::{Access, Place, ScyllaStore};
use uo_server::store::{Right, Store};

use crate::contract::{a_region, cas_until_final, claim, holder, row};
use crate::harness::{Bench, Case, Needs};

/// The first argument of the second process.
pub const CHILD: &str = "--race";

/// What the second process says once it is connected. It begins when it is told to.
const READY: &str = "ready\n";
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
    let mut wins = vec![0; ROUNDS as usize];
    let mut seen = None;
    let mut round = 1;
    while round <= ROUNDS {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                let (store, seen) = (store.clone(), seen.clone());
                let nonce = u128::from(std::process::id()) << 64 | u128::from(round) << 32 | racer;
                let to = row(Some(holder(name, racer)), round, nonce);
                tokio::spawn(async move { cas_until_final(&*store, right, seen, to).await })
            })
            .collect();
        for racer in racers {
            wins[round as usize - 1] += u32::from(racer.await.expect("a racer ends"));
        }
        let there = claim(&*store, right).await.expect("somebody holds it");
        assert!(there.number >= round, "the row went back to {there:?}");
        seen = Some(there.seen());
        // The other process may be rounds ahead: those it won alone.
        round = there.number + 1;
    }
    wins
}

async fn races_have_one_winner(bench: Arc<Bench>) {
    let region = a_region();
    let place = bench.access.place.clone();
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command
        .args([CHILD, &place.hosts.join(","), &place.keyspace])
        .arg(region.0.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut heard = child.stdin.take().expect("it is piped");
    // It takes a while to connect. Without the wait everything would be over by then.
    let ready = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        said.read_line(&mut line).expect("it is text");
        assert_eq!(line, READY, "the other process failed");
        said
    });
    let mut said = ready.await.expect("the other process is ready");
    heard.write_all(b"go\n").expect("it listens");
    let ours = race(bench.store.clone(), Right::Region(region), "parent").await;
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("it is text");
        (child.wait().expect("it ends"), rest)
    });
    let (ended, rest) = rest.await.expect("it ran");
    assert!(ended.success(), "the other process failed");
    let theirs: Vec<u32> = rest
        .split_whitespace()
        .map(|word| word.parse().expect("a number"))
        .collect();
    println!(
        "  rounds won: {} here, {} there",
        total(&ours),
        total(&theirs)
    );
    assert_eq!(theirs.len(), ours.len());
    for (round, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours + theirs, 1, "round {}", round + 1);
    }
}

fn total(wins: &[u32]) -> u32 {
    wins.iter().sum()
}

/// The second process: races when it is told to, and prints how many of its racers won each round.
pub fn child(arguments: &[String]) -> ExitCode {
    let [hosts, keyspace, region] = arguments else {
        return ExitCode::FAILURE;
    };
    let place = Place::parse(&format!("{hosts}/{keyspace}")).expect("a place");
    let region = RegionId(region.parse().expect("a region"));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let wins = runtime.block_on(async {
        let access = Access {
            place,
            login: None,
            translate: Vec::new(),
        };
        let store = ScyllaStore::open(access).await.expect("it opens");
        print!("{READY}");
        std::io::stdout().flush().expect("the parent reads");
        std::io::stdin()
            .read_line(&mut String::new())
            .expect("the parent says go");
        race(Arc::new(store), Right::Region(region), "child").await
    });
    let wins: Vec<_> = wins.iter().map(u32::to_string).collect();
    println!("{}", wins.join(" "));
    ExitCode::SUCCESS
}
