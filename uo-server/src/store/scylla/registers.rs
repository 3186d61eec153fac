//! What changes by compare-and-set only: lives, claims, faults, the world.

use scylla::client::session::Session;
use scylla::response::query_result::QueryResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use uo_proto::RegionId;
use uuid::Uuid;

use super::columns::{Columns, outcome, present, rows, unsigned};
use super::failure::Sent;
use super::lane::Lane;
use super::statements::ClaimStatements;
use super::{Answer, CAS_TIMEOUT, PLAIN_TIMEOUT, ScyllaStore, pages};
use crate::identity::{BootId, Holder, NodeName, Nonce};
use crate::store::{ClaimRow, FaultRow, Life, Reply, Right, Seen, StoreError, WorldRow};
/// The row of the world that every node agrees on.
const WORLD: i32 = 0;

fn uuid(boot: BootId) -> Uuid {
    Uuid::from_u128(boot.0)
}

fn int(region: RegionId) -> Result<i32, StoreError> {
    i32::try_from(region.0).map_err(|_| too_large("region"))
}

fn bigint(number: u64, what: &str) -> Result<i64, StoreError> {
    i64::try_from(number).map_err(|_| too_large(what))
}

fn too_large(what: &str) -> StoreError {
    StoreError::Refused(format!("a {what} too large for the database"))
}

/// Sends a compare-and-set, once.
async fn cas(
    lane: &Lane,
    statement: &PreparedStatement,
    values: impl SerializeRow,
) -> Result<(bool, Columns), StoreError> {
    let work = async |session: &Session| session.execute_unpaged(statement, values).await;
    outcome(lane.run(CAS_TIMEOUT, Sent::AtMostOnce, work).await?)
}

async fn row(
    lane: &Lane,
    statement: &PreparedStatement,
    key: impl SerializeRow,
) -> Result<Option<Columns>, StoreError> {
    let work = async |session: &Session| session.execute_unpaged(statement, key).await;
    let result: QueryResult = lane.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
    Ok(rows(result)?.pop())
}

fn life_of(row: &Columns) -> Result<Option<Life>, StoreError> {
    match (row.boolean("dead")?, row.bigint("life")?) {
        (Some(true), _) => Ok(Some(Life::Dead)),
        (_, Some(life)) => Ok(Some(Life::Alive(unsigned(life, "life")?))),
        (_, None) => Ok(None),
    }
}

impl ScyllaStore {
    pub(super) async fn life(&self, boot: BootId) -> Result<Option<Life>, StoreError> {
        let row = row(&self.pulse, &self.statements.life_read, (uuid(boot),)).await?;
        row.map_or(Ok(None), |row| life_of(&row))
    }

    pub(super) async fn life_begin(&self, node: &NodeName, boot: BootId) -> Answer {
        let values = (uuid(boot), &*node.0);
        let (applied, row) = cas(&self.pulse, &self.statements.life_begin, values).await?;
        Ok(Reply::Life(match applied {
            true => Some(Life::Alive(1)),
            false => life_of(&row)?,
        }))
    }

    pub(super) async fn life_cas(&self, boot: BootId, from: Option<Life>, to: Life) -> Answer {
        let statements = &self.statements;
        let boot_key = uuid(boot);
        let (applied, row) = match (from, to) {
            (None, Life::Dead) => cas(&self.pulse, &statements.life_bury, (boot_key,)).await?,
            (Some(Life::Alive(from)), Life::Alive(to)) => {
                let values = (bigint(to, "life")?, boot_key, bigint(from, "life")?);
                cas(&self.pulse, &statements.life_set, values).await?
            }
            (Some(Life::Alive(from)), Life::Dead) => {
                let values = (boot_key, bigint(from, "life")?);
                cas(&self.pulse, &statements.life_end, values).await?
            }
            // Nothing leaves death, and nothing but death comes out of nothing: there is nothing to send.
            (Some(Life::Dead), _) | (None, Life::Alive(_)) => {
                let (applied, row) = (false, self.life(boot).await?);
                return Ok(Reply::LifeCas { applied, row });
            }
        };
        let row = match applied {
            true => None,
            false => life_of(&row)?,
        };
        Ok(Reply::LifeCas { applied, row })
    }

    pub(super) async fn claim(&self, right: Right, serial: bool) -> Answer {
        let claims = self.claims_of(right);
        let found = match serial {
            true => row(&self.claims, &claims.read_serial, (key(right)?,)).await?,
            false => row(&self.bulk, &claims.read, (key(right)?,)).await?,
        };
        let found = found.map_or(Ok(None), |row| claim_of(&row, claims.number))?;
        Ok(Reply::Claim(found))
    }

    pub(super) async fn leases(&self) -> Answer {
        let statements = &self.statements;
        let found = pages(&self.bulk, &statements.leases_read, ()).await?;
        let mut leases = Vec::with_capacity(found.len());
        for row in found {
            let region = present(row.int("region")?, "region")?;
            let region = RegionId(unsigned(region.into(), "region")?);
            if let Some(claim) = claim_of(&row, statements.lease.number)? {
                leases.push((region, claim));
            }
        }
        leases.sort_unstable_by_key(|(region, _)| *region);
        Ok(Reply::Leases(leases))
    }

    pub(super) async fn claim_cas(&self, right: Right, seen: Option<Seen>, to: ClaimRow) -> Answer {
        let claims = self.claims_of(right);
        let key = key(right)?;
        let number = bigint(to.number, "number")?;
        let nonce = Uuid::from_u128(to.nonce.0);
        let (node, boot) = columns_of(to.holder.as_ref());
        let (applied, row) = match seen {
            None => {
                let values = (key, node, boot, number, nonce);
                cas(&self.claims, &claims.insert, values).await?
            }
            Some(seen) => {
                let was = bigint(seen.number, "number")?;
                match columns_of(seen.holder.as_ref()) {
                    (Some(from_node), Some(from_boot)) => {
                        let from = (from_node, from_boot);
                        let values = (node, boot, number, nonce, key, was, nonce, from.0, from.1);
                        cas(&self.claims, &claims.replace_held, values).await?
                    }
                    _ => {
                        let values = (node, boot, number, nonce, key, was, nonce);
                        cas(&self.claims, &claims.replace_free, values).await?
                    }
                }
            }
        };
        if applied {
            return Ok(Reply::ClaimCas { applied, row: None });
        }
        if let Some(row) = claim_of(&row, claims.number)? {
            let row = Some(row);
            return Ok(Reply::ClaimCas { applied, row });
        }
        // Refused, and shown nothing: there is no row, or the database does not show it. A serial read comes after the
        // refusal in the order of the row's rounds, so what it shows is what stands against the attempt now.
        match self.claim(right, true).await? {
            Reply::Claim(row) => Ok(Reply::ClaimCas { applied, row }),
            other => Ok(other),
        }
    }

    fn claims_of(&self, right: Right) -> &ClaimStatements {
        match right {
            Right::Region(_) => &self.statements.lease,
            Right::Character(_) => &self.statements.owner,
        }
    }

    pub(super) async fn world_pin(&self, pinned: WorldRow) -> Answer {
        let values = (
            WORLD,
            pinned.seed.cast_signed(),
            i32::from(pinned.size),
            i32::try_from(pinned.content).map_err(|_| too_large("content version"))?,
        );
        let (applied, row) = cas(&self.claims, &self.statements.world_pin, values).await?;
        if applied {
            return Ok(Reply::World(pinned));
        }
        let size = present(row.int("size")?, "size")?;
        let content = present(row.int("content")?, "content")?;
        Ok(Reply::World(WorldRow {
            seed: present(row.bigint("seed")?, "seed")?.cast_unsigned(),
            size: unsigned(size.into(), "size")?,
            content: unsigned(content.into(), "content")?,
        }))
    }

    /// At quorum: every region that is taken is looked up, and a serial read costs as much as a compare-and-set.
    pub(super) async fn fault(&self, region: RegionId) -> Result<Option<FaultRow>, StoreError> {
        let read = &self.statements.fault_read;
        let row = row(&self.bulk, read, (int(region)?,)).await?;
        row.map_or(Ok(None), |row| fault_of(&row))
    }

    async fn fault_serial(&self, region: RegionId) -> Result<Option<FaultRow>, StoreError> {
        let read = &self.statements.fault_read_serial;
        let row = row(&self.claims, read, (int(region)?,)).await?;
        row.map_or(Ok(None), |row| fault_of(&row))
    }

    pub(super) async fn fault_cas(
        &self,
        region: RegionId,
        seen: Option<FaultRow>,
        to: FaultRow,
    ) -> Answer {
        let statements = &self.statements;
        let (key, panics) = (int(region)?, list_of(&to.panics));
        let (applied, row) = match seen {
            None => {
                let values = (key, panics, to.quarantined);
                cas(&self.claims, &statements.fault_insert, values).await?
            }
            Some(seen) => {
                let was = (list_of(&seen.panics), seen.quarantined);
                let values = (panics, to.quarantined, key, was.0, was.1);
                cas(&self.claims, &statements.fault_replace, values).await?
            }
        };
        let row = match applied {
            true => None,
            false => match fault_of(&row)? {
                Some(row) => Some(row),
                // As with a claim.
                None => self.fault_serial(region).await?,
            },
        };
        Ok(Reply::FaultCas { applied, row })
    }
}

fn key(right: Right) -> Result<CqlValue, StoreError> {
    Ok(match right {
        Right::Region(region) => CqlValue::Int(int(region)?),
        Right::Character(id) => CqlValue::BigInt(id.0.cast_signed()),
    })
}

fn columns_of(holder: Option<&Holder>) -> (Option<&str>, Option<Uuid>) {
    match holder {
        Some(Holder { node, boot }) => (Some(&node.0), Some(uuid(*boot))),
        None => (None, None),
    }
}

/// None when the row, or what was returned of it, has no number.
fn claim_of(row: &Columns, number: &str) -> Result<Option<ClaimRow>, StoreError> {
    let (Some(value), Some(nonce)) = (row.bigint(number)?, row.uuid("nonce")?) else {
        return Ok(None);
    };
    let holder = match (row.text("node")?, row.uuid("boot")?) {
        (Some(node), Some(boot)) => Some(Holder {
            node: node.as_str().into(),
            boot: BootId(boot.as_u128()),
        }),
        _ => None,
    };
    Ok(Some(ClaimRow {
        holder,
        number: unsigned(value, number)?,
        nonce: Nonce(nonce.as_u128()),
    }))
}

/// An empty list is null in the database, and is so in a condition too.
fn list_of(panics: &[BootId]) -> Option<Vec<Uuid>> {
    (!panics.is_empty()).then(|| panics.iter().map(|boot| uuid(*boot)).collect())
}

fn fault_of(row: &Columns) -> Result<Option<FaultRow>, StoreError> {
    let Some(quarantined) = row.boolean("quarantined")? else {
        return Ok(None);
    };
    let panics = row.uuids("panics")?;
    Ok(Some(FaultRow {
        panics: panics.iter().map(|uuid| BootId(uuid.as_u128())).collect(),
        quarantined,
    }))
}
