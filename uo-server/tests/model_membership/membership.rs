//! The model: what may happen in a state, and what comes of it.

use stateright::{Model, Property};
use uo_server::cluster::core::{Input, Ticket};
use uo_server::identity::NodeName;
use uo_server::store::StoreError;

use super::action::Action;
use super::bounds::{Bounds, Speed};
use super::canonical::canonicalize;
use super::counts::KINDS;
use super::state::{Flight, Kind, Node, State, What, is_hit, name};
use super::turn::Turn;
use crate::graph::Recoverable;
use crate::run::{Counts, Explorable, nothing_is_broken};

pub struct Membership {
    pub bounds: Bounds,
    pub counts: Counts,
    names: Vec<NodeName>,
}

impl Membership {
    pub fn new(bounds: Bounds) -> Membership {
        bounds.check();
        let names = (0..bounds.nodes.len()).map(|node| format!("sim-{node}"));
        Membership {
            names: names.map(|name| NodeName::from(&*name)).collect(),
            counts: Counts::new(KINDS),
            bounds,
        }
    }

    /// Every node that does not start late acts.
    fn beginning(&self) -> State {
        let state = State {
            nodes: self
                .bounds
                .nodes
                .iter()
                .map(|node| Node {
                    core: None,
                    paused: None,
                    acted: false,
                    slow: node.slow,
                    fast: node.fast,
                })
                .collect(),
            lives: Vec::new(),
            rows: Vec::new(),
            flights: Vec::new(),
            named: Vec::new(),
            outage: false,
            faults: self.bounds.faults,
            broken: None,
        };
        let mut prompt = self.bounds.clone();
        for node in &mut prompt.nodes {
            (node.beats, node.reads) = (Speed::Instant, Speed::Instant);
            (node.own_life, node.deaths) = (Speed::Instant, Speed::Instant);
        }
        let counts = Counts::new(KINDS);
        let mut turn = Turn::new(&prompt, &counts, &self.names, state);
        let nodes: Vec<usize> = (0..prompt.nodes.len())
            .filter(|node| !prompt.nodes[*node].starts_late)
            .collect();
        for node in &nodes {
            turn.start(*node);
            turn.settle();
        }
        canonicalize(&mut turn.state, prompt.planted);
        // Everybody has seen everybody's newest beat, so that the windows begin now.
        for _ in 0..2 {
            for node in &nodes {
                turn.tick(*node, 1);
                turn.settle();
            }
            canonicalize(&mut turn.state, prompt.planted);
        }
        let all_act = nodes.iter().all(|node| turn.state.acts(*node, false));
        assert!(all_act, "{}: a node does not act", self.bounds.name);
        turn.state
    }

    fn flight_actions(&self, state: &State, flight: &Flight, actions: &mut Vec<Action>) {
        let is_out = state.outage && is_hit(self.bounds.outage, flight.kind);
        match &flight.what {
            What::Asked(_) if is_out && flight.ticket.is_some() => {
                actions.push(Action::Fail(flight.clone()));
            }
            What::Asked(_) if is_out => {}
            What::Asked(_) => actions.push(Action::CarryOut(flight.clone())),
            What::Answered(_) => actions.push(Action::Answer(flight.clone())),
        }
        if state.faults.unknown > 0 && flight.ticket.is_some() {
            actions.push(Action::Unknown(flight.clone()));
        }
    }

    /// Whether whatever is to happen within a tick has happened.
    fn is_tick_over(&self, state: &State) -> bool {
        state.flights.iter().all(|flight| {
            let node = &self.bounds.nodes[flight.node];
            let speed = match flight.kind {
                Kind::Beat => node.beats,
                Kind::Nodes => node.reads,
                Kind::OwnLife => node.own_life,
                Kind::Death => node.deaths,
            };
            let is_paused = state.nodes[flight.node].paused.is_some();
            let may_wait = is_paused && matches!(flight.what, What::Answered(_));
            speed != Speed::Prompt || flight.ticket.is_none() || may_wait
        })
    }

    fn ticks(&self, state: &State, actions: &mut Vec<Action>) {
        if !self.is_tick_over(state) {
            return;
        }
        let runs = |node: &usize| {
            let it = &state.nodes[*node];
            it.core.is_some() && it.paused.is_none()
        };
        let nodes = || 0..state.nodes.len();
        let slow: Vec<usize> = nodes()
            .filter(|it| runs(it) && state.nodes[*it].slow > 0)
            .collect();
        let fast: Vec<usize> = nodes()
            .filter(|it| runs(it) && state.nodes[*it].fast > 0)
            .collect();
        for slow in std::iter::once(None).chain(slow.into_iter().map(Some)) {
            for fast in std::iter::once(None).chain(fast.iter().copied().map(Some)) {
                if slow.is_none() || slow != fast {
                    actions.push(Action::Tick { slow, fast });
                }
            }
        }
    }

    fn node_actions(&self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let node = &state.nodes[at];
        let Some(core) = &node.core else {
            return actions.push(Action::Start(at));
        };
        if node.paused.is_some() {
            actions.push(Action::Wake(at));
        } else {
            if state.faults.pauses > 0 {
                actions.push(Action::Pause(at));
            }
            if state.faults.ends > 0 && core.may_act() {
                actions.push(Action::Stop(at));
            }
            for boot in &state.named {
                let is_news = !core.knows(*boot) && !core.is_dead(*boot);
                if is_news && !self.bounds.nodes[at].is_blind {
                    actions.push(Action::Lease(at, *boot));
                }
            }
        }
        if state.faults.crashes > 0 {
            actions.push(Action::Crash(at));
        }
    }

    fn take(&self, turn: &mut Turn<'_>, action: Action) {
        match action {
            Action::Tick { slow, fast } => self.tick(turn, slow, fast),
            Action::CarryOut(flight) => {
                remove(&mut turn.state, &flight);
                let What::Asked(ask) = &flight.what else {
                    return;
                };
                let answer = turn.ask_store(ask);
                if flight.ticket.is_some() {
                    self.counts.add("carried out");
                    let what = What::Answered(answer);
                    turn.state.flights.push(Flight { what, ..flight });
                } else {
                    self.counts.add("carried out late");
                }
            }
            Action::Answer(flight) => {
                remove(&mut turn.state, &flight);
                if let (What::Answered(answer), Some(ticket)) = (flight.what, flight.ticket) {
                    self.counts.add("answered");
                    turn.answer(flight.node, flight.kind, ticket, answer);
                }
            }
            Action::Unknown(mut flight) => {
                turn.state.faults.unknown -= 1;
                remove(&mut turn.state, &flight);
                let (node, ticket) = (flight.node, flight.ticket.take());
                if let What::Asked(_) = flight.what {
                    self.counts.add("unknown");
                    turn.state.flights.push(flight);
                } else {
                    self.counts.add("an answer is lost");
                }
                fail(turn, node, ticket, StoreError::Unknown(String::new()));
            }
            Action::Fail(flight) => {
                self.counts.add("failed by an outage");
                remove(&mut turn.state, &flight);
                let error = StoreError::Refused(String::new());
                fail(turn, flight.node, flight.ticket, error);
            }
            action => self.happen(turn, action),
        }
    }

    fn happen(&self, turn: &mut Turn<'_>, action: Action) {
        match action {
            Action::Pause(node) => {
                self.counts.add("pause");
                turn.state.faults.pauses -= 1;
                turn.state.nodes[node].paused = Some(0);
            }
            Action::Wake(node) => {
                self.counts.add("wake");
                turn.give(node, Input::Tick);
            }
            Action::Crash(node) => {
                self.counts.add("crash");
                turn.state.faults.crashes -= 1;
                turn.stop(node);
            }
            Action::Start(node) => {
                self.counts.add("a process starts");
                turn.start(node);
            }
            Action::Stop(node) => {
                self.counts.add("stop in order");
                turn.state.faults.ends -= 1;
                turn.give(node, Input::Drained);
            }
            Action::OutageBegins => {
                self.counts.add("outage begins");
                turn.state.faults.outages -= 1;
                turn.state.outage = true;
            }
            Action::OutageEnds => {
                self.counts.add("outage ends");
                turn.state.outage = false;
            }
            Action::Lease(node, boot) => {
                self.counts.add("a lease names a boot");
                turn.give(node, Input::Suspect { boot });
            }
            Action::Expire(boot) => {
                self.counts.add("a row expires");
                turn.state.rows.retain(|(it, ..)| *it != boot);
            }
            _ => {}
        }
    }

    fn tick(&self, turn: &mut Turn<'_>, slow: Option<usize>, fast: Option<usize>) {
        self.counts.add("tick");
        let longest = self.bounds.timing.gone_after_outage_ms;
        if let Some(ttl) = self.bounds.ttl {
            for (_, _, age) in &mut turn.state.rows {
                *age = (*age + 1).min(ttl);
            }
        }
        for node in 0..turn.state.nodes.len() {
            let acts = turn.state.acts(node, false);
            let it = &mut turn.state.nodes[node];
            if let Some(lag) = &mut it.paused {
                *lag = (*lag + 1).min(longest);
                it.acted = false;
                continue;
            }
            it.acted = acts && self.bounds.acts_on;
            let ms = if slow == Some(node) {
                self.counts.add("a clock misses a tick");
                it.slow -= 1;
                0
            } else if fast == Some(node) {
                self.counts.add("a clock counts a tick twice");
                it.fast -= 1;
                2
            } else {
                1
            };
            turn.tick(node, ms);
        }
        turn.settle();
    }

    /// What must never be: somebody acts although its life has ended.
    fn judge(&self, state: &mut State) {
        for at in 0..state.nodes.len() {
            let Some(core) = &state.nodes[at].core else {
                continue;
            };
            let me = core.me().boot;
            if state.broken.is_none() && state.is_dead(me) && state.acts(at, self.bounds.acts_on) {
                state.broken = Some(format!("{} acts, and is dead", name(me)));
            }
        }
    }
}

impl Model for Membership {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.beginning()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        self.ticks(state, actions);
        for flight in &state.flights {
            self.flight_actions(state, flight, actions);
        }
        for at in 0..state.nodes.len() {
            self.node_actions(state, at, actions);
        }
        if state.outage {
            actions.push(Action::OutageEnds);
        } else if state.faults.outages > 0 {
            actions.push(Action::OutageBegins);
        }
        for (boot, _, age) in &state.rows {
            let is_old = self.bounds.ttl.is_some_and(|ttl| *age >= ttl);
            if is_old || (self.bounds.rows_expire && !state.runs(*boot)) {
                actions.push(Action::Expire(*boot));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut turn = Turn::new(&self.bounds, &self.counts, &self.names, last.clone());
        self.take(&mut turn, action);
        let mut state = turn.state;
        canonicalize(&mut state, self.bounds.planted);
        self.judge(&mut state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Membership>> {
        vec![nothing_is_broken()]
    }
}

impl Explorable for Membership {
    fn name(&self) -> String {
        self.bounds.name.to_owned()
    }

    fn bounds(&self) -> String {
        self.bounds.to_string()
    }

    fn broken(state: &State) -> Option<String> {
        state.broken.clone()
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn excluded(&self) -> Vec<&'static str> {
        let never = |kind: &&&str| !self.bounds.happens(kind);
        KINDS.iter().filter(never).copied().collect()
    }
}

impl Recoverable for Membership {
    /// Some boot of each node acts, and what a boot that is no more may have held can be taken.
    fn is_good(&self, state: &State) -> bool {
        let is_stuck = |boot| !state.runs(boot) && !state.is_dead(boot);
        let all_act = (0..state.nodes.len()).all(|node| state.acts(node, false));
        all_act && !state.named.iter().any(|boot| is_stuck(*boot))
    }

    fn is_recovery(action: &Action) -> bool {
        !action.is_fault()
    }
}

fn remove(state: &mut State, flight: &Flight) {
    let at = state.flights.iter().position(|it| it == flight);
    state.flights.remove(at.expect("it is on its way"));
}

fn fail(turn: &mut Turn<'_>, node: usize, ticket: Option<Ticket>, error: StoreError) {
    if let Some(ticket) = ticket {
        let reply = Err(error);
        turn.give(node, Input::Store { ticket, reply });
    }
}
