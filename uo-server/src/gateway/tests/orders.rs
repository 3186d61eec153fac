//! Orders reach the owner in order, and again only when they must.

use uo_proto::{ErrorCode, NumberedOrder, Order, Pos, RegionId, ServerMsg, Target};

use super::rig::{Rig, holder};
use crate::gateway::core::Input;
use crate::limits::SESSION_ORDERS_MAX;
use crate::peer::message::AttachRefusal;
use crate::peer::{ToGateway, ToSim};

#[test]
fn orders_wait_for_the_attach_and_are_bounded() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.refusals = vec![AttachRefusal::NotNow];
    let conn = rig.login("ann");
    let max = SESSION_ORDERS_MAX as u64;
    (1..=max + 1).for_each(|seq| rig.order(conn, seq, Order::Stop));
    assert_eq!(rig.orders_sent(), [] as [u64; 0]);
    let refused = rig.client(conn).take_got();
    let Some(ServerMsg::Error(error)) = refused.last() else {
        panic!("an error");
    };
    assert_eq!((error.code, error.seq), (ErrorCode::Busy, Some(max + 1)));
    rig.pass(100);
    assert_eq!(rig.orders_sent(), (1..=max).collect::<Vec<_>>());
}

#[test]
fn replayed_and_misnumbered_orders_go_nowhere() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    for seq in [5, 5, 4, 0, u64::MAX, 6] {
        rig.order(conn, seq, Order::Stop);
    }
    assert_eq!(rig.orders_sent(), [5, 6]);
    assert_eq!(rig.core.counters().orders_repeated, 2);
    rig.order(conn, 7, Order::WalkTo { x: 9_999, y: 0 });
    assert_eq!(rig.orders_sent(), [] as [u64; 0]);
}

#[test]
fn what_is_said_has_the_length_that_was_told() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let say = |bytes: usize| Order::Say {
        text: "é".repeat(bytes / 2),
    };
    rig.client(conn).take_got();
    rig.order(conn, 1, say(258));
    let refused = rig.client(conn).take_got();
    let [ServerMsg::Error(error)] = &refused[..] else {
        panic!("an error, not {refused:?}");
    };
    assert_eq!((error.code, error.seq), (ErrorCode::Invalid, Some(1)));
    rig.order(conn, 1, say(256));
    assert_eq!(rig.orders_sent(), [1]);
}

#[test]
fn acknowledged_orders_are_forgotten_and_the_client_is_told() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.tick();
    rig.client(conn).take_got();
    rig.order(conn, 1, Order::Stop);
    rig.apply_order(ann, 1);
    rig.tick();
    let got = rig.client(conn).take_got();
    let [ServerMsg::Delta(delta)] = &got[..] else {
        panic!("one delta, not {got:?}");
    };
    assert_eq!((delta.ack, delta.update.len()), (1, 0));
    rig.tick();
    assert_eq!(rig.client(conn).take_got(), []);
}

/// Red when `follow_touched` believes any number.
#[test]
fn the_orders_of_an_earlier_session_acknowledge_none_of_this_one() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.client(conn).take_got();
    rig.order(conn, 1, Order::Stop);
    rig.apply_order(ann, 50);
    rig.tick();
    assert_eq!(rig.client(conn).take_got(), []);
    rig.apply_order(ann, 1);
    rig.tick();
    assert_eq!(rig.client(conn).deltas(), 1);
    assert_eq!(rig.core.session_states()[0].orders, (1, 1));
}

#[test]
fn another_owner_is_sent_what_is_not_acknowledged() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let char_id = ann.character().unwrap();
    rig.order(conn, 1, Order::Stop);
    rig.order(conn, 2, Order::Guard);
    rig.apply_order(ann, 1);
    rig.tick();
    rig.sent.clear();
    let moved = |generation, owner| ToGateway::Moved {
        char_id,
        generation,
        region: RegionId(0),
        owner,
        flight: None,
    };
    // Within a node nothing is sent again: the orders are there.
    rig.peer(moved(2, rig.sim.clone()));
    rig.order(conn, 3, Order::Stop);
    assert_eq!(rig.orders_sent(), [3]);
    let other = holder("sim-2", 9);
    let alive = vec![rig.sim.clone(), other.clone()];
    rig.input(Input::Members { alive });
    let mut effects = Vec::new();
    let from = other.clone();
    let message = moved(3, other.clone());
    rig.core
        .handle(rig.now, Input::Peer { from, message }, &mut effects);
    let sent: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            crate::gateway::core::Effect::Send {
                to,
                message: crate::peer::Message::ToSim(ToSim::Order(order)),
            } => Some((to.clone(), order.order.seq, order.generation)),
            _ => None,
        })
        .collect();
    assert_eq!(
        sent,
        [(other.node.clone(), 2, 3), (other.node.clone(), 3, 3)]
    );
    // An older word about it changes nothing.
    rig.peer(moved(2, rig.sim.clone()));
    assert_eq!(rig.core.session_states()[0].owner.as_deref(), Some("sim-2"));
}

#[test]
fn an_order_says_where_its_target_fights() {
    let mut rig = Rig::new();
    rig.place("ann", 60, 60);
    let bob = rig.place("bob", 66, 60);
    let conn = rig.enter("ann");
    let targets = [
        (Target::Entity(bob), Some(RegionId(1))),
        (Target::Tile(Pos::new(60, 70)), Some(RegionId(4))),
        (Target::Entity(uo_proto::EntityId(3)), None),
    ];
    for (seq, (target, region)) in (1..).zip(targets) {
        rig.sent.clear();
        rig.order(conn, seq, Order::Attack { target });
        let [ToSim::Order(order)] = &rig.sent[..] else {
            panic!("one order");
        };
        assert_eq!(order.target_region, region);
        assert_eq!(
            order.order,
            NumberedOrder {
                seq,
                order: Order::Attack { target }
            }
        );
    }
}
