//! For how long a player was shown nothing new, by cause.

use uo_proto::{EntityId, RegionId};

use super::rig::{Rig, holder};
use crate::crossing::{Crossing, GapCause, Measured, Outcome, Phase, Query};
use crate::gateway::core::{ConnId, Input};
use crate::peer::ToGateway;
use crate::peer::message::{Flight, HandoffCause};

const WEST: RegionId = RegionId(4);
const EAST: RegionId = RegionId(5);

/// A player west of a border, who was shown something a moment ago.
fn at_the_border() -> (Rig, EntityId, ConnId) {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 62, 100);
    let conn = rig.enter("ann");
    rig.walk(ann, 63, 100);
    rig.tick();
    assert_eq!(rig.bodies[&ann].region, WEST);
    assert_eq!(rig.core.take_measured(), []);
    (rig, ann, conn)
}

fn flight(claim_ms: Option<u64>) -> Flight {
    Flight {
        cause: HandoffCause::Border,
        source: "sim-1".into(),
        from: Some(WEST),
        leave_ms: 0,
        claim_ms,
        seal_ms: claim_ms.map(|_| 1),
    }
}

impl Rig {
    /// The owner tells of a way into the next battle, under the number that the body has by now.
    fn moved(&mut self, id: EntityId, flight: Flight) {
        let body = &self.bodies[&id];
        let (generation, region) = (body.number, body.region);
        self.peer(ToGateway::Moved {
            char_id: id.character().unwrap(),
            generation,
            region,
            owner: self.sim.clone(),
            flight: Some(flight),
        });
    }

    fn gaps(&mut self) -> Vec<(GapCause, u64)> {
        let gap = |measured| match measured {
            Measured::Gap(cause, ms) => Some((cause, ms)),
            Measured::Phase(..) => None,
        };
        self.core
            .take_measured()
            .into_iter()
            .filter_map(gap)
            .collect()
    }

    fn recorded(&self) -> Vec<Crossing> {
        self.core.recorder().newest(&Query {
            most: 10,
            cause: None,
            char_id: None,
        })
    }
}

#[test]
fn a_crossing_without_a_loss_is_one_tick() {
    let (mut rig, ann, _) = at_the_border();
    rig.pass(3);
    rig.walk_out(ann, 66, 100);
    rig.moved(ann, flight(Some(2)));
    rig.touch(EAST, ann);
    rig.tick_after(47);
    let measured = rig.core.take_measured();
    assert_eq!(
        measured,
        [
            Measured::Gap(GapCause::Border, 50),
            Measured::Phase(Phase::FirstFrame, 0)
        ]
    );
    let [crossing] = &rig.recorded()[..] else {
        panic!("one crossing: {:?}", rig.recorded());
    };
    assert_eq!((crossing.from, crossing.to), (Some(WEST), Some(EAST)));
    assert_eq!((crossing.generation, crossing.gap_ms), (2, Some(50)));
    assert_eq!((crossing.claim_ms, crossing.seal_ms), (Some(2), Some(1)));
    assert_eq!(crossing.outcome, Outcome::Arrived);
}

// Red (50) when `note_flight` does not ask when the feed said that the character left.
#[test]
fn the_way_of_a_slow_offer_is_part_of_it() {
    let (mut rig, ann, _) = at_the_border();
    rig.walk_out(ann, 66, 100);
    rig.tick();
    rig.pass(153);
    rig.moved(ann, flight(Some(2)));
    rig.touch(EAST, ann);
    rig.tick_after(47);
    assert_eq!(rig.gaps(), [(GapCause::Border, 250)]);
}

// Red (3,050) when a removal is remembered although its character was shown again since. Of the two frames that tell of a
// crossing the one of the lower region comes first: there the removal, and back the new battle.
#[test]
fn what_the_crossing_before_left_behind_does_not_count() {
    let (mut rig, ann, _) = at_the_border();
    for (to, x) in [(EAST, 66), (WEST, 60), (EAST, 66), (WEST, 60)] {
        rig.walk_out(ann, x, 100);
        rig.moved(ann, flight(Some(0)));
        rig.touch(to, ann);
        rig.tick();
        rig.pass(3_000);
    }
    let gaps = rig.gaps();
    assert_eq!(gaps.len(), 4);
    let longest = gaps.iter().map(|(_, ms)| *ms).max();
    assert!(longest <= Some(51), "{gaps:?}");
}

// Red when `note_shown` takes any number: the former battle's last frame would end it at once.
#[test]
fn the_former_battle_does_not_end_it() {
    let (mut rig, ann, _) = at_the_border();
    rig.body(ann).number = 2;
    rig.moved(ann, flight(Some(2)));
    rig.body(ann).number = 1;
    rig.touch(WEST, ann);
    rig.tick();
    assert_eq!(rig.gaps(), []);
    rig.walk(ann, 66, 100);
    rig.tick();
    assert_eq!(rig.gaps().len(), 1);
}

#[test]
fn who_comes_back_has_a_gap_too() {
    let (mut rig, ann, _) = at_the_border();
    rig.pass(2_010);
    rig.body(ann).number = 2;
    let leave_ms = 2_010;
    rig.moved(
        ann,
        Flight {
            leave_ms,
            ..flight(None)
        },
    );
    rig.touch(WEST, ann);
    rig.tick_after(40);
    assert_eq!(rig.gaps(), [(GapCause::Border, 2_050)]);
    assert_eq!(rig.recorded()[0].outcome, Outcome::Returned);
}

// Red when the wait for the socket is counted as a gap, and when the first delta is not waited for.
#[test]
fn a_slow_socket_is_told_by_the_first_frame_and_not_by_the_gap() {
    let (mut rig, ann, conn) = at_the_border();
    rig.client(conn).is_deaf = true;
    rig.walk(ann, 62, 100);
    rig.tick();
    rig.walk_out(ann, 66, 100);
    rig.moved(ann, flight(Some(2)));
    rig.touch(EAST, ann);
    rig.tick();
    assert_eq!(rig.gaps().len(), 1);
    assert_eq!(rig.recorded(), []);
    rig.pass(400);
    rig.hear_again(conn);
    assert_eq!(
        rig.core.take_measured(),
        [Measured::Phase(Phase::FirstFrame, 400)]
    );
    assert_eq!(rig.recorded()[0].first_frame_ms, Some(400));
}

#[test]
fn a_failover_counts_from_the_last_word_of_the_lost_sim() {
    let (mut rig, ann, _) = at_the_border();
    rig.pass(2_800);
    let node = rig.sim.node.clone();
    rig.input(Input::PeerLost { node });
    // Another boot takes over.
    rig.sim = holder("sim-1", 9);
    for row in rig.leases.values_mut() {
        row.holder = Some(rig.sim.clone());
        row.number += 1;
    }
    rig.watched.clear();
    rig.body(ann).number = 2;
    rig.pass(700);
    assert_eq!(rig.gaps(), [], "it lasts");
    let alive = vec![rig.sim.clone()];
    rig.input(Input::Members { alive });
    rig.pass(100);
    rig.touch(WEST, ann);
    rig.tick();
    assert_eq!(rig.gaps(), [(GapCause::Failover, 2_800 + 700 + 100 + 50)]);
}

// Red when what a feed shows ends a freeze: a late frame would; and when a delta is written for changes only.
#[test]
fn a_freeze_lasts_from_word_to_word() {
    let (mut rig, ann, conn) = at_the_border();
    rig.peer(ToGateway::Frozen { is_frozen: true });
    rig.touch(WEST, ann);
    rig.tick();
    rig.pass(4_950);
    assert_eq!(rig.gaps(), []);
    let seen = rig.client(conn).deltas();
    rig.peer(ToGateway::Frozen { is_frozen: false });
    assert_eq!(rig.gaps(), [(GapCause::Freeze, 5_050)]);
    rig.tick();
    rig.tick();
    let shown = rig.client(conn).deltas() - seen;
    assert_eq!(shown, 1, "nothing has changed, but the world goes on");
}

#[test]
fn a_resume_counts_from_its_first_message_to_its_snapshot() {
    let (mut rig, _, conn) = at_the_border();
    let token = rig.client(conn).token.clone();
    rig.drop_client(conn);
    rig.pass(700);
    // Once where the session is, once where it is not.
    let conn = rig.resume(&token, 0, 0);
    rig.tick();
    let [(GapCause::Resume, here)] = rig.gaps()[..] else {
        panic!("one resume");
    };
    assert!(here <= 50, "{here}");
    let token = rig.client(conn).token.clone();
    rig.pass(700);
    rig.restart_gateway();
    rig.resume(&token, 0, 0);
    rig.tick();
    let [(GapCause::Resume, elsewhere)] = rig.gaps()[..] else {
        panic!("one resume");
    };
    assert!(elsewhere <= 50, "{elsewhere}");
}

// Red when gaps are opened whether or not anybody was shown anything: the snapshot would end one.
#[test]
fn a_player_who_was_shown_nothing_yet_has_no_gap() {
    let (mut rig, ..) = at_the_border();
    let ben = rig.place("ben", 61, 100);
    rig.login("ben");
    rig.body(ben).number = 2;
    let leave_ms = 700;
    rig.moved(
        ben,
        Flight {
            leave_ms,
            ..flight(Some(2))
        },
    );
    rig.touch(WEST, ben);
    rig.tick();
    rig.touch(WEST, ben);
    rig.tick();
    assert_eq!(rig.gaps(), []);
}

#[test]
fn nobody_feels_what_happens_without_a_connection() {
    let (mut rig, ann, conn) = at_the_border();
    rig.drop_client(conn);
    rig.walk_out(ann, 66, 100);
    rig.moved(ann, flight(Some(2)));
    rig.peer(ToGateway::Frozen { is_frozen: true });
    rig.touch(EAST, ann);
    rig.tick();
    rig.peer(ToGateway::Frozen { is_frozen: false });
    rig.pass(1_000);
    assert_eq!(rig.gaps(), []);
}
