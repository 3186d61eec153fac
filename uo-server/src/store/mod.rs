//! What is durable. A [`Store`] takes one closed [`Request`] and gives one [`Reply`]; cores only ever see these two.
//!
//! Reading order:
//! - this file: requests, replies, errors, and the stamps that make a former owner's late write lose;
//! - [`row`]: what the blobs hold, versioned;
//! - [`tables`]: what each request does, once for every implementation that is ours;
//! - [`mem`], [`local`], [`scylla`]: the implementations; [`any`]: the one a node was started with.
//!
//! Two kinds of table, never mixed: *registers* change only by compare-and-set; *stamped* rows are plain last-write-wins
//! writes whose timestamp is `(number << 20) | n`, so that a write under a higher lease epoch or owner generation always
//! wins over one under a lower, however late the lower one arrives.

pub mod any;
pub mod local;
pub mod mem;
pub mod row;
pub mod scylla;
pub mod tables;

use std::future::Future;

use serde::{Deserialize, Serialize};
use uo_proto::{CharId, ObjectKey, RegionId};

use crate::identity::{BootId, Holder, NodeName, Nonce};

/// Bits of a stamp that count writes within one number.
pub const STAMP_BITS: u32 = 20;

/// The timestamp of a stamped write. Equal stamps merge per cell, so (number, n) is never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The lease's epoch or the owner's generation.
    pub number: u64,
    /// Grows with each write under that number; 0 is the seal's tombstone.
    pub n: u32,
}

impl Stamp {
    /// The last `n` of a number; beyond it the next number has to be claimed.
    pub const N_MAX: u32 = (1 << STAMP_BITS) - 1;

    /// The last number; beyond it a stamp would not fit the database's signed 64 bits.
    pub const NUMBER_MAX: u64 = i64::MAX as u64 >> STAMP_BITS;

    /// As [`Stamp::micros`], refused where it would be the stamp of another number.
    pub fn checked_micros(self) -> Result<i64, StoreError> {
        match self.number <= Stamp::NUMBER_MAX && self.n <= Stamp::N_MAX {
            true => Ok(self.micros()),
            false => Err(StoreError::Refused(format!(
                "there is no stamp ({}, {})",
                self.number, self.n
            ))),
        }
    }

    /// Microseconds for `USING TIMESTAMP`.
    pub fn micros(self) -> i64 {
        (self.number << STAMP_BITS | u64::from(self.n)) as i64
    }
}

/// What is owned: one machine serves both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Right {
    /// The lease of a region; its number is the epoch.
    Region(RegionId),
    /// The ownership of a character; its number is the generation.
    Character(CharId),
}

/// A row of `region_lease` or `char_owner`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct ClaimRow {
    /// Who holds it; none: released.
    pub holder: Option<Holder>,
    /// Epoch or generation; grows by at least one with each change.
    pub number: u64,
    /// Which attempt wrote it.
    pub nonce: Nonce,
}

/// What a compare-and-set names of the row it replaces.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Holder, node and boot both.
    pub holder: Option<Holder>,
    /// Number.
    pub number: u64,
}

impl ClaimRow {
    /// What a compare-and-set against this row names.
    pub fn seen(&self) -> Seen {
        Seen {
            holder: self.holder.clone(),
            number: self.number,
        }
    }
}

/// The life register of a boot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Life {
    /// Alive, with a counter that grows with each thaw.
    Alive(u64),
    /// Dead for ever.
    Dead,
}

/// What a world is made from; written once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct WorldRow {
    /// Seed.
    pub seed: u64,
    /// Side in tiles.
    pub size: u16,
    /// Version of the content generator.
    pub content: u32,
}

/// A session as it outlives its gateway.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct SessionRow {
    /// Whose.
    pub char_id: CharId,
    /// Its name.
    pub name: String,
    /// The session number the owner issued.
    pub number: u64,
}

/// What the ticks of a region did to the nodes that held it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub struct FaultRow {
    /// The boots whose tick of this region panicked, each once.
    pub panics: Vec<BootId>,
    /// Frozen until an operator releases it.
    pub quarantined: bool,
}

/// A session token, hashed: the store never sees one in the clear.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TokenHash(pub [u8; 32]);

/// Everything that is asked of a store.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Request {
    /// Reads a life register (serial). -> [`Reply::Life`]
    LifeRead { boot: BootId },
    /// Inserts life 1, if there is no row. -> [`Reply::Life`] with what is there afterwards
    LifeBegin { node: NodeName, boot: BootId },
    /// From exactly `from` to `to`, if the row is not dead; a missing row (`from` none) is made dead. -> [`Reply::LifeCas`]
    LifeCas {
        boot: BootId,
        from: Option<Life>,
        to: Life,
    },
    /// Reads a claim (`serial`: with the outcome of every compare-and-set before it). -> [`Reply::Claim`]
    ClaimRead { right: Right, serial: bool },
    /// Reads every region lease (quorum). -> [`Reply::Leases`]
    LeasesRead,
    /// Replaces the row if it is as `seen` says (none: no row). -> [`Reply::ClaimCas`]
    ClaimCas {
        right: Right,
        seen: Option<Seen>,
        to: ClaimRow,
    },
    /// Inserts the world row, if there is none. -> [`Reply::World`] with what is there afterwards
    WorldPin { row: WorldRow },
    /// -> [`Reply::Character`]
    CharacterRead { char_id: CharId },
    /// -> [`Reply::Done`], also when a higher stamp is there
    CharacterWrite {
        char_id: CharId,
        stamp: Stamp,
        row: Vec<u8>,
    },
    /// In one batch: a tombstone stamped (number, 0) over the partition, then the row (none: nothing) at n = 1.
    /// -> [`Reply::Done`]
    CharacterSeal {
        char_id: CharId,
        number: u64,
        row: Option<Vec<u8>>,
    },
    /// Every object row of a region. -> [`Reply::Objects`]
    ObjectsRead { region: RegionId },
    /// Writes rows (none: deletes), all with `stamp`, in one single-partition batch. -> [`Reply::Done`]
    ObjectsWrite {
        region: RegionId,
        stamp: Stamp,
        rows: Vec<(ObjectKey, Option<Vec<u8>>)>,
    },
    /// In one batch: a tombstone stamped (number, 0) over the partition, then all `rows` at n = 1. -> [`Reply::Done`]
    ObjectsSeal {
        region: RegionId,
        number: u64,
        rows: Vec<(ObjectKey, Vec<u8>)>,
    },
    /// Inserts a session whole, expiring after `ttl_s` seconds. -> [`Reply::Done`]
    SessionPut {
        token: TokenHash,
        row: SessionRow,
        ttl_s: u32,
    },
    /// -> [`Reply::Session`]
    SessionRead { token: TokenHash },
    /// -> [`Reply::Done`]
    SessionDelete { token: TokenHash },
    /// Writes a boot's own row of `nodes`, with the beat as its stamp, expiring after `ttl_s` seconds. -> [`Reply::Done`]
    NodeBeat {
        node: NodeName,
        boot: BootId,
        beat: u64,
        /// An encoded [`row::NodeRow`].
        row: Vec<u8>,
        ttl_s: u32,
    },
    /// -> [`Reply::Nodes`]
    NodesRead,
    /// Says for `ttl_s` seconds that these regions are needed. -> [`Reply::Done`]
    DemandPut { regions: Vec<RegionId>, ttl_s: u32 },
    /// -> [`Reply::Demand`]
    DemandRead,
    /// Reads what a region's ticks did to its nodes, at quorum. -> [`Reply::Fault`]
    FaultRead { region: RegionId },
    /// Replaces the row if it is exactly `seen` (none: no row). -> [`Reply::FaultCas`]
    FaultCas {
        region: RegionId,
        seen: Option<FaultRow>,
        to: FaultRow,
    },
}

/// The answer to a [`Request`].
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Reply {
    /// The register; none: no row.
    Life(Option<Life>),
    /// Whether it applied, and otherwise the row that stood against it.
    LifeCas { applied: bool, row: Option<Life> },
    /// The row; none: never claimed.
    Claim(Option<ClaimRow>),
    /// Every lease, by region.
    Leases(Vec<(RegionId, ClaimRow)>),
    /// Whether it applied, and otherwise the row that stood against it.
    ClaimCas {
        applied: bool,
        row: Option<ClaimRow>,
    },
    /// What the world is made from.
    World(WorldRow),
    /// The newest row; none: there is none.
    Character(Option<Vec<u8>>),
    /// The newest rows, by key.
    Objects(Vec<(ObjectKey, Vec<u8>)>),
    /// The session; none: unknown or expired.
    Session(Option<SessionRow>),
    /// Every boot's row that has not expired (an encoded [`row::NodeRow`]), by node and boot.
    Nodes(Vec<(NodeName, BootId, Vec<u8>)>),
    /// The regions that somebody needs, in order.
    Demand(Vec<RegionId>),
    /// The row; none: its ticks never panicked.
    Fault(Option<FaultRow>),
    /// Whether it applied, and otherwise the row that stood against it.
    FaultCas {
        applied: bool,
        row: Option<FaultRow>,
    },
    /// Acknowledged. A stamped write that lost says this as well.
    Done,
}

/// Why there is no reply.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error, Serialize, Deserialize)]
pub enum StoreError {
    /// The request may or may not have taken effect, now or later.
    #[error("the outcome is unknown: {0}")]
    Unknown(String),
    /// The request did not take effect and never will.
    #[error("the store refused: {0}")]
    Refused(String),
}

/// What keeps a shard's world. One contract suite runs against every implementation.
pub trait Store: Send + Sync + 'static {
    /// Carries out one request.
    fn call(&self, request: Request) -> impl Future<Output = Result<Reply, StoreError>> + Send;
}
