//! `docs/protocol.md` against the types: every example is read and written again in both encodings, and every message,
//! event, error and close code has its place there.
//!
//! Seen red with the examples of `guard` and `drank` and the row of `no_sight` removed.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;
use serde_json::Value;
use uo_proto::*;

const DOCUMENT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/protocol.md"));

/// The values in the fenced blocks that are tagged with `json` and `side`.
fn examples(side: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut rest = DOCUMENT;
    let fence = format!("\n```json {side}\n");
    while let Some((_, block)) = rest.split_once(&fence) {
        let (block, after) = block.split_once("\n```").expect("the block ends");
        for value in serde_json::Deserializer::from_str(block).into_iter() {
            values.push(value.unwrap_or_else(|error| panic!("{error} in {block}")));
        }
        rest = after;
    }
    values
}

fn type_names(values: &[Value]) -> BTreeSet<String> {
    let name = |value: &Value| value["type"].as_str().expect("a type").to_owned();
    values.iter().map(name).collect()
}

/// The names of all variants of an enum, from what serde says when it is given none of them.
fn variants<T: DeserializeOwned>(of: impl Fn(&str) -> String) -> BTreeSet<String> {
    let error = match serde_json::from_str::<T>(&of("?")) {
        Ok(_) => panic!("`?` is no variant"),
        Err(error) => error.to_string(),
    };
    let (_, list) = error.split_once("expected one of ").expect("a list");
    let names = list.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

fn tagged(tag: &'static str) -> impl Fn(&str) -> String {
    move |name| format!(r#"{{"{tag}":"{name}"}}"#)
}

#[test]
fn examples_of_clients_read_and_write_the_same() {
    for value in examples("client") {
        let msg = Encoding::Json
            .decode_client(value.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{error}: {value}"));
        let json = Encoding::Json.encode_client(&msg);
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), value);
        let pack = Encoding::MessagePack.encode_client(&msg);
        assert_eq!(Encoding::MessagePack.decode_client(&pack), Ok(msg));
    }
}

#[test]
fn examples_of_servers_read_and_write_the_same() {
    for value in examples("server") {
        let msg = Encoding::Json
            .decode_server(value.to_string().as_bytes())
            .unwrap_or_else(|error| panic!("{error}: {value}"));
        let json = Encoding::Json.encode(&msg);
        assert_eq!(serde_json::from_slice::<Value>(&json).unwrap(), value);
        let pack = Encoding::MessagePack.encode(&msg);
        assert_eq!(Encoding::MessagePack.decode_server(&pack), Ok(msg));
    }
}

#[test]
fn every_message_has_an_example() {
    // The match makes a new message of clients beside the orders show up here.
    let first = |msg: &ClientMsg| match msg {
        ClientMsg::Login(_) | ClientMsg::Resume(_) | ClientMsg::Ping(_) | ClientMsg::Order(_) => {}
    };
    let _ = first;
    let mut client = variants::<Order>(tagged("type"));
    client.extend(["login", "resume", "ping"].map(str::to_owned));
    assert_eq!(type_names(&examples("client")), client);
    assert_eq!(
        type_names(&examples("server")),
        variants::<ServerMsg>(tagged("type"))
    );
}

#[test]
fn every_event_has_an_example() {
    let kinds = examples("server")
        .iter()
        .filter_map(|value| value["combat"]["kind"].as_str().map(str::to_owned))
        .collect::<BTreeSet<_>>();
    assert_eq!(kinds, variants::<CombatEvent>(tagged("kind")));
}

#[test]
fn every_word_is_mentioned() {
    let word = |name: &str| format!("{name:?}");
    let words = [
        variants::<ErrorCode>(word),
        variants::<Level>(word),
        variants::<WorldStatus>(word),
        variants::<Class>(word),
        variants::<Action>(word),
        variants::<ObjectKind>(word),
        variants::<ItemKind>(word),
        variants::<Slot>(word),
        variants::<Spell>(word),
        variants::<Dir>(word),
        variants::<MissReason>(word),
    ];
    for name in words.iter().flatten() {
        assert!(DOCUMENT.contains(&format!("`{name}`")), "`{name}`");
    }
    for code in [
        close::GOING_AWAY,
        close::PROTOCOL_ERROR,
        close::WRONG_KIND,
        close::NOT_DECODABLE,
        close::POLICY,
        close::TOO_BIG,
        close::RESTART,
        close::TRY_LATER,
        close::SUPERSEDED,
        close::SLOW_CONSUMER,
        close::TIMEOUT,
        close::UNAUTHORISED,
    ] {
        assert!(DOCUMENT.contains(&format!("\n| {code} | ")), "{code}");
    }
    for encoding in Encoding::ALL {
        assert!(DOCUMENT.contains(encoding.subprotocol()));
    }
}
