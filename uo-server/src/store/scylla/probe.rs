//! What a node relies on, tried on the real database before it starts. Each failure says in one line what is wrong.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use scylla::client::session::Session;
use scylla::cluster::metadata::Strategy;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::unprepared::Statement;
use scylla::value::CqlValue;
use uo_proto::ObjectKey;

use super::columns::{outcome, rows};
use super::failure::Sent;
use super::{CAS_TIMEOUT, OpenError, PLAIN_TIMEOUT, ScyllaStore};
use crate::limits::{STORE_CLOCKS_APART_MS_MAX, STORE_OWN_CLOCK_APART_MS_MAX};
use crate::store::{Stamp, StoreError};

/// The row of `world` and the region of `objects` that probes use; real ones are not negative.
const NOWHERE: i32 = -1;
/// Long enough that a slow database is not taken for a wrong clock.
const TTL_S: u32 = 60;

/// Tries everything; `session` is one that is connected just now.
pub(super) async fn probe(store: &ScyllaStore, session: &Session) -> Result<(), OpenError> {
    enough_nodes(store, session)?;
    compare_and_set(store).await?;
    stamps(store).await?;
    time_to_live(store).await?;
    clocks(session).await
}

/// A request without an answer says nothing about what the database can do.
fn told(store: &ScyllaStore, error: StoreError, wrong: impl Fn(String) -> OpenError) -> OpenError {
    match error {
        StoreError::Unknown(why) => OpenError::NoAnswer(store.access.place.clone(), why),
        StoreError::Refused(why) => wrong(why),
    }
}

/// Without a quorum every request would fail, and each with a less clear message.
fn enough_nodes(store: &ScyllaStore, session: &Session) -> Result<(), OpenError> {
    let state = session.get_cluster_state();
    let keyspace = &store.access.place.keyspace;
    let replicas = match state.get_keyspace(keyspace).map(|found| &found.strategy) {
        Some(Strategy::SimpleStrategy { replication_factor }) => *replication_factor,
        Some(Strategy::NetworkTopologyStrategy {
            datacenter_repfactors,
        }) => datacenter_repfactors.values().sum(),
        _ => return Ok(()),
    };
    let nodes = state.get_nodes_info().iter();
    let up = nodes.filter(|node| node.is_connected()).count();
    let needed = replicas / 2 + 1;
    match up < needed {
        true => Err(OpenError::TooFewNodes {
            keyspace: keyspace.clone(),
            replicas,
            needed,
            nodes: up,
        }),
        false => Ok(()),
    }
}

/// A real one, from what is seen to something else, on a row that other nodes may be trying at the same time: theirs may
/// win, but then ours has to be refused, and shown why.
async fn compare_and_set(store: &ScyllaStore) -> Result<(), OpenError> {
    let refused = |error| told(store, error, OpenError::NoCas);
    let statements = &store.statements;
    let insert = async |session: &Session| {
        let values = (NOWHERE, 0_i64, 0_i32, 0_i32);
        session.execute_unpaged(&statements.world_pin, values).await
    };
    let first = store.claims.run(CAS_TIMEOUT, Sent::AtMostOnce, insert);
    let (applied, row) = outcome(first.await.map_err(refused)?).map_err(refused)?;
    let seen = match applied {
        true => 0,
        false => row
            .bigint("seed")
            .map_err(refused)?
            .ok_or_else(|| OpenError::NoCas("a refused insert does not show the row".into()))?,
    };
    let other = random_i64();
    let change = async |session: &Session| {
        let values = (other, NOWHERE, seen);
        session
            .execute_unpaged(&statements.world_change, values)
            .await
    };
    let second = store.claims.run(CAS_TIMEOUT, Sent::AtMostOnce, change);
    let (applied, row) = outcome(second.await.map_err(refused)?).map_err(refused)?;
    match (applied, row.bigint("seed").map_err(refused)?) {
        (true, _) => Ok(()),
        (false, Some(there)) if there != seen => Ok(()),
        (false, there) => Err(OpenError::NoCas(format!(
            "one from {seen} was refused, and shown {there:?}"
        ))),
    }
}

/// An earlier stamp that arrives later loses.
async fn stamps(store: &ScyllaStore) -> Result<(), OpenError> {
    let refused = |error| told(store, error, OpenError::NoStamps);
    let key = ObjectKey(random_i64().cast_unsigned());
    let at = |n| Stamp { number: 1, n }.micros();
    let nowhere = || CqlValue::Int(NOWHERE);
    let write = async |n, row: &str| {
        let bound = store.object_write(&nowhere(), key, row.into(), at(n));
        store.batch(vec![bound]).await.map_err(refused)
    };
    write(2, "newer").await?;
    write(1, "older").await?;
    let there = found(store, key).await.map_err(refused)?;
    let gone = vec![
        CqlValue::BigInt(at(3)),
        nowhere(),
        CqlValue::BigInt(key.0.cast_signed()),
    ];
    let delete = vec![(&store.statements.object_delete, gone)];
    store.batch(delete).await.map_err(refused)?;
    match there {
        Some(row) if row == b"newer" => Ok(()),
        Some(_) => Err(OpenError::NoStamps("an older write won".into())),
        None => Err(OpenError::NoStamps(
            "a write that was acknowledged is not there".into(),
        )),
    }
}

/// The row of a probe's object.
async fn found(store: &ScyllaStore, key: ObjectKey) -> Result<Option<Vec<u8>>, StoreError> {
    let statement = &store.statements.objects_read;
    for row in super::pages(&store.bulk, statement, (NOWHERE,)).await? {
        if row.bigint("key")? == Some(key.0.cast_signed()) {
            return row.blob("row");
        }
    }
    Ok(None)
}

/// Written through one node and read through another whose clock is far ahead, a row has expired already.
async fn time_to_live(store: &ScyllaStore) -> Result<(), OpenError> {
    let wrong = |why: String| OpenError::NoTtl { ttl_s: TTL_S, why };
    let token = format!("probe-{:016x}", random_i64());
    let (put, read) = (
        &store.statements.session_put,
        &store.statements.session_read,
    );
    let write = async |session: &Session| {
        let values = (&token, 0_i64, "probe", 0_i64, TTL_S.cast_signed());
        session.execute_unpaged(put, values).await
    };
    let written = store.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, write).await;
    written.map_err(|error| told(store, error, wrong))?;
    let look = async |session: &Session| session.execute_unpaged(read, (&token,)).await;
    let seen = store.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, look).await;
    let rows = seen.and_then(rows);
    match rows.map_err(|error| told(store, error, wrong))?.is_empty() {
        true => Err(wrong("it is not there".into())),
        false => Ok(()),
    }
}

/// The clock of each node, read through it.
async fn clocks(session: &Session) -> Result<(), OpenError> {
    let mut ahead = BTreeMap::new();
    for node in session.get_cluster_state().get_nodes_info() {
        if !node.is_connected() {
            continue;
        }
        let mut statement =
            Statement::new("SELECT toUnixTimestamp(now()) AS now FROM system.local");
        let node_only = NodeIdentifier::Node(node.clone());
        statement
            .set_load_balancing_policy(Some(SingleTargetLoadBalancingPolicy::new(node_only, None)));
        statement.set_request_timeout(Some(PLAIN_TIMEOUT));
        let (asked, ours) = (Instant::now(), wall_clock_ms());
        let Ok(result) = session.query_unpaged(statement, ()).await else {
            // It went away since; the others are compared.
            continue;
        };
        let half = (asked.elapsed() / 2).as_millis() as i64;
        let theirs = rows(result)
            .ok()
            .and_then(|mut rows| rows.pop()?.bigint("now").ok()?);
        if let Some(theirs) = theirs {
            ahead.insert(theirs - ours - half, node.address.to_string());
        }
    }
    let (Some((least, one)), Some((most, other))) =
        (ahead.first_key_value(), ahead.last_key_value())
    else {
        return Ok(());
    };
    if most - least > STORE_CLOCKS_APART_MS_MAX {
        return Err(OpenError::Clocks {
            one: one.clone(),
            other: other.clone(),
            apart_ms: most.abs_diff(*least),
        });
    }
    if most.abs() > STORE_OWN_CLOCK_APART_MS_MAX {
        let apart = Duration::from_millis(most.unsigned_abs());
        tracing::warn!(node = %other, ?apart, "the database's clock is not this machine's; nothing relies on that");
    }
    Ok(())
}

fn wall_clock_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as i64)
}

fn random_i64() -> i64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    i64::from_be_bytes(bytes)
}
