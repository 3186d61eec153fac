//! The public protocol, version 2. `docs/protocol.md` has an example of each message that a test parses.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    CharId, CombatEvent, EntityEnter, EntityId, EntityState, Inventory, ObjectState, Order, Pos,
    Speech, Spell, Target,
};

/// What a client sends. The `type` field names the message; an order's fields stand beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientMsg {
    /// First message of a new session.
    Login(Login),
    /// First message on a new connection of an old session.
    Resume(Resume),
    /// Answered by `pong` at once.
    Ping(Ping),
    /// Anything a character does.
    Order(NumberedOrder),
}

/// `login`: a new session.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// 1 to 32 letters, digits, `_` or `-`.
    pub name: String,
    /// Only where accounts are on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// [`crate::PROTOCOL_VERSION`].
    pub version: u32,
}

/// `resume`: the same session on a new connection.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// From the newest `welcome`.
    pub token: String,
    /// Highest `seq` seen of the public reliable stream.
    #[serde(default)]
    pub last_seq: u64,
    /// Highest `private` seen of the private reliable stream.
    #[serde(default)]
    pub last_private: u64,
}

// Messages are logged when something goes wrong; secrets must not be.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("name", &self.name)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Resume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resume")
            .field("last_seq", &self.last_seq)
            .field("last_private", &self.last_private)
            .finish_non_exhaustive()
    }
}

/// `ping`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ping {
    /// Comes back in `pong`.
    pub nonce: u64,
}

/// An order and its number.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NumberedOrder {
    /// Starts at 1 at each login and goes on over resumes.
    pub seq: u64,
    /// What.
    #[serde(flatten)]
    pub order: Order,
}

/// What a server sends.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMsg {
    /// The answer to a login or a resume (control).
    Welcome(Box<Welcome>),
    /// After `welcome` and at each change (control).
    ServerStatus(ServerStatus),
    /// Everything in view, once after `welcome` (latest).
    Snapshot(Snapshot),
    /// What changed in view (latest).
    Delta(Delta),
    /// Something happened in view (reliable, public).
    Event(Event),
    /// Somebody in earshot said something (reliable, public).
    Said(Said),
    /// The own character is back (reliable, private).
    Respawned(Respawned),
    /// A step or a walk failed; a client that predicted it goes back to (x, y) (reliable, private).
    StepRejected(StepRejected),
    /// The answer to `look` (reliable, private).
    Looked(Looked),
    /// The inventory, on request and when it changed (reliable, private).
    Inventory(InventoryMsg),
    /// Reliable messages that could not be kept (control).
    Missed(Missed),
    /// A promise of durability (latest: the newest says all).
    Saved(Saved),
    /// The answer to `ping` (control).
    Pong(Pong),
    /// Something was refused. From the gateway it is control; from the owner it answers the order `seq`, is part of the
    /// private stream and carries `private`.
    Error(ErrorMsg),
    /// The server is about to close the connection (control).
    Goodbye(Goodbye),
}

/// `welcome`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Welcome {
    /// For `resume`; the one before it stays good until this one is first used.
    pub token: String,
    /// Whose body is the entity of the same id.
    pub char_id: CharId,
    /// Where else this session can be resumed.
    pub gateways: Vec<String>,
    /// The highest order `seq` that the owner applied; later ones are to be sent again.
    pub last_order: u64,
    /// What the world is made from.
    pub map: MapInfo,
    /// Ticks a second.
    pub tick_hz: u32,
    /// Side of a region in tiles.
    pub region_size: u16,
    /// Radius of the area of interest in tiles.
    pub aoi_radius: u16,
    /// Where the character is.
    pub x: u16,
    /// Where the character is.
    pub y: u16,
    /// What can be cast.
    pub spells: Vec<SpellInfo>,
    /// What the gateway lets through.
    pub limits: Limits,
}

/// What the world is made from: `uo_proto::map` and `uo_world` make the same from it on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MapInfo {
    /// The world's seed; a string in JSON like ids, for the same reason.
    #[serde(with = "seed_text")]
    pub seed: u64,
    /// Side in tiles.
    pub size: u16,
}

mod seed_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::ObjectKey;

    pub fn serialize<S: Serializer>(seed: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        ObjectKey(*seed).serialize(serializer)
    }
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        ObjectKey::deserialize(deserializer).map(|key| key.0)
    }
}

/// A row of the spell table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SpellInfo {
    /// Which.
    pub spell: Spell,
    /// From the start to the effect, in milliseconds.
    pub cast_ms: u32,
    /// From the effect to the next cast of it, in milliseconds.
    pub cooldown_ms: u32,
    /// Reach in tiles.
    pub range: u16,
    /// Radius of the effect in tiles; 0 is a single target.
    pub radius: u16,
    /// Whether it takes an entity or object as its target.
    pub targets_entity: bool,
    /// Whether it takes a tile as its target.
    pub targets_tile: bool,
}

/// What the gateway lets through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// Messages a second, over time.
    pub messages_per_s: u32,
    /// Messages at once.
    pub messages_burst: u32,
    /// Bytes of one message.
    pub message_bytes: u32,
    /// Bytes of one `say`.
    pub say_bytes: u32,
}

/// How busy a server is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// All is well.
    #[default]
    Normal,
    /// Near its limits.
    Busy,
    /// Refuses new logins.
    Overloaded,
}

/// How the character's part of the world is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldStatus {
    /// It runs.
    #[default]
    Ok,
    /// It is changing its process.
    Moving,
    /// It waits for its store.
    Frozen,
}

/// `server_status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ServerStatus {
    /// How busy the gateway is.
    pub level: Level,
    /// Whether it takes new logins.
    pub accepting: bool,
    /// How the character's region is.
    pub world: WorldStatus,
}

/// `snapshot`: everything in view. It replaces whatever the client believed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Entities within the area of interest, the own one included.
    pub entities: Vec<EntityEnter>,
    /// Objects within it that differ from the generated content.
    pub objects: Vec<ObjectState>,
}

/// `delta`: the difference between what the client was last sent and what is true. Lists without elements are left out.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Delta {
    /// The gateway's tick: grows by one every 50 ms.
    pub tick: u64,
    /// Highest order `seq` that the battle took.
    pub ack: u64,
    /// Entities that came into view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub enter: Vec<EntityEnter>,
    /// Entities in view that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub update: Vec<EntityState>,
    /// Entities that went out of view.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave: Vec<EntityId>,
    /// Objects in view that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<ObjectState>,
}

/// `event`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Number in the public reliable stream.
    pub seq: u64,
    /// Milliseconds since the session began at its gateway.
    pub at_ms: u64,
    /// What happened.
    pub combat: CombatEvent,
}

/// `said`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Said {
    /// Number in the public reliable stream.
    pub seq: u64,
    /// Milliseconds since the session began at its gateway.
    pub at_ms: u64,
    /// Who said what.
    pub speech: Speech,
}

/// `respawned`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Respawned {
    /// Number in the private reliable stream.
    pub private: u64,
    /// Where.
    pub x: u16,
    /// Where.
    pub y: u16,
}

/// `step_rejected`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StepRejected {
    /// Number in the private reliable stream.
    pub private: u64,
    /// Where the character stands.
    pub x: u16,
    /// Where the character stands.
    pub y: u16,
    /// The order that failed.
    pub seq: u64,
}

/// `looked`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Looked {
    /// Number in the private reliable stream.
    pub private: u64,
    /// The order that asked.
    pub seq: u64,
    /// What was looked at.
    pub target: Target,
    /// What it is, in words.
    pub text: String,
}

/// `inventory`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InventoryMsg {
    /// Number in the private reliable stream.
    pub private: u64,
    /// All of it.
    pub inventory: Inventory,
}

/// How many reliable messages are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MissedCount {
    /// So many.
    Count(u64),
    /// Some; nobody knows how many.
    Unknown,
}

/// `missed`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Missed {
    /// Of the public stream.
    pub public: MissedCount,
    /// Of the private stream.
    pub private: MissedCount,
}

/// `saved`: this, and only this, is a promise of durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Saved {
    /// All orders up to this one are durable.
    pub seq: u64,
    /// And the inventory of this version.
    pub inventory: u64,
}

/// `pong`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pong {
    /// From the `ping`.
    pub nonce: u64,
    /// Milliseconds since the session began at its gateway.
    pub at_ms: u64,
}

/// Why something was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// It does not parse or validate.
    Invalid,
    /// The server has no room now.
    Busy,
    /// Too many messages.
    RateLimited,
    /// Not part of the game yet.
    Unavailable,
    /// The target is not there.
    NoTarget,
    /// The target is too far away.
    OutOfReach,
    /// Something stands between.
    NoSight,
    /// There is nothing of that kind to use.
    NothingLeft,
    /// It cannot be done now: dead, busy, or still cooling down.
    NotNow,
    /// Not authorised.
    Unauthorised,
    /// The character was opened elsewhere.
    Superseded,
    /// The version is not spoken here.
    Version,
}

/// `error`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ErrorMsg {
    /// What kind.
    pub code: ErrorCode,
    /// A sentence for people.
    pub message: String,
    /// The order that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Number in the private reliable stream, when the owner says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<u64>,
}

/// `goodbye`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Goodbye {
    /// Why.
    pub reason: String,
    /// Where to go.
    pub gateways: Vec<String>,
    /// When to try, in milliseconds.
    pub after_ms: u64,
}

/// The close codes of the protocol.
pub mod close {
    /// The server goes away.
    pub const GOING_AWAY: u16 = 1001;
    /// Not WebSocket as it should be.
    pub const PROTOCOL_ERROR: u16 = 1002;
    /// Text where binary was agreed, or the reverse.
    pub const WRONG_KIND: u16 = 1003;
    /// Bytes that are not the agreed encoding.
    pub const NOT_DECODABLE: u16 = 1007;
    /// Floods, or no login in time.
    pub const POLICY: u16 = 1008;
    /// A message over the bound.
    pub const TOO_BIG: u16 = 1009;
    /// The gateway restarts: resume elsewhere.
    pub const RESTART: u16 = 1012;
    /// Full: try again later.
    pub const TRY_LATER: u16 = 1013;
    /// The session was opened elsewhere.
    pub const SUPERSEDED: u16 = 4000;
    /// The client does not read.
    pub const SLOW_CONSUMER: u16 = 4002;
    /// Nothing was heard for too long.
    pub const TIMEOUT: u16 = 4003;
    /// Not authorised.
    pub const UNAUTHORISED: u16 = 4401;
}

impl ServerMsg {
    /// The number of this message in the private reliable stream, if it is part of it.
    pub fn private(&self) -> Option<u64> {
        match self {
            ServerMsg::Respawned(m) => Some(m.private),
            ServerMsg::StepRejected(m) => Some(m.private),
            ServerMsg::Looked(m) => Some(m.private),
            ServerMsg::Inventory(m) => Some(m.private),
            ServerMsg::Error(m) => m.private,
            _ => None,
        }
    }

    /// The number of this message in the public reliable stream, if it is part of it.
    pub fn public(&self) -> Option<u64> {
        match self {
            ServerMsg::Event(m) => Some(m.seq),
            ServerMsg::Said(m) => Some(m.seq),
            _ => None,
        }
    }
}

impl Respawned {
    /// Where.
    pub fn pos(&self) -> Pos {
        Pos::new(self.x, self.y)
    }
}
