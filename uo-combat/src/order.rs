//! What a player may ask for: orders are checked and noted here, and carried out in the fighter's turn.

use uo_proto::{EntityId, ErrorCode, Order, Pos};

use crate::battle::Battle;
use crate::fighter::{QueuedStep, Walk};
use crate::{Notice, ObjectHit, Refusal, STEP_QUEUE};

impl Battle {
    /// Takes a player's order. An order that depends on what happens until its turn may still fail then:
    /// [`Notice::Refused`], [`Notice::StepRejected`], [`Notice::WalkFailed`]. Orders that are not the battle's (`say`,
    /// `look`, ...) are refused as unavailable; a target that is not here as [`ErrorCode::NoTarget`].
    pub fn order(&mut self, id: EntityId, seq: u64, order: &Order) -> Result<(), Refusal> {
        let at = self
            .find(id)
            .ok()
            .filter(|&at| self.actors[at].is_player())
            .ok_or_else(|| Refusal::new(ErrorCode::NoTarget, "nobody of that id is here"))?;
        if self.actors[at].fighter.is_dead() {
            return Err(Refusal::new(ErrorCode::NotNow, "the dead do nothing"));
        }
        match *order {
            Order::WalkTo { x, y } => self.order_walk(at, seq, Pos::new(x, y)),
            Order::Move { dir } => {
                let intent = &mut self.fighter_at(at).intent;
                intent.steps.clear();
                intent.walk = None;
                intent.held = dir;
                Ok(())
            }
            Order::Step { dir } => {
                self.order_step(at, QueuedStep { dir, seq });
                Ok(())
            }
            Order::Stop => {
                self.fighter_at(at).intent = Default::default();
                Ok(())
            }
            _ => Err(Refusal::new(
                ErrorCode::Unavailable,
                "that is not done in a battle",
            )),
        }
    }

    /// A neighbour's battle did harm to one of the region's own objects.
    pub fn hit_object(&mut self, hit: &ObjectHit) {
        let _ = hit;
    }

    fn order_walk(&mut self, at: usize, seq: u64, goal: Pos) -> Result<(), Refusal> {
        if !self.arena.contains(goal) {
            return Err(Refusal::new(
                ErrorCode::OutOfReach,
                "that lies outside of the battle",
            ));
        }
        let actor = &mut self.actors[at];
        actor.way = Default::default();
        let intent = &mut actor.fighter.intent;
        intent.steps.clear();
        intent.held = None;
        intent.attack = None;
        intent.hold = false;
        intent.walk = Some(Walk { goal, seq });
        Ok(())
    }

    fn order_step(&mut self, at: usize, step: QueuedStep) {
        let fighter = self.fighter_at(at);
        fighter.intent.walk = None;
        fighter.intent.held = None;
        if fighter.intent.steps.len() < STEP_QUEUE {
            fighter.intent.steps.push(step);
            return;
        }
        let (id, pos, seq) = (fighter.id, fighter.pos, step.seq);
        self.outbox
            .notices
            .push(Notice::StepRejected { id, pos, seq });
    }
}
