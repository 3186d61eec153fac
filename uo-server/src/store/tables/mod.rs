//! What each request does to the tables: the rules once, over any ordered map of bytes.
//!
//! [`apply`] is all there is to know about how a store must behave. `MemStore` runs it over a `BTreeMap`, `LocalStore`
//! over a transaction of the embedded database, the simulator over a map that it delays and loses answers of.
//!
//! Reading order: this file (the map, and which rule serves which request), [`registers`] (compare-and-set),
//! [`stamped`] (last write wins by stamp), [`expiring`] (rows with a time to live).
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

mod expiring;
mod registers;
mod stamped;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uo_proto::RegionId;

use super::{Reply, Request, StoreError};
use crate::Millis;

pub use registers::bury_all;

/// Keys and their values, in key order.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// An ordered map from keys to values.
pub trait Cells {
    /// The value of `key`.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;
    /// Sets the value of `key`.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;
    /// Removes `key`.
    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError>;
    /// Every pair whose key starts with `prefix`, in key order.
    fn with_prefix(&self, prefix: &[u8]) -> Result<Pairs, StoreError>;
}

/// The tables in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tables {
    cells: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Cells for Tables {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.cells.get(key).cloned())
    }
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.cells.insert(key.to_vec(), value.to_vec());
        Ok(())
    }
    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.cells.remove(key);
        Ok(())
    }
    fn with_prefix(&self, prefix: &[u8]) -> Result<Pairs, StoreError> {
        Ok(self
            .cells
            .range(prefix.to_vec()..)
            .take_while(|(key, _)| key.starts_with(prefix))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect())
    }
}

impl Tables {
    /// Carries out `request` at `now` (milliseconds of a clock that only this store reads, for expiry).
    pub fn apply(&mut self, now: Millis, request: &Request) -> Result<Reply, StoreError> {
        apply(self, now, request)
    }
}

/// One table each, as the first byte of its keys.
mod table {
    pub const LIFE: u8 = b'l';
    pub const LEASE: u8 = b'r';
    pub const OWNER: u8 = b'o';
    pub const WORLD: u8 = b'w';
    pub const FAULT: u8 = b'f';
    pub const CHARACTER: u8 = b'c';
    pub const OBJECT: u8 = b'x';
    pub const OBJECT_SEAL: u8 = b's';
    pub const SESSION: u8 = b't';
    pub const NODE: u8 = b'n';
    pub const DEMAND: u8 = b'd';
}

fn key(table: u8, id: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + id.len());
    key.push(table);
    key.extend_from_slice(id);
    key
}

fn region_key(table: u8, region: RegionId) -> Vec<u8> {
    key(table, &region.0.to_be_bytes())
}

/// The region of a key that is a table and a region.
fn region_of(key: &[u8]) -> Result<RegionId, StoreError> {
    let id = key[1..].try_into().map_err(|_| damaged("a region's key"))?;
    Ok(RegionId(u32::from_be_bytes(id)))
}

/// Carries out one request on `cells`.
pub fn apply<C: Cells>(cells: &mut C, now: Millis, request: &Request) -> Result<Reply, StoreError> {
    match request {
        Request::LifeRead { boot } => registers::life(cells, *boot),
        Request::LifeBegin { node, boot } => registers::life_begin(cells, node, *boot),
        Request::LifeCas { boot, from, to } => registers::life_cas(cells, *boot, *from, *to),
        Request::ClaimRead { right, serial: _ } => registers::claim(cells, *right),
        Request::LeasesRead => registers::leases(cells),
        Request::ClaimCas { right, seen, to } => {
            registers::claim_cas(cells, *right, seen.as_ref(), to)
        }
        Request::WorldPin { row } => registers::world_pin(cells, row),
        Request::FaultRead { region } => registers::fault(cells, *region),
        Request::FaultCas { region, seen, to } => {
            registers::fault_cas(cells, *region, seen.as_ref(), to)
        }
        Request::CharacterRead { char_id } => stamped::character(cells, *char_id),
        Request::CharacterWrite {
            char_id,
            stamp,
            row,
        } => stamped::character_write(cells, *char_id, *stamp, row),
        Request::CharacterSeal {
            char_id,
            number,
            row,
        } => stamped::character_seal(cells, *char_id, *number, row.as_deref()),
        Request::ObjectsRead { region } => stamped::objects(cells, *region),
        Request::ObjectsWrite {
            region,
            stamp,
            rows,
        } => stamped::objects_write(cells, *region, *stamp, rows),
        Request::ObjectsSeal {
            region,
            number,
            rows,
        } => stamped::objects_seal(cells, *region, *number, rows),
        Request::SessionPut { token, row, ttl_s } => {
            expiring::session_put(cells, now, *token, row, *ttl_s)
        }
        Request::SessionRead { token } => expiring::session(cells, now, *token),
        Request::SessionDelete { token } => expiring::session_delete(cells, *token),
        Request::NodeBeat {
            node,
            boot,
            beat,
            row,
            ttl_s,
        } => expiring::node_beat(cells, now, (node, *boot), *beat, row, *ttl_s),
        Request::NodesRead => expiring::nodes(cells, now),
        Request::DemandPut { regions, ttl_s } => expiring::demand_put(cells, now, regions, *ttl_s),
        Request::DemandRead => expiring::demand(cells, now),
    }
}

/// Whether `request` changes nothing: a store may answer it from a snapshot.
pub fn is_read(request: &Request) -> bool {
    matches!(
        request,
        Request::LifeRead { .. }
            | Request::ClaimRead { .. }
            | Request::LeasesRead
            | Request::FaultRead { .. }
            | Request::CharacterRead { .. }
            | Request::ObjectsRead { .. }
            | Request::NodesRead
            | Request::DemandRead
    )
}

/// Whether `request` is about rows that say what is so just now (who is up, what is wanted), which mean nothing to a
/// process that starts later.
pub fn is_fleeting(request: &Request) -> bool {
    matches!(
        request,
        Request::NodeBeat { .. }
            | Request::NodesRead
            | Request::DemandPut { .. }
            | Request::DemandRead
    )
}

fn read<T: for<'de> Deserialize<'de>, C: Cells>(
    cells: &C,
    key: &[u8],
) -> Result<Option<T>, StoreError> {
    cells.get(key)?.map(|value| parse(&value)).transpose()
}

fn parse<T: for<'de> Deserialize<'de>>(value: &[u8]) -> Result<T, StoreError> {
    rmp_serde::from_slice(value).map_err(|error| damaged(&error.to_string()))
}

fn damaged(what: &str) -> StoreError {
    StoreError::Refused(format!("a stored cell is damaged: {what}"))
}

fn write<T: Serialize, C: Cells>(cells: &mut C, key: &[u8], value: &T) -> Result<(), StoreError> {
    let bytes = rmp_serde::to_vec_named(value).map_err(|error| damaged(&error.to_string()))?;
    cells.put(key, &bytes)
}
