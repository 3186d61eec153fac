//! How the driver is set up: what it is allowed to do, and how long.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::{ExecutionProfile, ExecutionProfileHandle};
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::errors::NewSessionError;
use scylla::policies::retry::{DefaultRetryPolicy, FallthroughRetryPolicy};
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::{Consistency, SerialConsistency};

use super::Access;
use super::routing::FixedOrder;
use crate::limits::{
    STORE_CAS_TIMEOUT_MS, STORE_CONNECT_TIMEOUT_MS, STORE_KEEPALIVE_MS, STORE_KEEPALIVE_TIMEOUT_MS,
    STORE_SCAN_TIMEOUT_MS, STORE_SPECULATE_MS,
};

/// Of every plain read and write. Two quorums always meet.
pub(super) const PLAIN: Consistency = Consistency::Quorum;
/// Of every compare-and-set. Never mixed with the local one: the two do not see each other's rounds.
pub(super) const CAS: SerialConsistency = SerialConsistency::Serial;
/// Of reads that see the outcome of every compare-and-set before them; the same as [`CAS`] in the other type.
pub(super) const CAS_READ: Consistency = Consistency::Serial;

/// What the driver may do with a request.
#[derive(Clone)]
pub(super) struct Profiles {
    /// Plain reads and writes: an idempotent one is asked of a second node when the first is slow.
    pub(super) plain: ExecutionProfileHandle,
    /// Compare-and-sets and serial reads: sent once, to the replicas in a fixed order.
    pub(super) cas: ExecutionProfileHandle,
}

impl Profiles {
    pub(super) fn new() -> Profiles {
        let plain = ExecutionProfile::builder()
            .consistency(PLAIN)
            .serial_consistency(Some(CAS))
            // Ours ends sooner; this one only keeps the driver from waiting longer still.
            .request_timeout(Some(Duration::from_millis(STORE_SCAN_TIMEOUT_MS)))
            .retry_policy(Arc::new(DefaultRetryPolicy::new()))
            .speculative_execution_policy(Some(Arc::new(SimpleSpeculativeExecutionPolicy {
                max_retry_count: 1,
                retry_interval: Duration::from_millis(STORE_SPECULATE_MS),
            })))
            .build();
        let cas = ExecutionProfile::builder()
            .consistency(PLAIN)
            .serial_consistency(Some(CAS))
            .request_timeout(Some(Duration::from_millis(STORE_CAS_TIMEOUT_MS)))
            .retry_policy(Arc::new(FallthroughRetryPolicy::new()))
            .load_balancing_policy(Arc::new(FixedOrder))
            .speculative_execution_policy(None)
            .build();
        Profiles {
            plain: plain.into_handle(),
            cas: cas.into_handle(),
        }
    }
}

/// Connects. Ends in a few seconds at the latest, whatever the network does.
pub(super) async fn connect(
    access: &Access,
    profiles: &Profiles,
    connections: NonZeroUsize,
) -> Result<Session, NewSessionError> {
    let brief = Duration::from_millis(STORE_CONNECT_TIMEOUT_MS);
    let mut builder = SessionBuilder::new()
        .known_nodes(&access.place.hosts)
        .default_execution_profile_handle(profiles.plain.clone())
        .pool_size(PoolSize::PerHost(connections))
        .tcp_nodelay(true)
        .connection_timeout(brief)
        .hostname_resolution_timeout(Some(brief))
        .keepalive_interval(Duration::from_millis(STORE_KEEPALIVE_MS))
        .keepalive_timeout(Duration::from_millis(STORE_KEEPALIVE_TIMEOUT_MS))
        .keyspaces_to_fetch([access.place.keyspace.as_str()])
        .fetch_full_schema_metadata(false)
        .metadata_request_serverside_timeout(brief)
        .metadata_request_clientside_timeout(brief * 2);
    if !access.translate.is_empty() {
        // The node that it is connected to is known by the address at which it was found.
        let found = access.translate.iter().map(|&(_, to)| (to, to));
        let rules: HashMap<SocketAddr, SocketAddr> =
            found.chain(access.translate.iter().copied()).collect();
        builder = builder.address_translator(Arc::new(rules));
    }
    if let Some(login) = &access.login {
        builder = builder.user(&login.user, &login.password);
    }
    builder.build().await
}
