//! What depends on the clock, or on the order of arrival, to the millisecond.

use uo_proto::{CharId, RegionId};

use super::*;
use crate::identity::BootId;
use crate::store::{FaultRow, SessionRow, TokenHash};

fn beat(beat: u64, row: &str, ttl_s: u32) -> Request {
    Request::NodeBeat {
        node: "sim-1".into(),
        boot: BootId(1),
        beat,
        row: row.into(),
        ttl_s,
    }
}

fn nodes(tables: &mut Tables, now: Millis) -> Vec<String> {
    match tables.apply(now, &Request::NodesRead) {
        Ok(Reply::Nodes(rows)) => rows
            .into_iter()
            .map(|(node, boot, row)| format!("{node}/{}={}", boot.0, String::from_utf8_lossy(&row)))
            .collect(),
        other => panic!("not nodes: {other:?}"),
    }
}

fn done(tables: &mut Tables, now: Millis, request: &Request) {
    assert_eq!(tables.apply(now, request), Ok(Reply::Done));
}

/// Red with `now + ttl` as the expiry, which lets the row of 10,999 live into second 12.
#[test]
fn rows_expire_at_whole_seconds() {
    for (written, ttl_s, last_seen) in [
        (10_000, 1, 10_999),
        (10_999, 1, 10_999),
        (10_500, 20, 29_999),
    ] {
        let mut tables = Tables::default();
        done(&mut tables, written, &beat(1, "up", ttl_s));
        let demand = Request::DemandPut {
            regions: vec![RegionId(3)],
            ttl_s,
        };
        done(&mut tables, written, &demand);
        let token = TokenHash([1; 32]);
        let row = SessionRow {
            char_id: CharId(1),
            name: "Ada".into(),
            number: 1,
        };
        let put = Request::SessionPut { token, row, ttl_s };
        done(&mut tables, written, &put);
        for (now, there) in [(last_seen, true), (last_seen + 1, false)] {
            assert_eq!(!nodes(&mut tables, now).is_empty(), there, "at {now}");
            assert_eq!(
                tables.apply(now, &Request::DemandRead),
                Ok(Reply::Demand(
                    there.then_some(RegionId(3)).into_iter().collect()
                ))
            );
            let session = tables.apply(now, &Request::SessionRead { token });
            assert_eq!(matches!(session, Ok(Reply::Session(Some(_)))), there);
        }
    }
}

#[test]
fn a_time_to_live_of_nothing_is_refused() {
    let refused = Tables::default().apply(0, &beat(1, "up", 0));
    assert!(matches!(refused, Err(StoreError::Refused(_))));
}

/// Red when an expired row counts as none.
#[test]
fn a_late_beat_loses_even_to_one_that_expired() {
    let mut tables = Tables::default();
    done(&mut tables, 0, &beat(5, "fifth", 2));
    done(&mut tables, 100, &beat(4, "fourth", 3_600));
    assert_eq!(nodes(&mut tables, 200), ["sim-1/1=fifth"]);
    done(&mut tables, 3_000, &beat(4, "fourth", 3_600));
    assert!(nodes(&mut tables, 3_000).is_empty());
    done(&mut tables, 3_100, &beat(6, "sixth", 3_600));
    assert_eq!(nodes(&mut tables, 3_200), ["sim-1/1=sixth"]);
}

#[test]
fn every_boot_has_its_own_row() {
    let mut tables = Tables::default();
    for (node, boot) in [("sim-2", 1), ("sim-1", 3), ("sim-1", 2)] {
        let request = Request::NodeBeat {
            node: node.into(),
            boot: BootId(boot),
            beat: 1,
            row: b"up".to_vec(),
            ttl_s: 10,
        };
        done(&mut tables, 0, &request);
    }
    assert_eq!(
        nodes(&mut tables, 0),
        ["sim-1/2=up", "sim-1/3=up", "sim-2/1=up"]
    );
}

#[test]
fn faults_change_by_what_was_seen() {
    let mut tables = Tables::default();
    let region = RegionId(4);
    let mut cas = |seen: Option<&FaultRow>, to: &FaultRow| {
        let (seen, to) = (seen.cloned(), to.clone());
        tables.apply(0, &Request::FaultCas { region, seen, to })
    };
    let first = FaultRow {
        panics: vec![BootId(1)],
        quarantined: false,
    };
    let second = FaultRow {
        panics: vec![BootId(1), BootId(2)],
        quarantined: true,
    };
    let answer = |applied, row| Ok(Reply::FaultCas { applied, row });
    assert_eq!(cas(Some(&first), &second), answer(false, None));
    assert_eq!(cas(None, &first), answer(true, None));
    assert_eq!(cas(None, &second), answer(false, Some(first.clone())));
    assert_eq!(cas(Some(&first), &second), answer(true, None));
    let read = tables.apply(0, &Request::FaultRead { region });
    assert_eq!(read, Ok(Reply::Fault(Some(second))));
}
