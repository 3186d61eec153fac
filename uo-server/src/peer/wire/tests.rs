//! Frames: what goes in comes out, however it was cut on the way, and nothing else does any harm.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::limits::PEER_FRAME_BYTES_MAX;
use crate::peer::ToSim;
use crate::peer::rule::KINDS;
use crate::peer::samples::{CHAR, messages, packets};

const MAX: usize = PEER_FRAME_BYTES_MAX;

fn frame(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(packet, MAX, &mut bytes).unwrap();
    bytes
}

fn content(value: &serde_json::Value) -> Vec<u8> {
    Encoding::MessagePack.encode(value)
}

#[test]
fn each_kind_survives_the_wire_and_is_known_by_name() {
    let packets = packets();
    assert_eq!(packets.len(), KINDS.len());
    for (packet, kind) in packets.into_iter().zip(KINDS) {
        let bytes = frame(&packet);
        let content = &bytes[LENGTH_BYTES..];
        assert_eq!(kind_of(content).as_deref(), Ok(*kind));
        assert_eq!(read(content), Ok(Received::Packet(packet)), "{kind}");
    }
}

#[test]
fn fields_of_the_next_version_are_ignored() {
    let newer = json!({"Ping": {"at": 3, "mood": "good"}});
    let read = read(&content(&newer));
    assert_eq!(read, Ok(Received::Packet(Packet::Ping { at: 3 })));
}

#[test]
fn kinds_of_the_next_version_are_told_from_what_cannot_be_read() {
    let boot = 0;
    let cases = [
        (json!({"Wave": {"at": 3}}), Ok("Wave")),
        (json!("Wave"), Ok("Wave")),
        (
            json!({"Carry": {"boot": boot, "message": {"ToSim": {"Cheer": {}}}}}),
            Ok("ToSim.Cheer"),
        ),
        (
            json!({"Carry": {"boot": boot, "message": {"ToGateway": "Cheer"}}}),
            Ok("ToGateway.Cheer"),
        ),
        (
            json!({"Carry": {"boot": boot, "message": {"ToMoon": {"Cheer": {}}}}}),
            Ok("ToMoon.Cheer"),
        ),
        (json!({"Ping": {"since": 3}}), Err("Ping")),
        (
            json!({"Carry": {"boot": boot, "message": {"ToSim": {"Subscribe": {}}}}}),
            Err("ToSim.Subscribe"),
        ),
    ];
    for (value, want) in cases {
        match (read(&content(&value)), want) {
            (Ok(Received::Unknown { kind }), Ok(want)) => assert_eq!(kind, want),
            (Ok(Received::Unreadable { kind, .. }), Err(want)) => assert_eq!(kind, want),
            (read, _) => panic!("{value} was read as {read:?}"),
        }
    }
}

#[test]
fn what_names_no_kind_is_garbage() {
    let cases: &[&[u8]] = &[
        b"",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",
        b"\x80",
        b"\x05",
        b"\x81\x01\x02",
        b"\xc0\xc0",
    ];
    for bytes in cases {
        let read = read(bytes);
        assert!(
            matches!(read, Err(FrameError::Garbage(_))),
            "{bytes:x?}: {read:?}"
        );
    }
}

#[test]
fn a_frame_that_is_too_long_is_not_written_and_not_read() {
    let text = Packet::Refused {
        why: "x".repeat(100),
    };
    let mut out = frame(&Packet::Ping { at: 1 });
    let before = out.clone();
    assert!(matches!(
        write(&text, 50, &mut out),
        Err(FrameError::TooLong { max: 50, .. })
    ));
    assert_eq!(out, before);

    let mut reader = FrameReader::default();
    reader.push(&frame(&text));
    assert!(matches!(
        reader.next(50),
        Err(FrameError::TooLong { max: 50, .. })
    ));
}

/// Guards against a buffer that is reserved by the announced length.
#[test]
fn an_announced_length_takes_no_memory() {
    let mut reader = FrameReader::default();
    reader.push(&(MAX as u32).to_be_bytes());
    reader.push(&[0; 16]);
    assert_eq!(reader.next(MAX), Ok(None));
    assert!(reader.capacity() < 256, "{}", reader.capacity());
}

#[test]
fn a_large_frame_leaves_no_large_buffer() {
    let why = "x".repeat(MAX / 2);
    let mut reader = FrameReader::default();
    reader.push(&frame(&Packet::Refused { why }));
    assert!(reader.next(MAX).unwrap().is_some());
    reader.push(&[0]);
    assert!(reader.capacity() < 256, "{}", reader.capacity());
}

/// Whatever a stream holds, cut as it likes.
fn read_all(bytes: &[u8], cuts: &[usize]) -> Result<Vec<Received>, FrameError> {
    let mut reader = FrameReader::default();
    let mut found = Vec::new();
    let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
    while !rest.is_empty() {
        let length = cuts.next().copied().unwrap_or(1).clamp(1, rest.len());
        let (part, behind) = rest.split_at(length);
        rest = behind;
        reader.push(part);
        while let Some(content) = reader.next(MAX)? {
            found.push(read(content)?);
        }
        assert!(reader.capacity() <= 2 * (bytes.len() + 8));
    }
    Ok(found)
}

proptest! {
    #[test]
    fn frames_are_found_wherever_the_stream_is_cut(
        which in prop::collection::vec(0..9_usize, 1..12),
        cuts in prop::collection::vec(1..200_usize, 1..20),
    ) {
        let packets = packets();
        let sent: Vec<_> = which.iter().map(|&at| packets[at].clone()).collect();
        let bytes: Vec<u8> = sent.iter().flat_map(frame).collect();
        let found = read_all(&bytes, &cuts).unwrap();
        prop_assert_eq!(found, sent.into_iter().map(Received::Packet).collect::<Vec<_>>());
    }

    #[test]
    fn noise_does_no_harm(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        cuts in prop::collection::vec(1..50_usize, 1..5),
    ) {
        let _ = read_all(&bytes, &cuts);
        let _ = read(&bytes);
    }

    #[test]
    fn a_flipped_byte_does_no_harm(which in 0..35_usize, at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = frame(&packets()[which]);
        let at = at.index(bytes.len());
        bytes[at] = to;
        let _ = read_all(&bytes, &[64]);
    }
}

#[test]
fn a_message_keeps_its_boot() {
    let message = messages().swap_remove(3);
    let ToSim::PlayerAck { char_id, .. } = (match &message {
        super::Message::ToSim(message) => message,
        other => panic!("{other:?}"),
    }) else {
        panic!("another message")
    };
    assert_eq!(*char_id, CHAR);
    let boot = BootId(1 << 127);
    let bytes = frame(&Packet::Carry {
        boot,
        message: message.clone(),
    });
    let read = read(&bytes[LENGTH_BYTES..]);
    assert_eq!(read, Ok(Received::Packet(Packet::Carry { boot, message })));
}
