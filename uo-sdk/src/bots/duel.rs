//! Seeks another who duels, and fights until one of them is dead; then again.
//!
//! Duelists meet on a ground that each finds by itself ([`meet::ground`]) and know each other by their challenge. No
//! potions: a duel is to end.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::{CharId, EntityId, ErrorCode, Order, Pos, ServerMsg};

use super::bout::{Bout, Standing};
use super::journey::{Journey, Progress};
use super::meet;
use crate::bot::{Bot, Cause, Hands, begins_life};
use crate::event::Event;
use crate::{Dice, Entity, LocalWorld};

/// What a duelist says, and how others know one.
pub const CHALLENGE: &str = "En garde!";
/// How long somebody is known for a duelist after a challenge.
const KNOWN_MS: u64 = 60_000;
/// Duelists that are known at once; whoever speaks when there are more is not noticed.
const KNOWN_MAX: usize = 64;
/// Between two challenges, as long as nobody took one up.
const CHALLENGE_MS: (u64, u64) = (3_000, 6_000);
/// Rivals farther than this are not gone after, in tiles.
const RIVAL_RADIUS: u16 = 16;
/// A rival that cannot be fought is left alone for so long.
const AVOID_MS: u64 = 10_000;
/// A duel that takes longer is broken off.
const BOUT_MS_MAX: u64 = 120_000;
/// So near to the ground is there, in tiles.
const GROUND_RADIUS: u16 = 6;
/// After a walk that failed it stays where it is for so long: others may be there as well.
const REST_MS: u64 = 15_000;

/// See the module.
#[derive(Clone, Debug)]
pub struct Duel {
    dice: Dice,
    bout: Option<Bout>,
    journey: Option<Journey>,
    /// Who duels, and until when that is believed.
    known: BTreeMap<EntityId, u64>,
    /// Who could not be fought, and until when it is left alone.
    avoided: BTreeMap<EntityId, u64>,
    challenge_due_ms: u64,
    walk_due_ms: u64,
}

impl Duel {
    /// A duelist that decides as `seed` says.
    pub fn new(seed: u64) -> Duel {
        Duel {
            dice: Dice::new(seed),
            bout: None,
            journey: None,
            known: BTreeMap::new(),
            avoided: BTreeMap::new(),
            challenge_due_ms: 0,
            walk_due_ms: 0,
        }
    }

    fn on_event(&mut self, now_ms: u64, world: &LocalWorld, event: &Event, hands: &mut Hands) {
        if begins_life(event) {
            self.bout = None;
            self.journey = None;
            self.walk_due_ms = now_ms;
            return hands.wake_at(now_ms + self.dice.between(50, 1_000));
        }
        match event {
            Event::Message(ServerMsg::Said(said)) if said.speech.text == CHALLENGE => {
                let who = CharId::entity(said.speech.char_id);
                let has_room = self.known.len() < KNOWN_MAX || self.known.contains_key(&who);
                if Some(who) != world.my_id() && has_room {
                    self.known.insert(who, now_ms + KNOWN_MS);
                }
            }
            Event::Message(ServerMsg::Error(error)) => {
                let unfit = matches!(
                    error.code,
                    ErrorCode::NoTarget | ErrorCode::OutOfReach | ErrorCode::NoSight
                );
                let bout = self.bout.filter(|bout| !bout.may_be_casting(now_ms));
                if let (true, Some(bout)) = (unfit, bout) {
                    self.avoid(now_ms, bout.foe);
                }
            }
            Event::Message(ServerMsg::StepRejected(_)) if self.journey.take().is_some() => {
                self.walk_due_ms = now_ms + REST_MS;
            }
            _ => {}
        }
    }

    fn avoid(&mut self, now_ms: u64, foe: EntityId) {
        self.bout = None;
        self.avoided.insert(foe, now_ms + AVOID_MS);
    }

    fn think(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        hands.wake_at(now_ms + self.dice.between(400, 600));
        self.known.retain(|_, until_ms| *until_ms > now_ms);
        self.avoided.retain(|_, until_ms| *until_ms > now_ms);
        let Some(me) = world.me().filter(|me| me.is_alive()) else {
            self.bout = None;
            return;
        };
        if let Some(bout) = &mut self.bout {
            let foe = bout.foe;
            let is_late = now_ms >= bout.since_ms + BOUT_MS_MAX;
            if bout.press(now_ms, world, me, &mut self.dice, hands) == Standing::Over {
                self.bout = None;
            } else if is_late {
                self.avoid(now_ms, foe);
                hands.order(Order::Stop);
            }
            return;
        }
        if let Some(rival) = self.find_rival(world, me) {
            self.journey = None;
            self.bout = Some(Bout::begin(now_ms, rival, hands));
            return;
        }
        self.seek(now_ms, world, hands);
    }

    /// Whoever attacks it; else the nearest who is known to duel and fights nobody else.
    fn find_rival(&self, world: &LocalWorld, me: &Entity) -> Option<EntityId> {
        let here = me.state.pos();
        let rank = |other: &Entity| {
            let id = other.state.id;
            let attacks_me = other.state.target == Some(me.state.id);
            let duels = self.known.contains_key(&id) && !self.avoided.contains_key(&id);
            let is_free = other.state.target.is_none();
            let distance = other.state.pos().distance(here);
            let wanted = distance <= RIVAL_RADIUS && (attacks_me || (duels && is_free));
            wanted.then_some((!attacks_me, distance, id))
        };
        let (.., id) = world.others().filter_map(rank).min()?;
        Some(id)
    }

    /// Nobody to fight: to the ground, and a challenge now and then.
    fn seek(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        if now_ms >= self.challenge_due_ms {
            let (from_ms, to_ms) = CHALLENGE_MS;
            self.challenge_due_ms = now_ms + self.dice.between(from_ms, to_ms);
            hands.order(Order::Say {
                text: CHALLENGE.into(),
            });
        }
        let Some(ground) = meet::ground(world) else {
            return;
        };
        if let Some(journey) = &mut self.journey {
            match journey.look(now_ms, GROUND_RADIUS, world) {
                Progress::Going => {}
                Progress::Arrived => self.journey = None,
                Progress::Stuck => {
                    self.journey = None;
                    self.walk_due_ms = now_ms + REST_MS;
                }
            }
        } else if world.pos().distance(ground) > GROUND_RADIUS && now_ms >= self.walk_due_ms {
            let goal = self.place_on(ground, world);
            self.journey = Some(Journey::begin(now_ms, goal, world, hands));
        }
    }

    /// A tile of the ground: not the same for all.
    fn place_on(&mut self, ground: Pos, world: &LocalWorld) -> Pos {
        let mut about = |at: u16| {
            let away = self.dice.between(0, 8) as i16 - 4;
            at.saturating_add_signed(away)
        };
        let place = Pos::new(about(ground.x), about(ground.y));
        if world.is_open(place) { place } else { ground }
    }
}

impl Bot for Duel {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Event(event) => self.on_event(now_ms, world, event, hands),
            Cause::Time => self.think(now_ms, world, hands),
        }
    }
}

#[cfg(test)]
mod tests {
    use uo_proto::{Class, Said, Speech, Target};

    use super::*;
    use crate::bots::scene::{ME, Scene, entity};

    const RIVAL: EntityId = EntityId(1 << 45);
    const OTHER: EntityId = EntityId(1 << 46);

    /// A duelist on its ground.
    fn scene() -> Scene<Duel> {
        let far = Scene::new(Duel::new(3), Class::Archer, Pos::new(100, 100));
        let ground = meet::ground(&far.world).unwrap();
        Scene::new(Duel::new(3), Class::Archer, ground)
    }

    fn challenge(scene: &mut Scene<Duel>, who: EntityId) {
        scene.tell(ServerMsg::Said(Said {
            seq: 1,
            at_ms: 0,
            speech: Speech {
                char_id: who.character().unwrap(),
                name: "x".into(),
                text: CHALLENGE.into(),
            },
        }));
    }

    fn rival(scene: &Scene<Duel>, id: EntityId, tiles: u16) -> uo_proto::EntityEnter {
        let here = scene.world.pos();
        entity(id, Class::Archer, Pos::new(here.x + tiles, here.y))
    }

    fn attacks(orders: &[Order]) -> Vec<EntityId> {
        let attacked = |order: &Order| match order {
            Order::Attack {
                target: Target::Entity(id),
            } => Some(*id),
            _ => None,
        };
        orders.iter().filter_map(attacked).collect()
    }

    #[test]
    fn it_fights_who_took_its_challenge_up_and_nobody_else() {
        let mut scene = scene();
        let peaceful = rival(&scene, OTHER, 1);
        let duelist = rival(&scene, RIVAL, 5);
        scene.enter([peaceful, duelist]);
        let orders = scene.wake();
        assert!(orders.contains(&Order::Say {
            text: CHALLENGE.into()
        }));
        assert_eq!(attacks(&orders), [], "nobody is known to duel");
        challenge(&mut scene, RIVAL);
        assert_eq!(attacks(&scene.wake()), [RIVAL]);
        scene.change(ME, |me| me.target = Some(RIVAL));
        assert_eq!(scene.wake(), []);
    }

    #[test]
    fn it_leaves_a_duel_of_two_others_alone_and_goes_on_after_its_own() {
        let mut scene = scene();
        let (one, two) = (rival(&scene, RIVAL, 3), rival(&scene, OTHER, 4));
        scene.enter([one, two]);
        scene.change(RIVAL, |it| it.target = Some(OTHER));
        scene.change(OTHER, |it| it.target = Some(RIVAL));
        challenge(&mut scene, RIVAL);
        challenge(&mut scene, OTHER);
        assert_eq!(attacks(&scene.wake()), []);
        scene.change(RIVAL, |it| it.hits = 0);
        scene.change(OTHER, |it| it.target = None);
        assert_eq!(attacks(&scene.wake()), [OTHER]);
        scene.change(OTHER, |it| it.hits = 0);
        let later: Vec<Order> = (0..20).flat_map(|_| scene.wake()).collect();
        assert_eq!(attacks(&later), []);
        assert!(later.iter().any(|order| matches!(order, Order::Say { .. })));
    }

    #[test]
    fn it_walks_to_the_ground_and_fights_whoever_attacks_it_on_the_way() {
        let mut scene = Scene::new(Duel::new(4), Class::Warrior, Pos::new(20, 30));
        let ground = meet::ground(&scene.world).unwrap();
        let orders = scene.wake();
        let goes = |order: &Order| matches!(order, Order::WalkTo { x, y } if Pos::new(*x, *y).distance(ground) <= 4);
        assert!(orders.iter().any(goes), "{orders:?}");
        let robber = rival(&scene, RIVAL, 6);
        scene.enter([robber]);
        scene.change(RIVAL, |it| it.target = Some(ME));
        assert_eq!(attacks(&scene.wake()), [RIVAL]);
    }

    #[test]
    fn who_cannot_be_reached_is_left_alone() {
        let mut scene = scene();
        let duelist = rival(&scene, RIVAL, 5);
        scene.enter([duelist]);
        challenge(&mut scene, RIVAL);
        assert_eq!(attacks(&scene.wake()), [RIVAL]);
        scene.tell(ServerMsg::Error(uo_proto::ErrorMsg {
            code: ErrorCode::OutOfReach,
            message: String::new(),
            seq: None,
            private: Some(1),
        }));
        assert_eq!(attacks(&scene.wake()), []);
    }
}
