//! Bots that live through whatever happens to their server, and remember what they saw and were promised.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{bail, ensure};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use uo_proto::{EntityId, ObjectKey, Order, ServerMsg, WorldStatus};
use uo_sdk::bot::{Bot, Cause, Hands, Observer, Runner};
use uo_sdk::bots::BotKind;
use uo_sdk::{Event, LocalWorld, Options};

use crate::proof::{Proof, doubled};

/// How old a place may be after a crash: one interval of checkpoints, and the time to write one.
const PLACE_KEPT_MS: u64 = 17_000;
/// How often it is looked whether all are in.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What one bot saw.
#[derive(Debug)]
pub struct Seen {
    /// The character's name.
    pub name: String,
    /// What it was promised.
    pub proof: Proof,
    /// How its part of the world is, as it was told last.
    pub world: WorldStatus,
    /// How often it was told so.
    pub frozen: u32,
    /// Connections that were lost.
    pub losses: u32,
    /// Promises of the protocol that were broken.
    pub errors: Vec<String>,
    /// When the last update of the world arrived, since the bot began.
    pub updated_ms: u64,
    /// The longest time between two.
    pub gap_ms: u64,
}

/// All bots. Dropped, they leave.
pub struct Crowd {
    bots: Vec<Arc<Mutex<Seen>>>,
    returned: Arc<AtomicUsize>,
    ended: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Crowd {
    /// Sends `bots` fighters to a gateway. Their names begin with `prefix`.
    pub fn enter(gateway: &str, prefix: &str, bots: usize, seed: u64) -> Crowd {
        let mut crowd = Crowd {
            bots: Vec::new(),
            returned: Arc::default(),
            ended: Arc::default(),
            _tasks: JoinSet::new(),
        };
        for index in 0..bots {
            crowd.add(
                gateway,
                format!("{prefix}-{seed}-{index}"),
                seed.wrapping_add(index as u64),
            );
        }
        crowd
    }

    fn add(&mut self, gateway: &str, name: String, seed: u64) {
        let seen = Arc::new(Mutex::new(Seen::new(&name)));
        let watch = Watch {
            seen: seen.clone(),
            returned: self.returned.clone(),
            began: Instant::now(),
        };
        let bot = Asking(BotKind::Combat.make(seed));
        let runner = Runner::new(Options::new(gateway, name.clone()), bot).observed(watch);
        let ended = self.ended.clone();
        self._tasks.spawn(async move {
            let why = match runner.run().await {
                Ok(reason) => format!("{name}: {reason}"),
                Err(error) => format!("{name}: {error}"),
            };
            locked(&ended).push(why);
        });
        self.bots.push(seen);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bots.len()
    }

    /// What each saw.
    pub fn seen(&self) -> impl Iterator<Item = MutexGuard<'_, Seen>> {
        self.bots.iter().map(|seen| locked(seen))
    }

    /// Waits until every bot is in, since the last [`Crowd::expect_everybody`].
    pub async fn all_in(&self, within: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(why) = locked(&self.ended).first() {
                bail!("a bot's session ended: {why}");
            }
            let returned = self.returned.load(Ordering::Relaxed);
            if returned >= self.len() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < within,
                "only {returned} of {} bots are in",
                self.len()
            );
            sleep(LOOK_EVERY).await;
        }
    }

    /// Counts who comes in from the beginning.
    pub fn expect_everybody(&self) {
        self.returned.store(0, Ordering::Relaxed);
    }

    /// Sessions that ended for good, with the reason.
    pub fn ended(&self) -> Vec<String> {
        locked(&self.ended).clone()
    }

    /// Objects whose breaking was promised to be saved.
    pub fn broken(&self) -> BTreeSet<ObjectKey> {
        self.seen()
            .flat_map(|seen| seen.proof.broken.clone())
            .collect()
    }

    /// Promises received.
    pub fn promises(&self) -> u64 {
        self.seen().map(|seen| seen.proof.promises).sum()
    }

    /// Promises that were not kept.
    pub fn failures(&self) -> Vec<String> {
        let guards: Vec<_> = self.seen().collect();
        let mut failures: Vec<String> = guards
            .iter()
            .flat_map(|seen| {
                seen.proof
                    .failures
                    .iter()
                    .map(|failure| failure.text.clone())
            })
            .collect();
        let each = guards
            .iter()
            .enumerate()
            .map(|(index, seen)| (EntityId(index as u64), seen.proof.coins()));
        failures.extend(doubled(each).into_iter().map(|failure| failure.text));
        failures
    }
}

impl Seen {
    fn new(name: &str) -> Seen {
        Seen {
            name: name.into(),
            proof: Proof::new(name),
            world: WorldStatus::Ok,
            frozen: 0,
            losses: 0,
            errors: Vec::new(),
            updated_ms: 0,
            gap_ms: 0,
        }
    }

    fn event(&mut self, now_ms: u64, event: &Event) {
        match event {
            Event::Message(ServerMsg::ServerStatus(status)) => {
                if status.world == WorldStatus::Frozen && self.world != WorldStatus::Frozen {
                    self.frozen += 1;
                }
                self.world = status.world;
            }
            Event::Message(ServerMsg::Delta(_)) => {
                if self.updated_ms > 0 {
                    self.gap_ms = self.gap_ms.max(now_ms - self.updated_ms);
                }
                self.updated_ms = now_ms;
            }
            Event::Disconnected { .. } => self.losses += 1,
            Event::Violation(violation) => self.errors.push(violation.to_string()),
            Event::Message(_) | Event::Welcomed { .. } | Event::Stopped(_) => {}
        }
    }
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("nothing panics while it is held")
}

/// Tells what a character lives through.
struct Watch {
    seen: Arc<Mutex<Seen>>,
    returned: Arc<AtomicUsize>,
    began: Instant,
}

impl Observer for Watch {
    fn sent(&mut self, seq: u64, _order: &Order) {
        locked(&self.seen).proof.sent(seq);
    }

    fn event(&mut self, event: &Event, world: &LocalWorld) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        let mut seen = locked(&self.seen);
        seen.proof.event(now_ms, event, world, Some(PLACE_KEPT_MS));
        seen.event(now_ms, event);
        if matches!(event, Event::Welcomed { .. }) {
            self.returned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Plays like the bot inside, and asks for the inventory whenever it is let in.
struct Asking<B>(B);

impl<B: Bot> Bot for Asking<B> {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        if let Cause::Event(Event::Welcomed { .. }) = cause {
            hands.order(Order::Inventory);
        }
        self.0.act(now_ms, world, cause, hands);
    }
}
