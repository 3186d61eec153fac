//! All connections of one node, in virtual time.

use super::*;
use crate::limits::RETRY_MAX_MS;
use crate::peer::samples::holder;

fn links(me: &str) -> Links {
    Links::new(me.into(), Role::Sim, 1)
}

fn give(links: &mut Links, now: Millis, input: Input) -> Vec<Effect> {
    let mut effects = Vec::new();
    links.handle(now, input, &mut effects);
    effects
}

fn at(node: &str, boot: u128, address: &str) -> PeerAddress {
    PeerAddress {
        holder: holder(node, boot),
        role: Role::Sim,
        address: Some(address.into()),
    }
}

fn peer(node: &str, boot: u128) -> Proven {
    Proven {
        holder: holder(node, boot),
        role: Role::Sim,
        version: 1,
    }
}

fn proven(links: &mut Links, now: Millis, conn: ConnId, of: Proven) -> Vec<Effect> {
    give(links, now, Input::Proven { conn, peer: of })
}

fn ended(links: &mut Links, now: Millis, conn: ConnId, why: Ended) -> Vec<Effect> {
    give(links, now, Input::Ended { conn, why })
}

/// Who was dialed, and by which connection.
fn dials(effects: &[Effect]) -> Vec<(String, String, ConnId)> {
    let dials = effects.iter().filter_map(|effect| match effect {
        Effect::Dial {
            conn,
            node,
            address,
        } => Some((node.to_string(), address.clone(), *conn)),
        _ => None,
    });
    dials.collect()
}

fn dialed(effects: &[Effect]) -> ConnId {
    let dials = dials(effects);
    assert_eq!(dials.len(), 1, "{effects:?}");
    dials[0].2
}

fn called(links: &mut Links, now: Millis) -> ConnId {
    match give(links, now, Input::Called { from: "x".into() })[..] {
        [Effect::Greet { conn }] => conn,
        ref other => panic!("{other:?}"),
    }
}

fn linked_are(nodes: &[&str]) -> Effect {
    Effect::Linked {
        nodes: nodes.iter().map(|&node| node.into()).collect(),
    }
}

fn lost(node: &str) -> Effect {
    Effect::Lost { node: node.into() }
}

#[test]
fn the_smaller_name_dials() {
    let mut links = links("sim-2");
    let peers = vec![
        at("sim-1", 1, "a:1"),
        at("sim-2", 2, "a:2"),
        at("sim-3", 3, "a:3"),
    ];
    let effects = give(&mut links, 0, Input::Peers(peers));
    let conn = dialed(&effects);
    assert_eq!(dials(&effects), [("sim-3".into(), "a:3".into(), conn)]);
    let effects = proven(&mut links, 1, conn, peer("sim-3", 3));
    let admit = Effect::Admit {
        conn,
        peer: peer("sim-3", 3),
    };
    assert_eq!(effects, [admit, linked_are(&["sim-3"])]);

    let conn = called(&mut links, 2);
    let effects = proven(&mut links, 2, conn, peer("sim-1", 1));
    assert_eq!(effects[1..], [linked_are(&["sim-1", "sim-3"])]);
}

#[test]
fn two_gateways_have_nothing_to_say_to_each_other() {
    let mut links = Links::new("gw-1".into(), Role::Gateway, 1);
    let mut other = at("gw-2", 2, "a:2");
    other.role = Role::Gateway;
    let peers = vec![other, at("sim-1", 1, "a:1")];
    let effects = give(&mut links, 0, Input::Peers(peers));
    assert_eq!(dials(&effects)[0].0, "sim-1");
    dialed(&effects);
}

#[test]
fn a_node_that_does_not_answer_is_dialed_less_and_less_often() {
    let mut links = links("sim-1");
    let effects = give(&mut links, 0, Input::Peers(vec![at("sim-2", 2, "a:2")]));
    let mut conn = dialed(&effects);
    let mut now = 0;
    let mut waits = Vec::new();
    for try_number in 0..12 {
        let effects = ended(&mut links, now, conn, Ended::Unreachable("no".into()));
        let reports = effects
            .iter()
            .filter(|it| matches!(it, Effect::Report { .. }));
        assert_eq!(reports.count(), usize::from(try_number == 0), "said once");
        assert_eq!(dials(&effects), []);
        waits.push(links.wake_at() - now);
        now = links.wake_at();
        assert_eq!(dials(&give(&mut links, now - 1, Input::Tick)), []);
        conn = dialed(&give(&mut links, now, Input::Tick));
    }
    assert!(waits[0] <= 50 && waits[11] >= RETRY_MAX_MS / 2);
    assert!(waits.iter().all(|&wait| wait <= RETRY_MAX_MS));
    // A link that was made and lost is made again at once.
    proven(&mut links, now, conn, peer("sim-2", 2));
    let effects = ended(&mut links, now, conn, Ended::HungUp);
    assert_eq!(effects[0], lost("sim-2"));
    assert_eq!(effects.last(), Some(&linked_are(&[])));
    assert!(links.wake_at() - now <= 50);
}

#[test]
fn a_node_that_is_gone_is_not_dialed() {
    let mut links = links("sim-1");
    let effects = give(&mut links, 0, Input::Peers(vec![at("sim-2", 2, "a:2")]));
    let conn = dialed(&effects);
    give(&mut links, 1, Input::Peers(Vec::new()));
    ended(&mut links, 2, conn, Ended::Unreachable("no".into()));
    assert_eq!(links.wake_at(), Millis::MAX);
}

#[test]
fn every_address_of_a_name_is_tried() {
    let mut links = links("sim-1");
    let peers = vec![at("sim-2", 2, "a:2"), at("sim-2", 3, "a:3")];
    let effects = give(&mut links, 0, Input::Peers(peers));
    let first = dialed(&effects);
    ended(&mut links, 0, first, Ended::Unreachable("no".into()));
    let now = links.wake_at();
    let effects = give(&mut links, now, Input::Tick);
    assert_eq!(dials(&effects)[0].1, "a:3");
}

#[test]
fn a_second_connection_of_one_boot_takes_the_place_of_a_half_open_one() {
    let mut links = links("sim-9");
    let first = called(&mut links, 0);
    proven(&mut links, 0, first, peer("sim-1", 1));
    let second = called(&mut links, 5);
    let why = Ended::Replaced;
    let effects = proven(&mut links, 5, second, peer("sim-1", 1));
    // The old one is ended before anything is told: what it still delivers belongs to the old link.
    assert_eq!(
        effects,
        [Effect::Close {
            conn: first,
            why: why.clone()
        }]
    );
    let effects = ended(&mut links, 6, first, why);
    assert_eq!(effects[0], lost("sim-1"));
    let admit = Effect::Admit {
        conn: second,
        peer: peer("sim-1", 1),
    };
    assert!(effects.contains(&admit));
    assert_eq!(effects.last(), Some(&linked_are(&["sim-1"])));
}

/// Guards the memory of who was replaced.
#[test]
fn a_newer_boot_takes_over_and_the_older_one_never_comes_back() {
    let mut links = links("sim-9");
    let old = called(&mut links, 0);
    proven(&mut links, 0, old, peer("sim-1", 1));
    let new = called(&mut links, 5);
    proven(&mut links, 5, new, peer("sim-1", 2));
    ended(&mut links, 6, old, Ended::Replaced);
    let late = called(&mut links, 7);
    let effects = proven(&mut links, 7, late, peer("sim-1", 1));
    let why = Ended::OlderBoot;
    assert_eq!(effects, [Effect::Close { conn: late, why }]);
    let boots: Vec<_> = links.linked().map(|it| it.holder.boot.0).collect();
    assert_eq!(boots, [2]);
}

#[test]
fn of_three_at_once_the_last_becomes_the_link() {
    let mut links = links("sim-9");
    let conns: Vec<_> = (0..3).map(|_| called(&mut links, 0)).collect();
    proven(&mut links, 0, conns[0], peer("sim-1", 1));
    proven(&mut links, 0, conns[1], peer("sim-1", 2));
    let effects = proven(&mut links, 0, conns[2], peer("sim-1", 3));
    let why = Ended::Replaced;
    assert_eq!(
        effects,
        [Effect::Close {
            conn: conns[1],
            why: why.clone()
        }]
    );
    assert_eq!(ended(&mut links, 1, conns[1], why.clone()), []);
    ended(&mut links, 1, conns[0], why);
    let boots: Vec<_> = links.linked().map(|it| it.holder.boot.0).collect();
    assert_eq!(boots, [3]);
}

#[test]
fn a_restarted_node_is_dialed_at_its_new_address_though_the_old_link_seems_to_be_up() {
    let mut links = links("sim-1");
    let effects = give(&mut links, 0, Input::Peers(vec![at("sim-2", 2, "a:2")]));
    let old = dialed(&effects);
    proven(&mut links, 0, old, peer("sim-2", 2));
    // The same process as another boot, at the same address: nothing to do.
    let reborn = vec![at("sim-2", 2, "a:2"), at("sim-2", 7, "a:2")];
    assert_eq!(give(&mut links, 1, Input::Peers(reborn)), []);
    let restarted = vec![at("sim-2", 2, "a:2"), at("sim-2", 3, "a:3")];
    let effects = give(&mut links, 2, Input::Peers(restarted));
    assert_eq!(dials(&effects)[0].1, "a:3");
    let new = dialed(&effects);
    let why = Ended::Replaced;
    let effects = proven(&mut links, 3, new, peer("sim-2", 3));
    assert_eq!(
        effects,
        [Effect::Close {
            conn: old,
            why: why.clone()
        }]
    );
    ended(&mut links, 4, old, why);
    let boots: Vec<_> = links.linked().map(|it| it.holder.boot.0).collect();
    assert_eq!(boots, [3]);
    assert_eq!(links.wake_at(), Millis::MAX, "nobody is to be dialed");
}

#[test]
fn when_two_dial_each_other_one_link_comes_of_it() {
    // The greater name dials against the rule; its connection is refused before it is proven, as `connection` shows.
    let mut links = links("sim-1");
    let effects = give(&mut links, 0, Input::Peers(vec![at("sim-2", 2, "a:2")]));
    let ours = dialed(&effects);
    let theirs = called(&mut links, 0);
    let effects = proven(&mut links, 1, ours, peer("sim-2", 2));
    assert_eq!(effects[1..], [linked_are(&["sim-2"])]);
    let effects = ended(&mut links, 1, theirs, Ended::WrongDirection);
    assert!(matches!(effects[..], [Effect::Report { .. }]));
    assert_eq!(links.linked().count(), 1);
}

#[test]
fn a_connection_that_proved_itself_in_time_but_ended_first_leaves_nothing() {
    let mut links = links("sim-9");
    let first = called(&mut links, 0);
    proven(&mut links, 0, first, peer("sim-1", 1));
    let second = called(&mut links, 0);
    proven(&mut links, 0, second, peer("sim-1", 2));
    assert_eq!(ended(&mut links, 1, second, Ended::HungUp), []);
    let effects = ended(&mut links, 1, first, Ended::Replaced);
    assert_eq!(effects.last(), Some(&linked_are(&[])));
}

#[test]
fn strangers_are_bounded() {
    let mut links = links("sim-9");
    let conns: Vec<_> = (0..PEER_HANDSHAKES_MAX)
        .map(|_| called(&mut links, 0))
        .collect();
    let call = || Input::Called { from: "y".into() };
    let effects = give(&mut links, 0, call());
    assert_eq!(effects.last(), Some(&Effect::TurnAway));
    ended(&mut links, 1, conns[0], Ended::Overdue);
    assert!(matches!(
        give(&mut links, 1, call())[..],
        [Effect::Greet { .. }]
    ));
}

#[test]
fn peers_are_bounded() {
    let mut links = links("z");
    for number in 0..=PEERS_MAX {
        let conn = called(&mut links, 0);
        let name = format!("sim-{number}");
        let effects = proven(&mut links, 0, conn, peer(&name, 1));
        let why = Ended::TooMany;
        let is_full = number == PEERS_MAX;
        assert_eq!(
            effects == [Effect::Close { conn, why }],
            is_full,
            "{number}"
        );
    }
}

#[test]
fn a_refusal_is_reported_once_and_counted_each_time() {
    let mut links = links("sim-9");
    for round in 0..3 {
        let conn = called(&mut links, 0);
        let effects = ended(&mut links, 0, conn, Ended::WrongProof);
        assert_eq!(effects.len(), usize::from(round == 0));
    }
    assert_eq!(links.counters().refused, 3);
}
