//! Stamped rows: the last write wins by its stamp, whenever it arrives, and deletions are writes.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::{Deserialize, Serialize};
use uo_proto::{CharId, ObjectKey, RegionId};

use super::{Cells, key, parse, read, region_key, table, write};
use crate::store::{Reply, Stamp, StoreError};

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

fn character_key(char_id: CharId) -> Vec<u8> {
    key(table::CHARACTER, &char_id.0.to_be_bytes())
}

fn object_key(region: RegionId, object: ObjectKey) -> Vec<u8> {
    let mut key = region_key(table::OBJECT, region);
    key.extend_from_slice(&object.0.to_be_bytes());
    key
}

/// The last eight bytes of a key, as the id that they are.
fn tail_u64(key: &[u8]) -> u64 {
    let tail = key[key.len() - 8..].try_into().expect("eight bytes");
    u64::from_be_bytes(tail)
}

pub(super) fn character<C: Cells>(cells: &C, char_id: CharId) -> Result<Reply, StoreError> {
    let cell: Option<CharacterCell> = read(cells, &character_key(char_id))?;
    Ok(Reply::Character(cell.and_then(|cell| cell.row)))
}

pub(super) fn character_write<C: Cells>(
    cells: &mut C,
    char_id: CharId,
    stamp: Stamp,
    row: &[u8],
) -> Result<Reply, StoreError> {
    let key = character_key(char_id);
    let mut cell: CharacterCell = read(cells, &key)?.unwrap_or_default();
    let micros = stamp.checked_micros()?;
    if wins(micros, Some(row), cell.written, cell.row.as_deref()) && micros > cell.sealed {
        cell.written = micros;
        cell.row = Some(row.to_vec());
        write(cells, &key, &cell)?;
    }
    Ok(Reply::Done)
}

pub(super) fn character_seal<C: Cells>(
    cells: &mut C,
    char_id: CharId,
    number: u64,
    row: Option<&[u8]>,
) -> Result<Reply, StoreError> {
    let key = character_key(char_id);
    let mut cell: CharacterCell = read(cells, &key)?.unwrap_or_default();
    cell.sealed = cell.sealed.max(Stamp { number, n: 0 }.checked_micros()?);
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

pub(super) fn objects<C: Cells>(cells: &C, region: RegionId) -> Result<Reply, StoreError> {
    let mut rows = Vec::new();
    for (key, value) in cells.with_prefix(&region_key(table::OBJECT, region))? {
        let cell: ObjectCell = parse(&value)?;
        if let Some(row) = cell.row {
            rows.push((ObjectKey(tail_u64(&key)), row));
        }
    }
    Ok(Reply::Objects(rows))
}

pub(super) fn objects_write<C: Cells>(
    cells: &mut C,
    region: RegionId,
    stamp: Stamp,
    rows: &[(ObjectKey, Option<Vec<u8>>)],
) -> Result<Reply, StoreError> {
    let sealed = seal_of(cells, region)?;
    for (object, row) in rows {
        object_write(cells, sealed, region, *object, stamp, row.as_deref())?;
    }
    Ok(Reply::Done)
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
    let micros = stamp.checked_micros()?;
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

pub(super) fn objects_seal<C: Cells>(
    cells: &mut C,
    region: RegionId,
    number: u64,
    rows: &[(ObjectKey, Vec<u8>)],
) -> Result<Reply, StoreError> {
    let sealed = seal_of(cells, region)?.max(Stamp { number, n: 0 }.checked_micros()?);
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
