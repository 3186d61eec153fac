//! What source and destination of a handoff note of it, and tell each other and the gateway.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::RegionId;

use super::arrival::Arrival;
use super::core::SimCore;
use super::handoff::Outgoing;
use crate::Millis;
use crate::crossing::{Crossing, Measured, Outcome, Phase};
use crate::peer::message::Flight;
use crate::store::ClaimRow;

impl SimCore {
    /// The time that goes on while this sim stands still: other cores of this node know no other.
    fn recorded_at(&self) -> Millis {
        self.now + self.frozen_ms
    }

    /// The source: the destination has it.
    pub(super) fn note_departure(
        &mut self,
        outgoing: &Outgoing,
        generation: u64,
        flight: Option<&Flight>,
    ) {
        let crossing = self.departure(outgoing, generation);
        let accept_ms = self.now.saturating_sub(outgoing.offered_at);
        let leave_ms = outgoing.offered_at.saturating_sub(outgoing.left_at);
        self.recorder.keep(Crossing {
            to: Some(outgoing.to),
            destination: Some(outgoing.holder.node.clone()),
            leave_ms: Some(leave_ms),
            claim_ms: flight.and_then(|flight| flight.claim_ms),
            seal_ms: flight.and_then(|flight| flight.seal_ms),
            accept_ms: Some(accept_ms),
            ..crossing
        });
        let leave = Measured::Phase(Phase::Leave, leave_ms);
        self.recorder.measure(leave);
        let accept = Measured::Phase(Phase::Accept, accept_ms);
        self.recorder.measure(accept);
    }

    /// The source: it is back in a battle of ours.
    pub(super) fn note_return(&mut self, outgoing: &Outgoing, region: RegionId) -> Flight {
        let flight = Flight {
            cause: outgoing.cause,
            source: self.config.me.node.clone(),
            from: Some(outgoing.character.region),
            leave_ms: self.now.saturating_sub(outgoing.left_at),
            claim_ms: None,
            seal_ms: None,
        };
        let crossing = self.departure(outgoing, outgoing.character.generation);
        self.recorder.keep(Crossing {
            to: Some(region),
            destination: Some(self.config.me.node.clone()),
            ..crossing.of_flight(&flight)
        });
        flight
    }

    /// The source: somebody else has it, as the row says, and never told.
    pub(super) fn note_loss(&mut self, outgoing: &Outgoing, row: Option<&ClaimRow>) {
        let generation = row.map_or(outgoing.character.generation, |row| row.number);
        let holder = row.and_then(|row| row.holder.as_ref());
        let crossing = self.departure(outgoing, generation);
        self.recorder.keep(Crossing {
            outcome: Outcome::Lost,
            to: Some(outgoing.to),
            destination: holder.map(|holder| holder.node.clone()),
            ..crossing
        });
    }

    fn departure(&self, outgoing: &Outgoing, generation: u64) -> Crossing {
        let (at, id) = (self.recorded_at(), outgoing.character.id);
        Crossing {
            from: Some(outgoing.character.region),
            source: Some(self.config.me.node.clone()),
            ..Crossing::new(at, id, generation, outgoing.cause.into())
        }
    }

    /// The destination: it is ours and durable.
    pub(super) fn note_arrival(&mut self, arrival: &Arrival, generation: u64) -> Flight {
        let offer = &arrival.offer;
        let claimed_at = arrival.claimed_at.unwrap_or(self.now);
        let claim_ms = claimed_at.saturating_sub(arrival.heard_at);
        let seal_ms = self.now.saturating_sub(claimed_at);
        let flight = Flight {
            cause: offer.cause,
            source: offer.source.node.clone(),
            from: offer.from,
            leave_ms: offer.out_ms,
            claim_ms: Some(claim_ms),
            seal_ms: Some(seal_ms),
        };
        let (at, cause) = (self.recorded_at(), offer.cause.into());
        let crossing = Crossing {
            to: Some(offer.region),
            destination: Some(self.config.me.node.clone()),
            ..Crossing::new(at, offer.char_id, generation, cause).of_flight(&flight)
        };
        self.recorder.keep(crossing);
        self.recorder
            .measure(Measured::Phase(Phase::Claim, claim_ms));
        self.recorder.measure(Measured::Phase(Phase::Seal, seal_ms));
        flight
    }
}
