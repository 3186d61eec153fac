//! Every message survives both encodings, assembled frames are those of serde, and nothing that comes in panics.
//!
//! Seen red: with the walk over the structure removed (trailing bytes pass), and with a delta's empty lists written out
//! (assembled frames differ).

mod common;

use common::*;
use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use uo_proto::*;

fn fragments<T: Serialize>(encoding: Encoding, values: &[T]) -> Vec<Vec<u8>> {
    values.iter().map(|value| encoding.encode(value)).collect()
}

/// Decodes `bytes` as everything that is ever decoded.
fn decode_as_anything(encoding: Encoding, bytes: &[u8]) {
    let client = encoding.decode_client(bytes);
    if let Err(DecodeError::Invalid { why, .. }) = &client {
        assert!(why.len() <= frame::REASON_BYTES_MAX);
    }
    let _ = encoding.decode_server(bytes);
    let _ = encoding.decode::<ServerMsg>(bytes);
    let _ = encoding.decode::<NumberedOrder>(bytes);
}

proptest! {
    #[test]
    fn messages_of_clients_survive(msg in client_msg()) {
        for encoding in Encoding::ALL {
            prop_assert_eq!(&encoding.decode_client(&encoding.encode_client(&msg)), &Ok(msg.clone()));
        }
    }

    #[test]
    fn messages_of_servers_survive(msg in server_msg()) {
        for encoding in Encoding::ALL {
            let bytes = encoding.encode(&msg);
            prop_assert_eq!(&encoding.decode_server(&bytes), &Ok(msg.clone()));
            // And by way of serde's buffer, which forgets the encoding it was filled from.
            prop_assert_eq!(&encoding.decode::<ServerMsg>(&bytes), &Ok(msg.clone()));
        }
    }

    #[test]
    fn orders_survive_on_their_own_and_flattened(order in order(), seq in number()) {
        let numbered = NumberedOrder { seq, order: order.clone() };
        for encoding in Encoding::ALL {
            prop_assert_eq!(&encoding.decode::<Order>(&encoding.encode(&order)), &Ok(order.clone()));
            prop_assert_eq!(
                &encoding.decode::<NumberedOrder>(&encoding.encode(&numbered)),
                &Ok(numbered.clone())
            );
        }
    }

    #[test]
    fn parts_survive(target in target(), coin in coin(), event in combat_event()) {
        for encoding in Encoding::ALL {
            prop_assert_eq!(encoding.decode::<Target>(&encoding.encode(&target)), Ok(target));
            prop_assert_eq!(encoding.decode::<CoinSerial>(&encoding.encode(&coin)), Ok(coin));
            prop_assert_eq!(
                &encoding.decode::<CombatEvent>(&encoding.encode(&event)),
                &Ok(event.clone())
            );
        }
    }

    #[test]
    fn an_assembled_delta_is_the_delta(delta in delta()) {
        for encoding in Encoding::ALL {
            let enter = fragments(encoding, &delta.enter);
            let update = fragments(encoding, &delta.update);
            let objects = fragments(encoding, &delta.objects);
            let mut out = Vec::new();
            encoding.write_delta(&mut out, DeltaParts {
                tick: delta.tick,
                ack: delta.ack,
                enter: enter.iter(),
                update: update.iter(),
                leave: &delta.leave,
                objects: objects.iter(),
            });
            prop_assert_eq!(out, encoding.encode(&ServerMsg::Delta(delta.clone())));
        }
    }

    #[test]
    fn an_assembled_snapshot_is_the_snapshot(snapshot in snapshot()) {
        for encoding in Encoding::ALL {
            let entities = fragments(encoding, &snapshot.entities);
            let objects = fragments(encoding, &snapshot.objects);
            let mut out = Vec::new();
            encoding.write_snapshot(&mut out, entities.iter(), objects.iter());
            prop_assert_eq!(out, encoding.encode(&ServerMsg::Snapshot(snapshot.clone())));
        }
    }

    #[test]
    fn an_assembled_event_is_the_event(event in event(), said in said()) {
        for encoding in Encoding::ALL {
            let mut out = Vec::new();
            encoding.write_event(&mut out, event.seq, event.at_ms, &encoding.encode(&event.combat));
            prop_assert_eq!(&out, &encoding.encode(&ServerMsg::Event(event.clone())));
            out.clear();
            encoding.write_said(&mut out, said.seq, said.at_ms, &encoding.encode(&said.speech));
            prop_assert_eq!(&out, &encoding.encode(&ServerMsg::Said(said.clone())));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        for encoding in Encoding::ALL {
            decode_as_anything(encoding, &bytes);
        }
    }

    #[test]
    fn mutated_frames_never_panic(
        client in client_msg(),
        server in server_msg(),
        mutations in vec(mutation(), 1..6),
    ) {
        for encoding in Encoding::ALL {
            for mut frame in [encoding.encode_client(&client), encoding.encode(&server)] {
                for mutation in &mutations {
                    mutate(&mut frame, mutation);
                    decode_as_anything(encoding, &frame);
                }
            }
        }
    }

    #[test]
    fn cut_or_extended_frames_are_refused(client in client_msg(), at in any::<prop::sample::Index>()) {
        for encoding in Encoding::ALL {
            let mut frame = encoding.encode_client(&client);
            prop_assert!(encoding.decode_client(&frame[..at.index(frame.len())]).is_err());
            frame.push(b'1');
            prop_assert!(encoding.decode_client(&frame).is_err());
        }
    }
}

/// A map as any other program would write it.
fn map(fields: serde_json::Value) -> Vec<u8> {
    Encoding::MessagePack.encode(&fields)
}

fn invalid(why: &str, seq: Option<u64>) -> Result<ClientMsg, DecodeError> {
    Err(DecodeError::Invalid {
        why: why.into(),
        seq,
    })
}

#[test]
fn wide_ids_are_text_in_json_and_integers_in_message_pack() {
    let order = ClientMsg::Order(NumberedOrder {
        seq: 7,
        order: Order::Attack {
            target: Target::Entity(EntityId(u64::MAX)),
        },
    });
    assert_eq!(
        String::from_utf8(Encoding::Json.encode_client(&order)).unwrap(),
        r#"{"seq":7,"type":"attack","target":{"entity":"18446744073709551615"}}"#
    );
    let bytes = Encoding::MessagePack.encode_client(&order);
    assert!(bytes.ends_with(b"\xa6entity\xcf\xff\xff\xff\xff\xff\xff\xff\xff"));

    let looted = ServerMsg::Event(Event {
        seq: 1,
        at_ms: 2,
        combat: CombatEvent::Looted {
            who: EntityId(1 << 50),
            coins: vec![CoinSerial {
                region: RegionId(1),
                epoch: 2,
                counter: 3,
            }],
        },
    });
    assert_eq!(
        String::from_utf8(Encoding::Json.encode(&looted)).unwrap(),
        r#"{"type":"event","seq":1,"at_ms":2,"combat":{"kind":"looted","who":"1125899906842624","coins":["1.2.3"]}}"#
    );
    assert!(
        Encoding::MessagePack
            .encode(&looted)
            .ends_with(b"\xa5coins\x91\x93\x01\x02\x03")
    );
}

#[test]
fn signed_ids_of_other_writers_are_read() {
    let mut bytes = b"\x83\xa4type\xa4open\xa3seq\x01\xa6object\xd3".to_vec();
    bytes.extend(5_i64.to_be_bytes());
    let want = ClientMsg::Order(NumberedOrder {
        seq: 1,
        order: Order::Open {
            object: ObjectKey(5),
        },
    });
    assert_eq!(Encoding::MessagePack.decode_client(&bytes), Ok(want));
    bytes.truncate(bytes.len() - 8);
    bytes.extend((-5_i64).to_be_bytes());
    let error = Encoding::MessagePack.decode_client(&bytes).unwrap_err();
    assert!(matches!(error, DecodeError::Invalid { seq: Some(1), .. }));
}

#[test]
fn what_is_not_a_message_is_told_apart_from_what_is_not_even_a_frame() {
    let json = |text: &str| Encoding::Json.decode_client(text.as_bytes());
    let pack = |bytes: &[u8]| Encoding::MessagePack.decode_client(bytes);
    assert!(matches!(
        Encoding::Json.decode_client(b"{\"type\":\"\xff\"}"),
        Err(DecodeError::Garbage(_))
    ));
    assert!(matches!(pack(b"\xc1"), Err(DecodeError::Garbage(_))));
    assert!(matches!(pack(b""), Err(DecodeError::Garbage(_))));
    let mut trailing = map(serde_json::json!({"type": "stop", "seq": 1}));
    trailing.push(0xc0);
    assert!(matches!(pack(&trailing), Err(DecodeError::Garbage(_))));

    assert!(matches!(json("{"), Err(DecodeError::Invalid { .. })));
    assert!(matches!(
        json(r#"{"type":"stop","seq":1} 2"#),
        Err(DecodeError::Invalid { .. })
    ));
    let array = "a message is a map with a field `type`";
    assert_eq!(json(r#"["stop", 1]"#), invalid(array, None));
    assert_eq!(
        pack(&map(serde_json::json!(["stop", 1]))),
        invalid(array, None)
    );
    assert_eq!(
        json(r#"{"type":"dance","seq":3}"#),
        invalid("unknown type \"dance\"", Some(3))
    );
    assert_eq!(
        pack(&map(serde_json::json!({"seq": 3, "type": "dance"}))),
        invalid("unknown type \"dance\"", Some(3))
    );
    assert_eq!(
        json(r#"{"type":"stop"}"#),
        invalid("missing field `seq`", None)
    );
    assert_eq!(
        Encoding::MessagePack
            .decode_server(&map(serde_json::json!({"type": "rain"})))
            .unwrap_err()
            .to_string(),
        "unknown type \"rain\""
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let fields = serde_json::json!({
        "seq": 1, "text": {"deep": [1, 2, {"x": null}]}, "type": "stop", "x": "east", "mood": [1.5],
    });
    let want = ClientMsg::Order(NumberedOrder {
        seq: 1,
        order: Order::Stop,
    });
    for encoding in Encoding::ALL {
        assert_eq!(
            encoding.decode_client(&encoding.encode(&fields)),
            Ok(want.clone())
        );
    }
    let fields = serde_json::json!({
        "weather": {"rain": 3}, "type": "pong", "nonce": 1, "at_ms": 2,
    });
    for encoding in Encoding::ALL {
        assert_eq!(
            encoding.decode_server(&encoding.encode(&fields)),
            Ok(ServerMsg::Pong(Pong { nonce: 1, at_ms: 2 }))
        );
    }
}

#[test]
fn numbers_that_are_none_are_refused() {
    for text in [
        r#"{"type":"walk_to","seq":1,"x":-1,"y":2}"#,
        r#"{"type":"walk_to","seq":1,"x":65536,"y":2}"#,
        r#"{"type":"walk_to","seq":1,"x":1.5,"y":2}"#,
        r#"{"type":"walk_to","seq":1,"x":null,"y":2}"#,
        r#"{"type":"walk_to","seq":1,"x":1}"#,
        r#"{"type":"stop","seq":-1}"#,
        r#"{"type":"stop","seq":1e3}"#,
        r#"{"type":"open","seq":1,"object":"18446744073709551616"}"#,
    ] {
        let result = Encoding::Json.decode_client(text.as_bytes());
        assert!(
            matches!(result, Err(DecodeError::Invalid { .. })),
            "{text}: {result:?}"
        );
    }
    let mut nan = b"\x84\xa4type\xa7walk_to\xa3seq\x01\xa1y\x02\xa1x\xcb".to_vec();
    nan.extend(f64::NAN.to_be_bytes());
    let error = Encoding::MessagePack.decode_client(&nan).unwrap_err();
    assert!(matches!(error, DecodeError::Invalid { seq: Some(1), .. }));
}

#[test]
fn fields_out_of_bounds_are_refused_with_a_reason() {
    let login = |name: &str, password: Option<&str>| {
        ClientMsg::Login(Login {
            name: name.into(),
            password: password.map(Into::into),
            version: PROTOCOL_VERSION,
        })
    };
    let resume = |token: String| {
        ClientMsg::Resume(Resume {
            token,
            last_seq: 0,
            last_private: 0,
        })
    };
    let order = |seq, order| ClientMsg::Order(NumberedOrder { seq, order });
    let say = |text: String| order(9, Order::Say { text });
    for (msg, want) in [
        (login("", None), Refusal::Name),
        (login("two words", None), Refusal::Name),
        (login("é", None), Refusal::Name),
        (login(&"a".repeat(33), None), Refusal::Name),
        (login("Ann", Some("")), Refusal::Password),
        (login("Ann", Some(&"p".repeat(129))), Refusal::Password),
        (resume(String::new()), Refusal::Token),
        (resume("t".repeat(65)), Refusal::Token),
        (order(0, Order::Stop), Refusal::Seq),
        (say(String::new()), Refusal::SayLength),
        (say("é".repeat(2_049)), Refusal::SayLength),
        (say("a\nb".into()), Refusal::SayControl),
        (say("\u{9b}31m".into()), Refusal::SayControl),
    ] {
        for encoding in Encoding::ALL {
            assert_eq!(
                encoding.decode_client(&encoding.encode_client(&msg)),
                Err(DecodeError::Refused {
                    why: want,
                    seq: msg.seq()
                })
            );
        }
    }
    for msg in [
        login(&"a".repeat(32), Some(&"p".repeat(128))),
        resume("t".repeat(64)),
        say("é".repeat(128)),
    ] {
        assert_eq!(msg.validate(), Ok(()));
    }
}

#[test]
fn a_name_that_hashes_to_a_mob_is_refused() {
    // Found by trying names in order: the first of the form `n<number>` whose hash is below the bound.
    let name = "n21498498";
    assert!(CharId::of_name(name).0 < MOB_ID_BOUND);
    assert_eq!(validate_name(name), Err(Refusal::NameReserved));
}

#[test]
fn long_reasons_are_cut_at_a_character() {
    for encoding in Encoding::ALL {
        let text = "ü".repeat(5_000);
        let frame = encoding.encode(&serde_json::json!({"type": "step", "seq": 2, "dir": text}));
        let Err(DecodeError::Invalid { why, seq }) = encoding.decode_client(&frame) else {
            panic!("not invalid");
        };
        assert!(why.len() <= frame::REASON_BYTES_MAX && why.ends_with('…'));
        assert_eq!(seq, Some(2));
    }
}

#[test]
fn secrets_do_not_show_in_logs() {
    let login = Login {
        name: "Ann".into(),
        password: Some("hunter2".into()),
        version: 2,
    };
    let resume = Resume {
        token: "hunter2".into(),
        last_seq: 1,
        last_private: 2,
    };
    let text = format!(
        "{:?} {:?}",
        ClientMsg::Login(login),
        ClientMsg::Resume(resume)
    );
    assert!(text.contains("Ann") && !text.contains("hunter2"), "{text}");
}
