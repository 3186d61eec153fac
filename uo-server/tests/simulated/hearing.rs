//! What is said near a player is heard, or it is told that it missed something.
//!
//! Who is near is what a gateway believes when the line comes there, so only those are asked of who are surely near: from
//! the moment at which it was said until they hear it.

use std::collections::BTreeMap;

use uo_proto::{AOI_RADIUS, CharId, Pos};
use uo_server::peer::message::{FeedEvent, PublicEvent};
use uo_server::peer::{Message, ToGateway};

use super::shard::Shard;

/// So near that no step taken meanwhile leads out of the area of interest.
const SURELY: u16 = AOI_RADIUS - 6;
/// Farther away than this, a gateway may believe that it is too far.
const PERHAPS: u16 = AOI_RADIUS - 2;
/// What a character walks at most between two looks at it; more is a new life elsewhere.
const STEPS: u16 = 6;

/// Lines that a session has to hear yet, and where they were said.
#[derive(Clone, Default, Debug)]
pub struct Expected(BTreeMap<String, Pos>);

impl Expected {
    /// It is told that it missed something: anything may be meant.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn heard(&mut self, text: &str) {
        self.0.remove(text);
    }

    /// The player stands there now, as far as it knows, and stood there before.
    pub fn moved(&mut self, before: Option<Pos>, now: Option<Pos>) {
        let (Some(before), Some(now)) = (before, now) else {
            return self.clear();
        };
        if before.distance(now) > STEPS {
            return self.clear();
        }
        self.0.retain(|_, at| at.distance(now) <= PERHAPS);
    }

    /// One that never came.
    pub fn first(&self) -> Option<&str> {
        self.0.keys().next().map(String::as_str)
    }

    fn expect(&mut self, text: &str, at: Pos) {
        self.0.insert(text.to_owned(), at);
    }
}

fn said(event: &FeedEvent) -> Option<(&str, Pos)> {
    match &event.what {
        PublicEvent::Said(speech) => Some((&speech.text, event.at)),
        PublicEvent::Combat(_) => None,
    }
}

impl Shard {
    /// Lines leave a sim: whoever is surely near must hear them. Those whom another sim plays are not asked.
    pub(super) fn note_said(&mut self, index: usize, message: &Message) {
        let events = match message {
            Message::ToGateway(ToGateway::FeedFull(full)) => &full.events,
            Message::ToGateway(ToGateway::FeedDelta(delta)) => &delta.events,
            _ => return,
        };
        for (text, at) in events.iter().filter_map(said) {
            for player in 0..self.clients.len() {
                let stands = self.stands(index, self.clients[player].char_id);
                let client = &mut self.clients[player];
                let believes = client.pos();
                let is_near = |pos: Option<Pos>| pos.is_some_and(|pos| pos.distance(at) <= SURELY);
                if client.is_in_world()
                    && is_near(stands)
                    && is_near(believes)
                    && let Some(session) = &mut client.session
                {
                    session.expected.expect(text, at);
                    client.stats.expected += 1;
                }
            }
        }
    }

    fn stands(&self, index: usize, char_id: CharId) -> Option<Pos> {
        let core = self.sims[index].as_ref()?.core();
        let mut regions = self.world.regions().filter_map(|id| core.region(id));
        let state = regions.find_map(|region| region.battle().state(char_id.entity()))?;
        Some(state.pos())
    }
}
