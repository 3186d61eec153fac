//! Rows with a time to live, at the whole seconds of Cassandra: a row written at any moment of second `s` with a time to
//! live of `t` is gone from the beginning of second `s + t`. So it lives for more than `t - 1` seconds and at most `t`,
//! and a time to live of one second may end after a millisecond. (There, 0 means for ever; here it is refused.)
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::{Deserialize, Serialize};
use uo_proto::RegionId;

use super::{Cells, damaged, key, parse, read, region_key, region_of, table, write};
use crate::Millis;
use crate::identity::{BootId, NodeName};
use crate::store::{Reply, SessionRow, StoreError, TokenHash};

#[derive(Serialize, Deserialize)]
struct SessionCell {
    row: SessionRow,
    expires: Millis,
}

#[derive(Serialize, Deserialize)]
struct NodeCell {
    beat: u64,
    row: Vec<u8>,
    expires: Millis,
}

/// When a row written at `now` is gone.
fn expiry(now: Millis, ttl_s: u32) -> Result<Millis, StoreError> {
    match ttl_s {
        0 => Err(StoreError::Refused("a row without a time to live".into())),
        _ => Ok((now / 1_000 + u64::from(ttl_s)) * 1_000),
    }
}

fn session_key(token: TokenHash) -> Vec<u8> {
    key(table::SESSION, &token.0)
}

pub(super) fn session_put<C: Cells>(
    cells: &mut C,
    now: Millis,
    token: TokenHash,
    row: &SessionRow,
    ttl_s: u32,
) -> Result<Reply, StoreError> {
    let cell = SessionCell {
        row: row.clone(),
        expires: expiry(now, ttl_s)?,
    };
    write(cells, &session_key(token), &cell)?;
    Ok(Reply::Done)
}

pub(super) fn session<C: Cells>(
    cells: &mut C,
    now: Millis,
    token: TokenHash,
) -> Result<Reply, StoreError> {
    let key = session_key(token);
    let Some(cell) = read::<SessionCell, C>(cells, &key)? else {
        return Ok(Reply::Session(None));
    };
    if cell.expires <= now {
        cells.remove(&key)?;
        return Ok(Reply::Session(None));
    }
    Ok(Reply::Session(Some(cell.row)))
}

pub(super) fn session_delete<C: Cells>(
    cells: &mut C,
    token: TokenHash,
) -> Result<Reply, StoreError> {
    cells.remove(&session_key(token))?;
    Ok(Reply::Done)
}

/// The boot first: it has a fixed length, and the name is the rest.
fn node_key(node: &NodeName, boot: BootId) -> Vec<u8> {
    let mut key = key(table::NODE, &boot.0.to_be_bytes());
    key.extend_from_slice(node.0.as_bytes());
    key
}

fn node_of(key: &[u8]) -> Result<(NodeName, BootId), StoreError> {
    let (boot, name) = key[1..]
        .split_first_chunk()
        .ok_or_else(|| damaged("a node's key"))?;
    let name = std::str::from_utf8(name).map_err(|error| damaged(&error.to_string()))?;
    Ok((name.into(), BootId(u128::from_be_bytes(*boot))))
}

/// The beat is the write's stamp: an earlier one that arrives late loses, also to a row that has expired.
pub(super) fn node_beat<C: Cells>(
    cells: &mut C,
    now: Millis,
    (node, boot): (&NodeName, BootId),
    beat: u64,
    row: &[u8],
    ttl_s: u32,
) -> Result<Reply, StoreError> {
    let key = node_key(node, boot);
    let expires = expiry(now, ttl_s)?;
    let there: Option<NodeCell> = read(cells, &key)?;
    if there.is_none_or(|cell| beat > cell.beat) {
        let row = row.to_vec();
        write(cells, &key, &NodeCell { beat, row, expires })?;
    }
    Ok(Reply::Done)
}

pub(super) fn nodes<C: Cells>(cells: &C, now: Millis) -> Result<Reply, StoreError> {
    let mut nodes = Vec::new();
    for (key, value) in cells.with_prefix(&[table::NODE])? {
        let cell: NodeCell = parse(&value)?;
        if cell.expires > now {
            let (node, boot) = node_of(&key)?;
            nodes.push((node, boot, cell.row));
        }
    }
    nodes.sort_unstable();
    Ok(Reply::Nodes(nodes))
}

pub(super) fn demand_put<C: Cells>(
    cells: &mut C,
    now: Millis,
    regions: &[RegionId],
    ttl_s: u32,
) -> Result<Reply, StoreError> {
    let expires = expiry(now, ttl_s)?;
    for region in regions {
        write(cells, &region_key(table::DEMAND, *region), &expires)?;
    }
    Ok(Reply::Done)
}

pub(super) fn demand<C: Cells>(cells: &C, now: Millis) -> Result<Reply, StoreError> {
    let mut regions = Vec::new();
    for (key, value) in cells.with_prefix(&[table::DEMAND])? {
        if parse::<Millis>(&value)? > now {
            regions.push(region_of(&key)?);
        }
    }
    Ok(Reply::Demand(regions))
}
