use uo_proto::{ErrorCode, ItemKind, Target};

use super::*;

const ANNA: &str = "Anna";

fn anna() -> CharId {
    CharId::of_name(ANNA)
}

fn errors(shard: &Shard) -> Vec<(ErrorCode, Option<u64>, Option<u64>)> {
    let errors = shard
        .privates()
        .into_iter()
        .filter_map(|message| match message {
            ServerMsg::Error(error) => Some((error.code, error.seq, error.private)),
            _ => None,
        });
    errors.collect()
}

// Goes red when `judge` answers `Apply` for a `seq` that is not above the last.
#[test]
fn each_order_is_applied_once() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    for seq in [1, 2, 2, 1, 3, 3] {
        shard.order(ANNA, 1, seq, look_around());
    }
    assert_eq!(shard.private_numbers(), [1, 2, 3]);
    assert_eq!(shard.core.counters().orders_duplicate, 3);
    assert_eq!(shard.last_order_of(anna()), Some(3));
}

#[test]
fn orders_of_another_session_are_dropped() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.login(ANNA, 2);
    shard.order(ANNA, 1, 1, look_around());
    shard.order(ANNA, 3, 1, look_around());
    assert_eq!(shard.private_numbers(), [] as [u64; 0]);
    assert_eq!(shard.core.counters().orders_other_session, 2);
}

#[test]
fn refusals_are_private_and_name_their_order() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    let nobody = Target::Tile(Pos::new(1, 1));
    shard.order(ANNA, 1, 1, Order::Gather { target: nobody });
    shard.order(
        ANNA,
        1,
        2,
        Order::Craft {
            item: ItemKind::Sword,
        },
    );
    shard.order(ANNA, 1, 3, Order::WalkTo { x: 60_000, y: 1 });
    assert_eq!(
        errors(&shard),
        [
            (ErrorCode::Unavailable, Some(1), Some(1)),
            (ErrorCode::Unavailable, Some(2), Some(2)),
            (ErrorCode::OutOfReach, Some(3), Some(3)),
        ]
    );
}

#[test]
fn looks_are_answered() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    let target = Target::Entity(anna().entity());
    shard.order(ANNA, 1, 1, Order::Look { target });
    let absent = Target::Entity(CharId::of_name("Nobody").entity());
    shard.order(ANNA, 1, 2, Order::Look { target: absent });
    assert!(matches!(
        &shard.privates()[..],
        [ServerMsg::Looked(looked), ServerMsg::Error(error)]
            if looked.seq == 1 && error.code == ErrorCode::NoTarget
    ));
}

#[test]
fn orders_for_nobody_are_counted() {
    let mut shard = Shard::running();
    shard.order(ANNA, 1, 1, look_around());
    assert_eq!(shard.core.counters().orders_dropped, 1);
}

#[test]
fn acknowledged_private_messages_are_forgotten() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    for seq in 1..=3 {
        shard.order(ANNA, 1, seq, look_around());
    }
    shard.send(ToSim::PlayerAck {
        char_id: anna(),
        private: 2,
    });
    shard.mail.clear();
    shard.attach(ANNA, 2, Some(1), 0);
    assert_eq!(shard.private_numbers(), [3]);
}
