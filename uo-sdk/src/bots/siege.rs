//! Besieges camps with others: gathers before the gate, storms it, blows up what stands beside it, breaks everything
//! inside, and goes on to the next camp.
//!
//! Besiegers of one part of the world go to the same camps in the same order ([`meet::camps`]), and storm when one of them
//! calls: the first who has seen enough others come, or has waited for long enough.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::{BTreeMap, BTreeSet};

use uo_proto::{
    CharId, Class, CombatEvent, Dir, EntityId, ErrorCode, ItemKind, ObjectKey, ObjectKind, Order,
    Pos, ServerMsg, Target,
};
use uo_world::Camp;

use super::bout::{Bout, Standing};
use super::journey::{Journey, Progress};
use super::meet;
use super::wander::walk;
use crate::bot::{Bot, Cause, Hands, begins_life};
use crate::event::Event;
use crate::{Dice, Entity, LocalWorld};

/// What a besieger says on its arrival before a camp.
pub const HERE: &str = "To the siege!";
/// And when it goes at it.
pub const CHARGE: &str = "Charge!";
/// Others that are waited for.
const COMPANY: usize = 2;
/// Those of whom so many are counted; that there are more makes no difference.
const COMPANY_MAX: usize = 16;
/// How long they are waited for, at most.
const MUSTER_MS: (u64, u64) = (8_000, 16_000);
/// How far before the gate they gather, in tiles: beyond where its bandits look.
const MUSTER_TILES: i16 = 9;
/// So near to where one goes is there, in tiles.
const ARRIVED_RADIUS: u16 = 3;
/// Those who attack from farther are not gone after, in tiles.
const FOE_RADIUS: u16 = 12;
/// A bout that takes longer is left for the siege.
const BOUT_MS_MAX: u64 = 30_000;
/// Something that does not break for so long is left alone.
const BREAK_MS_MAX: u64 = 20_000;
/// What could not be broken, and whoever could not be fought, is left alone for so long.
const AVOID_MS: u64 = 30_000;
/// How far one runs from a keg, and for how long it is waited for: a little more than its fuse.
const KEG_MS: u64 = 3_500;

/// What it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Aim {
    /// Nothing yet.
    Nothing,
    /// On the way to the muster before the camp.
    March(Journey),
    /// Waits there for others, until then.
    Muster { until_ms: u64 },
    /// Carries a keg to the gate.
    Sap(Journey),
    /// Waits for a bang, away from it.
    Shelter { until_ms: u64 },
    /// Looks what is to be broken next.
    Storm,
    /// Breaks something, until then.
    Break { object: ObjectKey, until_ms: u64 },
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Siege {
    dice: Dice,
    aim: Aim,
    bout: Option<Bout>,
    /// How many camps it has been done with: the next in the order is what it besieges.
    done: usize,
    /// Who said to be here.
    company: BTreeSet<EntityId>,
    avoided_objects: BTreeMap<ObjectKey, u64>,
    avoided_foes: BTreeMap<EntityId, u64>,
    has_keg: bool,
    wields_axe: bool,
}

impl Siege {
    /// A besieger that decides as `seed` says.
    pub fn new(seed: u64) -> Siege {
        Siege {
            dice: Dice::new(seed),
            aim: Aim::Nothing,
            bout: None,
            done: 0,
            company: BTreeSet::new(),
            avoided_objects: BTreeMap::new(),
            avoided_foes: BTreeMap::new(),
            has_keg: true,
            wields_axe: false,
        }
    }

    fn on_event(&mut self, now_ms: u64, world: &LocalWorld, event: &Event, hands: &mut Hands) {
        if begins_life(event) {
            self.aim = Aim::Nothing;
            self.bout = None;
            self.company.clear();
            return hands.wake_at(now_ms + self.dice.between(50, 1_000));
        }
        match event {
            Event::Message(ServerMsg::Said(said)) => {
                let who = CharId::entity(said.speech.char_id);
                self.hear(now_ms, world, who, &said.speech.text, hands);
            }
            Event::Message(ServerMsg::Event(happened)) => {
                if let CombatEvent::Broke { object, .. } = happened.combat
                    && matches!(self.aim, Aim::Break { object: mine, .. } if mine == object)
                {
                    self.aim = Aim::Storm;
                }
            }
            Event::Message(ServerMsg::Error(error)) => self.on_refusal(now_ms, error.code),
            Event::Message(ServerMsg::StepRejected(_)) => {
                self.aim = match self.aim {
                    Aim::March(_) => self.give_up_camp(),
                    Aim::Sap(_) => Aim::Storm,
                    aim => aim,
                };
            }
            _ => {}
        }
    }

    fn hear(
        &mut self,
        now_ms: u64,
        world: &LocalWorld,
        who: EntityId,
        text: &str,
        hands: &mut Hands,
    ) {
        if Some(who) == world.my_id() {
            return;
        }
        if text == HERE && self.company.len() < COMPANY_MAX {
            self.company.insert(who);
        }
        if text == CHARGE && matches!(self.aim, Aim::Muster { .. }) {
            self.aim = Aim::Muster { until_ms: now_ms };
            hands.wake_at(now_ms + self.dice.between(50, 400));
        }
    }

    fn on_refusal(&mut self, now_ms: u64, code: ErrorCode) {
        match code {
            ErrorCode::NothingLeft => self.has_keg = false,
            ErrorCode::NoTarget | ErrorCode::OutOfReach | ErrorCode::NoSight => {
                if let Some(bout) = self.bout {
                    if !bout.may_be_casting(now_ms) {
                        self.avoided_foes.insert(bout.foe, now_ms + AVOID_MS);
                        self.bout = None;
                    }
                } else if let Aim::Break { object, .. } = self.aim {
                    self.avoided_objects.insert(object, now_ms + AVOID_MS);
                    self.aim = Aim::Storm;
                }
            }
            _ => {}
        }
    }

    fn think(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        hands.wake_at(now_ms + self.dice.between(400, 600));
        self.avoided_objects
            .retain(|_, until_ms| *until_ms > now_ms);
        self.avoided_foes.retain(|_, until_ms| *until_ms > now_ms);
        let Some(me) = world.me().filter(|me| me.is_alive()) else {
            self.aim = Aim::Nothing;
            self.bout = None;
            return;
        };
        if !matches!(self.aim, Aim::Shelter { .. }) && self.defends(now_ms, world, me, hands) {
            return;
        }
        match self.aim {
            Aim::Nothing => self.march(now_ms, world, hands),
            Aim::March(journey) => self.marching(now_ms, world, journey, hands),
            Aim::Muster { until_ms } => {
                if now_ms >= until_ms || self.company.len() >= COMPANY {
                    self.charge(now_ms, world, me, hands);
                }
            }
            Aim::Sap(journey) => self.sap(now_ms, world, journey, hands),
            Aim::Shelter { until_ms } if now_ms < until_ms => {}
            Aim::Shelter { .. } => self.aim = Aim::Storm,
            Aim::Storm => self.storm(now_ms, world, hands),
            Aim::Break { object, until_ms } => {
                self.breaking(now_ms, world, (object, until_ms), hands);
            }
        }
    }

    /// Fights whoever attacks it; false if nobody does.
    fn defends(&mut self, now_ms: u64, world: &LocalWorld, me: &Entity, hands: &mut Hands) -> bool {
        if let Some(bout) = &mut self.bout {
            let (foe, is_late) = (bout.foe, now_ms >= bout.since_ms + BOUT_MS_MAX);
            let standing = bout.press(now_ms, world, me, &mut self.dice, hands);
            if standing == Standing::Open && !is_late {
                return true;
            }
            self.bout = None;
            if is_late {
                self.avoided_foes.insert(foe, now_ms + AVOID_MS);
            }
        }
        let here = me.state.pos();
        let foe = world
            .others()
            .filter(|other| other.state.target == Some(me.state.id))
            .filter(|other| !self.avoided_foes.contains_key(&other.state.id))
            .map(|other| (other.state.pos().distance(here), other.state.id))
            .filter(|(distance, _)| *distance <= FOE_RADIUS)
            .min();
        let Some((_, foe)) = foe else {
            return false;
        };
        self.bout = Some(Bout::begin(now_ms, foe, hands));
        // What was under way has ended with the new order.
        self.aim = match self.aim {
            Aim::March(_) => Aim::Nothing,
            Aim::Sap(_) | Aim::Break { .. } => Aim::Storm,
            aim => aim,
        };
        true
    }

    fn camp(&self, world: &LocalWorld) -> Option<Camp> {
        let camps = meet::camps(world);
        camps.get(self.done % camps.len().max(1)).copied()
    }

    fn give_up_camp(&mut self) -> Aim {
        self.done += 1;
        self.company.clear();
        Aim::Nothing
    }

    fn march(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        let Some(camp) = self.camp(world) else {
            return; // There is no camp far and wide.
        };
        let goal = muster(&camp, world);
        self.aim = Aim::March(Journey::begin(now_ms, goal, world, hands));
    }

    fn marching(
        &mut self,
        now_ms: u64,
        world: &LocalWorld,
        mut journey: Journey,
        hands: &mut Hands,
    ) {
        self.aim = match journey.look(now_ms, ARRIVED_RADIUS, world) {
            Progress::Going => Aim::March(journey),
            Progress::Stuck => self.give_up_camp(),
            Progress::Arrived => {
                hands.order(Order::Say { text: HERE.into() });
                let (from_ms, to_ms) = MUSTER_MS;
                let until_ms = now_ms + self.dice.between(from_ms, to_ms);
                Aim::Muster { until_ms }
            }
        };
    }

    fn charge(&mut self, now_ms: u64, world: &LocalWorld, me: &Entity, hands: &mut Hands) {
        hands.order(Order::Say {
            text: CHARGE.into(),
        });
        self.company.clear();
        if me.info.class == Class::Warrior && !self.wields_axe {
            // Nothing breaks things like it.
            self.wields_axe = true;
            let item = ItemKind::Axe;
            hands.order(Order::Equip { item });
        }
        let has_keg = world
            .inventory()
            .map_or(self.has_keg, |all| all.count(ItemKind::Keg) > 0);
        self.aim = match self.camp(world).filter(|_| has_keg) {
            Some(camp) => Aim::Sap(Journey::begin(now_ms, camp.gate, world, hands)),
            None => Aim::Storm,
        };
    }

    /// Plants the keg beside the gate, and runs.
    fn sap(&mut self, now_ms: u64, world: &LocalWorld, mut journey: Journey, hands: &mut Hands) {
        match journey.look(now_ms, 0, world) {
            Progress::Going => self.aim = Aim::Sap(journey),
            Progress::Stuck => self.aim = Aim::Storm,
            Progress::Arrived => {
                self.aim = Aim::Storm;
                let here = world.pos();
                let beside = [Dir::W, Dir::E]
                    .into_iter()
                    .filter_map(|dir| here.step(dir))
                    .find(|&tile| world.is_open(tile));
                if let (Some(tile), Some(camp)) = (beside, self.camp(world)) {
                    self.has_keg = false;
                    let (x, y) = (tile.x, tile.y);
                    hands.order(Order::Plant { x, y });
                    let Pos { x, y } = muster(&camp, world);
                    hands.order(Order::WalkTo { x, y });
                    let until_ms = now_ms + KEG_MS;
                    self.aim = Aim::Shelter { until_ms };
                }
            }
        }
    }

    fn storm(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        let Some(camp) = self.camp(world) else {
            self.aim = Aim::Nothing;
            return;
        };
        let Some(object) = self.find_breakable(world, &camp) else {
            self.aim = self.give_up_camp();
            return;
        };
        let target = Target::Object(object);
        hands.order(Order::Attack { target });
        self.aim = Aim::Break {
            object,
            until_ms: now_ms + BREAK_MS_MAX,
        };
    }

    fn breaking(
        &mut self,
        now_ms: u64,
        world: &LocalWorld,
        (object, until_ms): (ObjectKey, u64),
        hands: &mut Hands,
    ) {
        if world.object(object).is_none_or(|it| !is_worth_it(it.kind)) {
            self.aim = Aim::Storm;
            self.storm(now_ms, world, hands);
        } else if now_ms >= until_ms {
            self.avoided_objects.insert(object, now_ms + AVOID_MS);
            self.aim = Aim::Storm;
        }
    }

    /// What is to be broken of the camp: the nearest, a little shuffled, so that not all go at the same thing.
    fn find_breakable(&mut self, world: &LocalWorld, camp: &Camp) -> Option<ObjectKey> {
        let here = world.pos();
        let area = camp.area.grown(1);
        let reach = camp.area.width.max(camp.area.height);
        let mut things: Vec<_> = world
            .objects_near(camp.centre(), reach)
            .into_iter()
            .filter(|object| is_worth_it(object.kind) && area.contains(object.pos()))
            .filter(|object| !self.avoided_objects.contains_key(&object.key))
            .map(|object| (object.pos().distance(here), object.key))
            .collect();
        things.sort_unstable();
        things.truncate(3);
        self.dice.pick(&things).map(|(_, key)| *key)
    }
}

/// Whether a besieger breaks it.
fn is_worth_it(kind: ObjectKind) -> bool {
    use ObjectKind::{Chest, Crate, Door, Fence, Tent, Wall};
    matches!(kind, Door | Wall | Fence | Crate | Chest | Tent)
}

/// Where one gathers before a camp: straight out from its gate, as far as the ground allows.
fn muster(camp: &Camp, world: &LocalWorld) -> Pos {
    let outwards = if camp.gate.y < camp.area.y {
        Dir::N
    } else {
        Dir::S
    };
    (1..=MUSTER_TILES)
        .rev()
        .filter_map(|tiles| walk(camp.gate, outwards, tiles))
        .find(|&pos| world.is_open(pos))
        .unwrap_or(camp.gate)
}

impl Bot for Siege {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Event(event) => self.on_event(now_ms, world, event, hands),
            Cause::Time => self.think(now_ms, world, hands),
        }
    }
}

#[cfg(test)]
mod tests;
