//! Clients that do not read, and what sessions cost.

use super::rig::Rig;
use crate::gateway::session::Session;
use uo_proto::{ClientMsg, Ping, close};

/// Red when the diff is taken at the flush instead of at the write, or when a busy connection is written to.
#[test]
fn a_deaf_client_costs_nothing_and_gets_the_present_in_one_delta() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let movers: Vec<_> = (0..20)
        .map(|n| rig.place(&format!("m{n}"), 95 + n % 10, 95))
        .collect();
    let conn = rig.enter("ann");
    rig.tick();
    rig.client(conn).take_got();
    rig.client(conn).is_deaf = true;
    let session = || size_of::<Session>();
    let mut sizes = Vec::new();
    for tick in 0..12 * 20_u16 {
        for (n, &mover) in (0_u16..).zip(&movers) {
            rig.walk(mover, 90 + (tick + n) % 15, 95 + n % 3);
        }
        rig.tick();
        let heap: usize = rig
            .core
            .sessions
            .iter()
            .map(|(_, s)| s.sight.heap_bytes())
            .sum();
        sizes.push(heap + session());
    }
    assert_eq!(sizes.first(), sizes.last(), "memory does not grow");
    assert!(rig.client(conn).deltas() <= 2, "one before, one under way");
    rig.client(conn).take_got();
    let last = rig.client(conn).bytes;
    rig.hear_again(conn);
    assert!(rig.client(conn).deltas() <= 1);
    rig.tick();
    assert!(rig.client(conn).deltas() <= 2);
    let sent = rig.client(conn).bytes - last;
    assert!(sent < 6_000, "{sent} bytes are more than everything around");
    for mover in movers {
        let truth = rig.bodies[&mover].state;
        assert_eq!(rig.client(conn).entities[&mover].state, truth);
    }
    assert_eq!(rig.client(conn).closed, None);
}

#[test]
fn pings_are_answered_at_once_and_a_flood_of_them_is_bounded() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).take_got();
    rig.say(conn, ClientMsg::Ping(Ping { nonce: 1 }));
    assert_eq!(rig.client(conn).take_got().len(), 1);
    rig.client(conn).is_deaf = true;
    (0..200).for_each(|nonce| rig.say(conn, ClientMsg::Ping(Ping { nonce })));
    assert_eq!(rig.client(conn).closed, Some(close::SLOW_CONSUMER));
}

#[test]
fn a_session_alone_takes_under_two_kibibytes() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.enter("ann");
    rig.tick();
    let session = &rig.core.sessions[0];
    let bytes = size_of::<Session>() + session.sight.heap_bytes() + session.name.len();
    assert!(bytes < 1_024, "{bytes}");
}
