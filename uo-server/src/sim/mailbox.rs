//! What reaches the tick thread from outside.

use tokio::sync::oneshot;

use super::member::Input;
use crate::crossing::{Crossing, Query};

/// A letter to the tick thread.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum SimMail {
    /// For the member.
    Input(Input),
    /// Somebody looks: answered with the state as it is between two ticks.
    Observe {
        full: bool,
        answer: oneshot::Sender<serde_json::Value>,
    },
    /// Somebody looks at the flight recorder.
    Crossings {
        query: Query,
        answer: oneshot::Sender<Vec<Crossing>>,
    },
    /// The tick of this region panics (none: the thread itself), to show what then happens.
    #[cfg(feature = "planted-bugs")]
    Panic(Option<uo_proto::RegionId>),
}
