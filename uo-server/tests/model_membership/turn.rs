//! One step: what happens to a node or to the store, and everything that follows from it at once.

use std::collections::VecDeque;

use uo_server::cluster::core::{ClusterConfig, ClusterCore, Effect, Input, Ticket};
use uo_server::identity::{BootId, Holder, NodeName};
use uo_server::planted::Planted;
use uo_server::store::row::{NodeState, Role};
use uo_server::store::{Life, Reply, Request, StoreError};

use super::bounds::{Bounds, Speed};
use super::state::{Answer, Ask, Flight, Kind, Row, Shared, State, What, boot_id, is_hit, node_of};
use super::store::{carry_out, life_of};
use crate::run::Counts;

/// A state while a step is taken.
pub struct Turn<'a> {
    pub bounds: &'a Bounds,
    pub counts: &'a Counts,
    pub names: &'a [NodeName],
    pub state: State,
    /// What is to be answered before anything else happens.
    instant: VecDeque<(usize, Ticket, Kind, Ask)>,
}

impl<'a> Turn<'a> {
    pub fn new(
        bounds: &'a Bounds,
        counts: &'a Counts,
        names: &'a [NodeName],
        state: State,
    ) -> Turn<'a> {
        Turn {
            bounds,
            counts,
            names,
            state,
            instant: VecDeque::new(),
        }
    }

    /// Starts a process, which looks around first.
    pub fn start(&mut self, node: usize) {
        let config = ClusterConfig {
            me: Holder {
                node: self.names[node].clone(),
                boot: self.fresh_boot(node),
            },
            role: Role::Sim,
            regions: 0,
            demand_driven: false,
            others_are_dead: false,
            peer: None,
            clients: Vec::new(),
            timing: self.bounds.timing.clone(),
            planted: self.bounds.planted,
        };
        self.state.nodes[node].core = Some(Shared::changed(ClusterCore::new(config, 0)));
        self.give(node, Input::Tick);
    }

    /// The process of this node is no more. What it asked for may still happen.
    pub fn stop(&mut self, node: usize) {
        let it = &mut self.state.nodes[node];
        (it.core, it.paused, it.acted) = (None, None, false);
        for flight in &mut self.state.flights {
            if flight.node == node {
                flight.ticket = None;
            }
        }
        self.instant.retain(|(of, ..)| *of != node);
    }

    /// An input to a node, and all that follows at once. A node that paused takes in first how long.
    pub fn give(&mut self, node: usize, input: Input) {
        self.take_in(node, input, 0);
        self.settle();
    }

    /// Answers what is to be answered at once.
    pub fn settle(&mut self) {
        while let Some((node, ticket, kind, ask)) = self.instant.pop_front() {
            let reply = if self.state.outage && is_hit(self.bounds.outage, kind) {
                Err(StoreError::Refused(String::new()))
            } else {
                let answer = self.ask_store(&ask);
                self.reply(node, answer)
            };
            self.take_in(node, Input::Store { ticket, reply }, 0);
        }
    }

    /// `ms` pass on the clock of a node.
    pub fn tick(&mut self, node: usize, ms: u64) {
        self.take_in(node, Input::Tick, ms);
    }

    fn take_in(&mut self, node: usize, input: Input, ms: u64) {
        let it = &mut self.state.nodes[node];
        let Some(core) = it.core.take() else {
            return;
        };
        let passed = ms + it.paused.take().unwrap_or(0);
        let mut core = core.take();
        let mut effects = Vec::new();
        core.handle(passed, input, &mut effects);
        let may_act = core.may_act();
        let me = core.me().boot;
        it.core = Some(Shared::changed(core));
        if may_act && self.bounds.leases && !self.state.named.contains(&me) {
            self.state.named.push(me);
            self.state.named.sort_unstable();
        }
        for effect in effects {
            self.effect(node, effect);
        }
    }

    fn effect(&mut self, node: usize, effect: Effect) {
        match effect {
            Effect::Store { ticket, request } => self.send(node, ticket, request),
            Effect::Fence { fallen: true } => self.counts.add("a fence falls"),
            Effect::Fence { fallen: false } => self.counts.add("a thaw at the same boot"),
            Effect::WantBoot => {
                let boot = self.fresh_boot(node);
                self.take_in(node, Input::NewBoot(boot), 0);
            }
            Effect::Reborn { .. } => self.counts.add("a dead boot is reborn as another"),
            Effect::Dead { boot } => {
                self.counts.add("a death is known");
                if !self.state.is_dead(boot) {
                    self.state.broken = Some("somebody is taken for dead who is not".into());
                }
            }
            Effect::Exit { .. } => {
                self.counts.add("a process exits");
                self.stop(node);
            }
            _ => {}
        }
    }

    fn send(&mut self, node: usize, ticket: Ticket, request: Request) {
        let Some(core) = &self.state.nodes[node].core else {
            return;
        };
        let me = core.me().boot;
        let of = |boot| {
            if boot == me {
                Kind::OwnLife
            } else {
                Kind::Death
            }
        };
        let (kind, ask) = match request {
            Request::NodeBeat { boot, row, .. } => {
                let row = Row::of(&row);
                if row.state == NodeState::Fenced {
                    self.counts.add("a row says fenced");
                }
                (Kind::Beat, Ask::Beat(boot, row))
            }
            Request::NodesRead => (Kind::Nodes, Ask::Nodes),
            Request::LifeBegin { boot, .. } => (Kind::OwnLife, Ask::Begin(boot)),
            Request::LifeRead { boot } => (of(boot), Ask::Read(boot)),
            Request::LifeCas { boot, from, to } => {
                (of(boot), Ask::Cas(boot, number(from), number(Some(to))))
            }
            _ => return,
        };
        match (kind, &ask) {
            // It stopped in order, latch first: nothing that it decided before is open.
            (Kind::OwnLife, Ask::Cas(_, _, None)) => self.state.nodes[node].acted = false,
            (Kind::Death, Ask::Cas(boot, _, None)) => {
                if let Some(evidence) = evidence(core, *boot) {
                    self.counts.add(evidence);
                }
            }
            _ => {}
        }
        let speeds = &self.bounds.nodes[node];
        let speed = match kind {
            Kind::Beat => speeds.beats,
            Kind::Nodes => speeds.reads,
            Kind::OwnLife => speeds.own_life,
            Kind::Death => speeds.deaths,
        };
        if speed == Speed::Instant {
            return self.instant.push_back((node, ticket, kind, ask));
        }
        self.state.flights.push(Flight {
            node,
            kind,
            ticket: Some(ticket),
            what: What::Asked(ask),
        });
    }

    /// The store carries out a request.
    pub fn ask_store(&mut self, ask: &Ask) -> Answer {
        let answer = carry_out(&mut self.state, ask, self.bounds.planted);
        if let (Ask::Cas(_, _, None), Answer::Cas(applied, _)) = (ask, &answer) {
            let name = match applied {
                true => "a life is ended",
                false => "an end is refused",
            };
            self.counts.add(name);
            if *applied && self.bounds.nobody_dies {
                self.state.broken = Some("somebody is declared dead for an outage".into());
            }
        }
        answer
    }

    /// An answer as a core is given it.
    fn reply(&self, node: usize, answer: Answer) -> Result<Reply, StoreError> {
        Ok(match answer {
            Answer::Done => Reply::Done,
            Answer::Rows(rows) => {
                let is_blind = self.bounds.nodes[node].is_blind;
                let seen = rows
                    .into_iter()
                    .filter(|(boot, _)| !is_blind || node_of(*boot) == node);
                let named = |(boot, row): (BootId, Row)| {
                    (self.names[node_of(boot)].clone(), boot, row.bytes())
                };
                Reply::Nodes(seen.map(named).collect())
            }
            Answer::Life(life) => Reply::Life(life_of(life)),
            Answer::Cas(applied, life) => Reply::LifeCas {
                applied,
                row: life_of(life),
            },
        })
    }

    /// A node is answered.
    pub fn answer(&mut self, node: usize, kind: Kind, ticket: Ticket, answer: Answer) {
        let refused = kind == Kind::OwnLife && matches!(answer, Answer::Cas(false, Some(1..)));
        let had_outage = self.has_outage(node);
        let reply = self.reply(node, answer);
        self.give(node, Input::Store { ticket, reply });
        if refused {
            self.counts.add(if self.state.acts(node, false) {
                "a refused thaw is a thaw"
            } else {
                "a refused thaw teaches the number"
            });
        }
        if had_outage && !self.has_outage(node) {
            self.counts.add("an observer's outage is over");
        }
    }

    fn has_outage(&self, node: usize) -> bool {
        let core = &self.state.nodes[node].core;
        core.as_ref()
            .is_some_and(|core| core.observer().is_outage())
    }

    /// A boot that nobody has heard of.
    fn fresh_boot(&self, node: usize) -> BootId {
        let is_used = |boot: BootId| {
            self.state.register(boot).is_some()
                || self.state.row(boot).is_some()
                || self.state.named.contains(&boot)
                || self.state.flights.iter().any(|flight| names(flight, boot))
                || self.instant.iter().any(|(.., ask)| asks(ask, boot))
                || self
                    .state
                    .cores()
                    .any(|it| it.knows(boot) || it.is_dead(boot))
        };
        let mut boots = (0..16).map(|count| boot_id(node, count));
        boots
            .find(|boot| !is_used(*boot))
            .expect("there are not that many boots at once")
    }
}

/// On which evidence a node ends a life, if it still has that evidence.
fn evidence(core: &ClusterCore, boot: BootId) -> Option<&'static str> {
    let is_gone = core.observer().is_gone(boot);
    match core.state_of(boot) {
        None if is_gone => Some("an absent boot is ended"),
        Some(_) if is_gone && core.observer().is_doubled(boot) => {
            Some("a boot that stands still is ended after an outage")
        }
        Some(_) if is_gone => Some("a boot that stands still is ended"),
        Some(NodeState::Done) => Some("a boot that is done is ended"),
        Some(NodeState::Fenced) => Some("a boot that says fenced is ended"),
        _ => None,
    }
}

/// Whether a request names this boot.
pub fn asks(ask: &Ask, boot: BootId) -> bool {
    match ask {
        Ask::Nodes => false,
        Ask::Beat(it, _) | Ask::Begin(it) | Ask::Read(it) | Ask::Cas(it, ..) => *it == boot,
    }
}

/// Whether this boot is named on the way.
pub fn names(flight: &Flight, boot: BootId) -> bool {
    match &flight.what {
        What::Asked(ask) => asks(ask, boot),
        What::Answered(Answer::Rows(rows)) => rows.iter().any(|(it, _)| *it == boot),
        What::Answered(_) => false,
    }
}

fn number(life: Option<Life>) -> Option<u64> {
    match life {
        Some(Life::Alive(life)) => Some(life),
        Some(Life::Dead) | None => None,
    }
}

/// Whether a request that nobody waits for can still do anything.
pub fn is_open(state: &State, ask: &Ask, planted: Planted) -> bool {
    use super::state::Register::{Alive, Dead};
    match ask {
        Ask::Nodes | Ask::Read(_) => false,
        Ask::Begin(boot) => state.register(*boot).is_none(),
        Ask::Beat(boot, row) => state.row(*boot).is_none_or(|old| old.beat < row.beat),
        Ask::Cas(boot, from, _) => match state.register(*boot) {
            None => from.is_none(),
            Some(Alive(life)) => from.is_some_and(|from| from >= life),
            Some(Dead(life)) => {
                planted.has(uo_server::planted::PlantedBug::LifeCasWithoutDead)
                    && from.is_some_and(|from| from >= life)
            }
        },
    }
}
