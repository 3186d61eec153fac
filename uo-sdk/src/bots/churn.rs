//! Comes and goes: wanders for a few seconds, logs out in order, and logs in again a little later.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use super::wander::Wander;
use crate::bot::{Bot, Cause, Hands};
use crate::event::Event;
use crate::{Dice, LocalWorld};

/// How long it stays in the world, in milliseconds.
const STAY_MS: (u64, u64) = (2_000, 10_000);
/// How long it stays away, in milliseconds.
const AWAY_MS: (u64, u64) = (500, 3_000);

/// See the module.
#[derive(Clone, Debug)]
pub struct Churn {
    dice: Dice,
    wander: Wander,
    /// When the wanderer inside wants to be woken.
    wander_ms: Option<u64>,
    /// When it leaves; none while it is on its way out or in.
    leave_ms: Option<u64>,
}

impl Churn {
    /// One that comes and goes as `seed` says.
    pub fn new(seed: u64) -> Churn {
        Churn {
            dice: Dice::new(seed),
            wander: Wander::new(seed),
            wander_ms: None,
            leave_ms: None,
        }
    }

    fn between(&mut self, (from_ms, to_ms): (u64, u64)) -> u64 {
        self.dice.between(from_ms, to_ms)
    }

    /// Lets the wanderer decide, and remembers when it wants to be woken.
    fn wander(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        match cause {
            Cause::Time if self.wander_ms.is_none_or(|at_ms| at_ms > now_ms) => return,
            Cause::Time => self.wander_ms = None,
            Cause::Event(_) => {}
        }
        let mut inner = Hands::default();
        self.wander.act(now_ms, world, cause, &mut inner);
        self.wander_ms = inner.wake_ms().or(self.wander_ms);
        for order in inner.take_orders() {
            hands.order(order);
        }
    }
}

impl Bot for Churn {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        if let Cause::Event(Event::Welcomed { resumed: false, .. }) = cause {
            self.leave_ms = Some(now_ms + self.between(STAY_MS));
        }
        let Some(leave_ms) = self.leave_ms else {
            return;
        };
        if now_ms >= leave_ms {
            self.leave_ms = None;
            self.wander_ms = None;
            return hands.leave_until(now_ms + self.between(AWAY_MS));
        }
        self.wander(now_ms, world, cause, hands);
        hands.wake_at(self.wander_ms.map_or(leave_ms, |at_ms| at_ms.min(leave_ms)));
    }
}

#[cfg(test)]
mod tests {
    use uo_proto::{Class, Order, Pos};

    use super::*;
    use crate::bots::scene::{Scene, welcome};

    #[test]
    fn it_wanders_and_leaves_in_time() {
        for seed in 0..20 {
            let mut scene = Scene::new(Churn::new(seed), Class::Archer, Pos::new(100, 100));
            let mut orders = Vec::new();
            while !orders.contains(&Order::Logout) {
                orders.extend(scene.wake());
            }
            assert!(orders.len() > 1, "it did something before");
            assert!((STAY_MS.0..=STAY_MS.1).contains(&scene.now_ms));
            // Nothing more until it is in again.
            scene.tell(uo_proto::ServerMsg::Delta(uo_proto::Delta {
                tick: 9,
                ..Default::default()
            }));
            assert_eq!(scene.hands.take_orders(), []);
        }
    }

    #[test]
    fn it_leaves_again_after_each_login() {
        let mut scene = Scene::new(Churn::new(5), Class::Archer, Pos::new(100, 100));
        for _ in 0..3 {
            while !scene.wake().contains(&Order::Logout) {}
            scene.event(Event::Welcomed {
                welcome: Box::new(welcome(Pos::new(100, 100))),
                resumed: false,
            });
        }
    }
}
