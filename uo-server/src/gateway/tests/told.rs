//! Public events that never came here: who was near is told `missed`, nobody else, and only if there were any.

use std::sync::Arc;

use uo_proto::{MissedCount, RegionId, ServerMsg};

use super::rig::Rig;
use super::streams::{said, swing};
use crate::gateway::core::ConnId;
use crate::peer::ToGateway;
use crate::peer::message::{FeedFull, Told};

/// The `missed` and the numbered messages that a client got since it was asked last, as it can tell them apart.
fn heard(rig: &mut Rig, conn: ConnId) -> Vec<Result<u64, MissedCount>> {
    let got = rig.client(conn).take_got();
    let words = got.iter().filter_map(|message| match message {
        ServerMsg::Missed(missed) => Some(Err(missed.public)),
        _ => message.public().map(Ok),
    });
    words.collect()
}

/// A rig in which ann at (100, 100) is in the world, and the region of that place.
fn with_ann() -> (Rig, ConnId, RegionId) {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.tick();
    rig.client(conn).take_got();
    let region = rig.world.region_at(uo_proto::Pos::new(100, 100));
    (rig, conn, region)
}

/// Red when nobody is told, when the client is told before what came before, and when it is told of each gap.
#[test]
fn an_event_that_never_came_is_missed_and_a_frame_without_one_is_not() {
    let (mut rig, ann, region) = with_ann();
    rig.place("bob", 100, 160);
    let bob = rig.enter("bob");
    rig.tick();
    rig.events = vec![swing(100, 100)];
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [Ok(1)]);

    // What does not follow is not told, and so it is missed.
    rig.lose_frame(region, 0);
    rig.speak(said(100, 100));
    assert_eq!(rig.core.counters().feeds_gaps, 1);
    assert_eq!(heard(&mut rig, ann), []);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [Err(MissedCount::Unknown)]);

    // A frame with events is lost on the way.
    rig.lose_frame(region, 2);
    rig.touch(region, uo_proto::CharId::of_name("ann").entity());
    rig.tick();
    rig.events = vec![swing(100, 100)];
    rig.tick();
    assert_eq!(rig.core.counters().feeds_gaps, 2);
    let words = heard(&mut rig, ann);
    assert_eq!(words, [Err(MissedCount::Unknown), Ok(2)]);

    // A frame without.
    rig.lose_frame(region, 0);
    rig.touch(region, uo_proto::CharId::of_name("ann").entity());
    rig.tick();
    rig.tick();
    assert_eq!(rig.core.counters().feeds_gaps, 3);
    assert_eq!(heard(&mut rig, ann), []);
    assert_eq!(heard(&mut rig, bob), [], "it is too far away");
    assert_eq!(rig.core.counters().publics_missed, 2);
}

/// Red when the queue on the way here forgets events and nobody notices.
#[test]
fn events_for_which_a_queue_had_no_room_are_missed() {
    let (mut rig, ann, region) = with_ann();
    *rig.told.entry(region).or_default() += 3;
    let base_told = rig.told[&region] - 3;
    let (tick, mut delta) = (rig.watched[&region], rig.delta(region));
    (delta.base_tick, delta.tick) = (tick, tick + 1);
    (delta.base_told, delta.told) = (base_told, rig.told[&region]);
    delta.events = vec![swing(100, 100); 2];
    rig.peer(ToGateway::FeedDelta(Arc::new(delta)));
    rig.watched.insert(region, tick + 1);
    rig.tick();
    let words = heard(&mut rig, ann);
    assert_eq!(words, [Err(MissedCount::Unknown), Ok(1), Ok(2)]);
}

/// A region goes on elsewhere. Red when the count is not compared, and when whoever took it from a crashed sim is believed
/// to have told all.
#[test]
fn a_region_that_moved_whole_misses_nothing_and_one_that_crashed_may() {
    let (mut rig, ann, region) = with_ann();
    rig.events = vec![swing(100, 100); 4];
    rig.tick();
    heard(&mut rig, ann);
    let next = |rig: &mut Rig, epoch, told: Told, events: usize| {
        let full = FeedFull {
            epoch,
            told,
            events: vec![swing(100, 100); events],
            ..rig.full(region)
        };
        rig.peer(ToGateway::FeedFull(Arc::new(full)));
        rig.tick();
        heard(rig, ann)
    };
    let told = |since, count| Told { since, count };
    assert_eq!(next(&mut rig, 2, told(1, 4), 0), [], "nothing was told");
    assert_eq!(next(&mut rig, 3, told(1, 6), 2), [Ok(5), Ok(6)]);
    let missed = Err(MissedCount::Unknown);
    assert_eq!(
        next(&mut rig, 4, told(1, 8), 1),
        [missed, Ok(7)],
        "one of two"
    );
    assert_eq!(next(&mut rig, 5, told(5, 0), 0), [missed], "it crashed");
    assert_eq!(next(&mut rig, 6, told(5, 0), 0), []);
    // A sim of the version before counts nothing.
    assert_eq!(next(&mut rig, 7, Told::default(), 1), [Ok(8)]);
}

/// Red when a newcomer is told that it missed what was before it came, and when a resume forgets what was missed.
#[test]
fn nothing_is_promised_before_the_snapshot_and_a_resume_tells_what_was_missed_meanwhile() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let region = rig.world.region_at(uo_proto::Pos::new(100, 100));
    rig.told.insert(region, 7);
    let ann = rig.enter("ann");
    rig.tick();
    assert_eq!(heard(&mut rig, ann), []);

    let token = rig.client(ann).token.clone();
    rig.drop_client(ann);
    rig.lose_frame(region, 1);
    rig.touch(region, uo_proto::CharId::of_name("ann").entity());
    rig.tick();
    rig.tick();
    let ann = rig.resume(&token, 0, 0);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [Err(MissedCount::Unknown)]);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [], "it is told once");
}

/// Red when a line that breaks takes along that something was missed: before it was written, or on its way. A message
/// with a later number proves that it came.
#[test]
fn that_something_was_missed_is_told_until_the_client_has_it() {
    let (mut rig, ann, region) = with_ann();
    let missed = [Err(MissedCount::Unknown)];
    let token = rig.client(ann).token.clone();
    rig.restart_gateway();
    rig.answers = false;
    let broken = rig.resume(&token, 0, 0);
    rig.drop_client(broken);
    rig.answers = true;
    let ann = rig.resume(&token, 0, 0);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), missed);

    let token = rig.client(ann).token.clone();
    rig.drop_client(ann);
    let ann = rig.resume(&token, 0, 0);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), missed, "it may not have come");
    rig.lose_frame(region, 1);
    rig.touch(region, uo_proto::CharId::of_name("ann").entity());
    rig.tick();
    rig.tick();
    rig.events = vec![swing(100, 100)];
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [missed[0], Ok(1)]);

    let token = rig.client(ann).token.clone();
    rig.drop_client(ann);
    let ann = rig.resume(&token, 0, 0);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [missed[0], Ok(1)]);
    let token = rig.client(ann).token.clone();
    rig.drop_client(ann);
    let ann = rig.resume(&token, 1, 0);
    rig.tick();
    assert_eq!(heard(&mut rig, ann), [], "the client has what came after");
}
