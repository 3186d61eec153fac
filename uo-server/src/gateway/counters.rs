//! What the gateway counts, and what it says about itself.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use serde::Serialize;
use uo_proto::{CharId, Pos, RegionId};

use super::core::GatewayCore;
use super::session::Phase;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Numbers that only grow.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
            closes: [u64; CLOSE_CODES.len()],
        }

        impl Counters {
            /// Each counter with its name.
            pub fn named(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Sessions begun by a login.
    logins,
    /// Sessions resumed.
    resumes,
    /// Resumes refused for their token.
    resumes_refused,
    /// Sessions ended by their players.
    logouts,
    /// Sessions that went elsewhere, or whose character was opened again.
    supersessions,
    /// Attaches that were answered.
    attaches,
    /// Attaches that were refused.
    attaches_refused,
    /// Attaches that were not answered in time.
    attaches_timed_out,
    /// Orders passed to their owner, again or for the first time.
    orders,
    /// Orders that were given before.
    orders_repeated,
    /// Orders refused because too many were not acknowledged.
    orders_refused,
    /// Messages that did not parse or validate.
    invalid,
    /// Writes.
    writes,
    /// Deltas.
    deltas,
    /// Snapshots.
    snapshots,
    /// Public messages put into the streams of sessions.
    publics,
    /// Sessions that were told that they missed public messages: some never came here.
    publics_missed,
    /// Private messages put into the streams of sessions.
    privates,
    /// Private messages that a session had before.
    privates_repeated,
    /// Private messages before which some were missing: their owner was asked again.
    private_gaps,
    /// Entities, objects and events encoded.
    fragments,
    /// Feeds of full state applied.
    feeds_full,
    /// Feeds of changes applied.
    feeds_delta,
    /// Feeds under an epoch that is over.
    feeds_stale,
    /// Feeds that do not follow on what is here: asked for again.
    feeds_gaps,
    /// Messages about a character under a generation that is over, or for an attach that is.
    stale,
    /// Flushes.
    flushes,
    /// Sessions looked at in flushes.
    looks,
}

const CLOSE_CODES: [u16; 13] = [
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1012, 1013, 4000, 4002, 4003, 4401,
];

impl Counters {
    pub(super) fn closed(&mut self, code: u16) {
        if let Some(at) = CLOSE_CODES.iter().position(|&known| known == code) {
            self.closes[at] += 1;
        }
    }

    /// How many connections the core closed, by code.
    pub fn closes(&self) -> impl Iterator<Item = (u16, u64)> {
        CLOSE_CODES.into_iter().zip(self.closes)
    }
}

/// What `/state` says about a gateway.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GatewayState {
    /// Connections that are neither closed nor closing.
    pub connections: usize,
    /// Sessions, with or without a connection.
    pub sessions: usize,
    /// Sessions whose owner serves them.
    pub sessions_attached: usize,
    /// Regions whose feeds are held.
    pub subscriptions: usize,
    /// Regions that are needed and bring no feed.
    pub subscriptions_waiting: usize,
    /// Entities in the merged view.
    pub entities: usize,
    /// Objects in it that differ, or differed, from the generated content.
    pub objects: usize,
    /// Whether the gateway stops.
    pub stopping: bool,
}

/// What `/state?full` says about a session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionState {
    /// Whose.
    pub char_id: CharId,
    /// Its name.
    pub name: String,
    /// Whether it has a connection.
    pub connected: bool,
    /// Where it is on its way to its character.
    pub phase: &'static str,
    /// The node of its owner.
    pub owner: Option<String>,
    /// The generation that it is owned under.
    pub generation: u64,
    /// Where it looks from.
    pub pos: Option<Pos>,
    /// The highest order taken from its client, and the highest that the battle took.
    pub orders: (u64, u64),
    /// Entities and objects that its client knows.
    pub known: (usize, usize),
}

impl GatewayCore {
    /// What was counted so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// A summary.
    pub fn state(&self) -> GatewayState {
        let is_attached = |phase: &Phase| *phase == Phase::Attached;
        let phases = self.sessions.iter().map(|(_, session)| &session.phase);
        let (entities, objects) = self.view.sizes();
        let fed = self
            .regions
            .values()
            .filter(|region| region.is_fed())
            .count();
        GatewayState {
            connections: self.conns.len(),
            sessions: self.sessions.len(),
            sessions_attached: phases.filter(|phase| is_attached(phase)).count(),
            subscriptions: fed,
            subscriptions_waiting: self.regions.len() - fed,
            entities,
            objects,
            stopping: self.stopping,
        }
    }

    /// Everything as JSON: the state, counters, and gauges. `full`: every session as well.
    pub fn observe(&self, full: bool) -> serde_json::Value {
        let state = self.state();
        let counters: serde_json::Map<_, _> = self
            .counters
            .named()
            .into_iter()
            .map(|(name, count)| (format!("gateway_{name}"), count.into()))
            .collect();
        let mut seen = serde_json::json!({
            "counters": counters,
            "gauges": {
                "sessions": state.sessions,
                "sessions_attached": state.sessions_attached,
                "subscriptions": state.subscriptions,
                "view_entities": state.entities,
                "view_objects": state.objects,
            },
            "summary": state,
        });
        if full {
            seen["sessions"] = serde_json::json!(self.session_states());
        }
        seen
    }

    /// Every session.
    pub fn session_states(&self) -> Vec<SessionState> {
        let state = |(_, session): (u32, &super::session::Session)| SessionState {
            char_id: session.char_id,
            name: session.name.to_string(),
            connected: session.conn.is_some(),
            phase: match session.phase {
                Phase::Resting => "resting",
                Phase::AskingOwner(_) | Phase::AskingPlace(_) | Phase::AskingHolder(..) => {
                    "locating"
                }
                Phase::Attaching { .. } => "attaching",
                Phase::Waiting { .. } => "waiting",
                Phase::Attached => "attached",
            },
            owner: session.owner.as_ref().map(|owner| owner.node.to_string()),
            generation: session.generation,
            pos: session.sight.centre,
            orders: (session.orders.last(), session.ack),
            known: session.sight.known(),
        };
        self.sessions.iter().map(state).collect()
    }

    /// The regions that bring no feed although they are needed.
    pub fn regions_waiting(&self) -> Vec<RegionId> {
        let waiting = self.regions.iter().filter(|(_, region)| !region.is_fed());
        waiting.map(|(&region, _)| region).collect()
    }
}
