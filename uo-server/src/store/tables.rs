//! What each request does to the tables: the rules once, over any ordered map of bytes.
//!
//! [`apply`] is all there is to know about how a store must behave. `MemStore` runs it over a `BTreeMap`, `LocalStore`
//! over a transaction of the embedded database, the simulator over a map that it delays and loses answers of.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uo_proto::{CharId, ObjectKey, RegionId};

use super::{
    ClaimRow, Life, Reply, Request, Right, SessionRow, Stamp, StoreError, TokenHash, WorldRow,
};
use crate::Millis;
use crate::identity::{BootId, NodeName};

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
    pub const CHARACTER: u8 = b'c';
    pub const OBJECT: u8 = b'x';
    pub const OBJECT_SEAL: u8 = b's';
    pub const SESSION: u8 = b't';
}

fn key(table: u8, id: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + id.len());
    key.push(table);
    key.extend_from_slice(id);
    key
}

fn life_key(boot: BootId) -> Vec<u8> {
    key(table::LIFE, &boot.0.to_be_bytes())
}

fn claim_key(right: Right) -> Vec<u8> {
    match right {
        Right::Region(region) => key(table::LEASE, &region.0.to_be_bytes()),
        Right::Character(char_id) => key(table::OWNER, &char_id.0.to_be_bytes()),
    }
}

fn character_key(char_id: CharId) -> Vec<u8> {
    key(table::CHARACTER, &char_id.0.to_be_bytes())
}

fn region_key(table: u8, region: RegionId) -> Vec<u8> {
    key(table, &region.0.to_be_bytes())
}

fn object_key(region: RegionId, object: ObjectKey) -> Vec<u8> {
    let mut key = region_key(table::OBJECT, region);
    key.extend_from_slice(&object.0.to_be_bytes());
    key
}

fn session_key(token: TokenHash) -> Vec<u8> {
    key(table::SESSION, &token.0)
}

/// The last eight bytes of a key, as the id that they are.
fn tail_u64(key: &[u8]) -> u64 {
    let tail = key[key.len() - 8..].try_into().expect("eight bytes");
    u64::from_be_bytes(tail)
}

#[derive(Serialize, Deserialize)]
struct LifeCell {
    node: Option<NodeName>,
    life: Life,
}

/// A partition of one row, and the tombstone over it.
#[derive(Default, Serialize, Deserialize)]
struct CharacterCell {
    sealed: i64,
    written: i64,
    row: Option<Vec<u8>>,
}

/// A row of a partition; none is a deleted row, which must outlive late writes.
#[derive(Serialize, Deserialize)]
struct ObjectCell {
    written: i64,
    row: Option<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct SessionCell {
    row: SessionRow,
    expires: Millis,
}

/// Carries out one request on `cells`.
pub fn apply<C: Cells>(cells: &mut C, now: Millis, request: &Request) -> Result<Reply, StoreError> {
    match request {
        Request::LifeRead { boot } => Ok(Reply::Life(
            read::<LifeCell, C>(cells, &life_key(*boot))?.map(|cell| cell.life),
        )),
        Request::LifeBegin { node, boot } => life_begin(cells, node, *boot),
        Request::LifeCas { boot, from, to } => life_cas(cells, *boot, *from, *to),
        Request::ClaimRead { right, serial: _ } => {
            Ok(Reply::Claim(read(cells, &claim_key(*right))?))
        }
        Request::LeasesRead => leases(cells),
        Request::ClaimCas { right, seen, to } => {
            let key = claim_key(*right);
            let row: Option<ClaimRow> = read(cells, &key)?;
            if row.as_ref().map(ClaimRow::seen) != *seen {
                return Ok(Reply::ClaimCas {
                    applied: false,
                    row,
                });
            }
            write(cells, &key, to)?;
            Ok(Reply::ClaimCas {
                applied: true,
                row: None,
            })
        }
        Request::WorldPin { row } => {
            let key = key(table::WORLD, &[]);
            if let Some(there) = read::<WorldRow, C>(cells, &key)? {
                return Ok(Reply::World(there));
            }
            write(cells, &key, row)?;
            Ok(Reply::World(*row))
        }
        Request::CharacterRead { char_id } => {
            let cell: Option<CharacterCell> = read(cells, &character_key(*char_id))?;
            Ok(Reply::Character(cell.and_then(|cell| cell.row)))
        }
        Request::CharacterWrite {
            char_id,
            stamp,
            row,
        } => character_write(cells, *char_id, *stamp, row),
        Request::CharacterSeal {
            char_id,
            number,
            row,
        } => character_seal(cells, *char_id, *number, row.as_deref()),
        Request::ObjectsRead { region } => objects(cells, *region),
        Request::ObjectsWrite {
            region,
            stamp,
            rows,
        } => {
            let sealed = seal_of(cells, *region)?;
            for (object, row) in rows {
                object_write(cells, sealed, *region, *object, *stamp, row.as_deref())?;
            }
            Ok(Reply::Done)
        }
        Request::ObjectsSeal {
            region,
            number,
            rows,
        } => objects_seal(cells, *region, *number, rows),
        Request::SessionPut { token, row, ttl_s } => {
            let expires = now + u64::from(*ttl_s) * 1000;
            write(
                cells,
                &session_key(*token),
                &SessionCell {
                    row: row.clone(),
                    expires,
                },
            )?;
            Ok(Reply::Done)
        }
        Request::SessionRead { token } => session_read(cells, now, *token),
        Request::SessionDelete { token } => {
            cells.remove(&session_key(*token))?;
            Ok(Reply::Done)
        }
    }
}

fn life_begin<C: Cells>(cells: &mut C, node: &NodeName, boot: BootId) -> Result<Reply, StoreError> {
    let key = life_key(boot);
    if let Some(cell) = read::<LifeCell, C>(cells, &key)? {
        return Ok(Reply::Life(Some(cell.life)));
    }
    let cell = LifeCell {
        node: Some(node.clone()),
        life: Life::Alive(1),
    };
    write(cells, &key, &cell)?;
    Ok(Reply::Life(Some(cell.life)))
}

fn life_cas<C: Cells>(
    cells: &mut C,
    boot: BootId,
    from: Option<Life>,
    to: Life,
) -> Result<Reply, StoreError> {
    let key = life_key(boot);
    let there: Option<LifeCell> = read(cells, &key)?;
    let life = there.as_ref().map(|cell| cell.life);
    // Dead is final, also for a caller that names it; and a missing row can only become dead.
    let applies = life == from && life != Some(Life::Dead) && (from.is_some() || to == Life::Dead);
    if !applies {
        return Ok(Reply::LifeCas {
            applied: false,
            row: life,
        });
    }
    let node = there.and_then(|cell| cell.node);
    write(cells, &key, &LifeCell { node, life: to })?;
    Ok(Reply::LifeCas {
        applied: true,
        row: None,
    })
}

fn leases<C: Cells>(cells: &C) -> Result<Reply, StoreError> {
    let mut leases = Vec::new();
    for (key, value) in cells.with_prefix(&[table::LEASE])? {
        let id = key[1..].try_into().map_err(|_| damaged("a lease's key"))?;
        leases.push((RegionId(u32::from_be_bytes(id)), parse(&value)?));
    }
    Ok(Reply::Leases(leases))
}

fn character_write<C: Cells>(
    cells: &mut C,
    char_id: CharId,
    stamp: Stamp,
    row: &[u8],
) -> Result<Reply, StoreError> {
    let key = character_key(char_id);
    let mut cell: CharacterCell = read(cells, &key)?.unwrap_or_default();
    let micros = stamp.micros();
    if wins(micros, Some(row), cell.written, cell.row.as_deref()) && micros > cell.sealed {
        cell.written = micros;
        cell.row = Some(row.to_vec());
        write(cells, &key, &cell)?;
    }
    Ok(Reply::Done)
}

fn character_seal<C: Cells>(
    cells: &mut C,
    char_id: CharId,
    number: u64,
    row: Option<&[u8]>,
) -> Result<Reply, StoreError> {
    let key = character_key(char_id);
    let mut cell: CharacterCell = read(cells, &key)?.unwrap_or_default();
    cell.sealed = cell.sealed.max(Stamp { number, n: 0 }.micros());
    if cell.written <= cell.sealed {
        cell.row = None;
    }
    write(cells, &key, &cell)?;
    match row {
        Some(row) => character_write(cells, char_id, Stamp { number, n: 1 }, row),
        None => Ok(Reply::Done),
    }
}

fn seal_of<C: Cells>(cells: &C, region: RegionId) -> Result<i64, StoreError> {
    Ok(read(cells, &region_key(table::OBJECT_SEAL, region))?.unwrap_or(0))
}

fn objects<C: Cells>(cells: &C, region: RegionId) -> Result<Reply, StoreError> {
    let mut rows = Vec::new();
    for (key, value) in cells.with_prefix(&region_key(table::OBJECT, region))? {
        let cell: ObjectCell = parse(&value)?;
        if let Some(row) = cell.row {
            rows.push((ObjectKey(tail_u64(&key)), row));
        }
    }
    Ok(Reply::Objects(rows))
}

fn object_write<C: Cells>(
    cells: &mut C,
    sealed: i64,
    region: RegionId,
    object: ObjectKey,
    stamp: Stamp,
    row: Option<&[u8]>,
) -> Result<(), StoreError> {
    let key = object_key(region, object);
    let micros = stamp.micros();
    let there: Option<ObjectCell> = read(cells, &key)?;
    let beats = there.is_none_or(|cell| wins(micros, row, cell.written, cell.row.as_deref()));
    if beats && micros > sealed {
        write(
            cells,
            &key,
            &ObjectCell {
                written: micros,
                row: row.map(<[u8]>::to_vec),
            },
        )?;
    }
    Ok(())
}

fn objects_seal<C: Cells>(
    cells: &mut C,
    region: RegionId,
    number: u64,
    rows: &[(ObjectKey, Vec<u8>)],
) -> Result<Reply, StoreError> {
    let sealed = seal_of(cells, region)?.max(Stamp { number, n: 0 }.micros());
    write(cells, &region_key(table::OBJECT_SEAL, region), &sealed)?;
    for (key, value) in cells.with_prefix(&region_key(table::OBJECT, region))? {
        if parse::<ObjectCell>(&value)?.written <= sealed {
            cells.remove(&key)?;
        }
    }
    for (object, row) in rows {
        object_write(
            cells,
            sealed,
            region,
            *object,
            Stamp { number, n: 1 },
            Some(row),
        )?;
    }
    Ok(Reply::Done)
}

fn session_read<C: Cells>(
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

/// Last write wins by stamp. At a tie a deletion wins, and of two values the greater: what Cassandra does.
fn wins(new: i64, new_row: Option<&[u8]>, old: i64, old_row: Option<&[u8]>) -> bool {
    match new.cmp(&old) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => match (new_row, old_row) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(new), Some(old)) => new > old,
        },
    }
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

/// Whether `request` can change anything: a store may answer the others from a snapshot.
pub fn is_read(request: &Request) -> bool {
    matches!(
        request,
        Request::LifeRead { .. }
            | Request::ClaimRead { .. }
            | Request::LeasesRead
            | Request::CharacterRead { .. }
            | Request::ObjectsRead { .. }
    )
}

/// Marks every boot that is not dead as dead: for a store whose lock proves that none of them runs.
pub fn bury_all<C: Cells>(cells: &mut C) -> Result<u32, StoreError> {
    let mut buried = 0;
    for (key, value) in cells.with_prefix(&[table::LIFE])? {
        let cell: LifeCell = parse(&value)?;
        if cell.life != Life::Dead {
            write(
                cells,
                &key,
                &LifeCell {
                    node: cell.node,
                    life: Life::Dead,
                },
            )?;
            buried += 1;
        }
    }
    Ok(buried)
}
