//! Rows with a time to live, and beats.

use futures_util::StreamExt;
use futures_util::stream;
use scylla::client::session::Session;
use uo_proto::{CharId, RegionId};
use uuid::Uuid;

use super::columns::{present, rows, unsigned};
use super::failure::Sent;
use super::{Answer, BEAT_TIMEOUT, PLAIN_TIMEOUT, ScyllaStore, pages};
use crate::identity::{BootId, NodeName};
use crate::limits::STORE_DEMAND_IN_FLIGHT_MAX;
use crate::store::{Reply, SessionRow, StoreError, TokenHash};

/// A time to live of 0 would be none at all.
fn ttl(ttl_s: u32) -> Result<i32, StoreError> {
    match i32::try_from(ttl_s) {
        Ok(0) => Err(StoreError::Refused("a row without a time to live".into())),
        Ok(ttl_s) => Ok(ttl_s),
        Err(_) => Err(StoreError::Refused(
            "a time to live that is too long".into(),
        )),
    }
}

fn hex(token: TokenHash) -> String {
    token.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl ScyllaStore {
    pub(super) async fn session_put(
        &self,
        token: TokenHash,
        row: SessionRow,
        ttl_s: u32,
    ) -> Answer {
        let statement = &self.statements.session_put;
        let number = row.number.cast_signed();
        let char_id = row.char_id.0.cast_signed();
        let values = (hex(token), char_id, row.name, number, ttl(ttl_s)?);
        let work = async |session: &Session| session.execute_unpaged(statement, values).await;
        self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        Ok(Reply::Done)
    }

    pub(super) async fn session(&self, token: TokenHash) -> Answer {
        let statement = &self.statements.session_read;
        let key = (hex(token),);
        let work = async |session: &Session| session.execute_unpaged(statement, key).await;
        let result = self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        let Some(row) = rows(result)?.pop() else {
            return Ok(Reply::Session(None));
        };
        let char_id = present(row.bigint("char_id")?, "char_id")?;
        Ok(Reply::Session(Some(SessionRow {
            char_id: CharId(char_id.cast_unsigned()),
            name: present(row.text("name")?, "name")?,
            number: present(row.bigint("number")?, "number")?.cast_unsigned(),
        })))
    }

    pub(super) async fn session_delete(&self, token: TokenHash) -> Answer {
        let statement = &self.statements.session_delete;
        let key = (hex(token),);
        let work = async |session: &Session| session.execute_unpaged(statement, key).await;
        self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        Ok(Reply::Done)
    }

    pub(super) async fn node_beat(
        &self,
        node: NodeName,
        boot: BootId,
        beat: u64,
        row: Vec<u8>,
        ttl_s: u32,
    ) -> Answer {
        let Ok(stamp) = i64::try_from(beat) else {
            return Err(StoreError::Refused("a beat that is too large".into()));
        };
        let statement = &self.statements.node_beat;
        let boot = Uuid::from_u128(boot.0);
        let values = (&*node.0, boot, row, stamp, ttl(ttl_s)?);
        let work = async |session: &Session| session.execute_unpaged(statement, values).await;
        self.pulse.run(BEAT_TIMEOUT, Sent::Repeatedly, work).await?;
        Ok(Reply::Done)
    }

    /// One page as a rule; its time is that of any read, so that it fails while its answer would still be of use.
    pub(super) async fn nodes(&self) -> Answer {
        let found = pages(&self.pulse, &self.statements.nodes_read, ()).await?;
        let mut nodes = Vec::with_capacity(found.len());
        for row in found {
            let node = present(row.text("node")?, "node")?;
            let boot = present(row.uuid("boot")?, "boot")?;
            let info = present(row.blob("info")?, "info")?;
            nodes.push((node.as_str().into(), BootId(boot.as_u128()), info));
        }
        nodes.sort_unstable();
        Ok(Reply::Nodes(nodes))
    }

    /// One write for each: a batch over partitions would cost the database more and gain nothing.
    pub(super) async fn demand_put(&self, regions: Vec<RegionId>, ttl_s: u32) -> Answer {
        let ttl_s = ttl(ttl_s)?;
        let writes = regions
            .into_iter()
            .map(|region| self.demand_one(region, ttl_s));
        let mut writes = stream::iter(writes).buffer_unordered(STORE_DEMAND_IN_FLIGHT_MAX);
        let mut failed = Ok(Reply::Done);
        while let Some(done) = writes.next().await {
            if let Err(error) = done {
                failed = Err(error);
            }
        }
        failed
    }

    async fn demand_one(&self, region: RegionId, ttl_s: i32) -> Result<(), StoreError> {
        let Ok(region) = i32::try_from(region.0) else {
            return Err(StoreError::Refused("a region too large".into()));
        };
        let statement = &self.statements.demand_put;
        let work =
            async |session: &Session| session.execute_unpaged(statement, (region, ttl_s)).await;
        self.bulk.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
        Ok(())
    }

    pub(super) async fn demand(&self) -> Answer {
        let found = pages(&self.bulk, &self.statements.demand_read, ()).await?;
        let mut regions = Vec::with_capacity(found.len());
        for row in found {
            let region = present(row.int("region")?, "region")?;
            regions.push(RegionId(unsigned(region.into(), "region")?));
        }
        regions.sort_unstable();
        Ok(Reply::Demand(regions))
    }
}
