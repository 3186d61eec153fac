//! Login, resume, supersession, logout, stop.

use uo_proto::{ClientMsg, Encoding, ErrorCode, MissedCount, Order, Ping, ServerMsg, close};

use super::rig::Rig;
use crate::gateway::core::Input;
use crate::limits::{LOGIN_DEADLINE_MS, SESSION_TTL_MS};
use crate::peer::{ToGateway, ToSim};

fn kinds(messages: &[ServerMsg]) -> Vec<&'static str> {
    let kind = |message: &ServerMsg| match message {
        ServerMsg::Welcome(_) => "welcome",
        ServerMsg::ServerStatus(_) => "server_status",
        ServerMsg::Snapshot(_) => "snapshot",
        ServerMsg::Delta(_) => "delta",
        ServerMsg::Error(_) => "error",
        ServerMsg::Goodbye(_) => "goodbye",
        ServerMsg::Pong(_) => "pong",
        ServerMsg::Missed(_) => "missed",
        _ => "other",
    };
    messages.iter().map(kind).collect()
}

fn errors(messages: &[ServerMsg]) -> Vec<ErrorCode> {
    let code = |message: &ServerMsg| match message {
        ServerMsg::Error(error) => Some(error.code),
        _ => None,
    };
    messages.iter().filter_map(code).collect()
}

#[test]
fn a_login_gets_welcome_status_and_snapshot() {
    for encoding in Encoding::ALL {
        let mut rig = Rig::new();
        let ann = rig.place("ann", 100, 100);
        let near = rig.place("bob", 118, 82);
        let far = rig.place("cyd", 119, 100);
        let conn = rig.open(encoding);
        rig.login_on(conn, "ann");
        rig.tick();
        let client = rig.client(conn);
        assert_eq!(kinds(&client.got), ["welcome", "server_status", "snapshot"]);
        let known: Vec<_> = client.entities.keys().copied().collect();
        assert!(known.contains(&ann) && known.contains(&near) && !known.contains(&far));
        let ServerMsg::Welcome(welcome) = &client.got[0] else {
            panic!("a welcome");
        };
        assert_eq!((welcome.x, welcome.y, welcome.last_order), (100, 100, 0));
        assert_eq!(welcome.map.size, super::rig::MAP);
    }
}

#[test]
fn who_does_not_log_in_is_closed_after_three_seconds() {
    let mut rig = Rig::new();
    let conn = rig.open(Encoding::Json);
    rig.say(conn, ClientMsg::Ping(Ping { nonce: 9 }));
    rig.pass(LOGIN_DEADLINE_MS - 1);
    assert_eq!(rig.client(conn).closed, None);
    rig.pass(1);
    assert_eq!(rig.client(conn).closed, Some(close::POLICY));
    assert_eq!(kinds(&rig.client(conn).got), ["pong"]);
    assert!(rig.core.state().connections == 0);
}

#[test]
fn orders_before_and_logins_after_the_login_are_refused_and_harm_nothing() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.open(Encoding::Json);
    rig.order(conn, 1, Order::Stop);
    assert_eq!(errors(&rig.client(conn).take_got()), [ErrorCode::Invalid]);
    rig.login_on(conn, "ann");
    rig.tick();
    rig.client(conn).take_got();
    rig.login_on(conn, "bob");
    let reason = "nonsense".into();
    rig.input(Input::Invalid {
        conn,
        reason,
        seq: Some(3),
    });
    assert_eq!(
        errors(&rig.client(conn).take_got()),
        [ErrorCode::Invalid, ErrorCode::Invalid]
    );
    rig.order(conn, 1, Order::Stop);
    assert_eq!(rig.orders_sent(), [1]);
}

#[test]
fn another_version_is_told_so() {
    let mut rig = Rig::new();
    let conn = rig.open(Encoding::Json);
    let login = uo_proto::Login {
        name: "ann".into(),
        password: None,
        version: 1,
    };
    rig.say(conn, ClientMsg::Login(login));
    let client = rig.client(conn);
    assert_eq!(errors(&client.got), [ErrorCode::Version]);
    assert_eq!(client.closed, Some(close::PROTOCOL_ERROR));
}

#[test]
fn a_resume_rotates_the_token_and_the_old_one_is_good_until_the_new_one_is_used() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let first = rig.enter("ann");
    let old = rig.client(first).token.clone();
    rig.drop_client(first);
    let second = rig.resume(&old, 0, 0);
    rig.tick();
    assert_eq!(
        kinds(&rig.client(second).got),
        ["welcome", "server_status", "snapshot"]
    );
    // The welcome was lost: the old token works once more.
    rig.drop_client(second);
    let third = rig.resume(&old, 0, 0);
    rig.tick();
    let new = rig.client(third).token.clone();
    assert_ne!(new, old);
    // Its loss is past: the new one is used, and the old one is worth nothing.
    rig.drop_client(third);
    let fourth = rig.resume(&new, 0, 0);
    rig.tick();
    assert_eq!(rig.client(fourth).closed, None);
    rig.drop_client(fourth);
    let fifth = rig.resume(&old, 0, 0);
    assert_eq!(rig.client(fifth).closed, Some(close::UNAUTHORISED));
    assert_eq!(rig.core.state().sessions, 1);
    assert_eq!(rig.rows.len(), 2, "the good ones alone are in the store");
}

#[test]
fn another_gateway_resumes_from_the_store_and_says_what_it_cannot_know() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let first = rig.enter("ann");
    let token = rig.client(first).token.clone();
    rig.restart_gateway();
    rig.sent.clear();
    let second = rig.resume(&token, 5, 7);
    rig.tick();
    let got = rig.client(second).take_got();
    assert_eq!(
        kinds(&got),
        ["welcome", "server_status", "missed", "snapshot"]
    );
    let ServerMsg::Missed(missed) = &got[2] else {
        panic!("missed");
    };
    assert_eq!(missed.public, MissedCount::Unknown);
    let attach = rig.sent.iter().find_map(|message| match message {
        ToSim::Attach(attach) => Some(attach.clone()),
        _ => None,
    });
    let attach = attach.expect("an attach");
    assert_eq!((attach.session, attach.last_private), (Some(1), 7));
}

#[test]
fn a_session_ends_when_nobody_resumes_it() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let token = rig.client(conn).token.clone();
    rig.drop_client(conn);
    rig.pass(SESSION_TTL_MS - 1_000);
    assert_eq!(rig.core.state().sessions, 1);
    assert!(
        rig.core.session_states()[0].pos.is_none(),
        "it looks at nothing"
    );
    assert_eq!(rig.core.state().subscriptions, 0);
    rig.pass(2_000);
    assert_eq!(rig.core.state().sessions, 0);
    rig.rows.clear();
    let late = rig.resume(&token, 0, 0);
    assert_eq!(rig.client(late).closed, Some(close::UNAUTHORISED));
    assert_eq!(errors(&rig.client(late).got), [ErrorCode::Unauthorised]);
    assert!(rig.bodies.contains_key(&ann));
}

#[test]
fn a_live_sessions_row_is_written_again_before_it_expires() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    rig.enter("ann");
    rig.rows.clear();
    rig.pass(SESSION_TTL_MS / 2);
    assert_eq!(rig.rows.len(), 1);
}

#[test]
fn the_newest_login_of_a_character_wins() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let old = rig.enter("ann");
    let token = rig.client(old).token.clone();
    let new = rig.enter("ann");
    assert_eq!(rig.client(old).closed, Some(close::SUPERSEDED));
    assert_eq!(errors(&rig.client(old).got), [ErrorCode::Superseded]);
    assert_eq!(rig.client(new).closed, None);
    assert_eq!(rig.core.state().sessions, 1);
    let resumed = rig.resume(&token, 0, 0);
    assert_eq!(rig.client(resumed).closed, Some(close::UNAUTHORISED));
    assert_eq!(rig.client(new).closed, None);
}

#[test]
fn a_resume_takes_the_session_from_its_own_old_connection() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let old = rig.enter("ann");
    let token = rig.client(old).token.clone();
    let new = rig.resume(&token, 0, 0);
    rig.tick();
    assert_eq!(rig.client(old).closed, Some(close::SUPERSEDED));
    assert!(!rig.client(new).token.is_empty());
    let detached = rig.sent.iter().any(|m| matches!(m, ToSim::Detach { .. }));
    assert!(!detached, "the character never lingers in between");
}

#[test]
fn an_attach_elsewhere_closes_the_connection_here() {
    let mut rig = Rig::new();
    let ann = rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let char_id = ann.character().unwrap();
    rig.peer(ToGateway::Superseded {
        char_id,
        attach: 99,
    });
    assert_eq!(
        rig.client(conn).closed,
        None,
        "of an attach that is not ours"
    );
    rig.peer(ToGateway::Superseded { char_id, attach: 1 });
    assert_eq!(rig.client(conn).closed, Some(close::SUPERSEDED));
    assert_eq!(rig.core.state().sessions, 0);
}

#[test]
fn a_logout_ends_the_session_everywhere() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let token = rig.client(conn).token.clone();
    rig.sent.clear();
    rig.order(conn, 1, Order::Logout);
    assert_eq!(rig.client(conn).closed, Some(1000));
    assert!(
        rig.sent
            .iter()
            .any(|m| matches!(m, ToSim::Detach { logout: true, .. }))
    );
    assert!(rig.rows.is_empty());
    let resumed = rig.resume(&token, 0, 0);
    assert_eq!(rig.client(resumed).closed, Some(close::UNAUTHORISED));
    rig.pass(10_000);
    assert_eq!(rig.core.state().subscriptions, 0);
}

#[test]
fn a_lost_connection_leaves_the_character_lingering() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    rig.sent.clear();
    rig.drop_client(conn);
    assert!(
        rig.sent
            .iter()
            .any(|m| matches!(m, ToSim::Detach { logout: false, .. }))
    );
    assert_eq!(rig.core.state().sessions, 1);
}

#[test]
fn a_stop_says_goodbye_and_leaves_the_sessions_to_other_gateways() {
    let mut rig = Rig::new();
    rig.place("ann", 100, 100);
    let conn = rig.enter("ann");
    let fresh = rig.open(Encoding::MessagePack);
    rig.input(Input::Stop);
    for conn in [conn, fresh] {
        let client = rig.client(conn);
        assert_eq!(client.closed, Some(close::RESTART));
        assert_eq!(kinds(&client.got).last(), Some(&"goodbye"));
    }
    assert!(rig.is_stopped);
    assert_eq!(rig.rows.len(), 1);
    let late = rig.open(Encoding::Json);
    assert_eq!(rig.client(late).closed, Some(close::RESTART));
}
