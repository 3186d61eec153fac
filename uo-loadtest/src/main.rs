//! Load and measurement for Felucca.
//!
//! Reading order:
//! - [`proxy`]: makes a network between two programs slower.

mod proxy;

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
    /// A TCP proxy that delays what passes through it, until it is told to stop.
    Proxy(proxy::Arguments),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
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
