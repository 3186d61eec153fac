//! The store that a node was started with, and the shell that runs a core's requests on it.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::limits::BEAT_TIMEOUT_MS;

use super::local::LocalStore;
use super::mem::MemStore;
use super::scylla::ScyllaStore;
use super::{Reply, Request, Store, StoreError};

/// One of the implementations. Clones share it.
#[derive(Clone)]
pub enum AnyStore {
    /// See [`MemStore`].
    Mem(MemStore),
    /// See [`LocalStore`].
    Local(Arc<LocalStore>),
    /// See [`ScyllaStore`].
    Scylla(Arc<ScyllaStore>),
}

impl Store for AnyStore {
    async fn call(&self, request: Request) -> Result<Reply, StoreError> {
        match self {
            AnyStore::Mem(store) => store.call(request).await,
            AnyStore::Local(store) => store.call(request).await,
            AnyStore::Scylla(store) => store.call(request).await,
        }
    }
}

/// Runs requests as tasks, so that no core ever waits for a store. Cores bound what they have in flight.
#[derive(Clone)]
pub struct Driver {
    store: AnyStore,
    runtime: Handle,
}

impl Driver {
    /// Runs requests for `store` on `runtime`.
    pub fn new(store: AnyStore, runtime: Handle) -> Driver {
        Driver { store, runtime }
    }

    /// Carries out `request` and hands what came of it to `post`.
    pub fn run(
        &self,
        request: Request,
        post: impl FnOnce(Result<Reply, StoreError>) + Send + 'static,
    ) {
        let store = self.store.clone();
        self.runtime.spawn(async move {
            let Some(limit) = limit(&request) else {
                return post(store.call(request).await);
            };
            let reply = tokio::time::timeout(limit, store.call(request)).await;
            let late = || Err(StoreError::Unknown(format!("no answer in {limit:?}")));
            post(reply.unwrap_or_else(|_| late()));
        });
    }
}

/// How long whoever asks can wait, where that is less than the store's own patience: a beat that is acknowledged later than
/// this helps nobody, and the next one must not wait for it.
fn limit(request: &Request) -> Option<Duration> {
    matches!(request, Request::NodeBeat { .. }).then(|| Duration::from_millis(BEAT_TIMEOUT_MS))
}
