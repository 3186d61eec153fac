//! What reaches the gateway's thread from outside.

use std::sync::Arc;

use crossbeam_channel::Sender;
use tokio::sync::{mpsc, oneshot};

use super::core::{ConnId, Input};
use super::frames::Frames;
use super::line::Line;
use crate::cluster::directory::Reach;
use crate::crossing::{Crossing, Query};

/// A letter to the gateway's thread.
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum GatewayMail {
    /// For the core.
    Input(Input),
    /// A connection is open: where its frames go, and its task. Comes before its [`Input::Opened`].
    Connected {
        conn: ConnId,
        line: Arc<Line>,
        task: mpsc::Sender<Outgoing>,
    },
    /// Somebody looks.
    Observe {
        full: bool,
        answer: oneshot::Sender<serde_json::Value>,
    },
    /// Somebody looks at the flight recorder.
    Crossings {
        query: Query,
        answer: oneshot::Sender<Vec<Crossing>>,
    },
}

/// Tells a gateway where it can turn to. One whose thread has ended needs nobody any more.
pub fn tell_reach(gateway: &Sender<GatewayMail>, reach: Reach) {
    let Reach { sims, gateways } = reach;
    let inputs = [
        Input::Members { alive: sims },
        Input::Gateways { others: gateways },
    ];
    for input in inputs {
        let _ = gateway.send(GatewayMail::Input(input));
    }
}

/// What a connection's task is told to do.
#[derive(Debug)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Outgoing {
    /// Go on with what is queued for the line.
    GoOn,
    /// Write the last messages and close.
    Close {
        last: Frames,
        code: u16,
        reason: &'static str,
    },
}
