//! What clients see, against what is true.

use std::collections::BTreeMap;

use proptest::prelude::*;
use uo_proto::{AOI_RADIUS, Encoding, EntityId, EntityState};

use super::rig::{MAP, Rig};
use crate::gateway::core::ConnId;

#[test]
fn a_session_with_nothing_new_gets_nothing() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let bob = rig.place("bob", 150, 100);
    let conn = rig.enter("ann");
    rig.tick();
    rig.client(conn).take_got();
    for x in 151..160 {
        rig.walk(bob, x, 100);
        rig.tick();
    }
    assert_eq!(rig.client(conn).take_got(), []);
}

/// Red when a session may have a second delta in a tick.
#[test]
fn a_session_has_one_delta_a_tick_and_the_rest_in_the_next() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let bob = rig.place("bob", 105, 100);
    let conn = rig.enter("ann");
    rig.tick();
    rig.client(conn).take_got();
    rig.walk(bob, 106, 100);
    rig.tick();
    assert_eq!(rig.client(conn).deltas(), 1);
    // Another sim's feed, or one that was late.
    rig.walk(bob, 107, 100);
    rig.tick_after(10);
    assert_eq!(rig.client(conn).deltas(), 1);
    rig.pass(20);
    assert_eq!(rig.client(conn).deltas(), 2);
    assert_eq!(rig.client(conn).entities[&bob].state.x, 107);
}

/// Red when fragments are made per session.
#[test]
fn what_many_see_is_encoded_once() {
    let mut rig = Rig::new();
    let mover = rig.place("mover", 100, 100);
    for n in 0..30_u16 {
        rig.place(&format!("n{n}"), 95 + n % 10, 100);
        let encoding = Encoding::ALL[usize::from(n % 2)];
        let conn = rig.open(encoding);
        rig.login_on(conn, &format!("n{n}"));
    }
    rig.tick();
    rig.tick();
    let before = *rig.core.counters();
    rig.walk(mover, 101, 100);
    rig.tick();
    let after = *rig.core.counters();
    assert_eq!(after.deltas - before.deltas, 30);
    assert_eq!(
        after.fragments - before.fragments,
        2,
        "once in each encoding"
    );
    assert_eq!(after.writes - before.writes, 30, "one write each");
}

#[derive(Clone, Debug)]
enum Act {
    Walk { who: usize, x: u16, y: u16 },
    Strike { who: usize, hits: u16 },
    Deafen { who: usize },
    Hear { who: usize },
    Tick,
}

const PEOPLE: usize = 6;

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        // Around the corner of four regions.
        6 => (0..PEOPLE, 40..90_u16, 40..90_u16).prop_map(|(who, x, y)| Act::Walk { who, x, y }),
        1 => (0..PEOPLE, 0..100_u16).prop_map(|(who, hits)| Act::Strike { who, hits }),
        1 => (0..PEOPLE).prop_map(|who| Act::Deafen { who }),
        1 => (0..PEOPLE).prop_map(|who| Act::Hear { who }),
        6 => Just(Act::Tick),
    ]
}

fn truth(rig: &Rig, own: EntityId) -> BTreeMap<EntityId, EntityState> {
    let centre = rig.bodies[&own].state.pos();
    let seen = rig
        .bodies
        .values()
        .filter(|b| b.state.pos().distance(centre) <= AOI_RADIUS);
    seen.map(|body| (body.state.id, body.state)).collect()
}

fn known(rig: &mut Rig, conn: ConnId) -> BTreeMap<EntityId, EntityState> {
    let entities = &rig.client(conn).entities;
    entities
        .iter()
        .map(|(&id, enter)| (id, enter.state))
        .collect()
}

proptest! {
    /// Red when `drain_changed` forgets the cell that an entity left, when a delta takes nothing as known, or when a
    /// remove of the former region takes the entity away.
    #[test]
    fn whoever_can_be_written_to_knows_what_is_true(acts in prop::collection::vec(act(), 0..150)) {
        let mut rig = Rig::new();
        let name = |who: usize| format!("p{who}");
        let ids: Vec<_> = (0..PEOPLE).map(|who| rig.place(&name(who), 60, 60)).collect();
        let conns: Vec<_> = (0..PEOPLE).map(|who| rig.login(&name(who))).collect();
        rig.tick();
        prop_assert!(ids.iter().all(|id| rig.bodies[id].state.x < MAP));
        for act in acts {
            match act {
                Act::Walk { who, x, y } => rig.walk(ids[who], x, y),
                Act::Strike { who, hits } => {
                    rig.body(ids[who]).state.hits = hits;
                    let region = rig.bodies[&ids[who]].region;
                    rig.touch(region, ids[who]);
                }
                Act::Deafen { who } => rig.client(conns[who]).is_deaf = true,
                Act::Hear { who } => rig.hear_again(conns[who]),
                Act::Tick => {
                    rig.tick();
                    for (&conn, &id) in conns.iter().zip(&ids) {
                        if !rig.client(conn).is_deaf {
                            prop_assert_eq!(known(&mut rig, conn), truth(&rig, id));
                        }
                    }
                }
            }
        }
        conns.iter().for_each(|&conn| rig.hear_again(conn));
        rig.tick();
        rig.tick();
        for (conn, id) in conns.into_iter().zip(ids) {
            prop_assert_eq!(known(&mut rig, conn), truth(&rig, id));
        }
    }
}
