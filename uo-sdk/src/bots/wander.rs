//! Holds headings, takes steps, and now and then walks to a goal far away.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::{Dir, Order, Pos, ServerMsg};

use crate::bot::{Bot, Cause, Hands, begins_life};
use crate::event::Event;
use crate::{Dice, LocalWorld};

/// How far a far goal is, in tiles: across a region border more often than not.
const GOAL_TILES: (u64, u64) = (20, 60);

/// What it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Doing {
    /// Nothing yet, or dead.
    Nothing,
    /// Holding a heading.
    Holding,
    /// Taking so many more single steps.
    Stepping(u64),
    /// On the way to a goal.
    Walking(Pos),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Wander {
    dice: Dice,
    heading: Dir,
    doing: Doing,
    /// What it is about ends then.
    until_ms: u64,
}

impl Wander {
    /// A wanderer that goes where `seed` leads.
    pub fn new(seed: u64) -> Wander {
        let mut dice = Dice::new(seed);
        let heading = Dir::ALL[dice.below(8) as usize];
        Wander {
            dice,
            heading,
            doing: Doing::Nothing,
            until_ms: 0,
        }
    }

    /// Turns by a random eighth or more, to a side where there is ground to walk on.
    fn turn(&mut self, world: &LocalWorld) {
        for _ in 0..4 {
            let eighths = self.dice.between(1, 7) as i8;
            self.heading = self.heading.turned(eighths);
            let ahead = walk(world.pos(), self.heading, 4);
            if ahead.is_some_and(|pos| world.is_open(pos)) {
                return;
            }
        }
    }

    fn begin(&mut self, now_ms: u64, world: &LocalWorld, hands: &mut Hands) {
        let held = self.doing == Doing::Holding;
        self.turn(world);
        match self.dice.below(10) {
            0 => {
                if let Some(goal) = self.far_goal(world) {
                    self.doing = Doing::Walking(goal);
                    self.until_ms = now_ms + 20_000;
                    hands.order(Order::WalkTo {
                        x: goal.x,
                        y: goal.y,
                    });
                    return hands.wake_at(now_ms + 1_000);
                }
                hands.wake_at(now_ms + 1_000);
            }
            1..3 => {
                if held {
                    hands.order(Order::Move { dir: None });
                }
                self.doing = Doing::Stepping(self.dice.between(3, 8));
                self.step(now_ms, hands);
            }
            _ => {
                self.doing = Doing::Holding;
                let dir = Some(self.heading);
                hands.order(Order::Move { dir });
                self.until_ms = now_ms + self.dice.between(800, 2_500);
                hands.wake_at(self.until_ms);
            }
        }
    }

    fn step(&mut self, now_ms: u64, hands: &mut Hands) {
        hands.order(Order::Step { dir: self.heading });
        hands.wake_at(now_ms + 250);
    }

    fn far_goal(&mut self, world: &LocalWorld) -> Option<Pos> {
        for _ in 0..8 {
            let heading = Dir::ALL[self.dice.below(8) as usize];
            let tiles = self.dice.between(GOAL_TILES.0, GOAL_TILES.1);
            let goal = walk(world.pos(), heading, tiles as i16);
            if let Some(goal) = goal.filter(|&goal| world.is_open(goal)) {
                return Some(goal);
            }
        }
        None
    }
}

impl Bot for Wander {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Event(event) if begins_life(event) => {
                self.doing = Doing::Nothing;
                hands.wake_at(now_ms + self.dice.between(50, 1_000));
            }
            Cause::Event(Event::Message(ServerMsg::StepRejected(_))) => {
                self.until_ms = now_ms;
                hands.wake_at(now_ms + 100);
            }
            Cause::Event(_) => {}
            Cause::Time if !world.me().is_some_and(|me| me.is_alive()) => {
                self.doing = Doing::Nothing;
                hands.wake_at(now_ms + 1_000);
            }
            Cause::Time => match self.doing {
                Doing::Stepping(left) if left > 1 => {
                    self.doing = Doing::Stepping(left - 1);
                    self.step(now_ms, hands);
                }
                Doing::Walking(goal) if world.pos() != goal && now_ms < self.until_ms => {
                    hands.wake_at(now_ms + 1_000);
                }
                _ => self.begin(now_ms, world, hands),
            },
        }
    }
}

/// The tile so many steps from `from`; none off the numbers.
pub(super) fn walk(from: Pos, heading: Dir, tiles: i16) -> Option<Pos> {
    let (dx, dy) = heading.offset();
    Some(Pos {
        x: from.x.checked_add_signed(dx * tiles)?,
        y: from.y.checked_add_signed(dy * tiles)?,
    })
}

#[cfg(test)]
mod tests {
    use uo_proto::Class;

    use super::*;
    use crate::bots::scene::{ME, Scene};

    fn orders(seed: u64, wakings: usize) -> Vec<Order> {
        let mut scene = Scene::new(Wander::new(seed), Class::Archer, Pos::new(100, 100));
        (0..wakings).flat_map(|_| scene.wake()).collect()
    }

    #[test]
    fn it_does_all_it_can_and_the_same_for_the_same_seed() {
        let orders_seen = orders(5, 300);
        let seen = |found: fn(&Order) -> bool| orders_seen.iter().any(found);
        assert!(seen(|order| matches!(order, Order::Move { dir: Some(_) })));
        assert!(seen(|order| matches!(order, Order::Step { .. })));
        assert!(seen(|order| matches!(order, Order::WalkTo { .. })));
        assert_eq!(orders_seen, orders(5, 300));
        assert_ne!(orders_seen, orders(6, 300));
    }

    #[test]
    fn it_lies_still_while_it_is_dead() {
        let mut scene = Scene::new(Wander::new(5), Class::Archer, Pos::new(100, 100));
        scene.change(ME, |me| me.hits = 0);
        assert_eq!(scene.wake(), []);
        assert_eq!(scene.wake(), []);
    }
}
