//! A store in memory: exact compare-and-set, last write wins by stamp, expiry. For tests and for many nodes in one
//! process; everything is gone with the process.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::tables::Tables;
use super::{Reply, Request, Store, StoreError};

/// See the module. Clones share their tables.
#[derive(Clone)]
pub struct MemStore {
    tables: Arc<Mutex<Tables>>,
    start: Instant,
}

impl Default for MemStore {
    fn default() -> Self {
        MemStore {
            tables: Arc::default(),
            start: Instant::now(),
        }
    }
}

impl Store for MemStore {
    async fn call(&self, request: Request) -> Result<Reply, StoreError> {
        let now = self.start.elapsed().as_millis() as u64;
        // A poisoned lock means a panic between two cells of one request: nothing after it can be trusted.
        let mut tables = self.tables.lock().expect("the tables are whole");
        tables.apply(now, &request)
    }
}
