//! What a node does with its claims, rule for rule what `sim/` does with them: who drives which claim when, and what is
//! told to whom. Only the claims themselves are the real ones.

use uo_server::cluster::claim::{Attempt, Claim, Context, Input, Output};
use uo_server::identity::{BootId, Nonces};
use uo_server::planted::{Planted, PlantedBug};
use uo_server::store::{Seen, Stamp};

use super::state::{Answer, Broken, Dirty, Message, Node, Role, Slot, State, Write, holder};
use super::store::{Data, Late, applies, send};

/// Nonces of this step are above all that were ranked.
const NONCES: u128 = 1 << 100;
/// A boot that was never there.
const NEW_BOOT: u128 = 1 << 90;

/// One step under way.
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

    pub fn has(&self, bug: PlantedBug) -> bool {
        self.planted.has(bug)
    }

    pub fn break_it(&mut self, broken: Broken) {
        self.state.broken.get_or_insert(broken);
    }

    fn boot(&self, at: usize) -> BootId {
        self.state.nodes[at].boot
    }

    /// Gives the claim its next input and carries out what it answers. Requests are not sent anywhere: whatever state
    /// waits for an answer has its request under way, as often as it takes.
    pub fn drive(&mut self, at: usize, role: Role, input: Input) {
        let me = holder(self.boot(at));
        let dead = &self.state.dead;
        let Some(slot) = self.state.nodes[at]
            .slots
            .iter_mut()
            .find(|it| it.role == role)
        else {
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
            Output::RetryLater => self.drive(at, role, Input::Retry),
            Output::Serve { number } => self.serve(at, role, number),
            Output::Released { number } => {
                (self.count)("released");
                if let Some(slot) = self.state.nodes[at].take_slot(role)
                    && self.has(PlantedBug::DrainBySourceCas)
                {
                    self.tell_target(&slot, number);
                }
            }
            Output::Gone(_) => {
                (self.count)("gone");
                self.drop_slot(at, role);
            }
            Output::Seal { .. } => {
                let Some(slot) = self.state.nodes[at].slot_mut(role) else {
                    return;
                };
                // What the seal holds is durable with it.
                slot.dirty = Dirty::default();
            }
            // Only planted, and then it is answered at once.
            Output::Read if role == Role::Outgoing => {
                let row = self.state.row.clone();
                self.drive(at, role, Input::Row(row));
            }
            Output::Nothing | Output::Read | Output::Cas(_) | Output::Load { .. } => {}
        }
    }

    /// Sealed: it begins, or it goes on.
    fn serve(&mut self, at: usize, role: Role, number: u64) {
        let Some(mut slot) = self.state.nodes[at].take_slot(role) else {
            return;
        };
        slot.n = 1;
        slot.acts = Some(number);
        slot.role = Role::Owned;
        match role {
            Role::Arriving => {
                (self.count)("arrived");
                if let (Claim::Held { number }, Some(to)) = (&slot.claim, slot.source.take()) {
                    let number = *number;
                    self.post(Message::Accept { to, number });
                }
            }
            Role::Outgoing => (self.count)("reclaimed"),
            Role::Entering => (self.count)("entered"),
            Role::Owned => (self.count)("renewed"),
            Role::Leaving => {}
        }
        if self.state.nodes[at].slot(Role::Owned).is_some() {
            // It would push out what is there.
            self.break_it(Broken::TwoAct);
            return;
        }
        self.state.nodes[at].put_slot(slot);
    }

    pub fn post(&mut self, message: Message) {
        if !self.state.messages.contains(&message) {
            self.state.messages.push(message);
        }
    }

    /// Forgets a claim; what it asked for and wrote is under way all the same.
    pub fn drop_slot(&mut self, at: usize, role: Role) {
        if let Some(slot) = self.state.nodes[at].take_slot(role) {
            self.abandon(slot);
        }
    }

    fn abandon(&mut self, slot: Slot) {
        let number = slot.claim.number().unwrap_or(0);
        self.abandon_write(number, slot.write);
        match slot.claim {
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                send(&mut self.state.air, Late::Cas(attempt));
            }
            Claim::Sealing { number } => {
                let data = slot.value;
                send(&mut self.state.air, Late::Seal { number, data });
            }
            _ => {}
        }
    }

    pub fn abandon_write(&mut self, number: u64, write: Option<Write>) {
        if let Some(write) = write {
            send(&mut self.state.air, write.under(number));
        }
    }

    /// The store carries a compare-and-set out.
    pub fn cas(&mut self, attempt: &Attempt) -> bool {
        let row = self.state.row.as_ref();
        if !applies(row, attempt, self.planted) {
            return false;
        }
        let was = self.state.number();
        if attempt.to.number <= was {
            self.break_it(Broken::NumberWentDown);
        }
        if let Some(owner) = self.state.owner()
            && self.state.is_dead(owner)
            && attempt.to.holder.is_some()
        {
            (self.count)("taken from the dead");
        }
        self.state.row = Some(attempt.to.clone());
        true
    }

    /// The store carries out what the claim waits for, and answers.
    pub fn perform(&mut self, at: usize, role: Role) -> Option<Answer> {
        let slot = self.state.nodes[at].slot(role)?.clone();
        Some(match slot.claim {
            Claim::Free | Claim::Held { .. } | Claim::Outgoing { .. } => return None,
            Claim::Reading => Answer::Row(self.state.row.clone()),
            Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => {
                let row = self.state.row.clone();
                match self.cas(&attempt) {
                    true => Answer::Applied,
                    false => Answer::Refused(row),
                }
            }
            Claim::Loading { .. } => {
                let cells = &self.state.cells;
                Answer::Loaded(cells.data(), cells.number_max())
            }
            Claim::Sealing { number } => {
                self.state.cells.seal(number, slot.value, self.planted);
                Answer::Sealed
            }
        })
    }

    /// A load that a replica answers which has one more write than the others.
    pub fn glimpse(&mut self, write: usize) -> Answer {
        let mut cells = self.state.cells.clone();
        cells.apply(&self.state.pending_writes()[write], self.planted);
        Answer::Loaded(cells.data(), cells.number_max())
    }

    /// The answer arrives.
    pub fn hear(&mut self, at: usize, role: Role, answer: Answer) {
        let Some(slot) = self.state.nodes[at].slot_mut(role) else {
            return;
        };
        slot.kept = None;
        let input = match answer {
            Answer::Row(row) => Input::Row(row),
            Answer::Applied => Input::Applied,
            Answer::Refused(row) => {
                let is_own = match &slot.claim {
                    Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } => row
                        .as_ref()
                        .is_some_and(|row| row.nonce == attempt.to.nonce),
                    _ => false,
                };
                (self.count)(if is_own {
                    "refused: it applied before"
                } else {
                    "refused"
                });
                Input::Refused(row)
            }
            Answer::Loaded(data, found) => {
                slot.value = data;
                if found >= slot.claim.number() {
                    (self.count)("claimed past");
                }
                Input::Loaded(found)
            }
            Answer::Sealed => Input::Sealed,
        };
        self.drive(at, role, input);
    }

    /// The request of a claim has no answer, so it is repeated. What was sent before is under way all the same: the same
    /// request, so that the two are one, unless the claim changed it.
    pub fn repeat(&mut self, at: usize, role: Role) {
        let Some(before) = self.state.nodes[at]
            .slot(role)
            .map(|slot| slot.claim.clone())
        else {
            return;
        };
        self.drive(at, role, Input::Failed);
        let Some(slot) = self.state.nodes[at].slot_mut(role) else {
            return;
        };
        if slot.claim != before
            && let Claim::Claiming { attempt, .. } | Claim::Releasing { attempt } = before
        {
            slot.kept = None;
            send(&mut self.state.air, Late::Cas(attempt));
        }
    }

    /// A new boot of the node, which knows nothing.
    pub fn reboot(&mut self, at: usize) {
        let node = std::mem::replace(&mut self.state.nodes[at], Node::new(BootId(NEW_BOOT)));
        for slot in node.slots {
            self.abandon(slot);
        }
        self.readdress(node.boot);
    }

    /// Messages go to a node by its name.
    fn readdress(&mut self, old: BootId) {
        for message in &mut self.state.messages {
            match message {
                Message::Offer { to, .. }
                | Message::Refuse { to, .. }
                | Message::Accept { to, .. }
                | Message::Given { to, .. } => {
                    if *to == old {
                        *to = BootId(NEW_BOOT);
                    }
                }
            }
        }
    }

    /// Declared dead, and it knows now: everything of the old boot goes.
    pub fn rebirth(&mut self, at: usize) {
        let kept = std::mem::take(&mut self.state.nodes[at].slots);
        if self.has(PlantedBug::RebirthKeepsClaims) {
            let old = self.boot(at);
            self.state.nodes[at] = Node::new(BootId(NEW_BOOT));
            self.readdress(old);
            for slot in kept {
                match slot.role {
                    Role::Entering | Role::Arriving => self.state.nodes[at].put_slot(slot),
                    _ => self.abandon(slot),
                }
            }
            return;
        }
        self.state.nodes[at].slots = kept;
        self.reboot(at);
    }

    /// The source offers what it holds.
    pub fn hand_over(&mut self, at: usize, to: BootId) {
        if self.has(PlantedBug::DrainBySourceCas) {
            return self.give_by_source(at, to);
        }
        self.drive(at, Role::Owned, Input::HandOver);
        let Some(mut slot) = self.state.nodes[at].take_slot(Role::Owned) else {
            return;
        };
        let Claim::Outgoing { number } = slot.claim else {
            self.state.nodes[at].put_slot(slot);
            return;
        };
        // Its state goes along; what is being written is not waited for, and not known to be durable.
        slot.dirty.mark(slot.write.as_ref());
        let write = slot.write.take();
        self.abandon_write(number, write);
        slot.acts = None;
        slot.role = Role::Outgoing;
        let data = slot.value;
        // Offered again before the first was told: that one is settled.
        self.drop_slot(at, Role::Outgoing);
        self.state.nodes[at].put_slot(slot);
        let seen = Seen {
            holder: Some(holder(self.boot(at))),
            number,
        };
        self.post(Message::Offer { to, seen, data });
    }

    /// What must not be: the source stops, and writes the target's name into the row where it would release it.
    fn give_by_source(&mut self, at: usize, to: BootId) {
        self.leave(at);
        let Some(slot) = self.state.nodes[at].slot_mut(Role::Leaving) else {
            return;
        };
        if let Claim::Releasing { attempt } = &mut slot.claim {
            attempt.to.holder = Some(holder(to));
        }
    }

    /// Only planted: the row names the target by now, and it is told.
    fn tell_target(&mut self, slot: &Slot, number: u64) {
        let data = slot.value;
        if let Some(to) = self.state.owner() {
            self.post(Message::Given { to, number, data });
        }
    }

    /// Whether somebody knows that the row names a node that does not know it yet. Only planted.
    fn is_being_given(&self) -> bool {
        let mut slots = self.state.nodes.iter().flat_map(|node| &node.slots);
        let is_told = |it: &Message| matches!(it, Message::Given { .. });
        self.state.messages.iter().any(is_told)
            || slots.any(|slot| match &slot.claim {
                Claim::Releasing { attempt } => Some(&attempt.to) == self.state.row.as_ref(),
                _ => false,
            })
    }

    /// An offer arrives at a node that would take it.
    pub fn offered(&mut self, at: usize, seen: Seen, data: Data) {
        let node = &self.state.nodes[at];
        let known = node.slot(Role::Owned).and_then(|slot| slot.claim.number());
        let under_way = node
            .slot(Role::Arriving)
            .and_then(|slot| match &slot.claim {
                Claim::Claiming { attempt, .. } => Some(attempt.to.number - 1),
                claim => claim.number(),
            });
        // A claim of the same node that is under way was begun from an older row, and never applies; or from a newer one,
        // and the offer is old.
        let entering = node
            .slot(Role::Entering)
            .and_then(|slot| match &slot.claim {
                Claim::Claiming { attempt, .. } => Some(attempt.to.number - 1),
                claim => claim.number(),
            });
        if known
            .max(under_way)
            .max(entering)
            .is_some_and(|known| known >= seen.number)
        {
            (self.count)("offer is older");
            return;
        }
        if known.is_some() {
            self.drop_slot(at, Role::Owned);
        }
        self.drop_slot(at, Role::Entering);
        self.drop_slot(at, Role::Arriving);
        let mut slot = Slot::new(Role::Arriving);
        slot.value = data;
        slot.source = seen.holder.as_ref().map(|source| source.boot);
        self.state.nodes[at].put_slot(slot);
        self.drive(at, Role::Arriving, Input::TakeOffered(seen));
    }

    pub fn refuse(&mut self, seen: &Seen) {
        if let Some(source) = &seen.holder {
            let (to, number) = (source.boot, seen.number);
            self.post(Message::Refuse { to, number });
        }
    }

    /// The destination refused.
    pub fn refused(&mut self, at: usize, number: u64) {
        let node = &mut self.state.nodes[at];
        let Some(slot) = node.slot(Role::Outgoing) else {
            return;
        };
        if slot.claim != (Claim::Outgoing { number }) {
            return;
        }
        self.drive(at, Role::Outgoing, Input::TakeBack);
        let node = &mut self.state.nodes[at];
        if let Some(mut slot) = node.take_slot(Role::Outgoing) {
            slot.acts = Some(number);
            slot.role = Role::Owned;
            if node.slot(Role::Owned).is_some() {
                return self.break_it(Broken::TwoAct);
            }
            node.put_slot(slot);
        }
    }

    /// The destination has it.
    pub fn accepted(&mut self, at: usize, number: u64) {
        let slot = self.state.nodes[at].slot(Role::Outgoing);
        if slot
            .and_then(|slot| slot.claim.number())
            .is_some_and(|known| known < number)
        {
            (self.count)("given");
            self.drive(at, Role::Outgoing, Input::Given);
            self.state.nodes[at].take_slot(Role::Outgoing);
        }
    }

    /// The planted way of a drain: the row names this node already.
    pub fn given(&mut self, at: usize, number: u64, data: Data) {
        if self.state.nodes[at].slots.is_empty() {
            let mut slot = Slot::new(Role::Arriving);
            slot.value = data;
            slot.claim = Claim::Sealing { number };
            self.state.nodes[at].put_slot(slot);
        }
    }

    /// Out of the battle; then one last write if it is needed, then the release.
    pub fn leave(&mut self, at: usize) {
        if self.has(PlantedBug::ReleasedBeforeStopped) {
            return self.drive(at, Role::Owned, Input::Release);
        }
        let Some(mut slot) = self.state.nodes[at].take_slot(Role::Owned) else {
            return;
        };
        let number = slot.claim.number().unwrap_or(0);
        slot.acts = None;
        slot.role = Role::Leaving;
        if slot.dirty.main || slot.write.is_some() {
            let write = slot.write.take();
            self.abandon_write(number, write);
            slot.n += 1;
            slot.dirty.main = false;
            let (n, deeds) = (slot.n, slot.value.deeds);
            slot.write = Some(Write::Main { n, deeds });
        }
        let is_flushed = slot.write.is_none();
        self.state.nodes[at].put_slot(slot);
        if is_flushed {
            self.drive(at, Role::Leaving, Input::Release);
        }
    }

    /// The store carries a plain write out.
    pub fn write(&mut self, at: usize, role: Role) {
        let Some(slot) = self.state.nodes[at].slot(role) else {
            return;
        };
        let number = slot.claim.number().unwrap_or(0);
        match slot.write.clone() {
            None => {}
            Some(Write::Main { n, deeds }) => {
                let stamp = Stamp { number, n };
                let there = self.state.cells.main;
                if there.is_some_and(|(at, known)| at == stamp && known != deeds) {
                    self.break_it(Broken::StampUsedTwice);
                }
                self.state.cells.write_main(stamp, deeds);
            }
            Some(Write::Object { n, there }) => {
                let stamp = Stamp { number, n };
                self.state.cells.write_object(stamp, there);
            }
        }
    }

    /// A plain write is acknowledged. Only now, and only by who still holds it and is not fenced, is anybody told.
    pub fn acknowledged(&mut self, at: usize, role: Role) {
        let is_fenced = self.state.nodes[at].fenced;
        let checks = !self.has(PlantedBug::SavedWithoutCheck);
        let Some(slot) = self.state.nodes[at].slot_mut(role) else {
            return;
        };
        let write = slot.write.take();
        let is_held = slot.claim.held().is_some() && !is_fenced;
        if let Some(Write::Main { deeds, .. }) = write
            && role == Role::Owned
            && (is_held || !checks)
        {
            self.state.told |= deeds;
            (self.count)("told saved");
        }
        if role == Role::Leaving {
            self.drive(at, Role::Leaving, Input::Release);
        }
    }

    /// What must hold after each step.
    pub fn check(&mut self) {
        let state = &self.state;
        let mut acting = state.nodes.iter().flat_map(|node| {
            let slots = node.slots.iter().filter(|_| !node.fenced);
            slots.filter_map(|slot| Some((node.boot, slot, slot.acts?)))
        });
        let first = acting.next();
        let second = acting.next();
        if second.is_some() {
            return self.break_it(Broken::TwoAct);
        }
        if let Some((boot, slot, number)) = first {
            let renews = matches!(slot.claim, Claim::Claiming { .. } | Claim::Sealing { .. });
            let now = state.number();
            let is_named = state.owner() == Some(boot);
            if !is_named || !(now == number || renews && now == number + 1) {
                return self.break_it(Broken::ActsUnnamed);
            }
            if state.told & !slot.value.deeds != 0 {
                return self.break_it(Broken::SavedIsLost);
            }
            let is_settled =
                slot.claim.held().is_some() && slot.write.is_none() && !slot.dirty.is_any();
            if is_settled && state.cells.data() != slot.value {
                return self.break_it(Broken::AnotherStateShows);
            }
        }
        if let Some(owner) = state.owner()
            && let Some(at) = state.node_of(owner)
            && !state.is_dead(owner)
            && state.nodes[at].slots.is_empty()
            && !self.is_being_given()
        {
            self.break_it(Broken::NamedKnowsNothing);
        }
    }
}
