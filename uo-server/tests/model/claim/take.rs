//! What each action does.

use uo_server::cluster::claim::Input;

use super::state::{Message, Role, Slot, Write};
use super::step::Step;
use super::store::Late;
use super::{Action, ClaimModel};

impl ClaimModel {
    /// Carries out one action.
    pub fn take_step(&self, step: &mut Step<'_>, action: &Action) {
        let count = step.count;
        match *action {
            Action::Take { node } => {
                count("take");
                step.state.nodes[node].put_slot(Slot::new(Role::Entering));
                step.drive(node, Role::Entering, Input::Take);
            }
            Action::Answer { node, role } => {
                count("answer");
                if let Some(answer) = step.perform(node, role) {
                    step.hear(node, role, answer);
                }
            }
            Action::Glimpse { node, role, write } => {
                count("glimpse");
                let answer = step.glimpse(write);
                step.hear(node, role, answer);
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
                step.state.nodes[node].read_back = Some(step.state.number());
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
        let Some(number) = step.state.nodes[node].read_back.take() else {
            return;
        };
        (step.count)("read back shows another");
        let roles: Vec<Role> = step.state.nodes[node]
            .slots
            .iter()
            .map(|slot| slot.role)
            .collect();
        for role in roles {
            let before = step.state.nodes[node].slots.len();
            step.drive(node, role, Input::Lost(number));
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
