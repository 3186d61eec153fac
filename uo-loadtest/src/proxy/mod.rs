//! Makes a network between two programs slower.
//!
//! Reading order:
//! - this file: the subcommand;
//! - [`relay`]: accepts connections and pairs each with one of its own;
//! - [`way`]: what is wrong with the way between two programs, and how that changes;
//! - [`pipe`]: one direction of one connection: bytes go out a fixed time after they came in.

mod pipe;
pub mod relay;
pub mod way;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use tokio::net::{TcpListener, lookup_host};

use relay::{Relay, Totals};
use way::Way;

/// A TCP proxy that delays what passes through it.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where to listen; port 0 takes a free one and says which.
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Where to connect to, for each connection accepted: HOST:PORT.
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// How much later each byte leaves than it came, in either direction: a round trip takes twice as much longer, and
    /// up to 2 ms on top, since timers tick in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    delay_ms: u64,
    /// Connections at a time; further ones are closed at once.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..))]
    connections_max: u32,
}

/// Relays until ctrl-c, then says what went through.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    // Two sockets for each connection.
    crate::system::raise_open_files();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let totals = runtime.block_on(relay_until_stopped(arguments))?;
    let Totals {
        connections,
        refused,
        bytes_up,
        bytes_down,
    } = totals;
    println!(
        "{connections} connections, {refused} refused, {bytes_up} bytes up, {bytes_down} bytes down"
    );
    Ok(true)
}

async fn relay_until_stopped(arguments: Arguments) -> anyhow::Result<Totals> {
    let Arguments {
        listen,
        to,
        delay_ms,
        connections_max,
    } = arguments;
    // A name that does not exist is better told now than at each connection.
    let known = lookup_host(&to)
        .await
        .with_context(|| format!("cannot find {to}"))?
        .next()
        .is_some();
    anyhow::ensure!(known, "{to} has no address");
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen}"))?;
    println!(
        "{} -> {to}, {delay_ms} ms later each way; ctrl-c stops",
        listener.local_addr()?
    );
    let mut relay = Relay::new(
        to,
        Way::steady(Duration::from_millis(delay_ms)),
        connections_max,
    );
    tokio::select! {
        () = relay.serve(&listener) => {}
        stopped = tokio::signal::ctrl_c() => stopped.context("cannot wait for ctrl-c")?,
    }
    Ok(relay.stop().await)
}
