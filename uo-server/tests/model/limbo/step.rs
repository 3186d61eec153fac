//! What the two sims do with regions and the character, rule for rule what `sim/` does. Loads and seals are answered at
//! once here: the model of the claims has them.

use uo_server::cluster::claim::{Attempt, Claim, Context, Input, Output};
use uo_server::identity::{BootId, Nonces};
use uo_server::planted::{Planted, PlantedBug};
use uo_server::store::{ClaimRow, Seen};

use super::state::{Broken, CHARACTER, HERE, Message, Node, Right, Slot, State, THERE};
use crate::model::claim::state::{Role, holder};

/// Nonces of this step are above all that were ranked.
const NONCES: u128 = 1 << 100;
/// A boot that was never there.
const NEW_BOOT: BootId = BootId(1 << 90);

pub struct Step<'a> {
    pub state: State,
    pub planted: Planted,
    pub count: &'a dyn Fn(&'static str),
    nonces: Nonces,
}

impl<'a> Step<'a> {
    pub fn new(state: State, planted: Planted, count: &'a dyn Fn(&'static str)) -> Step<'a> {
        Step {
            state,
            planted,
            count,
            nonces: Nonces::new(BootId(NONCES)),
        }
    }

    fn seen(&self, at: usize, number: u64) -> Seen {
        Seen {
            holder: Some(holder(self.state.nodes[at].boot)),
            number,
        }
    }

    pub fn drive(&mut self, at: usize, right: Right, role: Role, input: Input) {
        let node = &mut self.state.nodes[at];
        let (me, dead) = (holder(node.boot), &self.state.dead);
        let Some(slot) = node.slots[right].iter_mut().find(|it| it.role == role) else {
            return;
        };
        let output = slot.claim.handle(
            input,
            &mut Context {
                me: &me,
                is_dead: &|boot| dead.contains(&boot),
                nonces: &mut self.nonces,
                planted: self.planted,
            },
        );
        match output {
            Output::Nothing | Output::Read | Output::Cas(_) => {}
            Output::RetryLater => self.drive(at, right, role, Input::Retry),
            Output::Load { .. } => self.load(at, right, role),
            Output::Seal { .. } => self.drive(at, right, role, Input::Sealed),
            Output::Serve { number } if right == CHARACTER => self.serve(at, role, number),
            Output::Serve { number } => self.serve_region(at, right, number),
            Output::Released { .. } | Output::Gone(_) => self.drop_slot(at, right, role),
        }
    }

    /// The row of the character tells where it stands: an owner that does not hold that region releases it again.
    fn load(&mut self, at: usize, right: Right, role: Role) {
        if right == CHARACTER && !self.state.nodes[at].serves(HERE) {
            (self.count)("turned away");
            return self.release(at, role);
        }
        self.drive(at, right, role, Input::Loaded(None));
    }

    fn serve_region(&mut self, at: usize, region: Right, number: u64) {
        let node = &mut self.state.nodes[at];
        let source = node
            .slot_mut(region, Role::Owned)
            .and_then(|slot| slot.source.take());
        if let Some(to) = source {
            (self.count)("region arrived");
            self.post(region, Message::Accept { to, number });
        }
    }

    fn serve(&mut self, at: usize, role: Role, number: u64) {
        let node = &mut self.state.nodes[at];
        let source = node
            .slot_mut(CHARACTER, role)
            .and_then(|slot| slot.source.take());
        match role {
            Role::Entering if !node.serves(HERE) => self.release(at, role),
            Role::Entering => self.place(at, role, HERE),
            Role::Arriving => {
                if let Some(to) = source {
                    (self.count)("arrived");
                    self.post(CHARACTER, Message::Accept { to, number });
                }
                if self.state.nodes[at].serves(HERE) {
                    self.place(at, role, HERE);
                } else {
                    (self.count)("arrived without its region");
                    self.unplace(at, role, HERE);
                }
            }
            Role::Outgoing => self.settle(at),
            Role::Owned | Role::Leaving => {}
        }
    }

    /// Into the battle of `region`.
    fn place(&mut self, at: usize, role: Role, region: Right) {
        let node = &mut self.state.nodes[at];
        let Some(mut slot) = node.take_slot(CHARACTER, role) else {
            return;
        };
        if node.slot(CHARACTER, Role::Owned).is_some() {
            self.state.broken = Some(Broken::TwoAct);
            return;
        }
        slot.role = Role::Owned;
        slot.battle = region;
        node.put_slot(CHARACTER, slot);
    }

    /// It is ours and in no battle.
    fn unplace(&mut self, at: usize, role: Role, battle: Right) {
        let Some(mut slot) = self.state.nodes[at].take_slot(CHARACTER, role) else {
            return;
        };
        slot.role = Role::Outgoing;
        slot.battle = battle;
        self.drop_slot(at, CHARACTER, Role::Outgoing);
        self.state.nodes[at].put_slot(CHARACTER, slot);
        self.settle(at);
    }

    /// Into a battle of ours, or to whoever holds its region, or later.
    pub fn settle(&mut self, at: usize) {
        let node = &self.state.nodes[at];
        let Some(slot) = node.slot(CHARACTER, Role::Outgoing) else {
            return;
        };
        let Claim::Held { .. } = slot.claim else {
            return;
        };
        let home = slot.battle;
        let battle = [home, HERE].into_iter().find(|&region| node.serves(region));
        let stopping = node.stopping;
        if let Some(battle) = battle {
            return self.place(at, Role::Outgoing, battle);
        }
        if self.planted.has(PlantedBug::NoForwarding) {
            return;
        }
        match self.state.holder_of(HERE) {
            Some(to) if to != at && !stopping => {
                (self.count)("forwarded");
                self.offer(at, Role::Outgoing, to);
            }
            _ if stopping => self.release(at, Role::Outgoing),
            _ => {}
        }
    }

    /// Out of the battle and to whoever holds the region where it stands.
    pub fn offer(&mut self, at: usize, role: Role, to: usize) {
        let to = self.state.nodes[to].boot;
        self.drive(at, CHARACTER, role, Input::HandOver);
        let node = &mut self.state.nodes[at];
        let Some(mut slot) = node.take_slot(CHARACTER, role) else {
            return;
        };
        let Claim::Outgoing { number } = slot.claim else {
            return node.put_slot(CHARACTER, slot);
        };
        slot.role = Role::Outgoing;
        self.drop_slot(at, CHARACTER, Role::Outgoing);
        self.state.nodes[at].put_slot(CHARACTER, slot);
        let seen = self.seen(at, number);
        self.post(CHARACTER, Message::Offer { to, seen });
    }

    /// A region and everybody in it to another node.
    pub fn drain(&mut self, at: usize, region: Right, to: usize) {
        let to = self.state.nodes[to].boot;
        self.drive(at, region, Role::Owned, Input::HandOver);
        let slot = self.state.nodes[at].slot(region, Role::Owned);
        if let Some(&Claim::Outgoing { number }) = slot.map(|slot| &slot.claim) {
            let seen = self.seen(at, number);
            self.post(region, Message::Offer { to, seen });
        }
    }

    /// Stopped, written, and released.
    pub fn release(&mut self, at: usize, role: Role) {
        let Some(mut slot) = self.state.nodes[at].take_slot(CHARACTER, role) else {
            return;
        };
        slot.role = Role::Leaving;
        self.drop_slot(at, CHARACTER, Role::Leaving);
        self.state.nodes[at].put_slot(CHARACTER, slot);
        self.drive(at, CHARACTER, Role::Leaving, Input::Release);
    }

    fn post(&mut self, right: Right, message: Message) {
        let messages = &mut self.state.registers[right].messages;
        if !messages.contains(&message) {
            messages.push(message);
        }
    }

    fn abandon(&mut self, right: Right, slot: Slot) {
        if let Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } = slot.claim {
            let air = &mut self.state.registers[right].air;
            if !air.contains(&attempt) {
                air.push(attempt);
            }
        }
    }

    /// What is claimed is ours no longer, or not yet. Whoever is in the battle of a region that goes looks for another.
    fn drop_slot(&mut self, at: usize, right: Right, role: Role) {
        let Some(slot) = self.state.nodes[at].take_slot(right, role) else {
            return;
        };
        self.abandon(right, slot);
        let stands_there = self.state.nodes[at]
            .slot(CHARACTER, Role::Owned)
            .is_some_and(|slot| slot.battle == right);
        if right != CHARACTER && stands_there {
            self.unplace(at, Role::Owned, right);
        }
    }

    pub fn cas(&mut self, right: Right, attempt: &Attempt) -> bool {
        let register = &mut self.state.registers[right];
        if register.row.as_ref().map(ClaimRow::seen) != attempt.seen {
            return false;
        }
        register.row = Some(attempt.to.clone());
        true
    }

    /// The compare-and-set that a claim waits for.
    pub fn perform(&mut self, at: usize, right: Right, role: Role) -> Option<Input> {
        let slot = self.state.nodes[at].slot(right, role)?;
        let (Claim::Claiming { attempt, .. } | Claim::Releasing { attempt }) = &slot.claim else {
            return None;
        };
        let attempt = attempt.clone();
        let row = self.state.registers[right].row.clone();
        Some(match self.cas(right, &attempt) {
            true => Input::Applied,
            false => Input::Refused(row),
        })
    }

    /// An offer arrives.
    pub fn offered(&mut self, right: Right, to: BootId, seen: Seen) {
        let Some(at) = self.state.node_of(to) else {
            return;
        };
        let node = &self.state.nodes[at];
        let takes = match right {
            CHARACTER => node.is_open() && node.serves(HERE),
            region => node.is_open() && node.slots[region].is_empty(),
        };
        if right == CHARACTER && self.is_old_offer(at, &seen) {
            return;
        }
        if !takes {
            (self.count)("offer refused");
            if let Some(source) = &seen.holder {
                let (to, number) = (source.boot, seen.number);
                self.post(right, Message::Refuse { to, number });
            }
            return;
        }
        (self.count)("offer claimed");
        let role = match right {
            CHARACTER => Role::Arriving,
            _ => Role::Owned,
        };
        if right == CHARACTER {
            for role in [Role::Owned, Role::Entering, Role::Arriving] {
                self.drop_slot(at, CHARACTER, role);
            }
        }
        let mut slot = Slot::new(role);
        slot.source = seen.holder.as_ref().map(|source| source.boot);
        self.state.nodes[at].put_slot(right, slot);
        self.drive(at, right, role, Input::TakeOffered(seen));
    }

    /// Whether this node knows of the character under a number that is as high.
    fn is_old_offer(&self, at: usize, seen: &Seen) -> bool {
        let node = &self.state.nodes[at];
        let known = [Role::Owned, Role::Entering, Role::Arriving].map(|role| {
            let slot = node.slot(CHARACTER, role);
            slot.and_then(|slot| slot.claim.known_number())
        });
        known
            .into_iter()
            .flatten()
            .any(|known| known >= seen.number)
    }

    pub fn refused(&mut self, right: Right, to: BootId, number: u64) {
        let Some(at) = self.state.node_of(to) else {
            return;
        };
        let role = outgoing(right);
        let slot = self.state.nodes[at].slot(right, role);
        if !slot.is_some_and(|slot| slot.claim == Claim::Outgoing { number }) {
            return;
        }
        (self.count)("refusal heard");
        self.drive(at, right, role, Input::TakeBack);
        if right == CHARACTER {
            self.settle(at);
        }
    }

    pub fn accepted(&mut self, right: Right, to: BootId, number: u64) {
        let Some(at) = self.state.node_of(to) else {
            return;
        };
        let role = outgoing(right);
        let slot = self.state.nodes[at].slot(right, role);
        let gives = |claim: &Claim| match right {
            CHARACTER => claim.number().is_some_and(|known| known < number),
            _ => {
                !matches!(claim, Claim::Held { .. }) && claim.number().is_some_and(|it| it < number)
            }
        };
        if slot.is_some_and(|slot| gives(&slot.claim)) {
            (self.count)("given");
            self.drive(at, right, role, Input::Given);
            self.drop_slot(at, right, role);
        }
    }

    /// A new boot of the node, which knows nothing.
    pub fn reboot(&mut self, at: usize) {
        let node = std::mem::replace(&mut self.state.nodes[at], Node::new(NEW_BOOT));
        for (right, slots) in node.slots.into_iter().enumerate() {
            for slot in slots {
                self.abandon(right, slot);
            }
            for message in &mut self.state.registers[right].messages {
                let to = message.to_mut();
                if *to == node.boot {
                    *to = NEW_BOOT;
                }
            }
        }
    }

    /// The character crosses the border: what was there is here.
    pub fn walk(&mut self) {
        self.state.registers.swap(HERE, THERE);
        for node in &mut self.state.nodes {
            node.slots.swap(HERE, THERE);
            for slot in &mut node.slots[CHARACTER] {
                slot.battle = THERE - slot.battle;
            }
        }
    }

    /// What must hold after each step.
    pub fn check(&mut self) {
        for right in 0..super::state::RIGHTS {
            let acting = self.state.nodes.iter().filter(|node| {
                let slot = node.slot(right, Role::Owned);
                let is_held = slot.is_some_and(|slot| slot.claim.held().is_some());
                let runs = right != CHARACTER || slot.is_some_and(|slot| node.serves(slot.battle));
                !node.fenced && is_held && runs
            });
            let boots: Vec<BootId> = acting.map(|node| node.boot).collect();
            if boots.len() > 1 {
                self.state.broken = Some(Broken::TwoAct);
            } else if boots
                .first()
                .is_some_and(|boot| self.state.registers[right].owner() != Some(*boot))
            {
                self.state.broken = Some(Broken::ActsUnnamed);
            }
        }
    }
}

/// In which role a right is offered and taken back.
fn outgoing(right: Right) -> Role {
    match right {
        CHARACTER => Role::Outgoing,
        _ => Role::Owned,
    }
}
