//! One right, two or three sims that are alike, and a store that answers late or not at all.
//!
//! The claims are the real ones (`cluster::claim`); who drives them when is what `sim/` does, told again in `step`. Time
//! is not in this model: any time-out may come at any moment, and a death may be declared of whoever crashed or is
//! fenced, which is what the fence model proves of the clocks.

pub mod canon;
pub mod state;
pub mod step;
pub mod store;

use stateright::{Model, Property};
use uo_server::cluster::claim::{Claim, Input};
use uo_server::identity::BootId;
use uo_server::planted::Planted;

use self::state::{Message, Node, Role, State, Write};
use self::step::Step;
use self::store::{Cells, Deeds, Late};
use super::run::{Counts, Explorable, nothing_is_broken};

/// How much may go wrong, and how much is going on.
#[derive(Clone, Debug)]
pub struct Bounds {
    pub name: &'static str,
    pub nodes: u8,
    pub crashes: u8,
    pub fences: u8,
    /// Answers that are late or lost.
    pub unknown: u8,
    /// Deeds whose fate is in doubt at a time; 0: nobody does anything.
    pub deeds: u8,
    /// Whether the object comes and goes; not while a write of it is under way that nobody waits for.
    pub objects: bool,
    /// Whether holders offer what they have.
    pub offers: bool,
    /// Whether the safety net reads rows back.
    pub lease_check: bool,
    /// Whether stamps run out.
    pub renews: bool,
}

/// One of each fault, and everything to lose.
pub const SMALL: Bounds = Bounds {
    name: "claims",
    nodes: 2,
    crashes: 1,
    fences: 1,
    unknown: 1,
    deeds: 1,
    objects: true,
    offers: true,
    lease_check: false,
    renews: false,
};

/// What is explored in minutes.
pub const USUAL: &[Bounds] = &[
    Bounds {
        name: "claims: unknown outcomes",
        deeds: 0,
        objects: false,
        ..SMALL
    },
    Bounds {
        name: "claims: what was saved",
        unknown: 0,
        objects: false,
        ..SMALL
    },
    Bounds {
        name: "claims: late writes",
        unknown: 0,
        deeds: 0,
        ..SMALL
    },
    Bounds {
        name: "claims: stamps run out",
        unknown: 0,
        objects: false,
        renews: true,
        ..SMALL
    },
];

/// What is explored at night.
pub const DEEP: &[Bounds] = &[Bounds {
    name: "claims: what was saved, unknown outcomes",
    objects: false,
    ..SMALL
}];

pub struct ClaimModel {
    pub bounds: Bounds,
    pub planted: Planted,
    counts: Counts,
}

/// Requests under way that nobody waits for: more than there ever are.
const AIR_MAX: usize = 8;

#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// The node is asked to take it.
    Take {
        node: usize,
    },
    /// The store carries out the request of a claim and the answer arrives.
    Answer {
        node: usize,
        role: Role,
    },
    /// The store carries it out, and the answer is late or lost.
    Keep {
        node: usize,
        role: Role,
    },
    /// There is no answer in time: the claim repeats its request.
    Repeat {
        node: usize,
        role: Role,
    },
    /// The late answer arrives.
    Hear {
        node: usize,
        role: Role,
    },
    /// A claim that is loading is given up again.
    TurnAway {
        node: usize,
    },
    Order {
        node: usize,
    },
    Object {
        node: usize,
    },
    WriteAgain {
        node: usize,
    },
    /// A plain write is carried out; nobody hears of it yet.
    Write {
        node: usize,
        role: Role,
    },
    /// A plain write is carried out and acknowledged.
    Acknowledge {
        node: usize,
        role: Role,
    },
    /// Nobody knows whether the plain write is carried out: it is under way for good.
    WriteFails {
        node: usize,
    },
    Renew {
        node: usize,
    },
    Offer {
        node: usize,
        to: usize,
    },
    AcceptOffer {
        message: usize,
    },
    RefuseOffer {
        message: usize,
    },
    Refused {
        message: usize,
    },
    Accepted {
        message: usize,
    },
    Given {
        message: usize,
    },
    /// The offer waited long enough.
    Reclaim {
        node: usize,
    },
    Leave {
        node: usize,
    },
    ReadBack {
        node: usize,
    },
    ActOnReadBack {
        node: usize,
    },
    /// A request that nobody waits for takes effect.
    Late {
        request: usize,
    },
    Crash {
        node: usize,
    },
    Fence {
        node: usize,
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
}

const KINDS: &[&str] = &[
    "take",
    "answer",
    "late answer",
    "repeat",
    "turned away",
    "order",
    "object",
    "write again",
    "late write ack",
    "write acked",
    "write fails",
    "renew",
    "offer",
    "offer claimed",
    "offer refused",
    "refusal heard",
    "acceptance heard",
    "reclaim",
    "leave",
    "read back",
    "read back shows another",
    "late cas",
    "late write",
    "late write shows",
    "crash",
    "fence",
    "thaw",
    "declare crashed",
    "declare fenced",
    "rebirth",
    "released",
    "gone",
    "arrived",
    "reclaimed",
    "entered",
    "renewed",
    "taken from the dead",
    "refused",
    "refused: it applied before",
    "offer is older",
    "given",
    "told saved",
    "lost",
];

impl ClaimModel {
    pub fn new(bounds: Bounds, planted: Planted) -> ClaimModel {
        ClaimModel {
            bounds,
            planted,
            counts: Counts::new(KINDS),
        }
    }

    fn node_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let it = &state.nodes[node];
        if !it.fenced && it.slots.is_empty() {
            actions.push(Action::Take { node });
        }
        for slot in &it.slots {
            let role = slot.role;
            if slot.waits() {
                actions.push(Action::Answer { node, role });
                if state.unknown_left > 0 && slot.kept.is_none() {
                    actions.push(Action::Keep { node, role });
                }
                actions.push(Action::Repeat { node, role });
                if slot.kept.is_some() {
                    actions.push(Action::Hear { node, role });
                }
            }
            if slot.write.is_some() {
                actions.push(Action::Write { node, role });
                actions.push(Action::Acknowledge { node, role });
            }
            match (role, &slot.claim) {
                (Role::Entering, Claim::Loading { .. }) => actions.push(Action::TurnAway { node }),
                (Role::Outgoing, Claim::Outgoing { .. }) => actions.push(Action::Reclaim { node }),
                (Role::Owned, Claim::Held { .. }) if !it.fenced => {
                    self.owner_actions(state, node, actions);
                }
                _ => {}
            }
        }
        if self.bounds.lease_check && !it.slots.is_empty() && state.row.is_some() {
            match it.read_back {
                None => actions.push(Action::ReadBack { node }),
                Some(_) => actions.push(Action::ActOnReadBack { node }),
            }
        }
        if state.crashes_left > 0 {
            actions.push(Action::Crash { node });
        }
        match (it.fenced, state.is_dead(it.boot)) {
            (false, _) if state.fences_left > 0 => actions.push(Action::Fence { node }),
            (true, false) => {
                actions.push(Action::Thaw { node });
                actions.push(Action::Declare { boot: it.boot });
            }
            (true, true) => actions.push(Action::Rebirth { node }),
            _ => {}
        }
    }

    /// What the holder of the right may begin.
    fn owner_actions(&self, state: &State, node: usize, actions: &mut Vec<Action>) {
        let Some(slot) = state.nodes[node].slot(Role::Owned) else {
            return;
        };
        if slot.write.is_none() {
            if self.free_deed(state).is_some() {
                actions.push(Action::Order { node });
            }
            // One write of it is in doubt at a time, as one deed is.
            if self.bounds.objects && !state.air.iter().any(|it| matches!(it, Late::Object { .. }))
            {
                actions.push(Action::Object { node });
            }
            if slot.dirty.is_any() {
                actions.push(Action::WriteAgain { node });
            }
            if self.bounds.renews {
                actions.push(Action::Renew { node });
            }
        } else if state.unknown_left > 0 {
            actions.push(Action::WriteFails { node });
        }
        if self.bounds.offers {
            let others = (0..state.nodes.len()).filter(|to| *to != node);
            actions.extend(others.map(|to| Action::Offer { node, to }));
        }
        let is_flushed = !slot.dirty.object && !matches!(slot.write, Some(Write::Object { .. }));
        if is_flushed {
            actions.push(Action::Leave { node });
        }
    }

    /// A deed that no value knows of.
    fn free_deed(&self, state: &State) -> Option<Deeds> {
        let used = state.all_deeds();
        let bits = (0..self.bounds.deeds).map(|bit| 1 << bit);
        bits.into_iter().find(|bit| used & bit == 0)
    }

    /// Boots that are gone, named somewhere, and not declared dead yet.
    fn crashed(&self, state: &State) -> Vec<BootId> {
        let named = state.owner().into_iter();
        named
            .filter(|boot| state.node_of(*boot).is_none() && !state.is_dead(*boot))
            .collect()
    }

    fn take_step(&self, step: &mut Step<'_>, action: &Action) {
        let count = step.count;
        match *action {
            Action::Take { node } => {
                count("take");
                step.state.nodes[node].put_slot(state::Slot::new(Role::Entering));
                step.drive(node, Role::Entering, Input::Take);
            }
            Action::Answer { node, role } => {
                count("answer");
                if let Some(answer) = step.perform(node, role) {
                    step.hear(node, role, answer);
                }
            }
            Action::Keep { node, role } => {
                count("late answer");
                step.state.unknown_left -= 1;
                let answer = step.perform(node, role);
                if let Some(slot) = step.state.nodes[node].slot_mut(role) {
                    slot.kept = answer;
                }
            }
            Action::Hear { node, role } => {
                let slot = step.state.nodes[node].slot_mut(role);
                if let Some(answer) = slot.and_then(|slot| slot.kept.take()) {
                    step.hear(node, role, answer);
                }
            }
            Action::Repeat { node, role } => {
                count("repeat");
                step.repeat(node, role);
            }
            Action::TurnAway { node } => {
                count("turned away");
                if let Some(mut slot) = step.state.nodes[node].take_slot(Role::Entering) {
                    slot.role = Role::Leaving;
                    slot.kept = None;
                    step.state.nodes[node].put_slot(slot);
                    step.drive(node, Role::Leaving, Input::Release);
                }
            }
            Action::Order { .. }
            | Action::Object { .. }
            | Action::WriteAgain { .. }
            | Action::Write { .. }
            | Action::Acknowledge { .. }
            | Action::WriteFails { .. } => self.write_step(step, action),
            Action::Renew { node } => {
                count("renew");
                step.drive(node, Role::Owned, Input::Renew);
            }
            Action::Offer { node, to } => {
                count("offer");
                let to = step.state.nodes[to].boot;
                step.hand_over(node, to);
            }
            Action::AcceptOffer { .. }
            | Action::RefuseOffer { .. }
            | Action::Refused { .. }
            | Action::Accepted { .. }
            | Action::Given { .. } => self.message_step(step, action),
            Action::Reclaim { node } => {
                count("reclaim");
                step.drive(node, Role::Outgoing, Input::Reclaim);
            }
            Action::Leave { node } => {
                count("leave");
                step.leave(node);
            }
            Action::ReadBack { node } => {
                count("read back");
                step.state.nodes[node].read_back = step.state.row.clone();
            }
            Action::ActOnReadBack { node } => self.act_on_read_back(step, node),
            Action::Late { request } => self.late_step(step, request),
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
                let is_fenced = step.state.node_of(boot).is_some();
                count(if is_fenced {
                    "declare fenced"
                } else {
                    "declare crashed"
                });
                step.state.dead.push(boot);
            }
            Action::Rebirth { node } => {
                count("rebirth");
                step.rebirth(node);
            }
        }
    }

    fn write_step(&self, step: &mut Step<'_>, action: &Action) {
        let count = step.count;
        match *action {
            Action::Order { node } => {
                count("order");
                let deed = self.free_deed(&step.state).unwrap_or(0);
                if let Some(slot) = step.state.nodes[node].slot_mut(Role::Owned) {
                    slot.value.deeds |= deed;
                    slot.n += 1;
                    slot.dirty.main = false;
                    let (n, deeds) = (slot.n, slot.value.deeds);
                    slot.write = Some(Write::Main { n, deeds });
                }
            }
            Action::Object { node } => {
                count("object");
                if let Some(slot) = step.state.nodes[node].slot_mut(Role::Owned) {
                    slot.value.object = !slot.value.object;
                    slot.n += 1;
                    slot.dirty.object = false;
                    let (n, there) = (slot.n, slot.value.object);
                    slot.write = Some(Write::Object { n, there });
                }
            }
            Action::WriteAgain { node } => {
                count("write again");
                if let Some(slot) = step.state.nodes[node].slot_mut(Role::Owned) {
                    slot.n += 1;
                    let (n, value) = (slot.n, slot.value);
                    let is_main = slot.dirty.main;
                    slot.write = Some(match is_main {
                        true => Write::Main {
                            n,
                            deeds: value.deeds,
                        },
                        false => Write::Object {
                            n,
                            there: value.object,
                        },
                    });
                    match is_main {
                        true => slot.dirty.main = false,
                        false => slot.dirty.object = false,
                    }
                }
            }
            Action::Write { node, role } => {
                count("late write ack");
                step.write(node, role);
            }
            Action::Acknowledge { node, role } => {
                count("write acked");
                step.write(node, role);
                step.acknowledged(node, role);
            }
            Action::WriteFails { node } => {
                count("write fails");
                step.state.unknown_left -= 1;
                if let Some(slot) = step.state.nodes[node].slot_mut(Role::Owned) {
                    let number = slot.claim.number().unwrap_or(0);
                    let write = slot.write.take();
                    slot.dirty.mark(write.as_ref());
                    step.abandon_write(number, write);
                }
            }
            _ => {}
        }
    }

    fn message_step(&self, step: &mut Step<'_>, action: &Action) {
        let count = step.count;
        let (Action::AcceptOffer { message }
        | Action::RefuseOffer { message }
        | Action::Refused { message }
        | Action::Accepted { message }
        | Action::Given { message }) = *action
        else {
            return;
        };
        let message = step.state.messages.remove(message);
        let Some(at) = step.state.node_of(message.to()) else {
            return;
        };
        match message {
            Message::Offer { seen, data, .. } => {
                let is_taken = matches!(action, Action::AcceptOffer { .. });
                count(if is_taken {
                    "offer claimed"
                } else {
                    "offer refused"
                });
                match is_taken {
                    true => step.offered(at, seen, data),
                    false => step.refuse(&seen),
                }
            }
            Message::Refuse { number, .. } => {
                count("refusal heard");
                step.refused(at, number);
            }
            Message::Accept { number, .. } => {
                count("acceptance heard");
                step.accepted(at, number);
            }
            Message::Given { number, data, .. } => step.given(at, number, data),
        }
    }

    /// The safety net: another under a higher number takes it away, whatever else the row shows.
    fn act_on_read_back(&self, step: &mut Step<'_>, node: usize) {
        let me = step.state.nodes[node].boot;
        let Some(row) = step.state.nodes[node].read_back.take() else {
            return;
        };
        if row.holder.as_ref().is_none_or(|holder| holder.boot == me) {
            return;
        }
        (step.count)("read back shows another");
        let roles: Vec<Role> = step.state.nodes[node]
            .slots
            .iter()
            .map(|slot| slot.role)
            .collect();
        for role in roles {
            let before = step.state.nodes[node].slots.len();
            step.drive(node, role, Input::Lost(row.number));
            if step.state.nodes[node].slots.len() < before {
                (step.count)("lost");
            }
        }
    }

    fn late_step(&self, step: &mut Step<'_>, request: usize) {
        match step.state.air.remove(request) {
            Late::Cas(attempt) => {
                (step.count)("late cas");
                step.cas(&attempt);
            }
            late => {
                (step.count)("late write");
                let before = step.state.cells.data();
                step.state.cells.apply(&late, self.planted);
                if before != step.state.cells.data() {
                    (step.count)("late write shows");
                }
            }
        }
    }
}

impl Model for ClaimModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let nodes = (1..=u128::from(self.bounds.nodes)).map(|boot| Node::new(BootId(boot)));
        vec![State {
            row: None,
            cells: Cells::default(),
            air: Vec::new(),
            messages: Vec::new(),
            nodes: nodes.collect(),
            dead: Vec::new(),
            told: 0,
            crashes_left: self.bounds.crashes,
            fences_left: self.bounds.fences,
            unknown_left: self.bounds.unknown,
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        for node in 0..state.nodes.len() {
            self.node_actions(state, node, actions);
        }
        for (message, it) in state.messages.iter().enumerate() {
            let to_fenced = state
                .node_of(it.to())
                .is_some_and(|at| state.nodes[at].fenced);
            match it {
                Message::Offer { .. } => {
                    if !to_fenced {
                        actions.push(Action::AcceptOffer { message });
                    }
                    actions.push(Action::RefuseOffer { message });
                }
                Message::Refuse { .. } => actions.push(Action::Refused { message }),
                Message::Accept { .. } => actions.push(Action::Accepted { message }),
                Message::Given { .. } => actions.push(Action::Given { message }),
            }
        }
        actions.extend((0..state.air.len()).map(|request| Action::Late { request }));
        let crashed = self.crashed(state).into_iter();
        actions.extend(crashed.map(|boot| Action::Declare { boot }));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let count = |name: &'static str| self.counts.add(name);
        let mut step = Step::new(state.clone(), self.planted, &count);
        self.take_step(&mut step, &action);
        step.check();
        let next = step.state.canonical(self.planted);
        assert!(
            next.air.len() <= AIR_MAX || self.planted != Planted::NONE,
            "more is under way than was thought possible: {:?}",
            next.air
        );
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![nothing_is_broken()]
    }
}

impl Explorable for ClaimModel {
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
        without(
            bounds.lease_check,
            &["read back", "read back shows another", "lost"],
        );
        without(bounds.renews, &["renew", "renewed"]);
        without(bounds.objects, &["object"]);
        without(bounds.deeds > 0, &["order", "told saved"]);
        without(
            bounds.deeds > 0 || bounds.objects,
            &[
                "write again",
                "write acked",
                "late write ack",
                "late write shows",
            ],
        );
        without(
            bounds.unknown > 0,
            &["late answer", "write fails", "refused: it applied before"],
        );
        without(
            bounds.unknown > 0 && (bounds.deeds > 0 || bounds.objects),
            &["write fails"],
        );
        excluded
    }
}
