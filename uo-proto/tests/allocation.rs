//! What decoding reserves is bounded by what the frame holds, whatever the frame claims to hold.
//!
//! Seen red with the walk over the structure removed: five bytes made a decoder reserve a mebibyte.
#![allow(unsafe_code, reason = "a counting allocator cannot do without")]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::*;
use proptest::collection::vec;
use proptest::prelude::*;
use uo_proto::*;

thread_local! {
    /// Bytes that this thread holds, and the most it held since the count began.
    static HELD: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

struct Counting;

fn count(change: impl FnOnce(usize) -> usize) {
    HELD.with(|cell| {
        let (held, most) = cell.get();
        let held = change(held);
        cell.set((held, most.max(held)));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(|held| held + layout.size());
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(|held| held.saturating_sub(layout.size()));
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes held at once by `work`, over what was held before.
fn most_held<T>(work: impl FnOnce() -> T) -> usize {
    let (before, _) = HELD.get();
    HELD.set((before, before));
    drop(work());
    HELD.get().1 - before
}

/// A client's message is read without a buffer; what is left is its own text and the quote in an error.
fn client_bound(frame: usize) -> usize {
    4 * frame + 1_024
}

/// A server's message becomes a list of structs of up to 88 bytes, which one byte of the frame can begin.
fn server_bound(frame: usize) -> usize {
    256 * frame + 1_024
}

fn check(encoding: Encoding, frame: &[u8]) -> Result<(), TestCaseError> {
    let client = most_held(|| encoding.decode_client(frame));
    prop_assert!(
        client <= client_bound(frame.len()),
        "client: {client} bytes for {}",
        frame.len()
    );
    let server = most_held(|| encoding.decode_server(frame));
    prop_assert!(
        server <= server_bound(frame.len()),
        "server: {server} bytes for {}",
        frame.len()
    );
    // The worst decoder we have: it buffers a tagged enum within a tagged enum.
    let buffered = most_held(|| encoding.decode::<ServerMsg>(frame));
    prop_assert!(
        buffered <= server_bound(frame.len()),
        "buffered: {buffered} bytes for {}",
        frame.len()
    );
    Ok(())
}

/// A map with the fields of an order and a lie about one of them: without the walk over the structure, the least of
/// these costs a mebibyte.
#[test]
fn a_lie_about_a_length_costs_nothing() {
    let lies: [&[u8]; 6] = [
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\x7f\xff\xff\xff",
        b"\xdb\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\xdc\xff\xff\xdc\xff\xff\xdc\xff\xff\xdc\xff\xff",
    ];
    let heads: [&[u8]; 5] = [
        b"",
        b"\x83\xa4type\xa4stop\xa3seq\x01\xa1x",
        b"\x83\xa4type\xa3say\xa3seq\x01\xa4text",
        b"\x83\xa4type\xa5delta\xa4tick\x01\xa5enter",
        b"\x84\xa4type\xa5event\xa3seq\x01\xa5at_ms\x01\xa6combat\x83\xa4kind\xa6looted\xa5coins",
    ];
    for head in heads {
        for lie in lies {
            check(Encoding::MessagePack, &[head, lie].concat()).unwrap();
        }
    }
}

/// Frames of the largest size that a gateway takes, filled with what costs most.
#[test]
fn the_largest_frames_stay_within_the_bound() {
    const SIZE: usize = 64 * 1_024;
    for head in [
        &b"\x83\xa4type\xa4stop\xa3seq\x01\xa1x"[..],
        b"\x83\xa4type\xa5delta\xa4tick\x01\xa5enter",
        b"\x83\xa4type\xa5event\xa3seq\x01\xa6combat",
    ] {
        for filler in [0xc0_u8, 0x01, 0x80, 0x90, 0xa0] {
            let mut frame = head.to_vec();
            frame.push(0xdd);
            frame.extend((SIZE as u32).to_be_bytes());
            frame.resize(frame.len() + SIZE, filler);
            check(Encoding::MessagePack, &frame).unwrap();
        }
        let mut frame = head.to_vec();
        frame.push(0xdb);
        frame.extend((SIZE as u32).to_be_bytes());
        frame.resize(frame.len() + SIZE, 0x01);
        check(Encoding::MessagePack, &frame).unwrap();
    }
    for (open, filler, close) in [
        (r#"{"type":"stop","seq":1,"x":["#, "1,", "1]}"),
        (r#"{"type":"stop","seq":1,"x":"#, "[", ""),
        (r#"{"type":"step","seq":1,"dir":""#, "\\u0001", "\"}"),
        (r#"{"type":"event","seq":1,"combat":["#, "[],", "1]}"),
        (r#"{"type":"delta","tick":1,"leave":["#, "\"1\",", "\"1\"]}"),
    ] {
        let text = format!("{open}{}{close}", filler.repeat(SIZE / filler.len()));
        check(Encoding::Json, text.as_bytes()).unwrap();
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_stay_within_the_bound(bytes in vec(any::<u8>(), 0..300)) {
        for encoding in Encoding::ALL {
            check(encoding, &bytes)?;
        }
    }

    #[test]
    fn mutated_frames_stay_within_the_bound(
        client in client_msg(),
        server in server_msg(),
        mutations in vec(mutation(), 1..6),
    ) {
        for encoding in Encoding::ALL {
            for mut frame in [encoding.encode_client(&client), encoding.encode(&server)] {
                for mutation in &mutations {
                    mutate(&mut frame, mutation);
                    check(encoding, &frame)?;
                }
            }
        }
    }
}
