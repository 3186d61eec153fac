//! Every statement that a node sends, prepared when it starts.
//!
//! A condition names holder, number and nonce: a refused one then shows the whole row on Cassandra too. That the nonce
//! is not the attempt's own always holds (the row would have a higher number if it were) and so decides nothing.

use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;

use super::OpenError;
use super::Place;
use super::failure::said;
use super::session::{CAS_READ, Profiles};
use crate::limits::STORE_PAGE_ROWS;

/// One of the two tables of claims.
pub(super) struct ClaimStatements {
    /// The name of the column with the epoch or generation.
    pub(super) number: &'static str,
    pub(super) read: PreparedStatement,
    pub(super) read_serial: PreparedStatement,
    pub(super) insert: PreparedStatement,
    pub(super) replace_held: PreparedStatement,
    pub(super) replace_free: PreparedStatement,
}

pub(super) struct Statements {
    pub(super) life_read: PreparedStatement,
    pub(super) life_begin: PreparedStatement,
    pub(super) life_bury: PreparedStatement,
    pub(super) life_set: PreparedStatement,
    pub(super) life_end: PreparedStatement,
    pub(super) lease: ClaimStatements,
    pub(super) owner: ClaimStatements,
    pub(super) leases_read: PreparedStatement,
    pub(super) fault_read: PreparedStatement,
    pub(super) fault_read_serial: PreparedStatement,
    pub(super) fault_insert: PreparedStatement,
    pub(super) fault_replace: PreparedStatement,
    pub(super) world_pin: PreparedStatement,
    pub(super) world_change: PreparedStatement,
    pub(super) character_read: PreparedStatement,
    pub(super) character_write: PreparedStatement,
    pub(super) character_erase: PreparedStatement,
    pub(super) objects_read: PreparedStatement,
    pub(super) object_write: PreparedStatement,
    pub(super) object_delete: PreparedStatement,
    pub(super) objects_erase: PreparedStatement,
    pub(super) session_put: PreparedStatement,
    pub(super) session_read: PreparedStatement,
    pub(super) session_delete: PreparedStatement,
    pub(super) node_beat: PreparedStatement,
    pub(super) nodes_read: PreparedStatement,
    pub(super) demand_put: PreparedStatement,
    pub(super) demand_read: PreparedStatement,
}

impl Statements {
    /// Prepares all of them in the keyspace of `place`.
    pub(super) async fn prepare(
        session: &Session,
        profiles: &Profiles,
        place: &Place,
    ) -> Result<Statements, OpenError> {
        let desk = Desk {
            session,
            profiles,
            place,
        };
        Ok(Statements {
            life_read: desk
                .read_serial("SELECT life, dead FROM {}.node_life WHERE boot = ?")
                .await?,
            life_begin: desk
                .cas("INSERT INTO {}.node_life (boot, node, life, dead) VALUES (?, ?, 1, false) IF NOT EXISTS")
                .await?,
            life_bury: desk
                .cas("INSERT INTO {}.node_life (boot, life, dead) VALUES (?, 0, true) IF NOT EXISTS")
                .await?,
            life_set: desk
                .cas("UPDATE {}.node_life SET life = ? WHERE boot = ? IF life = ? AND dead = false")
                .await?,
            life_end: desk
                .cas("UPDATE {}.node_life SET dead = true WHERE boot = ? IF life = ? AND dead = false")
                .await?,
            lease: desk.claims("region_lease", "region", "epoch").await?,
            owner: desk.claims("char_owner", "char_id", "gen").await?,
            leases_read: desk
                .plain("SELECT region, node, boot, epoch, nonce FROM {}.region_lease")
                .await?,
            fault_read: desk
                .plain("SELECT panics, quarantined FROM {}.region_fault WHERE region = ?")
                .await?,
            fault_read_serial: desk
                .read_serial("SELECT panics, quarantined FROM {}.region_fault WHERE region = ?")
                .await?,
            fault_insert: desk
                .cas("INSERT INTO {}.region_fault (region, panics, quarantined) VALUES (?, ?, ?) IF NOT EXISTS")
                .await?,
            fault_replace: desk
                .cas(
                    "UPDATE {}.region_fault SET panics = ?, quarantined = ? WHERE region = ? \
                     IF panics = ? AND quarantined = ?",
                )
                .await?,
            world_pin: desk
                .cas("INSERT INTO {}.world (id, seed, size, content) VALUES (?, ?, ?, ?) IF NOT EXISTS")
                .await?,
            world_change: desk
                .cas("UPDATE {}.world SET seed = ? WHERE id = ? IF seed = ?")
                .await?,
            character_read: desk
                .plain("SELECT row FROM {}.characters WHERE char_id = ?")
                .await?,
            character_write: desk
                .plain("INSERT INTO {}.characters (char_id, row) VALUES (?, ?) USING TIMESTAMP ?")
                .await?,
            character_erase: desk
                .plain("DELETE FROM {}.characters USING TIMESTAMP ? WHERE char_id = ?")
                .await?,
            objects_read: desk
                .plain("SELECT key, row FROM {}.objects WHERE region = ?")
                .await?,
            object_write: desk
                .plain("INSERT INTO {}.objects (region, key, row) VALUES (?, ?, ?) USING TIMESTAMP ?")
                .await?,
            object_delete: desk
                .plain("DELETE FROM {}.objects USING TIMESTAMP ? WHERE region = ? AND key = ?")
                .await?,
            objects_erase: desk
                .plain("DELETE FROM {}.objects USING TIMESTAMP ? WHERE region = ?")
                .await?,
            session_put: desk
                .once("INSERT INTO {}.sessions (tok, char_id, name, number) VALUES (?, ?, ?, ?) USING TTL ?")
                .await?,
            session_read: desk
                .plain("SELECT char_id, name, number FROM {}.sessions WHERE tok = ?")
                .await?,
            session_delete: desk
                .once("DELETE FROM {}.sessions WHERE tok = ?")
                .await?,
            node_beat: desk
                .plain("INSERT INTO {}.nodes (node, boot, info) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?")
                .await?,
            nodes_read: desk.plain("SELECT node, boot, info FROM {}.nodes").await?,
            demand_put: desk
                .plain("INSERT INTO {}.region_demand (region) VALUES (?) USING TTL ?")
                .await?,
            demand_read: desk.plain("SELECT region FROM {}.region_demand").await?,
        })
    }
}

struct Desk<'a> {
    session: &'a Session,
    profiles: &'a Profiles,
    place: &'a Place,
}

impl Desk<'_> {
    async fn claims(
        &self,
        table: &str,
        key: &str,
        number: &'static str,
    ) -> Result<ClaimStatements, OpenError> {
        let read = format!("SELECT node, boot, {number}, nonce FROM {{}}.{table} WHERE {key} = ?");
        let set = format!(
            "UPDATE {{}}.{table} SET node = ?, boot = ?, {number} = ?, nonce = ? WHERE {key} = ? \
             IF {number} = ? AND nonce != ?"
        );
        Ok(ClaimStatements {
            number,
            read: self.plain(&read).await?,
            read_serial: self.read_serial(&read).await?,
            insert: self
                .cas(&format!(
                    "INSERT INTO {{}}.{table} ({key}, node, boot, {number}, nonce) VALUES (?, ?, ?, ?, ?) IF NOT EXISTS"
                ))
                .await?,
            replace_held: self
                .cas(&format!("{set} AND node = ? AND boot = ?"))
                .await?,
            replace_free: self
                .cas(&format!("{set} AND node = null AND boot = null"))
                .await?,
        })
    }

    /// A read, or a write whose repetition changes nothing because it carries its stamp or says the same again.
    async fn plain(&self, text: &str) -> Result<PreparedStatement, OpenError> {
        let mut statement = self.prepare(text).await?;
        statement.set_is_idempotent(true);
        statement.set_page_size(STORE_PAGE_ROWS);
        Ok(statement)
    }

    /// A write that the database stamps with its own time: repeated, it could come after what followed it.
    async fn once(&self, text: &str) -> Result<PreparedStatement, OpenError> {
        self.prepare(text).await
    }

    async fn cas(&self, text: &str) -> Result<PreparedStatement, OpenError> {
        let mut statement = self.prepare(text).await?;
        statement.set_execution_profile_handle(Some(self.profiles.cas.clone()));
        Ok(statement)
    }

    async fn read_serial(&self, text: &str) -> Result<PreparedStatement, OpenError> {
        let mut statement = self.cas(text).await?;
        statement.set_consistency(CAS_READ);
        Ok(statement)
    }

    async fn prepare(&self, text: &str) -> Result<PreparedStatement, OpenError> {
        let text = text.replace("{}", &self.place.keyspace);
        let prepared = self.session.prepare(Statement::new(&text)).await;
        prepared.map_err(|error| match error {
            PrepareError::AllAttemptsFailed {
                first_attempt: RequestAttemptError::DbError(DbError::Invalid, why),
            } => OpenError::OtherTables(self.place.clone(), why),
            other => OpenError::Schema(said(&ExecutionError::PrepareError(other))),
        })
    }
}
