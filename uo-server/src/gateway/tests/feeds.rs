//! Subscriptions and the feeds they bring.

use std::sync::Arc;

use uo_proto::{ObjectKey, ObjectKind, ObjectState, RegionId};

use super::rig::{Rig, holder};
use crate::gateway::core::Input;
use crate::limits::SUBSCRIPTION_LINGER_MS;
use crate::peer::{ToGateway, ToSim};

fn subscribed(rig: &mut Rig) -> Vec<u32> {
    let regions = rig.sent.iter().filter_map(|message| match message {
        ToSim::Subscribe { region } => Some(region.0),
        _ => None,
    });
    let regions = regions.collect();
    rig.sent.clear();
    regions
}

fn unsubscribed(rig: &mut Rig) -> Vec<u32> {
    let regions = rig.sent.iter().filter_map(|message| match message {
        ToSim::Unsubscribe { region } => Some(region.0),
        _ => None,
    });
    let regions = regions.collect();
    rig.sent.clear();
    regions
}

#[test]
fn the_regions_around_all_sessions_are_subscribed_once_each() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 30, 30);
    rig.place("bob", 31, 30);
    rig.enter("ann");
    assert_eq!(subscribed(&mut rig), [0]);
    rig.enter("bob");
    assert_eq!(subscribed(&mut rig), [] as [u32; 0]);
    // 30 tiles from the border: the battles of the neighbours reach into view.
    rig.walk(ann, 34, 34);
    rig.tick();
    assert_eq!(subscribed(&mut rig), [1, 4, 5]);
    rig.walk(ann, 33, 33);
    rig.tick();
    rig.pass(SUBSCRIPTION_LINGER_MS - 1_100);
    assert_eq!(unsubscribed(&mut rig), [] as [u32; 0]);
    rig.pass(2_200);
    assert_eq!(unsubscribed(&mut rig), [1, 4, 5]);
}

#[test]
fn a_gap_is_answered_with_a_new_subscription_and_an_old_epoch_with_nothing() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 30, 30);
    let conn = rig.enter("ann");
    rig.walk(ann, 31, 30);
    rig.tick();
    subscribed(&mut rig);
    rig.watched.insert(RegionId(0), 77);
    rig.walk(ann, 32, 30);
    rig.tick();
    assert_eq!(subscribed(&mut rig), [0]);
    assert_eq!(rig.client(conn).entities[&ann].state.x, 31);
    rig.tick();
    rig.tick();
    assert_eq!(rig.client(conn).entities[&ann].state.x, 32);
    let mut old = rig.full(RegionId(0));
    old.epoch = 0;
    old.entities.clear();
    rig.peer(ToGateway::FeedFull(Arc::new(old)));
    rig.pass(1_000);
    assert_eq!(rig.core.counters().feeds_stale, 1);
    assert_eq!(rig.core.view.sizes().0, 1);
}

#[test]
fn a_region_that_changes_hands_is_subscribed_at_its_new_holder() {
    let mut rig = Rig::new();
    rig.place("ann", 30, 30);
    rig.enter("ann");
    subscribed(&mut rig);
    let other = holder("sim-2", 5);
    let alive = vec![rig.sim.clone(), other.clone()];
    rig.input(Input::Members { alive });
    let row = rig.leases.get_mut(&RegionId(0)).unwrap();
    row.holder = Some(other);
    row.number = 2;
    rig.peer(ToGateway::FeedEnd {
        region: RegionId(0),
        epoch: 1,
    });
    rig.pass(100);
    // It is asked of the store and subscribed at the other node: nothing comes here.
    assert_eq!(subscribed(&mut rig), [] as [u32; 0]);
    assert_eq!(rig.core.state().subscriptions, 0);
    assert_eq!(rig.core.view.sizes().0, 1, "what it showed stays");
}

#[test]
fn objects_come_with_their_changes_and_go_back_with_a_full_state() {
    let mut rig = Rig::new();
    rig.place("ann", 30, 30);
    let conn = rig.enter("ann");
    let key = ObjectKey::new(RegionId(0), uo_proto::RUNTIME_OBJECT_BIT | 1);
    let stone = ObjectState {
        key,
        kind: ObjectKind::Stone,
        x: 35,
        y: 30,
        edge: None,
        hits: 10,
        active: false,
        gone: false,
    };
    rig.object(stone);
    rig.tick();
    assert_eq!(rig.client(conn).objects[&key], stone);
    rig.object(ObjectState { hits: 5, ..stone });
    rig.tick();
    assert_eq!(rig.client(conn).objects[&key].hits, 5);
    rig.tick();
    // A full state without it: it is gone, and the client is told.
    rig.objects.clear();
    let full = rig.full(RegionId(0));
    rig.peer(ToGateway::FeedFull(Arc::new(full)));
    rig.pass(60);
    assert!(rig.client(conn).objects[&key].gone);
}
