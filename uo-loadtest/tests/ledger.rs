//! The ledger against a real server: exact without harm, and every harm that a relay does is found.

mod support;

use clap::Parser;
use serde_json::Value;
use uo_server::config::{Args, Config};
use uo_server::node::{Node, start_node};

use support::loadtest;
use support::relay::{Harm, relay};

/// A server as the ledger would start it.
async fn server() -> Node {
    let args = Args::parse_from([
        "uo-server",
        "--store=mem",
        "--map=64",
        "--seed=7",
        "--listen=127.0.0.1:0",
        "--admin=127.0.0.1:0",
        "--limit-say-bytes=1024",
        "--limit-reliable-lane=65536",
    ]);
    start_node(Config::check(args).unwrap()).await.unwrap()
}

async fn ledger(gateway: &str, arguments: &[&str]) -> (bool, Vec<Value>) {
    let first = ["ledger", "--gateway", gateway];
    let arguments = [&first, arguments].concat();
    let arguments: Vec<String> = arguments.into_iter().map(Into::into).collect();
    let (passed, report) = loadtest(&arguments).await;
    assert_eq!(report["passed"], passed);
    (passed, report["rounds"].as_array().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parties_of_each_size_hear_everything_in_both_encodings() {
    let node = server().await;
    let gateway = support::gateway(&node);
    let (passed, rounds) = ledger(&gateway, &["--matrix"]).await;
    assert!(passed, "{rounds:#?}");
    let parties: Vec<_> = rounds
        .iter()
        .map(|round| {
            let clients = round["clients"].as_u64().unwrap();
            let deliveries = &round["deliveries"]["delivered"];
            assert_eq!(deliveries.as_u64(), Some(clients * clients * 30));
            (round["encoding"].as_str().unwrap().to_owned(), clients)
        })
        .collect();
    let all = ["json", "msgpack"].map(|encoding| [2, 8, 16].map(|it| (encoding.to_owned(), it)));
    assert_eq!(parties, all.concat());
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_that_is_dropped_doubled_or_swapped_on_the_way_is_found() {
    let node = server().await;
    let listen = node.listen.unwrap();
    for (harm, encoding) in [
        (Harm::Nothing, "json"),
        (Harm::Drop, "json"),
        (Harm::Drop, "msgpack"),
        (Harm::Double, "json"),
        (Harm::Swap, "msgpack"),
    ] {
        let gateway = format!("ws://{}", relay(listen, harm).await);
        let arguments = ["--clients=4", "--encoding", encoding];
        let (passed, rounds) = ledger(&gateway, &arguments).await;
        assert_eq!(passed, harm == Harm::Nothing, "{harm:?}: {rounds:#?}");
        let (deliveries, troubles) = (&rounds[0]["deliveries"], &rounds[0]["troubles"]);
        let is_troubled = !troubles.as_object().unwrap().is_empty();
        assert_eq!(is_troubled, harm != Harm::Nothing, "{troubles}");
        if harm == Harm::Drop {
            assert_eq!(deliveries["missing"], 1);
        }
    }
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_such_lines_is_refused() {
    let node = support::server(64).await;
    let gateway = support::gateway(&node);
    let arguments = ["ledger", "--gateway", &gateway, "--clients=2"];
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_uo-loadtest"))
        .args(arguments)
        .kill_on_drop(true)
        .output();
    let output = support::soon(output).await.unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--limit-say-bytes 1024"), "{said}");
    node.stop().await.unwrap();
}
