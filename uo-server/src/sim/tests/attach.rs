use uo_proto::Order;

use super::*;

const ANNA: &str = "Anna";

fn anna() -> CharId {
    CharId::of_name(ANNA)
}

#[test]
fn a_new_name_gets_a_body_and_a_sealed_row() {
    let mut shard = Shard::running();
    let attached = shard.login(ANNA, 1);
    assert_eq!((attached.generation, attached.session), (1, 1));
    assert_eq!(attached.last_order, 0);
    assert_eq!(shard.region_of(anna()), Some(attached.region));
    let owner = shard.owner(anna()).expect("it has an owner");
    assert_eq!(owner.holder.as_ref(), Some(&shard.me));
    let row = shard.row(anna()).expect("the seal wrote a row");
    assert_eq!((row.generation, row.session), (1, 1));
    assert_eq!(row.fighter.pos, attached.pos);
}

#[test]
fn a_resume_costs_no_claim_and_sends_private_messages_again() {
    let mut shard = Shard::running();
    let first = shard.login(ANNA, 1);
    shard.order(ANNA, 1, 1, look_around());
    shard.order(ANNA, 1, 2, look_around());
    assert_eq!(shard.private_numbers(), [1, 2]);
    shard.detach(ANNA, 1, false);
    shard.mail.clear();
    shard.requests.clear();
    shard.attach(ANNA, 2, Some(1), 1);
    let again = shard.attached().expect("it is answered at once");
    assert_eq!((again.generation, again.session), (first.generation, 1));
    assert_eq!(again.last_order, 2);
    assert_eq!(shard.private_numbers(), [2], "the client has the first");
    assert!(!shard.requests.iter().any(is_cas));
}

#[test]
fn the_newer_session_wins_and_the_loser_is_told() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.order(ANNA, 1, 1, look_around());
    let second = shard.login(ANNA, 2);
    assert_eq!((second.session, second.last_order), (2, 0));
    let superseded = ToGateway::Superseded {
        char_id: anna(),
        attach: 1,
    };
    assert!(shard.mail.contains(&superseded));
    shard.mail.clear();
    shard.attach(ANNA, 3, Some(1), 0);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::Superseded]);
    // A new session counts its private messages from one.
    shard.order(ANNA, 2, 1, look_around());
    assert_eq!(shard.private_numbers(), [1]);
}

#[test]
fn of_equal_sessions_the_later_attach_wins() {
    let mut shard = Shard::running();
    shard.login(ANNA, 5);
    shard.attach(ANNA, 6, Some(1), 0);
    assert!(shard.attached().is_some());
    // The one before, overtaken on its way.
    shard.attach(ANNA, 4, Some(1), 0);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::Superseded]);
    shard.mail.clear();
    shard.detach(ANNA, 5, true);
    assert!(
        shard.region_of(anna()).is_some(),
        "a superseded session cannot log out"
    );
}

#[test]
fn an_attach_while_a_claim_is_under_way_is_told_to_wait() {
    let mut shard = Shard::running();
    shard.requests_are(|_| Fate::Kept);
    shard.attach(ANNA, 1, None, 0);
    shard.order(ANNA, 1, 1, look_around());
    shard.attach(ANNA, 2, None, 0);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::NotNow]);
    shard.requests_are(|_| Fate::Done);
    shard.release_requests();
    assert_eq!(shard.attached().map(|it| it.attach), Some(1));
    assert_eq!(
        shard.last_order_of(anna()),
        Some(1),
        "the order waited for the claim"
    );
}

#[test]
fn an_unknown_claim_is_repeated_with_its_nonce() {
    for fate in [Fate::DoneUnknown, Fate::LostUnknown] {
        let mut shard = Shard::running();
        let mut failures = 3;
        shard.requests_are(move |request| {
            let fails = is_character_claim(request) && failures > 0;
            failures -= u32::from(fails);
            if fails { fate } else { Fate::Done }
        });
        shard.attach(ANNA, 1, None, 0);
        assert_eq!(shard.attached(), None);
        shard.pass(1_000);
        assert!(shard.attached().is_some(), "{fate:?}");
        let claims: Vec<_> = shard
            .requests
            .iter()
            .filter(|request| is_character_claim(request))
            .collect();
        assert_eq!(claims.len(), 4);
        assert!(
            claims.iter().all(|claim| *claim == claims[0]),
            "nonce and all"
        );
    }
}

#[test]
fn a_character_of_a_live_owner_is_never_claimed() {
    let mut shard = Shard::running();
    shard.others_are_dead = false;
    let other = holder("two", 9);
    let own = Request::ClaimCas {
        right: Right::Character(anna()),
        seen: None,
        to: ClaimRow {
            holder: Some(other.clone()),
            number: 4,
            nonce: Nonce(5),
        },
    };
    shard.tables.apply(0, &own).expect("it is taken");
    shard.attach(ANNA, 1, None, 0);
    assert_eq!(
        shard.attach_refusals(),
        [AttachRefusal::Elsewhere(other.clone())]
    );
    assert!(!shard.requests.iter().any(is_character_claim));
    // Somebody is to find out whether it is dead, and then it can be claimed.
    assert_eq!(shard.suspects(), [other.boot]);
    shard.attach(ANNA, 2, None, 0);
    assert_eq!(shard.suspects(), [other.boot], "one question is enough");
    shard.input(Input::Dead { boot: other.boot });
    shard.attach(ANNA, 3, None, 0);
    assert!(shard.attached().is_some());
}

#[test]
fn who_is_gone_lingers_and_then_leaves() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.detach(ANNA, 1, false);
    shard.pass(29_000);
    assert!(shard.region_of(anna()).is_some());
    shard.pass(2_000);
    assert_eq!(shard.region_of(anna()), None);
    assert_eq!(shard.owner(anna()).and_then(|row| row.holder), None);
}

#[test]
fn whoever_comes_back_in_time_stays() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.detach(ANNA, 1, false);
    shard.pass(20_000);
    shard.attach(ANNA, 2, Some(1), 0);
    shard.pass(20_000);
    assert!(shard.region_of(anna()).is_some());
}

#[test]
fn a_logout_writes_and_releases_at_once() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    shard.order(ANNA, 1, 1, look_around());
    shard.requests_are(|request| {
        if is_character_write(request) {
            Fate::Kept
        } else {
            Fate::Done
        }
    });
    shard.order(ANNA, 1, 2, Order::Logout);
    let owner = shard.owner(anna()).expect("a row");
    assert!(owner.holder.is_some(), "not released before it is written");
    shard.release_requests();
    assert_eq!(shard.owner(anna()).and_then(|row| row.holder), None);
    assert_eq!(shard.row(anna()).map(|row| row.last_order), Some(2));
    let again = shard.login(ANNA, 2);
    assert_eq!(again.session, 2);
    assert!(again.generation > owner.number);
}

#[test]
fn a_lost_gateway_is_a_detach_of_all_its_players() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    let node = shard.gateway.node.clone();
    shard.input(Input::PeerLost { node });
    shard.pass(31_000);
    assert_eq!(shard.region_of(anna()), None);
}

#[test]
fn after_a_crash_the_client_hears_of_what_is_gone_and_numbers_go_on() {
    let mut shard = Shard::running();
    shard.login(ANNA, 1);
    for seq in 1..=3 {
        shard.order(ANNA, 1, seq, look_around());
    }
    // No checkpoint since: the row knows nothing of the three messages, the client has two.
    let mut shard = shard.restarted();
    shard.attach(ANNA, 1, Some(1), 2);
    let attached = shard.attached().expect("it is attached");
    assert_eq!((attached.session, attached.last_order), (1, 0));
    assert!(shard.mail.contains(&ToGateway::PrivateLost {
        char_id: anna(),
        generation: attached.generation,
        through: 2,
    }));
    // Inventories after the checkpoint may have been shown: their versions never come again with another content.
    let version = shard.mail.iter().find_map(|message| match message {
        ToGateway::ToPlayer {
            message: ServerMsg::Inventory(told),
            ..
        } => Some(told.inventory.version),
        _ => None,
    });
    assert_eq!(version, Some(attached.generation << 20));
    shard.order(ANNA, 1, 1, look_around());
    assert_eq!(shard.private_numbers(), [3, 4]);
}

#[test]
fn a_row_of_a_newer_build_is_left_alone() {
    let mut shard = Shard::running();
    let strange = Request::CharacterSeal {
        char_id: anna(),
        number: 1,
        row: Some(vec![99, 1, 2, 3]),
    };
    shard.tables.apply(0, &strange).expect("it is written");
    shard.attach(ANNA, 1, None, 0);
    assert_eq!(shard.attach_refusals(), [AttachRefusal::NotNow]);
    let read = Request::CharacterRead { char_id: anna() };
    let kept = shard.tables.apply(0, &read).expect("it is read");
    assert_eq!(kept, Reply::Character(Some(vec![99, 1, 2, 3])));
    assert_eq!(shard.core.counters().rows_unreadable, 1);
}
