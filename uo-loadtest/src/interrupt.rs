//! Ctrl-C and SIGTERM end a command in order: what it holds is dropped, and with that the processes it started.

use std::future::Future;

use anyhow::bail;
use tokio::signal::unix::{SignalKind, signal};

/// Runs a command on this thread until it ends or this process is told to.
pub fn run<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(unless_interrupted(work));
    runtime.shutdown_background();
    outcome
}

async fn unless_interrupted<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        outcome = work => outcome,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminated.recv() => bail!("terminated"),
    }
}
