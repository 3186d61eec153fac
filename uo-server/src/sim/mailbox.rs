//! What reaches the tick thread from outside.

use tokio::sync::oneshot;

use super::core::Input;
use crate::store::{Reply, StoreError};

/// A letter to the tick thread.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum SimMail {
    /// For the core.
    Input(Input),
    /// Every lease, as the store had it at the start.
    Leases(Result<Reply, StoreError>),
    /// Somebody looks: answered with the state as it is between two ticks.
    Observe {
        full: bool,
        answer: oneshot::Sender<serde_json::Value>,
    },
}
