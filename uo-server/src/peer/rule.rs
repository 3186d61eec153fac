//! What becomes of a message when the node that it is for does not read fast enough.
//!
//! | rule | kinds |
//! |---|---|
//! | waits, in order; too many, and the link is cut | whatever is not named below |
//! | the newest of its key replaces an older one, and goes to the back | `PlayerAck`, `Saved`, `Subscribe` and `Unsubscribe`, `FeedsDone`, `Frozen` |
//! | is merged into the older one of its key, which keeps its place | `FeedFull`, `FeedDelta`, `ObjectHits`, `ObjectChanges`, `Leases` |
//!
//! Orders wait, and push back without a word: a gateway sends no more of a session than the owner may have unacknowledged.
//! Pings do not get into the queue at all.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{CharId, RegionId};

use super::{Message, ToGateway, ToSim};

/// What becomes of a message that waits when another of its kind comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Both wait.
    Waits,
    /// The newer one is enough.
    Replaces(Key),
    /// One that says as much as both.
    Merges(Key),
}

/// Of what there is at most one message in a queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Key {
    /// What a player has read.
    PlayerAck(CharId),
    /// What of a player's is durable.
    Saved(CharId),
    /// Whether a gateway wants a feed.
    Interest(RegionId),
    /// A feed's changes.
    Feed(RegionId),
    /// The end of a tick's feeds.
    FeedsDone,
    /// Whether a sim stands still.
    Frozen,
    /// Damage to a region's objects.
    Hits(RegionId),
    /// Changes of a region's objects.
    Changes(RegionId),
    /// Leases, for a sim.
    SimLeases,
    /// Leases, for a gateway.
    GatewayLeases,
}

/// The rule for a message.
pub fn rule(message: &Message) -> Rule {
    match message {
        Message::ToSim(message) => sim_rule(message),
        Message::ToGateway(message) => gateway_rule(message),
    }
}

fn sim_rule(message: &ToSim) -> Rule {
    match *message {
        ToSim::PlayerAck { char_id, .. } => Rule::Replaces(Key::PlayerAck(char_id)),
        ToSim::Subscribe { region } | ToSim::Unsubscribe { region } => {
            Rule::Replaces(Key::Interest(region))
        }
        ToSim::ObjectHits { region, .. } => Rule::Merges(Key::Hits(region)),
        ToSim::ObjectChanges { region, .. } => Rule::Merges(Key::Changes(region)),
        ToSim::Leases(_) => Rule::Merges(Key::SimLeases),
        ToSim::Attach(_)
        | ToSim::Detach { .. }
        | ToSim::Order(_)
        | ToSim::HandoffOffer(_)
        | ToSim::HandoffAccept { .. }
        | ToSim::HandoffRefuse { .. }
        | ToSim::DrainOffer(_)
        | ToSim::DrainReady { .. }
        | ToSim::DrainAbort { .. } => Rule::Waits,
    }
}

fn gateway_rule(message: &ToGateway) -> Rule {
    match message {
        ToGateway::Saved { char_id, .. } => Rule::Replaces(Key::Saved(*char_id)),
        ToGateway::FeedFull(full) => Rule::Merges(Key::Feed(full.region)),
        ToGateway::FeedDelta(delta) => Rule::Merges(Key::Feed(delta.region)),
        ToGateway::FeedsDone => Rule::Replaces(Key::FeedsDone),
        ToGateway::Frozen { .. } => Rule::Replaces(Key::Frozen),
        ToGateway::Leases(_) => Rule::Merges(Key::GatewayLeases),
        ToGateway::Attached(_)
        | ToGateway::AttachRefused { .. }
        | ToGateway::ToPlayer { .. }
        | ToGateway::PrivateLost { .. }
        | ToGateway::Moved { .. }
        | ToGateway::Superseded { .. }
        | ToGateway::FeedEnd { .. }
        | ToGateway::Lost { .. } => Rule::Waits,
    }
}

/// The version of the messages that brought this one. Whoever speaks an older one is not sent it.
pub fn since(message: &Message) -> u16 {
    match message {
        Message::ToSim(
            ToSim::DrainOffer(_) | ToSim::DrainReady { .. } | ToSim::DrainAbort { .. },
        ) => 2,
        _ => 1,
    }
}

/// What a node of an older version would say to a message that it does not know, if it could: nobody has to wait for an
/// answer that never comes.
pub fn declined(message: &Message) -> Option<Message> {
    let Message::ToSim(ToSim::DrainOffer(offer)) = message else {
        return None;
    };
    Some(Message::ToSim(ToSim::DrainAbort {
        region: offer.region,
        epoch: offer.epoch,
        reason: "it speaks a version that knows no drains".into(),
    }))
}

/// Every kind of packet and message, as the wire names it.
pub const KINDS: &[&str] = &[
    "Hello",
    "Challenge",
    "Proof",
    "Refused",
    "Ping",
    "Pong",
    "ToSim.Attach",
    "ToSim.Detach",
    "ToSim.Order",
    "ToSim.PlayerAck",
    "ToSim.Subscribe",
    "ToSim.Unsubscribe",
    "ToSim.HandoffOffer",
    "ToSim.HandoffAccept",
    "ToSim.HandoffRefuse",
    "ToSim.ObjectHits",
    "ToSim.ObjectChanges",
    "ToSim.DrainOffer",
    "ToSim.DrainReady",
    "ToSim.DrainAbort",
    "ToSim.Leases",
    "ToGateway.Attached",
    "ToGateway.AttachRefused",
    "ToGateway.ToPlayer",
    "ToGateway.PrivateLost",
    "ToGateway.Saved",
    "ToGateway.Moved",
    "ToGateway.Superseded",
    "ToGateway.FeedFull",
    "ToGateway.FeedDelta",
    "ToGateway.FeedEnd",
    "ToGateway.FeedsDone",
    "ToGateway.Leases",
    "ToGateway.Lost",
    "ToGateway.Frozen",
];

/// Whether this build knows that kind.
pub fn is_known_kind(kind: &str) -> bool {
    KINDS.contains(&kind)
}
