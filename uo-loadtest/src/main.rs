//! Load and measurement for Felucca.
//!
//! Reading order:
//! - [`swarm`]: protocol bots against running gateways, with latencies taken at the client;
//! - [`crash`]: kills a server under load and holds it to its promises; [`proof`]: what was promised;
//! - [`admin`]: reads the nodes' own figures from their `/metrics`;
//! - [`system`]: what this process may open and has used;
//! - [`proxy`]: makes a network between two programs slower.

mod admin;
mod crash;
mod proof;
mod proxy;
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
    /// Kills a server under load, again and again, and checks what it had promised.
    Crash(crash::Arguments),
    /// A TCP proxy that delays what passes through it, until it is told to stop.
    Proxy(proxy::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Swarm(arguments) => swarm::run(arguments),
        Command::Crash(arguments) => crash::run(arguments),
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
