//! The store on a real database, under the contract of all stores and under what only happens to databases.
//!
//! `UO_SCYLLA=host:9042,host2 cargo test -p uo-server scylla_contract` runs it on that cluster, in a keyspace of its own
//! that it drops afterwards. `UO_SCYLLA_RF` is the number of replicas (1). `UO_SCYLLA_NODES="path/to/cassandra --dir X"`
//! allows it to kill and pause the nodes of a ring that `deploy/cassandra/cassandra` runs.
//!
//! It has a `main` of its own, because a case for which there is no database is *not run*, and must say so: the harness
//! of the language knows passed and failed only, and would call it passed.
//!
//! - [`harness`]: cases, and what they need; [`ring`]: nodes, and what can be done to them;
//! - [`proxy`]: a database that loses requests and answers; [`unknown`]: compare-and-sets through it;
//! - [`processes`]: races between two processes; [`disturbed`]: a node killed, paused, restarted under load;
//! - [`opening`]: what is said of a database that is of no use; [`pace`]: time-outs, lanes and latencies.

mod contract;
#[path = "scylla_contract/disturbed.rs"]
mod disturbed;
#[path = "scylla_contract/harness.rs"]
mod harness;
#[path = "scylla_contract/opening.rs"]
mod opening;
#[path = "scylla_contract/pace.rs"]
mod pace;
#[path = "scylla_contract/processes.rs"]
mod processes;
#[path = "scylla_contract/proxy.rs"]
mod proxy;
#[path = "scylla_contract/ring.rs"]
mod ring;
#[path = "scylla_contract/unknown.rs"]
mod unknown;

use std::process::ExitCode;

use harness::{Case, Needs, run};

fn main() -> ExitCode {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments
        .first()
        .is_some_and(|first| first == processes::CHILD)
    {
        return processes::child(&arguments[1..]);
    }
    arguments.retain(|argument| !argument.starts_with("--test-threads"));
    let mut cases: Vec<Case> = contract::cases()
        .into_iter()
        .map(|(name, case)| {
            Case::new(name, Needs::Database, move |bench| {
                case(bench.store.clone())
            })
        })
        .collect();
    cases.extend(opening::cases());
    cases.extend(processes::cases());
    cases.extend(pace::cases());
    cases.extend(unknown::cases());
    cases.extend(disturbed::cases());
    run(&cases, &arguments)
}
