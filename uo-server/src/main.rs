//! `uo-server`: parse arguments, run.

use std::io::IsTerminal;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;
use uo_server::config::{Args, Command, Config, LogFormat};
use uo_server::database::make_schema;
use uo_server::node::{Node, start_node};

fn main() -> std::process::ExitCode {
    let mut args = Args::parse();
    let command = args.command.take();
    let config = match Config::check(args) {
        Ok(config) => config,
        Err(error) => return fail(&error),
    };
    start_log(config.log_format);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    let ran = runtime.block_on(async {
        match command {
            Some(Command::Schema(args)) => make_schema(args).await.map(|done| println!("{done}")),
            None => run(config).await,
        }
    });
    match ran {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> std::process::ExitCode {
    eprintln!("uo-server: {error:#}");
    std::process::ExitCode::FAILURE
}

fn start_log(format: LogFormat) {
    // The database driver tells of every connection, and warns of the short time-outs that a fence needs.
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info,scylla=off"));
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Human => log.with_target(false).init(),
        LogFormat::Json => log.json().init(),
    }
}

async fn run(config: Config) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let what = format!(
        "seed {}, {1}x{1} tiles, store {2}",
        config.world.seed(),
        config.world.size(),
        config.store
    );
    let mut node = start_node(config).await?;
    say_what_to_do(&node, &what);
    let stop = node.stop_bell();
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = stop.notified() => {}
        why = node.ended() => return Err(why),
    }
    tracing::info!("stopping; everything is being saved (a second signal ends it at once)");
    tokio::select! {
        stopped = node.stop() => stopped,
        _ = terminate.recv() => anyhow::bail!("ended by a second signal"),
        _ = interrupt.recv() => anyhow::bail!("ended by a second signal"),
    }
}

fn say_what_to_do(node: &Node, what: &str) {
    let admin = node.admin;
    let look = format!("look          curl -s http://{admin}/state    (also /metrics, /healthz)");
    let Some(listen) = node.listen else {
        return println!("\nThe sim is up ({what}).\n\n  {look}\n  stop          Ctrl-C\n");
    };
    println!(
        "\nThe shard is up ({what}).\n\n  \
         play          cargo run --release -p uo-client -- --server ws://{listen} --name Me\n  \
         send in bots  cargo run --release -p uo-loadtest -- swarm --gateways ws://{listen} --bots 50 --seconds 60\n  \
         write a bot   uo-sdk/examples/hello_bot.rs\n  \
         {look}\n  \
         stop          Ctrl-C\n",
    );
}
