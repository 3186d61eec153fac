//! The messages between nodes. Every message about a region or a character carries its number (epoch, generation);
//! receivers drop and count lower ones than they know.
//!
//! What happens to each when the queue to a node is full is told by [`rule`](super::rule).
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uo_combat::{Battle, ObjectHit};
use uo_proto::{
    CharId, CombatEvent, EntityId, EntityInfo, EntityState, NumberedOrder, ObjectState, Pos,
    RegionId, ServerMsg, Speech,
};

use crate::identity::{Holder, NodeName};
use crate::store::row::CharacterRow;

/// A message to one of the two roles of a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Message {
    /// For its sim core.
    ToSim(ToSim),
    /// For its gateway core.
    ToGateway(ToGateway),
}

/// Names one attach of a session at a gateway: unique to (gateway boot, counter), grows with each attach there.
pub type AttachId = u64;

/// Messages to a sim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum ToSim {
    /// gateway: own this character for this session.
    Attach(Attach),
    /// gateway: the session's connection is gone (`logout` false: linger) or the player leaves (true).
    Detach {
        char_id: CharId,
        attach: AttachId,
        logout: bool,
    },
    /// gateway, or a sim that forwards: an order, with the target's region as the gateway sees it.
    Order(RoutedOrder),
    /// gateway: the client has every private message up to `private`.
    PlayerAck { char_id: CharId, private: u64 },
    /// gateway: send this region's feed.
    Subscribe { region: RegionId },
    /// gateway: stop sending it.
    Unsubscribe { region: RegionId },
    /// sim: take this character over.
    HandoffOffer(Box<HandoffOffer>),
    /// sim: taken; `generation` is the new one.
    HandoffAccept {
        char_id: CharId,
        generation: u64,
        #[serde(default)]
        flight: Option<Flight>,
    },
    /// sim: not taken, nothing was claimed.
    HandoffRefuse {
        char_id: CharId,
        generation: u64,
        reason: HandoffRefusal,
    },
    /// sim: damage by its battle to objects of `region`.
    ObjectHits {
        region: RegionId,
        epoch: u64,
        hits: Vec<ObjectHit>,
    },
    /// sim: objects of `region` changed; for the arenas of its neighbours. `full` is everything that differs.
    ObjectChanges {
        region: RegionId,
        epoch: u64,
        tick: u64,
        full: bool,
        objects: Vec<ObjectState>,
    },
    /// sim: take this region over, with everybody in it.
    DrainOffer(Box<DrainOffer>),
    /// sim: the region is held and served.
    DrainReady { region: RegionId, epoch: u64 },
    /// sim: the region will not be taken.
    DrainAbort {
        region: RegionId,
        epoch: u64,
        reason: String,
    },
    /// sim: a hint that saves a store read.
    Leases(Leases),
}

/// Messages to a gateway.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum ToGateway {
    /// The character is owned here, for this attach.
    Attached(Attached),
    /// It is not.
    AttachRefused {
        char_id: CharId,
        attach: AttachId,
        reason: AttachRefusal,
    },
    /// A private reliable message (its number is in it). Sent again after a re-attach until acknowledged.
    ToPlayer {
        char_id: CharId,
        generation: u64,
        message: ServerMsg,
    },
    /// Private messages up to this number are lost (a crash before a checkpoint).
    PrivateLost {
        char_id: CharId,
        generation: u64,
        through: u64,
    },
    /// Orders up to `seq` and the inventory of `inventory` are durable.
    Saved {
        char_id: CharId,
        generation: u64,
        seq: u64,
        inventory: u64,
    },
    /// The character is now in `region`, owned by `owner`. `flight`: it was in no battle meanwhile.
    Moved {
        char_id: CharId,
        generation: u64,
        region: RegionId,
        owner: Holder,
        #[serde(default)]
        flight: Option<Flight>,
    },
    /// Another attach took the character: close that connection with 4000.
    Superseded { char_id: CharId, attach: AttachId },
    /// Everything in a region.
    FeedFull(Arc<FeedFull>),
    /// What changed in a tick.
    FeedDelta(Arc<FeedDelta>),
    /// The region is not held here (any more).
    FeedEnd { region: RegionId, epoch: u64 },
    /// Everything that this sim had to send after one tick of its regions has been sent: the gateway may flush. Sent
    /// after the feeds of a tick, if there were any. (Without it a flush waits its full 10 ms.)
    FeedsDone,
    /// A hint that saves a store read.
    Leases(Leases),
    /// The character is owned here no longer, and who owns it does not know of this session: it has to be looked for.
    Lost { char_id: CharId, generation: u64 },
    /// Everything that this sim simulates stands still (true), or goes on (false). Orders for it wait at the gateway.
    Frozen { is_frozen: bool },
}

/// `Attach`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attach {
    /// Who.
    pub char_id: CharId,
    /// Its name.
    pub name: String,
    /// The session number; none at a login: the owner issues the next one.
    pub session: Option<u64>,
    /// Names this attach.
    pub attach: AttachId,
    /// The gateway and its boot.
    pub gateway: Holder,
    /// The last private message that the client has.
    pub last_private: u64,
}

/// `Attached`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Attached {
    /// Who.
    pub char_id: CharId,
    /// Names the attach that is answered.
    pub attach: AttachId,
    /// The generation it is owned under.
    pub generation: u64,
    /// The session number.
    pub session: u64,
    /// The region whose battle it is in.
    pub region: RegionId,
    /// Where it stands.
    pub pos: Pos,
    /// The highest order `seq` applied.
    pub last_order: u64,
}

/// Why an attach was refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum AttachRefusal {
    /// Somebody else owns it, or holds its region.
    Elsewhere(Holder),
    /// Its region is not held here, and who holds it is not known here.
    NotHeld(RegionId),
    /// A newer session holds it.
    Superseded,
    /// Not now (claim under way, stopping, fenced): try again.
    NotNow,
}

/// `Order`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RoutedOrder {
    /// Whose.
    pub char_id: CharId,
    /// The generation that the sender knows.
    pub generation: u64,
    /// The session it was given in.
    pub session: u64,
    /// The order and its number.
    pub order: NumberedOrder,
    /// The region whose feed shows the target, as the gateway sees it; for pinning.
    pub target_region: Option<RegionId>,
}

/// Why a character is handed over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum HandoffCause {
    /// It walked across.
    Border,
    /// It fights over there.
    Pin,
    /// Its region is drained.
    Drain,
    /// Its owner no longer holds its region.
    Forward,
}

/// `HandoffOffer`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct HandoffOffer {
    /// Who.
    pub char_id: CharId,
    /// The generation of the source; the destination claims the next.
    pub generation: u64,
    /// The source, as its `char_owner` row names it.
    pub source: Holder,
    /// The region whose battle it is to join.
    pub region: RegionId,
    /// Everything about it.
    pub character: CharacterRow,
    /// The attach it serves, and where; none: lingering.
    pub attach: Option<(AttachId, Holder)>,
    /// Milliseconds of linger left, when nobody is attached.
    pub linger_left_ms: u64,
    /// Where a walk across regions is going, and its order's number.
    pub walk: Option<(Pos, u64)>,
    /// Orders that arrived but were not applied, oldest first.
    pub held: Vec<RoutedOrder>,
    /// Why.
    pub cause: HandoffCause,
    /// The region whose battle it left.
    #[serde(default)]
    pub from: Option<RegionId>,
    /// For how long it had been in no battle when it was offered.
    #[serde(default)]
    pub out_ms: u64,
}

/// How a character came from one battle into the next. Each duration was measured on the clock of whoever is named; none
/// is a point in time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flight {
    /// Why it left.
    pub cause: HandoffCause,
    /// The owner it came from.
    pub source: NodeName,
    /// The region whose battle it left.
    pub from: Option<RegionId>,
    /// Milliseconds in no battle before it was offered, or before it came back: measured by the source.
    pub leave_ms: u64,
    /// From hearing the offer to the compare-and-set: measured by the destination. None: it came back to its source.
    pub claim_ms: Option<u64>,
    /// From there until it was durable and in its battle: measured by the destination.
    pub seal_ms: Option<u64>,
}

impl Flight {
    /// How long it was in no battle, but for the way of the offer.
    pub fn out_ms(&self) -> u64 {
        self.leave_ms + self.claim_ms.unwrap_or(0) + self.seal_ms.unwrap_or(0)
    }
}

/// Why a handoff was refused before anything was claimed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum HandoffRefusal {
    /// No link to whom it matters.
    NotLinked,
    /// The node is stopping.
    Stopping,
    /// The node is fenced.
    Fenced,
    /// The node does not hold the region.
    NotHeld,
}

/// `DrainOffer`: the region is frozen at its source; players follow in their own offers.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DrainOffer {
    /// Which.
    pub region: RegionId,
    /// The epoch of the source; the target claims the next.
    pub epoch: u64,
    /// The source, as its lease row names it.
    pub source: Holder,
    /// The whole battle but the players.
    pub battle: Battle,
    /// Every object that differs from the generated content.
    pub objects: Vec<ObjectState>,
    /// Everybody in it.
    pub players: Vec<(CharId, u64)>,
    /// Public events of its feed so far.
    #[serde(default)]
    pub told: Told,
    /// An operator wants it there: it stays for a while, whoever would be better for it.
    #[serde(default)]
    pub is_wished: bool,
}

/// `Leases`: who holds which regions now.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Leases {
    /// Region, epoch, holder (none: released).
    pub changes: Vec<(RegionId, u64, Option<Holder>)>,
}

/// An entity in a feed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedEntity {
    /// The generation of a character, the region's epoch for a mob: orders upserts of different regions.
    pub number: u64,
    /// What does not change; given when the entity is new to the feed.
    pub info: Option<Arc<EntityInfo>>,
    /// What does.
    pub state: EntityState,
    /// The highest order `seq` applied (characters).
    pub ack: u64,
}

/// Something public that happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedEvent {
    /// Where.
    pub at: Pos,
    /// Where else (the target of a shot).
    pub also: Option<Pos>,
    /// What.
    pub what: PublicEvent,
}

/// What everybody around gets told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum PublicEvent {
    /// `event`
    Combat(CombatEvent),
    /// `said`
    Said(Speech),
}

/// How many public events the feed of a region has had. The count goes along with the region, so a gateway can tell
/// whether all came to it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct Told {
    /// The epoch that began the count: whoever takes a region without its battle knows of none before.
    pub since: u64,
    /// Since then.
    pub count: u64,
}

/// `FeedFull`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedFull {
    /// Which region.
    pub region: RegionId,
    /// Under which lease.
    pub epoch: u64,
    /// The region's tick that this shows.
    pub tick: u64,
    /// Public events of this feed, those in here included.
    #[serde(default)]
    pub told: Told,
    /// Everybody in its battle; `info` always given.
    pub entities: Vec<FeedEntity>,
    /// Every object that differs from the generated content.
    pub objects: Vec<ObjectState>,
    /// Events of deltas that were merged into this state.
    pub events: Vec<FeedEvent>,
}

/// `FeedDelta`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FeedDelta {
    /// Which region.
    pub region: RegionId,
    /// Under which lease.
    pub epoch: u64,
    /// The region's tick that this leads to.
    pub tick: u64,
    /// The tick of the frame before it in this feed; the same one if this is speech alone.
    pub base_tick: u64,
    /// Public events that this feed had, those in here included: [`Told::count`]. So no speech is lost unnoticed, although
    /// it leads to no tick.
    #[serde(default)]
    pub told: u64,
    /// And with the frame before it.
    #[serde(default)]
    pub base_told: u64,
    /// New and changed entities.
    pub upserts: Vec<FeedEntity>,
    /// Entities that left the battle, with the number they had.
    pub removes: Vec<(EntityId, u64)>,
    /// Changed objects.
    pub objects: Vec<ObjectState>,
    /// What happened, in order.
    pub events: Vec<FeedEvent>,
}

impl FeedDelta {
    /// Whether it only tells, between two ticks, what was said.
    pub fn is_speech(&self) -> bool {
        self.tick == self.base_tick
    }
}
