//! An embedded, durable store for one machine, on redb: what was acknowledged survives `kill -9`.
//!
//! One thread owns the database. It takes whatever requests are waiting, up to [`BATCH_MAX`], carries them out in one
//! transaction, commits it with one `fsync`, and only then answers: many writers share the price of one commit.
//!
//! Who is up and what is wanted just now means nothing to a later process, and beats must not wait for a disk: those
//! rows are kept in memory.
//!
//! redb locks its file for as long as the process lives, so opening it proves that every earlier boot is dead, and
//! [`LocalStore::open`] writes that down.

use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, Table, TableDefinition};
use tokio::sync::oneshot;

use super::tables::{Cells, Pairs, Tables, apply, bury_all, is_fleeting, is_read};
use super::{Reply, Request, Store, StoreError};
use crate::clock::Clock;

const CELLS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("cells");

/// Requests that share one commit.
pub const BATCH_MAX: usize = 512;
/// Requests that wait for the thread; callers beyond it are refused, so that memory is bounded.
const QUEUE_MAX: usize = 64 * 1024;
/// The database's cache: the hot rows of a large shard.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

struct Job {
    request: Request,
    answer: oneshot::Sender<Result<Reply, StoreError>>,
}

/// See the module.
pub struct LocalStore {
    jobs: mpsc::SyncSender<Job>,
    fleeting: Mutex<Tables>,
    clock: Clock,
}

impl LocalStore {
    /// Opens or creates the database in `dir`, which must not be in use, and marks every earlier boot dead.
    pub fn open(dir: &Path) -> anyhow::Result<LocalStore> {
        std::fs::create_dir_all(dir)
            .with_context(|| format!("cannot create the folder {}", dir.display()))?;
        let path = dir.join("world.redb");
        let database = Database::builder()
            .set_cache_size(CACHE_BYTES)
            .create(&path)
            .map_err(|error| match error {
                DatabaseError::DatabaseAlreadyOpen => {
                    anyhow::anyhow!("{} is in use by another server; stop it, or give --store local:DIR another folder", path.display())
                }
                other => anyhow::Error::new(other).context(format!("cannot open {}", path.display())),
            })?;
        let transaction = database.begin_write()?;
        {
            let mut cells = Written(transaction.open_table(CELLS)?);
            bury_all(&mut cells)?;
        }
        transaction.commit()?;
        let (jobs, queue) = mpsc::sync_channel(QUEUE_MAX);
        std::thread::Builder::new()
            .name("store".into())
            .spawn(move || run(&database, &queue))
            .context("cannot start the store's thread")?;
        Ok(LocalStore {
            jobs,
            fleeting: Mutex::default(),
            clock: Clock::start(),
        })
    }
}

impl Store for LocalStore {
    async fn call(&self, request: Request) -> Result<Reply, StoreError> {
        if is_fleeting(&request) {
            // A poisoned lock means a panic between two cells of one request: nothing after it can be trusted.
            let mut fleeting = self.fleeting.lock().expect("the tables are whole");
            return fleeting.apply(self.clock.now(), &request);
        }
        let (answer, reply) = oneshot::channel();
        self.jobs
            .try_send(Job { request, answer })
            .map_err(|error| match error {
                mpsc::TrySendError::Full(_) => {
                    StoreError::Refused("too many requests are waiting".into())
                }
                mpsc::TrySendError::Disconnected(_) => {
                    StoreError::Refused("the store's thread has ended".into())
                }
            })?;
        reply
            .await
            .unwrap_or_else(|_| Err(StoreError::Unknown("the store's thread has ended".into())))
    }
}

/// Serves requests until the last handle is gone.
fn run(database: &Database, queue: &mpsc::Receiver<Job>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while let Ok(first) = queue.recv() {
        batch.push(first);
        while batch.len() < BATCH_MAX {
            match queue.try_recv() {
                Ok(job) => batch.push(job),
                Err(_) => break,
            }
        }
        serve(database, &mut batch);
    }
}

fn serve(database: &Database, batch: &mut Vec<Job>) {
    let result = if batch.iter().all(|job| is_read(&job.request)) {
        serve_reads(database, batch)
    } else {
        serve_batch(database, batch)
    };
    match result {
        Ok(replies) => {
            for (job, reply) in batch.drain(..).zip(replies) {
                // The caller may have given up; the work is done either way.
                let _ = job.answer.send(reply);
            }
        }
        Err(error) => {
            tracing::error!(%error, "the local store failed; every request of this batch is in doubt");
            for job in batch.drain(..) {
                let _ = job.answer.send(Err(StoreError::Unknown(error.to_string())));
            }
        }
    }
}

type Replies = Vec<Result<Reply, StoreError>>;

fn serve_batch(database: &Database, batch: &[Job]) -> Result<Replies, redb::Error> {
    let transaction = database.begin_write()?;
    let now = wall_clock_ms();
    let replies = {
        let mut cells = Written(transaction.open_table(CELLS)?);
        batch
            .iter()
            .map(|job| apply(&mut cells, now, &job.request))
            .collect()
    };
    transaction.commit()?;
    Ok(replies)
}

fn serve_reads(database: &Database, batch: &[Job]) -> Result<Replies, redb::Error> {
    let transaction = database.begin_read()?;
    let now = wall_clock_ms();
    let mut cells = Snapshot(transaction.open_table(CELLS)?);
    Ok(batch
        .iter()
        .map(|job| apply(&mut cells, now, &job.request))
        .collect())
}

/// Sessions expire by the wall clock, because they outlive the process; nothing else looks at it.
fn wall_clock_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_millis() as u64)
}

struct Written<'txn>(Table<'txn, &'static [u8], &'static [u8]>);

impl Cells for Written<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        get(&self.0, key)
    }
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.0.insert(key, value).map(drop).map_err(broken)
    }
    fn remove(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.0.remove(key).map(drop).map_err(broken)
    }
    fn with_prefix(&self, prefix: &[u8]) -> Result<Pairs, StoreError> {
        with_prefix(&self.0, prefix)
    }
}

/// A read-only view; [`is_read`] keeps writes away from it.
struct Snapshot(redb::ReadOnlyTable<&'static [u8], &'static [u8]>);

impl Cells for Snapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        get(&self.0, key)
    }
    fn put(&mut self, _: &[u8], _: &[u8]) -> Result<(), StoreError> {
        Err(StoreError::Refused("a read does not write".into()))
    }
    fn remove(&mut self, _: &[u8]) -> Result<(), StoreError> {
        Err(StoreError::Refused("a read does not write".into()))
    }
    fn with_prefix(&self, prefix: &[u8]) -> Result<Pairs, StoreError> {
        with_prefix(&self.0, prefix)
    }
}

fn get(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
) -> Result<Option<Vec<u8>>, StoreError> {
    Ok(table
        .get(key)
        .map_err(broken)?
        .map(|value| value.value().to_vec()))
}

fn with_prefix(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    prefix: &[u8],
) -> Result<Pairs, StoreError> {
    let mut pairs = Vec::new();
    for pair in table.range(prefix..).map_err(broken)? {
        let (key, value) = pair.map_err(broken)?;
        if !key.value().starts_with(prefix) {
            break;
        }
        pairs.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(pairs)
}

fn broken(error: redb::StorageError) -> StoreError {
    StoreError::Unknown(format!("the database failed: {error}"))
}
