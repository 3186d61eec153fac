//! Load and measurement for Felucca.
//!
//! Reading order:
//! - [`swarm`]: protocol bots against running gateways, with latencies taken at the client;
//! - [`scenario`]: a cluster, bots, chaos, and whether everything held that must hold;
//! - [`chaos`]: what is done to it; [`cluster`]: clusters that are started here;
//! - [`capacity`]: how many sessions one server carries, and what each costs;
//! - [`ledger`]: everything that is said is heard by everybody, once and in order;
//! - [`crash`]: kills a server under load and holds it to its promises; [`proof`]: what was promised;
//! - [`report`]: what a run comes to, as `report.json`, and what people read of it;
//! - [`inproc`]: a whole cluster in this process, to play on;
//! - [`failover`]: loses sims of a cluster, and measures until others hold their regions;
//! - [`outage`]: the whole database stands still, and with it the world;
//! - [`node`], [`fleet`]: server processes, and watching them; [`database`]: pausing the one under them;
//! - [`judge`]: what must hold, judged from what nodes show;
//! - [`crowd`]: bots that live through all of it;
//! - [`admin`]: reads the nodes' own figures from their `/metrics`; [`http`]: how pages are read;
//! - [`system`]: what this process may open and has used; [`dice`], [`interrupt`]: seeded numbers, and Ctrl-C;
//! - [`proxy`]: makes a network between two programs slower.

mod admin;
mod capacity;
mod chaos;
mod cluster;
mod crash;
mod crowd;
mod database;
mod dice;
mod failover;
mod fleet;
mod http;
mod inproc;
mod interrupt;
mod judge;
mod ledger;
mod node;
mod outage;
mod proof;
mod proxy;
mod report;
mod scenario;
mod swarm;
mod system;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Load and measurement for Felucca.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Protocol bots against running gateways.
    Swarm(swarm::Arguments),
    /// Finds how many wandering sessions a server carries, and what each costs.
    Capacity(capacity::Arguments),
    /// Clients in one place talk, and every line must come to each of them exactly once and in order.
    Ledger(ledger::Arguments),
    /// Kills a server under load, again and again, and checks what it had promised.
    Crash(crash::Arguments),
    /// A cluster, bots, chaos, and whether everything held that must hold.
    Scenario(scenario::Arguments),
    /// Loses a sim again and again, and measures how long its regions are held by nobody.
    Failover(failover::Arguments),
    /// Pauses the whole database under a world in which people fight, and checks that nothing is lost by it.
    Outage(outage::Arguments),
    /// A whole cluster in this process, for bots to play on.
    Inproc(inproc::Arguments),
    /// A TCP proxy that delays what passes through it, until it is told to stop.
    Proxy(proxy::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Swarm(arguments) => swarm::run(arguments),
        Command::Capacity(arguments) => capacity::run(arguments),
        Command::Ledger(arguments) => ledger::run(arguments),
        Command::Crash(arguments) => crash::run(arguments),
        Command::Scenario(arguments) => scenario::run(arguments),
        Command::Failover(arguments) => failover::run(arguments),
        Command::Outage(arguments) => outage::run(arguments),
        Command::Inproc(arguments) => inproc::run(arguments),
        Command::Proxy(arguments) => proxy::run(arguments),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
