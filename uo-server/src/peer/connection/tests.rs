//! Two machines and the wire between them, in virtual time.

use super::*;
use crate::identity::BootId;
use crate::peer::ToSim;
use crate::peer::samples::{CHAR, hello};

fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

fn shared() -> Secret {
    secret("a secret that all share")
}

fn dialer(me: Hello, to: &str, secret: Secret) -> Connection {
    Connection::new(me, secret, [1; 32], Toward::Dialed(to.into()), 0)
}

fn acceptor(me: Hello, secret: Secret) -> Connection {
    Connection::new(me, secret, [2; 32], Toward::Accepted, 0)
}

fn give(connection: &mut Connection, now: Millis, input: Input) -> Vec<Effect> {
    let mut effects = Vec::new();
    connection.handle(now, input, &mut effects);
    effects
}

fn packet(connection: &mut Connection, packet: Packet) -> Vec<Effect> {
    give(connection, 0, Input::Frame(Received::Packet(packet)))
}

/// What became of a connection.
#[derive(Clone, PartialEq, Debug, Default)]
struct Outcome {
    proven: Option<Proven>,
    ended: Option<Ended>,
    /// All that was said to it.
    said: Vec<Packet>,
}

/// Lets two connections talk until they have nothing to say; whoever is proven is admitted.
fn talk(dialer: &mut Connection, acceptor: &mut Connection) -> [Outcome; 2] {
    let mut outcomes = [Outcome::default(), Outcome::default()];
    let mut queue: Vec<(usize, Effect)> = Vec::new();
    queue.extend(
        give(acceptor, 0, Input::Opened)
            .into_iter()
            .map(|it| (1, it)),
    );
    queue.extend(give(dialer, 0, Input::Opened).into_iter().map(|it| (0, it)));
    let mut next = 0;
    while let Some((who, effect)) = queue.get(next).cloned() {
        next += 1;
        let ends = [&mut *dialer, &mut *acceptor];
        let more = match effect {
            Effect::Write(said) => {
                outcomes[1 - who].said.push(said.clone());
                (1 - who, packet(ends[1 - who], said))
            }
            Effect::Proven(proven) => {
                outcomes[who].proven = Some(proven);
                (who, give(ends[who], 0, Input::Admitted))
            }
            Effect::End(why) => {
                outcomes[who].ended = Some(why);
                continue;
            }
            Effect::Deliver { .. } => continue,
        };
        queue.extend(more.1.into_iter().map(|effect| (more.0, effect)));
    }
    outcomes
}

fn linked() -> (Connection, Connection) {
    let mut gate = dialer(hello("gw-1", 1), "sim-1", shared());
    let mut sim = acceptor(hello("sim-1", 2), shared());
    let [of_gate, of_sim] = talk(&mut gate, &mut sim);
    assert_eq!((of_gate.ended, of_sim.ended), (None, None));
    (gate, sim)
}

#[test]
fn two_nodes_of_one_cluster_are_linked() {
    let mut gate = dialer(hello("gw-1", 1), "sim-1", shared());
    let mut sim = acceptor(hello("sim-1", 2), shared());
    let [of_gate, of_sim] = talk(&mut gate, &mut sim);
    let proven = |of: &Hello| Proven {
        holder: of.holder.clone(),
        role: Role::Sim,
        version: 2,
    };
    assert_eq!(of_gate.proven, Some(proven(&hello("sim-1", 2))));
    assert_eq!(of_sim.proven, Some(proven(&hello("gw-1", 1))));
    assert!(gate.is_linked() && sim.is_linked());
}

#[test]
fn a_message_arrives_in_the_name_of_the_boot_that_sent_it() {
    let (_, mut sim) = linked();
    let message = Message::ToSim(ToSim::PlayerAck {
        char_id: CHAR,
        private: 1,
    });
    let boot = BootId(77);
    let carried = Packet::Carry {
        boot,
        message: message.clone(),
    };
    let node = "gw-1".into();
    let from = Holder { node, boot };
    assert_eq!(
        packet(&mut sim, carried),
        [Effect::Deliver { from, message }]
    );
}

#[test]
fn each_refusal_has_its_reason_and_the_peer_hears_it() {
    let me = || hello("gw-1", 1);
    type Change = fn(&mut Hello);
    let cases: [(Change, Ended); 5] = [
        (
            |it| it.cluster = "elsewhere".into(),
            Ended::WrongCluster {
                ours: "felucca".into(),
                theirs: "elsewhere".into(),
            },
        ),
        (
            |it| (it.version_min, it.version_max) = (3, 4),
            Ended::NoCommonVersion {
                ours_min: 1,
                ours_max: 2,
                theirs_min: 3,
                theirs_max: 4,
            },
        ),
        (|it| it.holder.node = "sim-1".into(), Ended::SameName),
        (|it| it.holder.node = "sim-2".into(), Ended::WrongDirection),
        (|it| it.holder.node = "".into(), Ended::BadName),
    ];
    for (change, want) in cases {
        let mut changed = me();
        change(&mut changed);
        let mut caller = dialer(changed, "sim-1", shared());
        let mut sim = acceptor(hello("sim-1", 2), shared());
        let [of_caller, of_sim] = talk(&mut caller, &mut sim);
        assert_eq!(of_sim.ended, Some(want.clone()));
        assert_eq!(
            of_caller.ended,
            Some(Ended::RefusedByPeer(want.to_string()))
        );
        // Nothing that was made with the secret was said.
        let is_proof = |it: &&Packet| matches!(it, Packet::Proof { .. });
        assert_eq!(of_caller.said.iter().find(is_proof), None);
    }
}

#[test]
fn the_other_nodes_name_is_not_believed_at_an_address() {
    let mut gate = dialer(hello("gw-1", 1), "sim-1", shared());
    let mut other = acceptor(hello("sim-2", 2), shared());
    let [of_gate, _] = talk(&mut gate, &mut other);
    let want = Ended::WrongNode {
        expected: "sim-1".into(),
        found: "sim-2".into(),
    };
    assert_eq!(of_gate.ended, Some(want));
}

/// Guards the check of the proof on both sides.
#[test]
fn a_wrong_secret_proves_nothing() {
    let wrong = || secret("a secret that is another");
    let mut gate = dialer(hello("gw-1", 1), "sim-1", wrong());
    let mut sim = acceptor(hello("sim-1", 2), shared());
    let [of_gate, of_sim] = talk(&mut gate, &mut sim);
    assert_eq!(
        (of_sim.proven, of_sim.ended),
        (None, Some(Ended::WrongProof))
    );
    assert!(
        !of_gate
            .said
            .iter()
            .any(|it| matches!(it, Packet::Proof { .. }))
    );

    // An acceptor that admits everybody does not get a dialer.
    let mut gate = dialer(hello("gw-1", 1), "sim-1", shared());
    let nonce = [9; 32];
    give(&mut gate, 0, Input::Opened);
    packet(&mut gate, Packet::Hello(hello("sim-1", 2)));
    packet(&mut gate, Packet::Challenge { nonce });
    let effects = packet(&mut gate, Packet::Proof { mac: [0; 32] });
    assert_eq!(effects.last(), Some(&Effect::End(Ended::WrongProof)));
}

#[test]
fn a_recorded_proof_is_worth_nothing() {
    let mut gate = dialer(hello("gw-1", 1), "sim-1", shared());
    let mut sim = acceptor(hello("sim-1", 2), shared());
    let [_, of_sim] = talk(&mut gate, &mut sim);
    // The same words again, to the same node, which asks with another nonce.
    let me = hello("sim-1", 2);
    let mut again = Connection::new(me, shared(), [3; 32], Toward::Accepted, 0);
    let mut effects = give(&mut again, 0, Input::Opened);
    for said in of_sim.said {
        effects.extend(packet(&mut again, said));
    }
    assert_eq!(effects.last(), Some(&Effect::End(Ended::WrongProof)));
}

#[test]
fn a_mirrored_proof_is_worth_nothing() {
    // Somebody without the secret dials, and sends a node's own words back to it.
    let mut sim = acceptor(hello("sim-1", 2), shared());
    give(&mut sim, 0, Input::Opened);
    packet(&mut sim, Packet::Hello(hello("gw-1", 1)));
    packet(&mut sim, Packet::Challenge { nonce: [2; 32] });
    let theirs = hello("gw-1", 1);
    let transcript = Transcript {
        dialer: &theirs,
        dialer_nonce: &[2; 32],
        acceptor: &sim.me,
        acceptor_nonce: &[2; 32],
    };
    let mac = transcript.prove(&shared(), Side::Acceptor);
    let effects = packet(&mut sim, Packet::Proof { mac });
    assert_eq!(effects.last(), Some(&Effect::End(Ended::WrongProof)));
}

#[test]
fn a_hello_that_was_changed_on_the_way_is_noticed() {
    let mut gate = dialer(hello("gw-1", 1), "sim-1", shared());
    let mut sim = acceptor(hello("sim-1", 2), shared());
    give(&mut gate, 0, Input::Opened);
    // Somebody between them makes the gateway speak an older version.
    let mut older = hello("gw-1", 1);
    older.version_max = 1;
    give(&mut sim, 0, Input::Opened);
    let said = packet(&mut sim, Packet::Hello(older));
    let mut answers = Vec::new();
    for effect in said {
        if let Effect::Write(said) = effect {
            answers.extend(packet(&mut gate, said));
        }
    }
    let mut last = Vec::new();
    for effect in answers {
        if let Effect::Write(said) = effect {
            last = packet(&mut sim, said);
        }
    }
    assert_eq!(last.last(), Some(&Effect::End(Ended::WrongProof)));
}

#[test]
fn messages_before_the_proof_are_refused() {
    let mut sim = acceptor(hello("sim-1", 2), shared());
    give(&mut sim, 0, Input::Opened);
    let carried = Packet::Carry {
        boot: BootId(1),
        message: Message::ToSim(ToSim::Order(crate::peer::samples::order(1))),
    };
    let effects = packet(&mut sim, carried);
    assert_eq!(
        effects.last(),
        Some(&Effect::End(Ended::OutOfTurn("a message")))
    );
    // And nothing is done any more.
    assert_eq!(packet(&mut sim, Packet::Hello(hello("gw-1", 1))), []);
}

#[test]
fn a_second_hello_ends_a_link() {
    let (_, mut sim) = linked();
    let effects = packet(&mut sim, Packet::Hello(hello("gw-1", 1)));
    assert_eq!(
        effects.last(),
        Some(&Effect::End(Ended::OutOfTurn("hello")))
    );
}

#[test]
fn a_link_skips_what_it_does_not_understand_and_a_stranger_may_say_no_such_thing() {
    let unknown = || {
        Input::Frame(Received::Unknown {
            kind: "Wave".into(),
        })
    };
    let unreadable = Input::Frame(Received::Unreadable {
        kind: "ToSim.Attach".into(),
        why: "no".into(),
    });
    let (mut gate, _) = linked();
    assert_eq!(give(&mut gate, 0, unknown()), []);
    assert_eq!(give(&mut gate, 0, unreadable), []);
    let skipped = gate.skipped();
    assert_eq!((skipped.unknown, skipped.unreadable), (1, 1));

    let mut sim = acceptor(hello("sim-1", 2), shared());
    give(&mut sim, 0, Input::Opened);
    assert!(matches!(
        give(&mut sim, 0, unknown()).last(),
        Some(Effect::End(Ended::OutOfTurn(_)))
    ));
}

#[test]
fn garbage_ends_a_link() {
    let (mut gate, _) = linked();
    let error = FrameError::TooLong { bytes: 9, max: 8 };
    let effects = give(&mut gate, 0, Input::BadFrame(error.clone()));
    assert_eq!(effects.last(), Some(&Effect::End(Ended::Frame(error))));
}

#[test]
fn a_stranger_gets_little_room_and_little_time() {
    let mut sim = acceptor(hello("sim-1", 2), shared());
    give(&mut sim, 0, Input::Opened);
    assert_eq!(sim.frame_bytes_max(), PEER_GREETING_BYTES_MAX);
    assert_eq!(sim.wake_at(), PEER_HANDSHAKE_MS);
    // Bytes that lead nowhere win no time.
    give(&mut sim, PEER_HANDSHAKE_MS - 1, Input::Heard);
    assert_eq!(give(&mut sim, PEER_HANDSHAKE_MS - 1, Input::Tick), []);
    let effects = give(&mut sim, PEER_HANDSHAKE_MS, Input::Tick);
    assert_eq!(effects.last(), Some(&Effect::End(Ended::Overdue)));
    assert_eq!(linked().0.frame_bytes_max(), PEER_FRAME_BYTES_MAX);
}

#[test]
fn a_silent_link_is_tried_and_then_dead() {
    let (mut gate, _) = linked();
    let mut now = 0;
    let mut pings = 0;
    let ended = loop {
        assert!(gate.wake_at() > now, "it does not spin");
        now = gate.wake_at();
        match give(&mut gate, now, Input::Tick).as_slice() {
            [Effect::Write(Packet::Ping { .. })] => pings += 1,
            [Effect::End(why)] => break why.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((ended, now), (Ended::Silent, PEER_SILENT_MS));
    assert_eq!(pings, PEER_SILENT_MS / PEER_PING_MS - 1);
}

#[test]
fn an_answered_link_lives_on() {
    let (mut gate, mut sim) = linked();
    for _ in 0..100 {
        let now = gate.wake_at();
        for effect in give(&mut gate, now, Input::Tick) {
            let Effect::Write(ping) = effect else {
                panic!("{effect:?}")
            };
            give(&mut sim, now, Input::Heard);
            for answer in packet(&mut sim, ping) {
                assert!(matches!(answer, Effect::Write(Packet::Pong { .. })));
                give(&mut gate, now, Input::Heard);
            }
        }
    }
    assert!(gate.is_linked());
}

#[test]
fn whoever_is_told_to_end_tells_its_peer_why() {
    let (_, mut sim) = linked();
    let effects = give(&mut sim, 0, Input::Close(Ended::Replaced));
    let why = Ended::Replaced.to_string();
    assert_eq!(
        effects,
        [
            Effect::Write(Packet::Refused { why }),
            Effect::End(Ended::Replaced)
        ]
    );
}
