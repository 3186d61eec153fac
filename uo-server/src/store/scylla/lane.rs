//! Requests on their way: a bounded number, each within its time, over connections that are made anew when all are lost.

use std::num::NonZeroUsize;
use std::sync::{Arc, RwLock, Weak};
use std::time::Duration;

use scylla::client::session::Session;
use scylla::errors::{ExecutionError, NewSessionError};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};

use super::Access;
use super::failure::{Sent, failure};
use super::session::{Profiles, connect};
use crate::limits::{STORE_CONNECT_TIMEOUT_MS, STORE_RECONNECT_MS};
use crate::store::StoreError;

/// Connections of their own, so that whatever goes over others delays nothing here.
pub(super) struct Link {
    session: RwLock<Arc<Session>>,
    access: Access,
    profiles: Profiles,
    connections: NonZeroUsize,
}

impl Link {
    /// Connects, and watches over the connections until the last handle is dropped.
    pub(super) async fn open(
        access: &Access,
        profiles: &Profiles,
        connections: NonZeroUsize,
    ) -> Result<Arc<Link>, NewSessionError> {
        let session = connect(access, profiles, connections).await?;
        let link = Arc::new(Link {
            session: RwLock::new(Arc::new(session)),
            access: access.clone(),
            profiles: profiles.clone(),
            connections,
        });
        tokio::spawn(watch(Arc::downgrade(&link)));
        Ok(link)
    }

    pub(super) fn session(&self) -> Arc<Session> {
        self.session.read().expect("it is only replaced").clone()
    }

    fn is_connected(&self) -> bool {
        let state = self.session().get_cluster_state();
        state
            .get_nodes_info()
            .iter()
            .any(|node| node.is_connected())
    }

    async fn reconnect(&self) {
        let limit = Duration::from_millis(4 * STORE_CONNECT_TIMEOUT_MS);
        let connecting = connect(&self.access, &self.profiles, self.connections);
        match timeout(limit, connecting).await {
            Ok(Ok(session)) => {
                *self.session.write().expect("it is only replaced") = Arc::new(session);
                tracing::info!(store = %self.access.place, "connected to the database again");
            }
            Ok(Err(error)) => tracing::debug!(%error, "the database cannot be reached yet"),
            Err(_) => tracing::debug!("the database does not answer yet"),
        }
    }
}

/// The driver waits up to ten seconds between its tries once a node has been away for a while, and that cannot be
/// changed; a fresh session does not wait. While one node is connected the driver hears from it when others come back.
async fn watch(link: Weak<Link>) {
    let pause = Duration::from_millis(STORE_RECONNECT_MS);
    let mut lost = 0_u32;
    loop {
        tokio::time::sleep(pause).await;
        let Some(link) = link.upgrade() else { return };
        if link.is_connected() {
            lost = 0;
            continue;
        }
        lost += 1;
        if lost == 2 {
            tracing::warn!(store = %link.access.place, "no connection to the database");
        }
        if lost >= 2 {
            link.reconnect().await;
        }
    }
}

/// A bound on the requests in flight over a link.
pub(super) struct Lane {
    link: Arc<Link>,
    permits: Semaphore,
}

impl Lane {
    pub(super) fn new(link: Arc<Link>, in_flight_max: usize) -> Lane {
        Lane {
            link,
            permits: Semaphore::new(in_flight_max),
        }
    }

    /// Runs `work` within `limit`, the wait for its turn included.
    pub(super) async fn run<T>(
        &self,
        limit: Duration,
        sent: Sent,
        work: impl AsyncFnOnce(&Session) -> Result<T, ExecutionError>,
    ) -> Result<T, StoreError> {
        let deadline = Instant::now() + limit;
        let _turn = self.turn(deadline).await?;
        let session = self.link.session();
        match timeout_at(deadline, work(&session)).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(failure(&error, sent)),
            Err(_) => {
                let waited = limit.as_millis();
                Err(StoreError::Unknown(format!("no answer in {waited} ms")))
            }
        }
    }

    async fn turn(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, StoreError> {
        match timeout_at(deadline, self.permits.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(StoreError::Refused(
                "too many requests are under way".into(),
            )),
        }
    }
}
