//! Two sims, two regions and a character that walks from one into the other: whatever happened, once nothing more goes
//! wrong every region and the character can be held again.
//!
//! Regions are drained and retired while the character is on its way, nodes crash, freeze and stop, messages and answers
//! are lost. The claims are the real ones.

pub mod bounds;
pub mod canon;
pub mod state;
pub mod step;

use stateright::{Model, Property};
use uo_server::cluster::claim::{Claim, Input};
use uo_server::identity::BootId;
use uo_server::planted::Planted;

pub use self::bounds::{Bounds, DEEP, USUAL};
use self::state::{CHARACTER, HERE, Message, Node, RIGHTS, Right, Slot, State, THERE};
use self::step::Step;
use super::claim::state::Role;
use super::graph::Recoverable;
use super::run::{Counts, Explorable, nothing_is_broken};

pub struct LimboModel {
    pub bounds: Bounds,
    pub planted: Planted,
    counts: Counts,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    TakeRegion {
        node: usize,
        region: Right,
    },
    Attach {
        node: usize,
    },
    /// The compare-and-set of a claim is carried out and answered.
    Answer {
        node: usize,
        right: Right,
        role: Role,
    },
    /// It is carried out, and the answer lost.
    LoseAnswer {
        node: usize,
        right: Right,
        role: Role,
    },
    Arrive {
        right: Right,
        message: usize,
    },
    LoseMessage {
        right: Right,
        message: usize,
    },
    /// An offer waited long enough.
    Reclaim {
        node: usize,
        right: Right,
        role: Role,
    },
    /// A character without a battle looks for one again.
    Seek {
        node: usize,
    },
    /// The character stands where another's region begins, and is offered.
    HandOver {
        node: usize,
        to: usize,
    },
    /// A compare-and-set that nobody waits for is carried out.
    Late {
        right: Right,
        attempt: usize,
    },
    Thaw {
        node: usize,
    },
    Declare {
        boot: BootId,
    },
    Rebirth {
        node: usize,
    },
    /// A stopping node gives a region or the character away, or releases it.
    GoOnStopping {
        node: usize,
    },
    Walk {
        node: usize,
    },
    Drain {
        node: usize,
        region: Right,
        to: usize,
    },
    Retire {
        node: usize,
        region: Right,
    },
    LogOut {
        node: usize,
    },
    Stop {
        node: usize,
    },
    Crash {
        node: usize,
    },
    Fence {
        node: usize,
    },
}

const KINDS: &[&str] = &[
    "take a region",
    "attach",
    "answer",
    "answer lost",
    "message",
    "message lost",
    "reclaim",
    "seek",
    "hand over",
    "late cas",
    "thaw",
    "declare",
    "rebirth",
    "go on stopping",
    "stopped",
    "walk",
    "drain",
    "retire",
    "log out",
    "stop",
    "crash",
    "fence",
    "turned away",
    "region arrived",
    "arrived",
    "arrived without its region",
    "forwarded",
    "offer refused",
    "offer claimed",
    "refusal heard",
    "given",
];

impl LimboModel {
    pub fn new(bounds: Bounds, planted: Planted) -> LimboModel {
        LimboModel {
            bounds,
            planted,
            counts: Counts::new(KINDS),
        }
    }

    fn node_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let it = &state.nodes[node];
        for right in 0..RIGHTS {
            for slot in &it.slots[right] {
                let role = slot.role;
                match slot.claim {
                    Claim::Claiming { .. } | Claim::Releasing { .. } => {
                        actions.push(Action::Answer { node, right, role });
                        if state.losses_left > 0 {
                            actions.push(Action::LoseAnswer { node, right, role });
                        }
                    }
                    Claim::Outgoing { .. } => actions.push(Action::Reclaim { node, right, role }),
                    Claim::Held { .. } if role == Role::Outgoing => {
                        actions.push(Action::Seek { node });
                    }
                    _ => {}
                }
            }
        }
        if it.is_open() {
            self.beginnings(state, node, actions);
        }
        if it.stopping {
            actions.push(Action::GoOnStopping { node });
        }
        match (it.fenced, state.is_dead(it.boot)) {
            (true, false) => {
                actions.push(Action::Thaw { node });
                actions.push(Action::Declare { boot: it.boot });
            }
            (true, true) => actions.push(Action::Rebirth { node }),
            (false, _) if state.fences_left > 0 => actions.push(Action::Fence { node }),
            _ => {}
        }
        if state.crashes_left > 0 {
            actions.push(Action::Crash { node });
        }
    }

    /// What a node that runs may begin.
    fn beginnings(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let it = &state.nodes[node];
        let is_free = |right: Right| match state.registers[right].owner() {
            None => true,
            Some(owner) => owner == it.boot || state.is_dead(owner),
        };
        let others = || (0..state.nodes.len()).filter(move |other| *other != node);
        let owned = it.slot(CHARACTER, Role::Owned);
        for region in [HERE, THERE] {
            if it.slots[region].is_empty() && is_free(region) {
                actions.push(Action::TakeRegion { node, region });
            }
            if !it.serves(region) {
                continue;
            }
            if state.drains_left > 0 {
                let to = others().filter(|&to| state.nodes[to].is_open());
                actions.extend(to.map(|to| Action::Drain { node, region, to }));
            }
            if state.retires_left > 0 && owned.is_none_or(|slot| slot.battle != region) {
                actions.push(Action::Retire { node, region });
            }
        }
        if it.slots[CHARACTER].is_empty() && is_free(CHARACTER) {
            actions.push(Action::Attach { node });
        }
        if let Some(slot) = owned.filter(|slot| slot.claim.held().is_some())
            && it.serves(slot.battle)
        {
            if slot.battle == HERE {
                actions.push(Action::Walk { node });
            } else if let Some(to) = state.holder_of(HERE) {
                actions.push(Action::HandOver { node, to });
            }
            actions.push(Action::LogOut { node });
        }
        if state.stops_left > 0 {
            actions.push(Action::Stop { node });
        }
    }

    fn take_step(&self, step: &mut Step<'_>, action: &Action) {
        let count = step.count;
        match *action {
            Action::TakeRegion { node, region } => {
                count("take a region");
                self.take(step, node, region, Role::Owned);
            }
            Action::Attach { node } => {
                count("attach");
                self.take(step, node, CHARACTER, Role::Entering);
            }
            Action::Answer { node, right, role } => {
                count("answer");
                if let Some(input) = step.perform(node, right, role) {
                    step.drive(node, right, role, input);
                }
            }
            Action::LoseAnswer { node, right, role } => {
                count("answer lost");
                step.state.losses_left -= 1;
                step.perform(node, right, role);
                step.drive(node, right, role, Input::Failed);
            }
            Action::Arrive { right, message } => {
                count("message");
                match step.state.registers[right].messages.remove(message) {
                    Message::Offer { to, seen } => step.offered(right, to, seen),
                    Message::Refuse { to, number } => step.refused(right, to, number),
                    Message::Accept { to, number } => step.accepted(right, to, number),
                }
            }
            Action::LoseMessage { right, message } => {
                count("message lost");
                step.state.losses_left -= 1;
                step.state.registers[right].messages.remove(message);
            }
            Action::Reclaim { node, right, role } => {
                count("reclaim");
                step.drive(node, right, role, Input::Reclaim);
            }
            Action::Seek { node } => {
                count("seek");
                step.settle(node);
            }
            Action::HandOver { node, to } => {
                count("hand over");
                step.offer(node, Role::Owned, to);
            }
            Action::Late { right, attempt } => {
                count("late cas");
                let attempt = step.state.registers[right].air.remove(attempt);
                step.cas(right, &attempt);
            }
            _ => self.world_step(step, action),
        }
    }

    fn take(&self, step: &mut Step<'_>, node: usize, right: Right, role: Role) {
        let row = step.state.registers[right].row.clone();
        step.state.nodes[node].put_slot(right, Slot::new(role));
        step.drive(node, right, role, Input::TakeSeen(row));
    }

    /// What players, operators and the machines themselves do.
    fn world_step(&self, step: &mut Step<'_>, action: &Action) {
        let count = step.count;
        match *action {
            Action::Walk { .. } => {
                count("walk");
                step.walk();
            }
            Action::Drain { node, region, to } => {
                count("drain");
                step.state.drains_left -= 1;
                step.drain(node, region, to);
            }
            Action::Retire { node, region } => {
                count("retire");
                step.state.retires_left -= 1;
                step.drive(node, region, Role::Owned, Input::Release);
            }
            Action::LogOut { node } => {
                count("log out");
                step.release(node, Role::Owned);
            }
            Action::Stop { node } => {
                count("stop");
                step.state.stops_left -= 1;
                step.state.nodes[node].stopping = true;
            }
            Action::GoOnStopping { node } => {
                count("go on stopping");
                self.go_on_stopping(step, node);
            }
            Action::Crash { node } => {
                count("crash");
                step.state.crashes_left -= 1;
                step.reboot(node);
            }
            Action::Fence { node } => {
                count("fence");
                step.state.fences_left -= 1;
                step.state.nodes[node].fenced = true;
            }
            Action::Thaw { node } => {
                count("thaw");
                step.state.nodes[node].fenced = false;
            }
            Action::Declare { boot } => {
                count("declare");
                step.state.dead.push(boot);
            }
            Action::Rebirth { node } => {
                count("rebirth");
                step.reboot(node);
            }
            _ => {}
        }
    }

    /// The character first, then the regions, then the end: dead at once, and the process starts anew.
    fn go_on_stopping(&self, step: &mut Step<'_>, node: usize) {
        let it = &step.state.nodes[node];
        let owned = it.slot(CHARACTER, Role::Owned);
        if owned.is_some_and(|slot| slot.claim.held().is_some()) {
            return step.release(node, Role::Owned);
        }
        if !it.slots[CHARACTER].is_empty() {
            return;
        }
        for region in [HERE, THERE] {
            if it.serves(region) {
                return step.drive(node, region, Role::Owned, Input::Release);
            }
        }
        if it.is_empty() {
            (step.count)("stopped");
            let boot = it.boot;
            step.state.dead.push(boot);
            step.reboot(node);
        }
    }

    /// Boots that are gone, that a row names, and that are not declared dead yet.
    fn crashed(&self, state: &State) -> Vec<BootId> {
        let mut crashed: Vec<BootId> = state
            .registers
            .iter()
            .filter_map(|register| register.owner())
            .filter(|boot| state.node_of(*boot).is_none() && !state.is_dead(*boot))
            .collect();
        crashed.sort_unstable();
        crashed.dedup();
        crashed
    }
}

impl Model for LimboModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            registers: Default::default(),
            nodes: vec![Node::new(BootId(1)), Node::new(BootId(2))],
            dead: Vec::new(),
            crashes_left: self.bounds.crashes,
            fences_left: self.bounds.fences,
            losses_left: self.bounds.losses,
            stops_left: self.bounds.stops,
            drains_left: self.bounds.drains,
            retires_left: self.bounds.retires,
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for node in 0..state.nodes.len() {
            self.node_actions(state, node, actions);
        }
        for (right, register) in state.registers.iter().enumerate() {
            for message in 0..register.messages.len() {
                actions.push(Action::Arrive { right, message });
                if state.losses_left > 0 {
                    actions.push(Action::LoseMessage { right, message });
                }
            }
            let late = 0..register.air.len();
            actions.extend(late.map(|attempt| Action::Late { right, attempt }));
        }
        let crashed = self.crashed(state).into_iter();
        actions.extend(crashed.map(|boot| Action::Declare { boot }));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let count = |name: &'static str| self.counts.add(name);
        let mut step = Step::new(state.clone(), self.planted, &count);
        self.take_step(&mut step, &action);
        step.check();
        Some(step.state.canonical())
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![nothing_is_broken()]
    }
}

impl Explorable for LimboModel {
    fn name(&self) -> String {
        self.bounds.name.to_owned()
    }

    fn bounds(&self) -> String {
        format!("{:?}", self.bounds)
    }

    fn broken(state: &State) -> Option<String> {
        state.broken.map(|broken| format!("{broken:?}"))
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn excluded(&self) -> Vec<&'static str> {
        let mut excluded = Vec::new();
        let mut without = |is_in: bool, names: &[&'static str]| {
            if !is_in {
                excluded.extend_from_slice(names);
            }
        };
        let bounds = &self.bounds;
        let moves = bounds.drains + bounds.retires;
        without(bounds.crashes > 0, &["crash"]);
        without(bounds.fences > 0, &["fence", "thaw", "rebirth"]);
        without(bounds.crashes + bounds.fences > 0, &["declare", "late cas"]);
        without(bounds.losses > 0, &["answer lost", "message lost"]);
        without(bounds.stops > 0, &["stop", "go on stopping", "stopped"]);
        without(bounds.drains > 0, &["drain", "region arrived"]);
        without(bounds.retires > 0, &["retire"]);
        without(
            moves > 0,
            &["arrived without its region", "forwarded", "seek"],
        );
        without(
            moves + bounds.crashes + bounds.fences + bounds.stops > 0,
            &["offer refused", "refusal heard"],
        );
        excluded
    }
}

impl Recoverable for LimboModel {
    fn is_good(&self, state: &State) -> bool {
        state.is_all_held()
    }

    fn is_recovery(action: &Action) -> bool {
        match action {
            Action::TakeRegion { .. }
            | Action::Attach { .. }
            | Action::Answer { .. }
            | Action::Arrive { .. }
            | Action::Reclaim { .. }
            | Action::Seek { .. }
            | Action::HandOver { .. }
            | Action::Late { .. }
            | Action::Thaw { .. }
            | Action::Declare { .. }
            | Action::Rebirth { .. }
            | Action::GoOnStopping { .. } => true,
            Action::LoseAnswer { .. }
            | Action::LoseMessage { .. }
            | Action::Walk { .. }
            | Action::Drain { .. }
            | Action::Retire { .. }
            | Action::LogOut { .. }
            | Action::Stop { .. }
            | Action::Crash { .. }
            | Action::Fence { .. } => false,
        }
    }
}
