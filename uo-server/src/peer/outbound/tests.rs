//! What becomes of messages for a node that does not read.

use std::sync::Arc;

use uo_proto::RegionId;

use super::*;
use crate::peer::samples::{
    CHAR, REGION, changes, delta, event, full, hits, leases, messages, object, order, saved,
};
use crate::peer::{ToGateway, ToSim};

const BOOT: BootId = BootId(1);

fn queue() -> Outbound {
    Outbound::new(Bounds {
        waiting_max: 4,
        keyed_max: 3,
        ..Bounds::default()
    })
}

fn all(queue: &mut Outbound) -> Vec<Message> {
    std::iter::from_fn(|| queue.pop().map(|(_, message)| message)).collect()
}

fn sim(message: ToSim) -> Message {
    Message::ToSim(message)
}

fn gateway(message: ToGateway) -> Message {
    Message::ToGateway(message)
}

#[test]
fn what_waits_stays_in_order_and_one_too_many_is_an_overflow() {
    let mut queue = queue();
    for seq in 1..=4 {
        assert_eq!(
            queue.push(BOOT, sim(ToSim::Order(order(seq)))),
            Pushed::Queued
        );
    }
    let fifth = sim(ToSim::Order(order(5)));
    assert_eq!(queue.push(BOOT, fifth), Pushed::Overflow);
    // What has a key has a bound of its own.
    assert_eq!(queue.push(BOOT, gateway(saved(1))), Pushed::Queued);
    let seqs = all(&mut queue)
        .into_iter()
        .filter_map(|message| match message {
            Message::ToSim(ToSim::Order(order)) => Some(order.order.seq),
            _ => None,
        });
    assert_eq!(seqs.collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn the_newest_replaces_and_goes_to_the_back() {
    let mut queue = queue();
    queue.push(BOOT, gateway(saved(1)));
    let ack = |private| {
        sim(ToSim::PlayerAck {
            char_id: CHAR,
            private,
        })
    };
    queue.push(BOOT, ack(1));
    queue.push(BOOT, sim(ToSim::Order(order(1))));
    assert_eq!(queue.push(BOOT, gateway(saved(2))), Pushed::Combined);
    assert_eq!(queue.push(BootId(2), ack(5)), Pushed::Combined);
    assert_eq!(queue.pop(), Some((BOOT, sim(ToSim::Order(order(1))))));
    assert_eq!(queue.pop(), Some((BOOT, gateway(saved(2)))));
    assert_eq!(queue.pop(), Some((BootId(2), ack(5))));
    assert_eq!(queue.pop(), None);
}

#[test]
fn wanting_a_feed_and_not_wanting_it_are_one_thing() {
    let mut queue = queue();
    let region = REGION;
    queue.push(BOOT, sim(ToSim::Subscribe { region }));
    queue.push(BOOT, sim(ToSim::Unsubscribe { region }));
    assert_eq!(all(&mut queue), [sim(ToSim::Unsubscribe { region })]);
}

#[test]
fn more_keys_than_there_may_be_are_dropped() {
    let mut queue = queue();
    let subscribe = |region| {
        sim(ToSim::Subscribe {
            region: RegionId(region),
        })
    };
    for region in 0..3 {
        assert_eq!(queue.push(BOOT, subscribe(region)), Pushed::Queued);
    }
    assert_eq!(queue.push(BOOT, subscribe(3)), Pushed::Dropped);
    assert_eq!(queue.push(BOOT, subscribe(1)), Pushed::Combined);
    queue.pop();
    assert_eq!(queue.push(BOOT, subscribe(3)), Pushed::Queued);
    assert_eq!(queue.len(), 3);
}

#[test]
fn a_feed_takes_one_place_however_long_nobody_reads() {
    let mut queue = queue();
    let first = delta(1, 9, 10);
    queue.push(BOOT, gateway(ToGateway::FeedDelta(Arc::new(first))));
    queue.push(BOOT, gateway(ToGateway::FeedsDone));
    for tick in 10..200 {
        let next = Arc::new(delta(1, tick, tick + 1));
        assert_eq!(
            queue.push(BOOT, gateway(ToGateway::FeedDelta(next))),
            Pushed::Combined
        );
    }
    let frames = all(&mut queue);
    let Message::ToGateway(ToGateway::FeedDelta(all)) = &frames[0] else {
        panic!("{frames:?}")
    };
    assert_eq!((all.base_tick, all.tick, all.events.len()), (9, 200, 191));
    assert_eq!(frames[1..], [gateway(ToGateway::FeedsDone)]);
}

#[test]
fn a_delta_that_does_not_follow_is_dropped() {
    let mut queue = queue();
    let push = |queue: &mut Outbound, base, tick| {
        let delta = Arc::new(delta(1, base, tick));
        queue.push(BOOT, gateway(ToGateway::FeedDelta(delta)))
    };
    assert_eq!(push(&mut queue, 1, 2), Pushed::Queued);
    assert_eq!(push(&mut queue, 3, 4), Pushed::Dropped);
    // Also what follows the dropped one: its receiver must see the gap.
    assert_eq!(push(&mut queue, 4, 5), Pushed::Dropped);
    queue.pop();
    assert_eq!(push(&mut queue, 5, 6), Pushed::Queued);
}

#[test]
fn a_full_state_takes_the_place_of_what_came_before_and_keeps_the_events() {
    let mut queue = queue();
    queue.push(
        BOOT,
        gateway(ToGateway::FeedDelta(Arc::new(delta(1, 1, 2)))),
    );
    let state = full(1, 9, Vec::new());
    queue.push(BOOT, gateway(ToGateway::FeedFull(Arc::new(state.clone()))));
    let mut want = state;
    want.events = vec![event("delta 2"), event("full 9")];
    assert_eq!(
        all(&mut queue),
        [gateway(ToGateway::FeedFull(Arc::new(want)))]
    );
}

#[test]
fn nothing_overtakes_the_end_of_a_feed_and_epochs_do_not_mix() {
    let mut queue = queue();
    let full_of =
        |epoch, tick| gateway(ToGateway::FeedFull(Arc::new(full(epoch, tick, Vec::new()))));
    let end = gateway(ToGateway::FeedEnd {
        region: REGION,
        epoch: 1,
    });
    let sent = [full_of(1, 1), end, full_of(1, 2), full_of(2, 3)];
    for message in &sent {
        assert_eq!(queue.push(BOOT, message.clone()), Pushed::Queued);
    }
    assert_eq!(all(&mut queue), sent);
}

#[test]
fn frames_of_two_boots_are_not_mixed() {
    let mut queue = queue();
    queue.push(
        BOOT,
        gateway(ToGateway::FeedDelta(Arc::new(delta(1, 1, 2)))),
    );
    let other = gateway(ToGateway::FeedDelta(Arc::new(delta(1, 2, 3))));
    assert_eq!(queue.push(BootId(2), other), Pushed::Queued);
}

#[test]
fn objects_are_merged_one_by_one() {
    let mut queue = queue();
    queue.push(BOOT, sim(hits(1, &[(1, 5), (2, 5)])));
    queue.push(BOOT, sim(hits(1, &[(2, 65_533), (3, 1)])));
    queue.push(
        BOOT,
        sim(changes(1, true, vec![object(1, 9), object(2, 9)])),
    );
    queue.push(
        BOOT,
        sim(changes(1, false, vec![object(2, 4), object(3, 4)])),
    );
    queue.push(BOOT, sim(changes(0, false, vec![object(1, 0)])));
    let want = [
        sim(hits(1, &[(1, 5), (2, u16::MAX), (3, 1)])),
        sim(changes(
            1,
            true,
            vec![object(1, 9), object(2, 4), object(3, 4)],
        )),
    ];
    assert_eq!(all(&mut queue), want);
}

#[test]
fn of_two_hints_about_a_region_the_newer_stays() {
    let mut queue = queue();
    queue.push(BOOT, sim(ToSim::Leases(leases(&[(1, 4), (2, 4)]))));
    queue.push(BOOT, sim(ToSim::Leases(leases(&[(1, 3), (2, 5), (3, 1)]))));
    let want = sim(ToSim::Leases(leases(&[(1, 4), (2, 5), (3, 1)])));
    assert_eq!(all(&mut queue), [want]);
}

#[test]
fn a_queue_is_bounded_whatever_comes() {
    let messages = messages();
    let mut queue = queue();
    for round in 0..50 {
        for message in &messages {
            queue.push(BootId(round % 3), message.clone());
            assert!(queue.len() <= 7);
        }
    }
}

/// Red when only messages are counted, or when what was sent still counts.
#[test]
fn a_queue_is_bounded_by_bytes_as_well() {
    let mut queue = Outbound::new(Bounds {
        bytes_max: 1_000,
        ..Bounds::default()
    });
    let mut queued = 0;
    while queue.push(BOOT, sim(ToSim::Order(order(queued)))) == Pushed::Queued {
        queued += 1;
        assert!(queued < 100);
    }
    assert_eq!(
        queue.push(BOOT, sim(ToSim::Order(order(9)))),
        Pushed::Overflow
    );
    assert_eq!(queue.push(BOOT, gateway(saved(1))), Pushed::Dropped);
    assert_eq!(all(&mut queue).len(), queued as usize);
    assert_eq!(queue.bytes, 0);
    assert_eq!(queue.push(BOOT, gateway(saved(1))), Pushed::Queued);
}

/// Red when a feed that grows by merging keeps the weight it came with.
#[test]
fn what_is_merged_weighs_what_it_became() {
    let mut queue = queue();
    queue.push(
        BOOT,
        gateway(ToGateway::FeedFull(Arc::new(full(1, 1, Vec::new())))),
    );
    let before = queue.bytes;
    let mut longer = delta(1, 1, 2);
    longer.objects = (2..9).map(|key| object(key, 10)).collect();
    queue.push(BOOT, gateway(ToGateway::FeedDelta(Arc::new(longer))));
    assert!(queue.bytes > before);
    queue.pop();
    assert_eq!(queue.bytes, 0);
}
