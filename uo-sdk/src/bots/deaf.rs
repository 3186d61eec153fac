//! Wanders, but stops reading for a while: what a client does whose line is stuck. When it reads again it counts how
//! much it must wade through before it is told the present.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::mpsc::Sender;

use uo_proto::{ServerMsg, TICK_MS};

use super::Wander;
use crate::LocalWorld;
use crate::bot::{Bot, Cause, Hands};
use crate::event::Event;

/// `SO_RCVBUF` of a deaf client: the system raises it to the least it allows (about 2 KiB on Linux). What fits in there is
/// with the client already, read or not, so that no server can take it back.
pub const RECEIVE_BUFFER_BYTES: u32 = 1;
/// A delta this many ticks old still tells the present: it may have been on its way when reading began.
const PRESENT_TICKS: u64 = 4;

/// When to stop reading, and when to read again.
#[derive(Clone, Debug)]
pub struct Plan {
    /// From the first welcome until it stops reading, in milliseconds.
    pub after_ms: u64,
    /// How long it does not read, in milliseconds; none is for ever.
    pub for_ms: Option<u64>,
    /// Where to send what was seen when reading began again.
    pub report: Option<Sender<Awakening>>,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            after_ms: 10_000,
            for_ms: None,
            report: None,
        }
    }
}

/// What a client got when it read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Awakening {
    /// How long it did not read, in milliseconds.
    pub deaf_ms: u64,
    /// Deltas of the past that came before the first one of the present.
    pub stale_deltas: u64,
    /// Other messages that came before it.
    pub stale_others: u64,
    /// From reading again to the first delta of the present, in milliseconds.
    pub caught_up_ms: u64,
}

#[derive(Clone, Copy, Debug)]
enum Ears {
    /// Before the first welcome.
    New,
    /// Reading; deaf from then on.
    OpenUntil { at_ms: u64 },
    /// Not reading since; reads again then.
    Closed {
        since_ms: u64,
        until_ms: Option<u64>,
    },
    /// Reading again, and not yet told the present.
    Catching(Catching),
    /// It has been through it all.
    Healed,
}

#[derive(Clone, Copy, Debug)]
struct Catching {
    since_ms: u64,
    deaf_ms: u64,
    deltas: u64,
    others: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Deaf {
    wander: Wander,
    plan: Plan,
    ears: Ears,
    /// The newest delta's tick and its arrival: what tick it must be now follows from them.
    heard: (u64, u64),
}

impl Deaf {
    /// A wanderer that is deaf as planned.
    pub fn new(seed: u64, plan: Plan) -> Deaf {
        Deaf {
            wander: Wander::new(seed),
            plan,
            ears: Ears::New,
            heard: (0, 0),
        }
    }

    /// Opens and closes the ears when it is time.
    fn listen(&mut self, now_ms: u64, cause: Cause<'_>, hands: &mut Hands) {
        match self.ears {
            Ears::New if matches!(cause, Cause::Event(Event::Welcomed { .. })) => {
                self.ears = Ears::OpenUntil {
                    at_ms: now_ms + self.plan.after_ms,
                };
            }
            Ears::OpenUntil { at_ms } if now_ms >= at_ms => {
                hands.listen(false);
                self.ears = Ears::Closed {
                    since_ms: now_ms,
                    until_ms: self.plan.for_ms.map(|for_ms| now_ms + for_ms),
                };
            }
            Ears::Closed {
                since_ms,
                until_ms: Some(until_ms),
            } if now_ms >= until_ms => {
                hands.listen(true);
                self.ears = Ears::Catching(Catching {
                    since_ms: now_ms,
                    deaf_ms: now_ms - since_ms,
                    deltas: 0,
                    others: 0,
                });
            }
            _ => {}
        }
    }

    /// When the ears open or close next.
    fn due_ms(&self) -> Option<u64> {
        match self.ears {
            Ears::OpenUntil { at_ms } => Some(at_ms),
            Ears::Closed { until_ms, .. } => until_ms,
            _ => None,
        }
    }

    /// Counts what comes after the ears opened.
    fn hear(&mut self, now_ms: u64, message: &ServerMsg) {
        let ServerMsg::Delta(delta) = message else {
            if let Ears::Catching(catching) = &mut self.ears {
                catching.others += 1;
            }
            return;
        };
        let Ears::Catching(catching) = &mut self.ears else {
            self.heard = (delta.tick, now_ms);
            return;
        };
        let (tick, at_ms) = self.heard;
        let present = tick + (catching.since_ms - at_ms) / TICK_MS;
        if delta.tick + PRESENT_TICKS < present {
            catching.deltas += 1;
            return;
        }
        let awakening = Awakening {
            deaf_ms: catching.deaf_ms,
            stale_deltas: catching.deltas,
            stale_others: catching.others,
            caught_up_ms: now_ms - catching.since_ms,
        };
        self.ears = Ears::Healed;
        if let Some(report) = self.plan.report.take() {
            // Whoever asked may be gone.
            report.send(awakening).ok();
        }
    }
}

impl Bot for Deaf {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        self.listen(now_ms, cause, hands);
        if let Cause::Event(Event::Message(message)) = cause {
            self.hear(now_ms, message);
        }
        self.wander.act(now_ms, world, cause, hands);
        // The wanderer does not mind being woken early.
        if let Some(due_ms) = self.due_ms()
            && hands.wake_ms().is_none_or(|wake_ms| wake_ms > due_ms)
        {
            hands.wake_at(due_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use uo_proto::{Class, Delta, Pos};

    use super::*;
    use crate::bots::scene::Scene;

    fn delta(tick: u64) -> ServerMsg {
        ServerMsg::Delta(Delta {
            tick,
            ..Delta::default()
        })
    }

    #[test]
    fn it_counts_what_comes_before_the_present() {
        let (sender, reports) = mpsc::channel();
        let plan = Plan {
            after_ms: 1_000,
            for_ms: Some(2_000),
            report: Some(sender),
        };
        let mut scene = Scene::new(Deaf::new(1, plan), Class::Mage, Pos::new(100, 100));
        scene.now_ms = 950;
        scene.tell(delta(100));
        while scene.now_ms < 3_000 {
            scene.wake();
        }
        assert_eq!(scene.now_ms, 3_000, "it reads again to the millisecond");
        // Read again after two seconds: the past, the past, and the present.
        let read_ms = scene.now_ms;
        scene.tell(delta(101));
        scene.tell(delta(102));
        scene.now_ms += 10;
        scene.tell(delta(100 + (read_ms - 950) / TICK_MS));
        scene.tell(delta(200));
        let awakening = reports.try_recv().unwrap();
        assert_eq!((awakening.stale_deltas, awakening.caught_up_ms), (2, 10));
        assert_eq!(awakening.deaf_ms, 2_000);
        assert!(reports.try_recv().is_err());
    }
}
