//! Bots against a whole server in this process, over real sockets.

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use uo_proto::{Dir, Encoding, Order, ServerMsg};
use uo_sdk::{Client, Event, Options};

use support::{gateway, server, soon, swarm};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swarm_plays_and_reports() {
    let node = server(128).await;
    let gateway = format!("--gateways={}", gateway(&node));
    for encoding in ["json", "msgpack"] {
        let (passed, report) = swarm(&[
            gateway.clone(),
            format!("--admin=http://{}", node.admin),
            format!("--encoding={encoding}"),
            format!("--seed={}", encoding.len()),
            "--seconds=3".into(),
        ])
        .await;
        assert!(passed, "{report:#}");
        assert_eq!(report["sessions"]["logins"], 8);
        assert_eq!(report["sessions"]["lost"], 0);
        assert_eq!(report["swarm"]["protocol_errors"], 0);
        assert!(report["order_to_delta_ms"]["p50"].as_f64() > Some(0.0));
        assert!(report["ticks"]["total"].as_u64() > Some(0), "{report:#}");
        assert!(report["world"]["deaths"].is_u64(), "{report:#}");
    }
    node.stop().await.unwrap();
}

/// What players feel of a border is what the server says they do: within 60 ms, whoever measures.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crossings_are_felt_as_the_server_counts_them() {
    let node = server(128).await;
    let (passed, report) = swarm(&[
        format!("--gateways={}", gateway(&node)),
        format!("--admin=http://{}", node.admin),
        "--mix=border=1".into(),
        "--seconds=9".into(),
    ])
    .await;
    assert!(passed, "{report:#}");
    let felt = &report["player_gap_ms"]["crossing"];
    let counted = &report["server_gap_ms"]["border"];
    assert!(felt["count"].as_u64() > Some(0), "{report:#}");
    assert!(counted["count"].as_u64() > Some(0), "{report:#}");
    let p50 = |gaps: &Value| gaps["p50"].as_f64().unwrap();
    assert!((p50(felt) - p50(counted)).abs() <= 60.0, "{report:#}");
    assert_eq!(report["fights_reset"], 0);
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swarm_that_cannot_get_in_fails() {
    // A port that nobody listens on: it was free a moment ago and is not given out again at once.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = format!("--gateways=ws://{}", free.local_addr().unwrap());
    drop(free);
    let (passed, report) = swarm(&[gateway, "--grace=1s".into(), "--seconds=3".into()]).await;
    assert!(!passed);
    assert_eq!(report["swarm"]["bots_in"], 0);
    assert_eq!(report["order_to_delta_ms"]["p50"], Value::Null);
}

/// Plays until an event is what is looked for; broken promises are counted as failures.
async fn until(client: &mut Client, found: impl Fn(&Event, &Client) -> bool) {
    soon(async {
        loop {
            let event = client.next().await;
            if let Event::Violation(violation) = &event {
                panic!("{violation}");
            }
            if found(&event, client) {
                return;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_order_is_answered_once_over_lost_lines() {
    let node = server(128).await;
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let options = Options {
            encoding,
            ..Options::new(
                gateway(&node),
                format!("lost-{}", encoding.subprotocol().len()),
            )
        };
        let mut client = soon(Client::connect(options)).await.unwrap();
        let mut answers: BTreeMap<u64, u32> = BTreeMap::new();
        for round in 0..10 {
            // Asked of the owner, and answered on the private stream.
            let target = uo_proto::Target::Entity(client.world().my_id().unwrap());
            let asked = client.send(Order::Look { target }).unwrap();
            client
                .send(Order::Step {
                    dir: Dir::ALL[round % 8],
                })
                .unwrap();
            if round % 2 == 0 {
                // Lost before the answer can be read: it must come after the resume, and not twice.
                client.drop_connection();
            }
            let mut answered = false;
            soon(async {
                while !(answered && client.session().orders_waiting() == 0) {
                    match client.next().await {
                        Event::Violation(violation) => panic!("{violation}"),
                        Event::Message(ServerMsg::Looked(looked)) => {
                            *answers.entry(looked.seq).or_default() += 1;
                            answered |= looked.seq == asked;
                        }
                        _ => {}
                    }
                }
            })
            .await;
        }
        assert_eq!(answers.len(), 10);
        assert!(answers.values().all(|&times| times == 1), "{answers:?}");
        client.send(Order::Logout).unwrap();
        until(&mut client, |event, _| matches!(event, Event::Stopped(_))).await;
    }
    node.stop().await.unwrap();
}
