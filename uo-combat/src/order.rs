//! What a player may ask for: orders are checked and noted here, and carried out in the fighter's turn.

use uo_proto::{Dir, EntityId, ErrorCode, ItemKind, ObjectKey, Order, Pos, Slot, Spell, Target};

use crate::battle::Battle;
use crate::fighter::{Attack, Deed, Intent, QueuedStep, Walk, Wish};
use crate::table::{item_row, object_row};
use crate::{Notice, Refusal, STEP_QUEUE};

type Taken = Result<(), Refusal>;

impl Battle {
    /// Takes a player's order. One that depends on what happens until its turn may still fail then:
    /// [`Notice::Refused`], [`Notice::StepRejected`], [`Notice::WalkFailed`]. Orders that are not the battle's (`say`,
    /// `look`, ...) are refused as [`ErrorCode::Unavailable`], targets that are not here as [`ErrorCode::NoTarget`].
    pub fn order(&mut self, id: EntityId, seq: u64, order: &Order) -> Taken {
        let player = self.find(id).ok().filter(|&at| self.actors[at].is_player());
        let Some(at) = player else {
            return refuse(ErrorCode::NoTarget, "nobody of that id is here");
        };
        if self.actors[at].fighter.is_dead() {
            return refuse(ErrorCode::NotNow, "the dead do nothing");
        }
        self.derive_cache();
        match *order {
            Order::WalkTo { x, y } => self.order_walk(at, seq, Pos::new(x, y)),
            Order::Move { dir } => self.order_move(at, dir),
            Order::Step { dir } => self.order_step(at, QueuedStep { dir, seq }),
            Order::Stop => self.order_stop(at),
            Order::Attack { target } => self.order_attack(at, seq, target),
            Order::Cast { spell, target } => self.order_cast(at, seq, spell, target),
            Order::Guard => self.order_guard(at, seq),
            Order::Potion => {
                self.check_drink(at)?;
                self.wish(at, seq, Deed::Drink)
            }
            Order::Hold => self.order_hold(at),
            Order::Open { object } => {
                self.check_open(at, object)?;
                self.wish(at, seq, Deed::Open { object })
            }
            Order::Plant { x, y } => {
                let pos = Pos::new(x, y);
                self.check_plant(at, pos)?;
                self.wish(at, seq, Deed::Plant { at: pos })
            }
            Order::Equip { item } => self.equip(at, item),
            Order::Unequip { slot } => self.unequip(at, slot),
            Order::Say { .. }
            | Order::Look { .. }
            | Order::Inventory
            | Order::Gather { .. }
            | Order::Craft { .. }
            | Order::Logout => refuse(ErrorCode::Unavailable, "that is not done in a battle"),
        }
    }

    fn order_walk(&mut self, at: usize, seq: u64, goal: Pos) -> Taken {
        if !self.arena.contains(goal) {
            return refuse(ErrorCode::OutOfReach, "that lies outside of the battle");
        }
        self.actors[at].way = Default::default();
        let fighter = self.fighter_at(at);
        fighter.intent = Intent {
            walk: Some(Walk { goal, seq }),
            wish: fighter.intent.wish.take(),
            ..Intent::default()
        };
        Ok(())
    }

    /// An attack goes on beside a held heading and queued steps: they come first.
    fn order_move(&mut self, at: usize, dir: Option<Dir>) -> Taken {
        let intent = &mut self.fighter_at(at).intent;
        intent.held = dir;
        if dir.is_some() {
            intent.steps.clear();
            intent.walk = None;
        }
        Ok(())
    }

    fn order_step(&mut self, at: usize, step: QueuedStep) -> Taken {
        let fighter = self.fighter_at(at);
        fighter.intent.walk = None;
        fighter.intent.held = None;
        if fighter.intent.steps.len() < STEP_QUEUE {
            fighter.intent.steps.push(step);
            return Ok(());
        }
        let (id, pos, seq) = (fighter.id, fighter.pos, step.seq);
        self.tell(at, Notice::StepRejected { id, pos, seq });
        Ok(())
    }

    fn order_stop(&mut self, at: usize) -> Taken {
        self.fighter_at(at).intent = Intent::default();
        Ok(())
    }

    fn order_attack(&mut self, at: usize, seq: u64, target: Target) -> Taken {
        match target {
            Target::Entity(id) => {
                if id == self.actors[at].fighter.id {
                    return refuse(ErrorCode::Invalid, "nobody attacks himself");
                }
                if self.actor(id).is_none_or(|target| target.fighter.is_dead()) {
                    return refuse(ErrorCode::NoTarget, "the target is not here");
                }
            }
            Target::Object(key) => self.check_breakable(key)?,
            Target::Tile(_) => return refuse(ErrorCode::Invalid, "a tile cannot be attacked"),
        }
        self.actors[at].way = Default::default();
        let intent = &mut self.fighter_at(at).intent;
        intent.walk = None;
        intent.hold = false;
        intent.attack = Some(Attack {
            target,
            seq,
            absent_ms: 0,
        });
        Ok(())
    }

    fn check_breakable(&self, key: ObjectKey) -> Taken {
        match self.arena.object(key) {
            None => refuse(ErrorCode::NoTarget, "the target is not here"),
            Some(object) if object_row(object.kind).strength == 0 => {
                refuse(ErrorCode::Invalid, "nothing breaks that")
            }
            Some(_) => Ok(()),
        }
    }

    fn order_cast(&mut self, at: usize, seq: u64, spell: Spell, target: Target) -> Taken {
        self.check_cast(at, spell, target, 0)?;
        self.wish(at, seq, Deed::Cast { spell, target })
    }

    /// Whoever guards does nothing else: the guard falls with the next own action.
    fn order_guard(&mut self, at: usize, seq: u64) -> Taken {
        let wish = self.fighter_at(at).intent.wish.take();
        self.fighter_at(at).intent = Intent {
            wish,
            ..Intent::default()
        };
        self.wish(at, seq, Deed::Guard)
    }

    /// The attack stays: its target is struck first when it comes into reach.
    fn order_hold(&mut self, at: usize) -> Taken {
        let intent = &mut self.fighter_at(at).intent;
        intent.steps.clear();
        intent.walk = None;
        intent.held = None;
        intent.hold = true;
        Ok(())
    }

    /// Notes the one thing to do next. One that waited is replaced, and its order refused.
    fn wish(&mut self, at: usize, seq: u64, what: Deed) -> Taken {
        let fighter = self.fighter_at(at);
        let id = fighter.id;
        if let Some(old) = fighter.intent.wish.replace(Wish { what, seq }) {
            let refusal = Refusal::new(ErrorCode::NotNow, "another action was asked for");
            let seq = old.seq;
            self.tell(at, Notice::Refused { id, seq, refusal });
        }
        Ok(())
    }

    fn equip(&mut self, at: usize, item: ItemKind) -> Taken {
        let inventory = &mut self.fighter_at(at).inventory;
        let Some(slot) = item_row(item).slot else {
            return refuse(ErrorCode::Invalid, "that cannot be worn");
        };
        if !inventory.take(item) {
            return refuse(ErrorCode::NothingLeft, "that is not carried");
        }
        if let Some(old) = inventory.equipment.get_mut(slot).replace(item) {
            inventory.put(old, 1);
        }
        self.inventory_changed(at);
        Ok(())
    }

    fn unequip(&mut self, at: usize, slot: Slot) -> Taken {
        let inventory = &mut self.fighter_at(at).inventory;
        let Some(item) = inventory.equipment.get_mut(slot).take() else {
            return refuse(ErrorCode::NothingLeft, "nothing is worn there");
        };
        inventory.put(item, 1);
        self.inventory_changed(at);
        Ok(())
    }
}

fn refuse(code: ErrorCode, message: &str) -> Taken {
    Err(Refusal::new(code, message))
}
