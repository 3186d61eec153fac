//! What reaches the tick thread from outside.

use tokio::sync::oneshot;
use uo_proto::RegionId;

use super::member::Input;
use super::state::Detail;
use crate::cluster::core::DrainRefusal;
use crate::crossing::{Crossing, Query};
use crate::identity::{Holder, NodeName};

/// A letter to the tick thread.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum SimMail {
    /// For the member.
    Input(Input),
    /// Somebody looks: answered with the state as it is between two ticks.
    Observe {
        detail: Detail,
        answer: oneshot::Sender<serde_json::Value>,
    },
    /// An operator wants a region at another node (none: at the best of the others). Answered with whom it goes to.
    Drain {
        region: RegionId,
        to: Option<NodeName>,
        answer: oneshot::Sender<Result<Holder, DrainRefusal>>,
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
