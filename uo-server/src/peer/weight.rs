//! About how many bytes a message is. What can be long is counted, and the rest is a guess: a queue has to be bounded, not
//! measured, and encoding is left to whoever writes.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::{Message, ToGateway, ToSim};

/// What a message has in any case.
const MESSAGE: usize = 128;
/// A character with what it carries and what its player has not read.
const CHARACTER: usize = 8 * 1024;
/// The battle of a region, but for its players.
const BATTLE: usize = 64 * 1024;
/// An entity of a feed.
const ENTITY: usize = 192;
/// An object.
const OBJECT: usize = 48;
/// Something that happened, or an order.
const EVENT: usize = 192;
/// A line about a lease.
const LEASE: usize = 64;

/// See the module.
pub fn weight(message: &Message) -> usize {
    MESSAGE
        + match message {
            Message::ToSim(message) => sim_weight(message),
            Message::ToGateway(message) => gateway_weight(message),
        }
}

fn sim_weight(message: &ToSim) -> usize {
    match message {
        ToSim::HandoffOffer(offer) => CHARACTER + offer.held.len() * EVENT,
        ToSim::DrainOffer(offer) => {
            BATTLE + offer.objects.len() * OBJECT + offer.players.len() * LEASE
        }
        ToSim::ObjectHits { hits, .. } => hits.len() * OBJECT,
        ToSim::ObjectChanges { objects, .. } => objects.len() * OBJECT,
        ToSim::Leases(leases) => leases.changes.len() * LEASE,
        _ => 0,
    }
}

fn gateway_weight(message: &ToGateway) -> usize {
    match message {
        ToGateway::FeedFull(full) => {
            full.entities.len() * ENTITY + full.objects.len() * OBJECT + full.events.len() * EVENT
        }
        ToGateway::FeedDelta(delta) => {
            delta.upserts.len() * ENTITY
                + delta.objects.len() * OBJECT
                + (delta.events.len() + delta.removes.len()) * EVENT
        }
        ToGateway::Leases(leases) => leases.changes.len() * LEASE,
        _ => 0,
    }
}
