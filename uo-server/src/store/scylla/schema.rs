//! The keyspace and its tables: made by `uo-server schema` (and by `--role all`), verified by everybody else.

use std::collections::BTreeSet;

use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, RequestAttemptError};

use super::columns::rows;
use super::failure::said;
use super::{OpenError, Place};

/// A day and two hours: a deleted object must stay deleted for longer than any write of it can be late, and for as long
/// as a replica may be away before it is rebuilt rather than repaired.
const STAMPED_GRACE_S: u32 = 26 * 3600;
/// Rows that expire are not missed, so their remains need not be kept for a replica that was away.
const EXPIRING_GRACE_S: u32 = 3600;

/// A table's name, its columns, and for how long deletions in it are remembered (none: nothing in it is ever deleted).
type Table = (&'static str, &'static str, Option<u32>);

/// Registers change by compare-and-set only; stamped and expiring tables never do.
const TABLES: [Table; 11] = [
    (
        "node_life",
        "boot uuid PRIMARY KEY, node text, life bigint, dead boolean",
        None,
    ),
    (
        "region_lease",
        "region int PRIMARY KEY, node text, boot uuid, epoch bigint, nonce uuid",
        None,
    ),
    (
        "char_owner",
        "char_id bigint PRIMARY KEY, node text, boot uuid, gen bigint, nonce uuid",
        None,
    ),
    (
        "accounts",
        "name text PRIMARY KEY, char_id bigint, secret text",
        None,
    ),
    (
        "region_fault",
        "region int PRIMARY KEY, panics list<uuid>, quarantined boolean",
        None,
    ),
    (
        "world",
        "id int PRIMARY KEY, seed bigint, size int, content int",
        None,
    ),
    (
        "characters",
        "char_id bigint PRIMARY KEY, row blob",
        Some(STAMPED_GRACE_S),
    ),
    (
        "objects",
        "region int, key bigint, row blob, PRIMARY KEY (region, key)",
        Some(STAMPED_GRACE_S),
    ),
    (
        "nodes",
        "node text, boot uuid, info blob, PRIMARY KEY (node, boot)",
        Some(EXPIRING_GRACE_S),
    ),
    (
        "sessions",
        "tok text PRIMARY KEY, char_id bigint, name text, number bigint",
        Some(EXPIRING_GRACE_S),
    ),
    (
        "region_demand",
        "region int PRIMARY KEY",
        Some(EXPIRING_GRACE_S),
    ),
];

/// What [`create`] found or made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Made {
    /// Whether the keyspace was missing.
    pub keyspace: bool,
    /// The tables that were missing.
    pub tables: Vec<&'static str>,
}

/// Makes what is missing, and nothing else: a statement that changes the schema is never sent where it would change
/// nothing.
pub(super) async fn create(
    session: &Session,
    place: &Place,
    replicas: u8,
) -> Result<Made, OpenError> {
    let keyspace = &place.keyspace;
    let missing = !has_keyspace(session, keyspace).await?;
    if missing {
        make_keyspace(session, keyspace, replicas).await?;
    }
    let there = tables(session, keyspace).await?;
    let mut made = Vec::new();
    for (table, columns, grace_s) in TABLES {
        if there.contains(table) {
            continue;
        }
        let options = grace_s.map_or(String::new(), |s| format!(" WITH gc_grace_seconds = {s}"));
        let text = format!("CREATE TABLE IF NOT EXISTS {keyspace}.{table} ({columns}){options}");
        change(session, &text).await?;
        made.push(table);
    }
    Ok(Made {
        keyspace: missing,
        tables: made,
    })
}

/// Refuses in one line that says what to do.
pub(super) async fn verify(session: &Session, place: &Place) -> Result<(), OpenError> {
    if !has_keyspace(session, &place.keyspace).await? {
        return Err(OpenError::NoKeyspace(place.clone()));
    }
    let there = tables(session, &place.keyspace).await?;
    let missing: Vec<_> = TABLES
        .iter()
        .map(|(table, ..)| *table)
        .filter(|table| !there.contains(*table))
        .collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(OpenError::NoTables(place.clone(), missing.join(", "))),
    }
}

/// ScyllaDB spreads a keyspace in tablets unless told otherwise, and whether compare-and-set works on those depends on
/// its version. Versions without tablets do not know the word.
async fn make_keyspace(session: &Session, keyspace: &str, replicas: u8) -> Result<(), OpenError> {
    let text = format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = \
         {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replicas}}}"
    );
    if !tables(session, "system").await?.contains("scylla_local") {
        return change(session, &text).await;
    }
    let plain = format!("{text} AND tablets = {{'enabled': false}}");
    match session.query_unpaged(plain, ()).await {
        Ok(_) => Ok(()),
        Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(
            DbError::SyntaxError | DbError::ConfigError | DbError::Invalid,
            _,
        ))) => change(session, &text).await,
        Err(error) => Err(OpenError::Schema(said(&error))),
    }
}

async fn change(session: &Session, text: &str) -> Result<(), OpenError> {
    let done = session.query_unpaged(text, ()).await;
    done.map(drop)
        .map_err(|error| OpenError::Schema(said(&error)))
}

async fn has_keyspace(session: &Session, keyspace: &str) -> Result<bool, OpenError> {
    let text = "SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?";
    Ok(!names(session, text, keyspace, "keyspace_name")
        .await?
        .is_empty())
}

async fn tables(session: &Session, keyspace: &str) -> Result<BTreeSet<String>, OpenError> {
    let text = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?";
    names(session, text, keyspace, "table_name").await
}

async fn names(
    session: &Session,
    text: &str,
    keyspace: &str,
    column: &str,
) -> Result<BTreeSet<String>, OpenError> {
    let result = session
        .query_unpaged(text, (keyspace,))
        .await
        .map_err(|error| OpenError::Schema(said(&error)))?;
    let rows = rows(result).map_err(|error| OpenError::Schema(error.to_string()))?;
    rows.iter()
        .filter_map(|row| row.text(column).transpose())
        .collect::<Result<_, _>>()
        .map_err(|error| OpenError::Schema(error.to_string()))
}
