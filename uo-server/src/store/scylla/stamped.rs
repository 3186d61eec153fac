//! Characters and objects: every write and every deletion carries its stamp.

use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlValue;
use uo_proto::{CharId, ObjectKey, RegionId};

use super::columns::{present, rows};
use super::failure::Sent;
use super::{Answer, PLAIN_TIMEOUT, ScyllaStore, pages};
use crate::limits::{SEAL_BATCH_BYTES_MAX, SEAL_BATCH_ROWS_MAX};
use crate::store::{Reply, Stamp, StoreError};

/// A statement and what it is bound to.
pub(super) type Bound<'a> = (&'a PreparedStatement, Vec<CqlValue>);

fn partition(region: RegionId) -> Result<CqlValue, StoreError> {
    match i32::try_from(region.0) {
        Ok(region) => Ok(CqlValue::Int(region)),
        Err(_) => Err(StoreError::Refused("a region too large".into())),
    }
}

impl ScyllaStore {
    pub(super) async fn character(&self, char_id: CharId) -> Answer {
        let statement = &self.statements.character_read;
        let key = (char_id.0.cast_signed(),);
        let work = async |session: &Session| session.execute_unpaged(statement, key).await;
        let result = self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        let row = rows(result)?.pop();
        Ok(Reply::Character(
            row.map_or(Ok(None), |row| row.blob("row"))?,
        ))
    }

    pub(super) async fn character_write(
        &self,
        char_id: CharId,
        stamp: Stamp,
        row: Vec<u8>,
    ) -> Answer {
        let statement = &self.statements.character_write;
        let values = (char_id.0.cast_signed(), row, stamp.checked_micros()?);
        let work = async |session: &Session| session.execute_unpaged(statement, values).await;
        self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        Ok(Reply::Done)
    }

    pub(super) async fn character_seal(
        &self,
        char_id: CharId,
        number: u64,
        row: Option<Vec<u8>>,
    ) -> Answer {
        let (erased, written) = seal_stamps(number)?;
        let key = CqlValue::BigInt(char_id.0.cast_signed());
        let erase = vec![CqlValue::BigInt(erased), key.clone()];
        let mut batch = vec![(&self.statements.character_erase, erase)];
        if let Some(row) = row {
            let write = vec![key, CqlValue::Blob(row), CqlValue::BigInt(written)];
            batch.push((&self.statements.character_write, write));
        }
        self.batch(batch).await
    }

    pub(super) async fn objects(&self, region: RegionId) -> Answer {
        let key = (partition(region)?,);
        let found = pages(&self.bulk, &self.statements.objects_read, key).await?;
        let mut objects = Vec::with_capacity(found.len());
        for row in found {
            let key = present(row.bigint("key")?, "key")?;
            objects.push((
                ObjectKey(key.cast_unsigned()),
                present(row.blob("row")?, "row")?,
            ));
        }
        // The database orders them as signed numbers.
        objects.sort_unstable_by_key(|(key, _)| *key);
        Ok(Reply::Objects(objects))
    }

    pub(super) async fn objects_write(
        &self,
        region: RegionId,
        stamp: Stamp,
        rows: Vec<(ObjectKey, Option<Vec<u8>>)>,
    ) -> Answer {
        let micros = stamp.checked_micros()?;
        let region = partition(region)?;
        let bound = rows.into_iter().map(|(key, row)| match row {
            Some(row) => self.object_write(&region, key, row, micros),
            None => {
                let key = CqlValue::BigInt(key.0.cast_signed());
                let values = vec![CqlValue::BigInt(micros), region.clone(), key];
                (&self.statements.object_delete, values)
            }
        });
        self.batch(bound.collect()).await
    }

    /// What fits into one batch goes into one, and is there whole or not at all. Of more, the rows go first and the
    /// deletion last: whoever comes after a crash in between finds the former rows, the same as these, beside them.
    pub(super) async fn objects_seal(
        &self,
        region: RegionId,
        number: u64,
        rows: Vec<(ObjectKey, Vec<u8>)>,
    ) -> Answer {
        let (erased, written) = seal_stamps(number)?;
        let region = partition(region)?;
        let mut batch = Vec::new();
        let mut bytes = 0;
        for (key, row) in rows {
            if batch.len() >= SEAL_BATCH_ROWS_MAX || bytes + row.len() > SEAL_BATCH_BYTES_MAX {
                self.batch(std::mem::take(&mut batch)).await?;
                bytes = 0;
            }
            bytes += row.len();
            batch.push(self.object_write(&region, key, row, written));
        }
        let erase = vec![CqlValue::BigInt(erased), region];
        batch.push((&self.statements.objects_erase, erase));
        self.batch(batch).await
    }

    pub(super) fn object_write(
        &self,
        region: &CqlValue,
        key: ObjectKey,
        row: Vec<u8>,
        micros: i64,
    ) -> Bound<'_> {
        let key = CqlValue::BigInt(key.0.cast_signed());
        let values = vec![
            region.clone(),
            key,
            CqlValue::Blob(row),
            CqlValue::BigInt(micros),
        ];
        (&self.statements.object_write, values)
    }

    /// All of one partition, so that a replica applies it as one write without a log of batches.
    pub(super) async fn batch(&self, bound: Vec<Bound<'_>>) -> Answer {
        if bound.is_empty() {
            return Ok(Reply::Done);
        }
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        let mut values = Vec::with_capacity(bound.len());
        for (statement, row) in bound {
            batch.append_statement(statement.clone());
            values.push(row);
        }
        let work = async |session: &Session| session.batch(&batch, &values).await;
        self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        Ok(Reply::Done)
    }
}

/// Of the deletion and of the rows: never equal, because a deletion wins a tie.
fn seal_stamps(number: u64) -> Result<(i64, i64), StoreError> {
    let erased = Stamp { number, n: 0 }.checked_micros()?;
    let written = Stamp { number, n: 1 }.checked_micros()?;
    Ok((erased, written))
}
