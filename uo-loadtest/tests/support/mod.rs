//! What the tests of this folder share: a whole server in this process, and the swarm as a process of its own.
// Each test binary uses a part of it.
#![allow(dead_code)]

pub mod relay;

use std::future::Future;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tokio::process::Command;
use uo_server::config::{Args, Config};
use uo_server::node::{Node, start_node};

/// A server of a map with sides of `map` tiles, kept in memory.
pub async fn server(map: u16) -> Node {
    let map = format!("--map={map}");
    let args = Args::parse_from([
        "uo-server",
        "--store=mem",
        &map,
        "--listen=127.0.0.1:0",
        "--admin=127.0.0.1:0",
    ]);
    start_node(Config::check(args).unwrap()).await.unwrap()
}

/// Where clients find it.
pub fn gateway(node: &Node) -> String {
    format!("ws://{}", node.listen.expect("it is for clients"))
}

/// Nothing here takes this long unless it hangs.
pub async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(120), future)
        .await
        .expect("it should have happened by now")
}

/// Runs `uo-loadtest` with these arguments; whether it passed, and the report it wrote with `--json`.
pub async fn loadtest(arguments: &[String]) -> (bool, Value) {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let output = Command::new(env!("CARGO_BIN_EXE_uo-loadtest"))
        .args(arguments)
        .arg("--json")
        .arg(&report)
        .kill_on_drop(true)
        .output();
    let output = soon(output).await.unwrap();
    let text = std::fs::read(report).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    });
    let report = serde_json::from_slice(&text).unwrap();
    (output.status.success(), report)
}

/// Runs a swarm of eight with these arguments more.
pub async fn swarm(arguments: &[String]) -> (bool, Value) {
    let first = ["swarm", "--bots=8", "--ramp=1s"].map(String::from);
    loadtest(&[first.as_slice(), arguments].concat()).await
}
