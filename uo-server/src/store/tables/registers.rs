//! Registers: rows that change only by compare-and-set, and are never deleted.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::{Deserialize, Serialize};
use uo_proto::RegionId;

use super::{Cells, key, parse, read, region_key, region_of, table, write};
use crate::identity::{BootId, NodeName};
use crate::store::{ClaimRow, FaultRow, Life, Reply, Right, Seen, StoreError, WorldRow};

#[derive(Serialize, Deserialize)]
struct LifeCell {
    node: Option<NodeName>,
    life: Life,
}

fn life_key(boot: BootId) -> Vec<u8> {
    key(table::LIFE, &boot.0.to_be_bytes())
}

fn claim_key(right: Right) -> Vec<u8> {
    match right {
        Right::Region(region) => region_key(table::LEASE, region),
        Right::Character(char_id) => key(table::OWNER, &char_id.0.to_be_bytes()),
    }
}

pub(super) fn life<C: Cells>(cells: &C, boot: BootId) -> Result<Reply, StoreError> {
    let cell: Option<LifeCell> = read(cells, &life_key(boot))?;
    Ok(Reply::Life(cell.map(|cell| cell.life)))
}

pub(super) fn life_begin<C: Cells>(
    cells: &mut C,
    node: &NodeName,
    boot: BootId,
) -> Result<Reply, StoreError> {
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

pub(super) fn life_cas<C: Cells>(
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

pub(super) fn claim<C: Cells>(cells: &C, right: Right) -> Result<Reply, StoreError> {
    Ok(Reply::Claim(read(cells, &claim_key(right))?))
}

pub(super) fn leases<C: Cells>(cells: &C) -> Result<Reply, StoreError> {
    let mut leases = Vec::new();
    for (key, value) in cells.with_prefix(&[table::LEASE])? {
        leases.push((region_of(&key)?, parse(&value)?));
    }
    Ok(Reply::Leases(leases))
}

pub(super) fn claim_cas<C: Cells>(
    cells: &mut C,
    right: Right,
    seen: Option<&Seen>,
    to: &ClaimRow,
) -> Result<Reply, StoreError> {
    let key = claim_key(right);
    let row: Option<ClaimRow> = read(cells, &key)?;
    let applied = row.as_ref().map(ClaimRow::seen).as_ref() == seen;
    if applied {
        write(cells, &key, to)?;
    }
    let row = row.filter(|_| !applied);
    Ok(Reply::ClaimCas { applied, row })
}

pub(super) fn world_pin<C: Cells>(cells: &mut C, row: &WorldRow) -> Result<Reply, StoreError> {
    let key = key(table::WORLD, &[]);
    if let Some(there) = read::<WorldRow, C>(cells, &key)? {
        return Ok(Reply::World(there));
    }
    write(cells, &key, row)?;
    Ok(Reply::World(*row))
}

pub(super) fn fault<C: Cells>(cells: &C, region: RegionId) -> Result<Reply, StoreError> {
    Ok(Reply::Fault(read(
        cells,
        &region_key(table::FAULT, region),
    )?))
}

pub(super) fn fault_cas<C: Cells>(
    cells: &mut C,
    region: RegionId,
    seen: Option<&FaultRow>,
    to: &FaultRow,
) -> Result<Reply, StoreError> {
    let key = region_key(table::FAULT, region);
    let row: Option<FaultRow> = read(cells, &key)?;
    let applied = row.as_ref() == seen;
    if applied {
        write(cells, &key, to)?;
    }
    let row = row.filter(|_| !applied);
    Ok(Reply::FaultCas { applied, row })
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
