//! What the blobs hold: versioned MessagePack, so that rows of an older version load after an upgrade.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::{Deserialize, Serialize};
use uo_combat::Fighter;
use uo_proto::{ObjectState, ServerMsg};

/// A character at rest: everything its next owner needs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct CharacterRow {
    /// The generation it was written under.
    pub generation: u64,
    /// Place, hits, inventory, timers.
    pub fighter: Fighter,
    /// The session number issued last.
    pub session: u64,
    /// The last order applied in that session.
    pub last_order: u64,
    /// The number of the last private message.
    pub last_private: u64,
    /// Private messages not yet acknowledged by the client.
    pub privates: Vec<ServerMsg>,
}

/// An object that differs from the generated content.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ObjectRow {
    /// The epoch it was written under.
    pub epoch: u64,
    /// What it is now.
    pub state: ObjectState,
}

/// What a process does in the cluster.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Role {
    /// Sessions only.
    Gateway,
    /// Regions only.
    Sim,
    /// Both.
    All,
}

/// What a boot says of itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NodeState {
    /// It has not had a beat acknowledged, or has no life yet.
    Starting,
    /// It serves.
    Running,
    /// It drains and takes nothing.
    Stopping,
    /// It holds nothing any more and may be declared dead, from the life it names.
    Done,
    /// It has stopped acting until it thaws, at the life it names.
    Fenced,
}

/// How busy a node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Sessions of its gateway.
    pub sessions: u32,
    /// Regions it holds.
    pub regions: u32,
    /// The time that 99 of 100 ticks stayed below, in milliseconds.
    pub tick_p99_ms: u32,
}

/// What a boot says of itself with each beat.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct NodeRow {
    /// Grows with each beat; also the stamp of the write.
    pub beat: u64,
    /// What it does.
    pub role: Role,
    /// Its life as it knows it; 0 for gateways, which have none.
    pub life: u64,
    /// What may be expected of it.
    pub state: NodeState,
    /// Where other nodes reach it, as host:port.
    pub peer: Option<String>,
    /// Where clients reach it, as WebSocket addresses.
    pub clients: Vec<String>,
    /// Time since it started, in milliseconds.
    pub up_ms: u64,
    /// How often a node of its name started in the last five minutes.
    pub starts: u32,
    /// How busy it is.
    pub load: NodeLoad,
    /// Most gateways cannot reach it.
    #[serde(default)]
    pub is_cut_off: bool,
}

/// A row that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a stored row cannot be read: {0}")]
pub struct RowError(String);

/// The version that this build writes, as the first byte of each row.
const VERSION: u8 = 1;

/// Bytes of `row`.
pub fn encode<T: Serialize>(row: &T) -> Vec<u8> {
    let mut out = vec![VERSION];
    rmp_serde::encode::write_named(&mut out, row).expect("rows serialise");
    out
}

/// The row in `bytes`.
pub fn decode<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> Result<T, RowError> {
    match bytes.split_first() {
        Some((&VERSION, body)) => {
            rmp_serde::from_slice(body).map_err(|error| RowError(error.to_string()))
        }
        Some((version, _)) => Err(RowError(format!(
            "version {version} is newer than this build"
        ))),
        None => Err(RowError("it is empty".into())),
    }
}
