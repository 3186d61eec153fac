//! The two reliable streams, and the promise.

use uo_proto::{
    CombatEvent, ErrorCode, ErrorMsg, Missed, MissedCount, Pos, Saved, ServerMsg, Speech, close,
};

use super::rig::Rig;
use crate::gateway::core::ConnId;
use crate::limits::{
    PRIVATE_ASKS_MAX, PUBLIC_KEPT_MS, RELIABLE_LANE_MAX, SLOW_FULL_MS, SLOW_OLDEST_MS,
};
use crate::peer::message::{FeedEvent, PublicEvent};
use crate::peer::{ToGateway, ToSim};

pub fn swing(x: u16, y: u16) -> FeedEvent {
    FeedEvent {
        at: Pos::new(x, y),
        also: None,
        what: PublicEvent::Combat(CombatEvent::Drank {
            who: uo_proto::EntityId(5),
        }),
    }
}

pub fn said(x: u16, y: u16) -> FeedEvent {
    FeedEvent {
        what: PublicEvent::Said(Speech {
            char_id: uo_proto::CharId(5),
            name: "five".into(),
            text: "hello".into(),
        }),
        ..swing(x, y)
    }
}

fn numbers(rig: &mut Rig, conn: ConnId) -> Vec<u64> {
    let got = rig.client(conn).take_got();
    got.iter().filter_map(ServerMsg::public).collect()
}

#[test]
fn events_are_told_to_those_who_see_them_and_numbered_for_each() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.place("bob", 120, 100);
    let (ann, bob) = (rig.login("ann"), rig.login("bob"));
    rig.tick();
    rig.events = vec![swing(100, 118), said(119, 100), swing(138, 100)];
    rig.tick();
    assert_eq!(numbers(&mut rig, ann), [1]);
    assert_eq!(numbers(&mut rig, bob), [1, 2]);
    let shot = FeedEvent {
        also: Some(Pos::new(100, 100)),
        ..swing(119, 100)
    };
    rig.events = vec![shot];
    rig.tick();
    assert_eq!(
        (numbers(&mut rig, ann), numbers(&mut rig, bob)),
        (vec![2], vec![3])
    );
}

#[test]
fn a_resume_here_replays_what_the_client_has_not_seen() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.events = vec![swing(100, 100); 5];
    rig.tick();
    assert_eq!(numbers(&mut rig, conn), [1, 2, 3, 4, 5]);
    let token = rig.client(conn).token.clone();
    rig.drop_client(conn);
    // While nobody listens, things go on happening.
    rig.events = vec![said(100, 100); 2];
    rig.tick();
    let conn = rig.resume(&token, 3, 0);
    rig.tick();
    assert_eq!(numbers(&mut rig, conn), [4, 5, 6, 7]);
}

#[test]
fn what_is_too_old_or_too_much_is_counted_as_missed() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let missed = |rig: &mut Rig, conn| {
        let got = &rig.client(conn).got;
        let missed = got.iter().find_map(|message| match message {
            ServerMsg::Missed(missed) => Some(missed.public),
            _ => None,
        });
        let first = got.iter().find_map(ServerMsg::public);
        (missed, first)
    };
    rig.events = vec![swing(100, 100); 3];
    rig.tick();
    let token = rig.client(conn).token.clone();
    rig.drop_client(conn);
    rig.pass(PUBLIC_KEPT_MS + 1);
    let conn = rig.resume(&token, 1, 0);
    rig.tick();
    // Nobody looked for so long, so nobody knows what else there was.
    let unknown = (Some(MissedCount::Unknown), None);
    assert_eq!(missed(&mut rig, conn), unknown);
    rig.events = vec![swing(100, 100)];
    rig.tick();

    let token = rig.client(conn).token.clone();
    rig.drop_client(conn);
    rig.events = vec![swing(100, 100); RELIABLE_LANE_MAX + 10];
    rig.tick();
    let conn = rig.resume(&token, 4, 0);
    rig.tick();
    assert_eq!(
        missed(&mut rig, conn),
        (Some(MissedCount::Count(10)), Some(15))
    );
    assert_eq!(numbers(&mut rig, conn).len(), RELIABLE_LANE_MAX);

    // A client that claims to have seen what was never sent harms only its own numbers.
    let token = rig.client(conn).token.clone();
    let conn = rig.resume(&token, u64::MAX, u64::MAX);
    rig.events = vec![swing(100, 100)];
    rig.tick();
    assert_eq!(missed(&mut rig, conn).0, Some(MissedCount::Unknown));
}

/// Red when speech is waited for until the end of a round, and when it breaks the chain of a feed's frames.
#[test]
fn speech_between_two_ticks_is_told_at_once_and_begins_no_round() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.tick();
    rig.client(conn).take_got();
    let flushes = rig.core.counters().flushes;
    rig.speak(said(100, 100));
    rig.speak(said(101, 100));
    assert_eq!(numbers(&mut rig, conn), [1, 2]);
    rig.pass(crate::limits::FLUSH_WAIT_MS + 1);
    assert_eq!(rig.core.counters().flushes, flushes);
    rig.events = vec![swing(100, 100)];
    rig.tick();
    assert_eq!(numbers(&mut rig, conn), [3]);
    assert_eq!(rig.core.counters().feeds_gaps, 0);
}

/// Red when nothing but ticks is counted: speech leads to none, and what was lost would never be missed.
#[test]
fn speech_that_is_lost_is_a_gap() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.enter("ann");
    rig.tick();
    rig.speak(said(100, 100));
    assert_eq!(rig.core.counters().feeds_gaps, 0);
    *rig.told.values_mut().next().unwrap() += 1;
    rig.sent.clear();
    rig.speak(said(101, 100));
    assert_eq!(rig.core.counters().feeds_gaps, 1);
    let asks = |message: &ToSim| matches!(message, ToSim::Subscribe { .. });
    assert!(rig.sent.iter().any(asks), "a full state repairs it");
}

#[test]
fn a_slow_reader_gets_everything_in_order_or_is_closed() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).is_deaf = true;
    rig.events = vec![swing(100, 100); 600];
    rig.tick();
    rig.client(conn).take_got();
    rig.events = vec![said(100, 100); 600];
    rig.tick();
    rig.pass(SLOW_FULL_MS - 1_500);
    rig.hear_again(conn);
    let got = rig.client(conn).take_got();
    let numbers: Vec<_> = got.iter().filter_map(ServerMsg::public).collect();
    let first = *numbers.first().unwrap();
    assert_eq!(numbers, (first..=1_200).collect::<Vec<_>>());
    let given_up = got.iter().find_map(|message| match message {
        ServerMsg::Missed(missed) => Some(missed.public),
        _ => None,
    });
    assert!(matches!(given_up, Some(MissedCount::Count(_)) | None));
    assert_eq!(rig.client(conn).closed, None);

    // Full for too long.
    rig.client(conn).is_deaf = true;
    rig.events = vec![swing(100, 100); 1];
    rig.tick();
    rig.events = vec![swing(100, 100); RELIABLE_LANE_MAX];
    rig.tick();
    rig.pass(SLOW_FULL_MS + 1_000);
    assert_eq!(rig.client(conn).closed, Some(close::SLOW_CONSUMER));
    assert_eq!(rig.core.state().sessions, 1, "it may come back");
}

#[test]
fn one_message_that_waits_too_long_is_enough() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).is_deaf = true;
    rig.events = vec![swing(100, 100)];
    rig.tick();
    rig.events = vec![swing(100, 100)];
    rig.tick();
    rig.pass(SLOW_OLDEST_MS - 500);
    assert_eq!(rig.client(conn).closed, None);
    rig.pass(2_000);
    assert_eq!(rig.client(conn).closed, Some(close::SLOW_CONSUMER));
}

fn private(rig: &mut Rig, number: u64) {
    let char_id = uo_proto::CharId::of_name("ann");
    rig.peer(ToGateway::ToPlayer {
        char_id,
        generation: 1,
        message: ServerMsg::Error(ErrorMsg {
            code: ErrorCode::NotNow,
            message: String::new(),
            seq: None,
            private: Some(number),
        }),
    });
}

fn privates(rig: &mut Rig, conn: ConnId) -> Vec<u64> {
    let got = rig.client(conn).take_got();
    got.iter().filter_map(ServerMsg::private).collect()
}

fn acks(rig: &mut Rig) -> Vec<u64> {
    let acks = rig.sent.iter().filter_map(|message| match message {
        ToSim::PlayerAck { private, .. } => Some(*private),
        _ => None,
    });
    let acks = acks.collect();
    rig.sent.clear();
    acks
}

/// Red when `confirm` is called as soon as the write is done.
#[test]
fn the_owner_may_forget_a_private_message_when_the_client_has_it_and_not_before() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.sent.clear();
    private(&mut rig, 1);
    private(&mut rig, 1);
    assert_eq!(
        (privates(&mut rig, conn), acks(&mut rig)),
        (vec![1], vec![1])
    );
    rig.client(conn).is_deaf = true;
    private(&mut rig, 2);
    private(&mut rig, 3);
    assert_eq!(
        (privates(&mut rig, conn), acks(&mut rig)),
        (vec![2], vec![])
    );
    // The connection goes. What the client has, it says itself; the rest comes again.
    let token = rig.client(conn).token.clone();
    rig.drop_client(conn);
    private(&mut rig, 4);
    let conn = rig.resume(&token, 0, 1);
    let attach = rig.sent.iter().find_map(|message| match message {
        ToSim::Attach(attach) => Some(attach.last_private),
        _ => None,
    });
    assert_eq!(attach, Some(1));
    [2, 3, 4]
        .into_iter()
        .for_each(|number| private(&mut rig, number));
    rig.tick();
    assert_eq!(privates(&mut rig, conn), [2, 3, 4]);
    assert_eq!(acks(&mut rig).last(), Some(&4));
}

#[test]
fn private_messages_that_the_owner_lost_are_counted() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    private(&mut rig, 1);
    rig.client(conn).take_got();
    let char_id = uo_proto::CharId::of_name("ann");
    for (through, want) in [(4, MissedCount::Count(3)), (4, MissedCount::Unknown)] {
        rig.peer(ToGateway::PrivateLost {
            char_id,
            generation: 1,
            through,
        });
        let got = rig.client(conn).take_got();
        let [ServerMsg::Missed(missed)] = &got[..] else {
            panic!("missed, not {got:?}");
        };
        assert_eq!(missed.private, want);
    }
    // The next owner does not count them once more.
    rig.sent.clear();
    let generation = 1;
    rig.peer(ToGateway::Lost {
        char_id,
        generation,
    });
    rig.pass(2_000);
    let attach = rig.sent.iter().find_map(|message| match message {
        ToSim::Attach(attach) => Some(attach.last_private),
        _ => None,
    });
    assert_eq!(attach, Some(4));
    private(&mut rig, 5);
    assert_eq!(privates(&mut rig, conn), [5]);
}

/// Red when a message behind a gap is passed on: an owner had sent the ones before while it had no link to here.
#[test]
fn missing_private_messages_are_asked_for() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    private(&mut rig, 1);
    rig.sent.clear();
    private(&mut rig, 4);
    let attach = rig.sent.iter().find_map(|message| match message {
        ToSim::Attach(attach) => Some(attach.last_private),
        _ => None,
    });
    assert_eq!(attach, Some(1));
    for number in [2, 3, 4] {
        private(&mut rig, number);
    }
    assert_eq!(privates(&mut rig, conn), [1, 2, 3, 4]);
}

/// Red when an owner that does not have them is asked for ever.
#[test]
fn private_messages_that_nobody_has_are_counted_in_the_end() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    private(&mut rig, 1);
    rig.client(conn).take_got();
    for _ in 0..=PRIVATE_ASKS_MAX {
        private(&mut rig, 4);
    }
    let missed = Missed {
        public: MissedCount::Count(0),
        private: MissedCount::Count(2),
    };
    let got = rig.client(conn).take_got();
    assert_eq!(got, [ServerMsg::Missed(missed)]);
    private(&mut rig, 4);
    assert_eq!(privates(&mut rig, conn), [4]);
}

#[test]
fn the_newest_promise_says_all() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).is_deaf = true;
    for seq in [1, 2, 3] {
        rig.peer(ToGateway::Saved {
            char_id: uo_proto::CharId::of_name("ann"),
            generation: 1,
            seq,
            inventory: seq + 10,
        });
    }
    rig.client(conn).take_got();
    rig.hear_again(conn);
    let saved = ServerMsg::Saved(Saved {
        seq: 3,
        inventory: 13,
    });
    assert_eq!(rig.client(conn).take_got(), [saved]);
}
