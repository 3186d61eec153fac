//! One right, two or three sims that are alike, and a store that answers late or not at all.
//!
//! The claims are the real ones (`cluster::claim`); who drives them when is what `sim/` does, told again in `step`. Time
//! is not in this model: any time-out may come at any moment, and a death may be declared of whoever crashed or is
//! fenced, which is what the fence model proves of the clocks.

pub mod bounds;
pub mod canon;
pub mod state;
pub mod step;
pub mod store;
mod take;
pub mod visit;

use stateright::{Model, Property};
use uo_server::cluster::claim::Claim;
use uo_server::identity::BootId;
use uo_server::planted::Planted;

use self::bounds::Bounds;
use self::state::{Message, Node, Role, State, Write};
use self::step::Step;
use self::store::{Cells, Deeds, Late};
use super::run::{Counts, Explorable, nothing_is_broken};

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
    /// A load sees a write that is under way as well; the next may not.
    Glimpse {
        node: usize,
        role: Role,
        write: usize,
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
    "glimpse",
    "late answer",
    "repeat",
    "turned away",
    "order",
    "object",
    "write again",
    "claimed past",
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
                if self.bounds.glimpses && matches!(slot.claim, Claim::Loading { .. }) {
                    let writes = 0..state.pending_writes().len();
                    actions.extend(writes.map(|write| Action::Glimpse { node, role, write }));
                }
                if self.bounds.unknown > 0 {
                    actions.push(Action::Repeat { node, role });
                }
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
        // A row that names this boot takes nothing away, whatever its number.
        let is_anothers = state.row.is_some() && state.owner() != Some(it.boot);
        match it.read_back {
            Some(_) => actions.push(Action::ActOnReadBack { node }),
            None if self.bounds.lease_check && is_anothers && !it.slots.is_empty() => {
                actions.push(Action::ReadBack { node });
            }
            None => {}
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
}

impl Model for ClaimModel {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let nodes = (1..=u128::from(self.bounds.nodes)).map(|boot| Node::new(BootId(boot)));
        let cells = match self.bounds.restored {
            true => Cells::restored(),
            false => Cells::default(),
        };
        vec![State {
            row: None,
            cells,
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
        without(bounds.glimpses, &["glimpse"]);
        without(bounds.restored, &["claimed past"]);
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
            &[
                "late answer",
                "repeat",
                "write fails",
                "refused: it applied before",
            ],
        );
        without(
            bounds.unknown > 0 && (bounds.deeds > 0 || bounds.objects),
            &["write fails"],
        );
        excluded
    }
}
