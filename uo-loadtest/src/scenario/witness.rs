//! What one bot lives through, and the bot that can be told to stand and be looked at.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use uo_proto::{CharId, Inventory, Order, ServerMsg, WorldStatus};
use uo_sdk::bot::{Bot, Cause, Hands, Observer};
use uo_sdk::client::Traffic;
use uo_sdk::{Event, LocalWorld, SendError, StopReason};

use crate::judge::Violation;
use crate::judge::oracle::Seen;
use crate::proof::Proof;

/// How long a bot may be out of the world that did not leave it.
const BACK_WITHIN_MS: u64 = 20_000;
/// How often a bot looks whether something is wished of it, while it has nothing else to do.
const IDLE_LOOK_MS: u64 = 1_000;
/// How long it waits to be told what it carries before it asks again.
const ASK_AGAIN_MS: u64 = 3_000;
/// How often it does while it stands.
const STILL_LOOK_MS: u64 = 50;

/// What is wished of all bots.
#[derive(Debug, Default)]
pub struct Wish {
    /// Stand, and order nothing more.
    pub still: AtomicBool,
    /// Grows: each number is answered by one copy of the view.
    pub look: AtomicU64,
}

/// What one bot lived through.
#[derive(Debug)]
pub struct Account {
    /// The character's name.
    pub name: String,
    /// Who it is, once it was let in.
    pub id: Option<CharId>,
    /// What it was promised.
    pub proof: Proof,
    /// The newest inventory that it was told of.
    pub inventory: Option<Inventory>,
    /// Whether it was told one since it stands.
    pub is_answered: bool,
    /// What it saw when it was asked last, and by which number.
    pub view: Option<(u64, Seen)>,
    /// What became of its session that should not have.
    pub lost: Vec<String>,
    is_in: bool,
    has_left: bool,
    away_since_ms: Option<u64>,
    is_told: bool,
}

impl Account {
    fn new(name: &str) -> Account {
        Account {
            name: name.into(),
            id: None,
            proof: Proof::new(name),
            inventory: None,
            is_answered: false,
            view: None,
            lost: Vec::new(),
            is_in: false,
            has_left: false,
            away_since_ms: None,
            is_told: false,
        }
    }

    /// The character, if it should be in a battle somewhere.
    pub fn expected(&self) -> Option<CharId> {
        self.id.filter(|_| !self.has_left && self.is_in)
    }

    /// Whether it has a connection, and did not leave.
    pub fn is_in(&self) -> bool {
        self.is_in && !self.has_left && self.away_since_ms.is_none()
    }

    /// Whether it is out for too long; told once each time.
    pub fn overdue(&mut self, now_ms: u64) -> Option<Violation> {
        let for_ms = now_ms.saturating_sub(self.away_since_ms?);
        if for_ms <= BACK_WITHIN_MS || std::mem::replace(&mut self.is_told, true) {
            return None;
        }
        Some(Violation::NotBack {
            name: self.name.clone(),
            for_ms,
        })
    }

    /// There is nobody to come back to: the time begins anew.
    pub fn excuse(&mut self, now_ms: u64) {
        if self.away_since_ms.is_some() {
            self.away_since_ms = Some(now_ms);
        }
    }

    fn event(&mut self, now_ms: u64, event: &Event, world: &LocalWorld) {
        // Its gateway may be lost, and its sim not: then it plays on while it is away.
        self.proof.event(now_ms, event, world, None);
        match event {
            Event::Welcomed { welcome, resumed } => {
                if self.is_in && !self.has_left && !resumed {
                    self.lost.push("a new session had to begin".into());
                }
                self.id = Some(welcome.char_id);
                (self.is_in, self.has_left) = (true, false);
                self.back();
            }
            Event::Disconnected { .. } if self.is_in && !self.has_left => self.away(now_ms),
            Event::Message(ServerMsg::ServerStatus(status)) => match status.world {
                WorldStatus::Moving => self.away(now_ms),
                WorldStatus::Ok | WorldStatus::Frozen => self.back(),
            },
            Event::Message(ServerMsg::Inventory(told)) => {
                self.inventory = Some(told.inventory.clone());
                self.is_answered = true;
            }
            Event::Stopped(reason) => {
                self.has_left = true;
                self.back();
                if *reason != StopReason::LoggedOut {
                    self.lost.push(reason.to_string());
                }
            }
            _ => {}
        }
    }

    fn away(&mut self, now_ms: u64) {
        self.away_since_ms.get_or_insert(now_ms);
    }

    fn back(&mut self) {
        self.away_since_ms = None;
        self.is_told = false;
    }
}

/// An account that its bot writes and the scenario reads.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Mutex<Account>>);

impl Shared {
    /// The account of a character that is not in yet.
    pub fn new(name: &str) -> Shared {
        Shared(Arc::new(Mutex::new(Account::new(name))))
    }

    /// The account itself.
    pub fn lock(&self) -> MutexGuard<'_, Account> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes an account, and lets another observer watch as well.
pub struct Witness<O> {
    /// Where it is written.
    pub account: Shared,
    /// The beginning of the run.
    pub began: Instant,
    /// The other one.
    pub other: O,
}

impl<O: Observer> Observer for Witness<O> {
    fn sent(&mut self, seq: u64, order: &Order) {
        self.account.lock().proof.sent(seq);
        self.other.sent(seq, order);
    }

    fn event(&mut self, event: &Event, world: &LocalWorld) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        self.account.lock().event(now_ms, event, world);
        self.other.event(event, world);
    }

    fn traffic(&mut self, more: Traffic) {
        self.other.traffic(more);
    }

    fn refused(&mut self, error: SendError) {
        self.other.refused(error);
    }
}

/// Plays like the bot inside until it is told to stand.
pub struct Guided<B> {
    bot: B,
    wish: Arc<Wish>,
    account: Shared,
    /// When the bot inside wants to be woken.
    wake_ms: Option<u64>,
    is_still: bool,
    asked_ms: u64,
    looked: u64,
}

impl<B: Bot> Guided<B> {
    /// Lets `bot` play.
    pub fn new(bot: B, wish: Arc<Wish>, account: Shared) -> Guided<B> {
        Guided {
            bot,
            wish,
            account,
            wake_ms: None,
            is_still: false,
            asked_ms: 0,
            looked: 0,
        }
    }

    fn stand(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        let is_let_in = matches!(cause, Cause::Event(Event::Welcomed { .. }));
        if !std::mem::replace(&mut self.is_still, true) || is_let_in {
            self.account.lock().is_answered = false;
            self.asked_ms = now_ms;
            hands.order(Order::Stop);
            hands.order(Order::Inventory);
        } else if now_ms >= self.asked_ms + ASK_AGAIN_MS && !self.account.lock().is_answered {
            // Its client may have had too many orders under way to take these.
            self.asked_ms = now_ms;
            hands.order(Order::Inventory);
        }
        let look = self.wish.look.load(Relaxed);
        if look > self.looked {
            self.looked = look;
            let mut account = self.account.lock();
            let seen = world.my_id().map(|me| Seen {
                name: account.name.clone(),
                me,
                entities: states(world),
                objects: changed_objects(world),
            });
            account.view = seen.map(|seen| (look, seen));
        }
        hands.set_wake(Some(now_ms + STILL_LOOK_MS));
    }
}

impl<B: Bot> Bot for Guided<B> {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        if self.wish.still.load(Relaxed) {
            return self.stand(now_ms, world, cause, hands);
        }
        if let Cause::Event(Event::Welcomed { .. }) = cause {
            hands.order(Order::Inventory);
        }
        let is_due = match cause {
            Cause::Time => self.wake_ms.is_some_and(|at_ms| at_ms <= now_ms),
            Cause::Event(_) => true,
        };
        if is_due {
            let is_time = matches!(cause, Cause::Time);
            hands.set_wake(self.wake_ms.filter(|_| !is_time));
            self.bot.act(now_ms, world, cause, hands);
            self.wake_ms = hands.wake_ms();
        }
        let look_ms = now_ms + IDLE_LOOK_MS;
        let wake_ms = self.wake_ms.map_or(look_ms, |at_ms| at_ms.min(look_ms));
        hands.set_wake(Some(wake_ms));
    }
}

fn states(world: &LocalWorld) -> BTreeMap<uo_proto::EntityId, uo_proto::EntityState> {
    let states = world.entities().map(|entity| entity.state);
    states.map(|state| (state.id, state)).collect()
}

/// Objects that it was told of, and that are not as the world began with them.
fn changed_objects(world: &LocalWorld) -> BTreeMap<uo_proto::ObjectKey, uo_proto::ObjectState> {
    let generated = |key| world.content().and_then(|content| content.object(key));
    let is_changed = |object: &&uo_proto::ObjectState| generated(object.key) != Some(**object);
    let changed = world.objects_told().filter(is_changed);
    changed.map(|object| (object.key, *object)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts how often it is woken, and asks to be in 5 s.
    #[derive(Default)]
    struct Sleeper(u32);

    impl Bot for Sleeper {
        fn act(&mut self, now_ms: u64, _: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
            if matches!(cause, Cause::Time) {
                self.0 += 1;
                hands.wake_at(now_ms + 5_000);
            }
        }
    }

    #[test]
    fn the_bot_inside_is_woken_when_it_wants_and_no_more_once_it_stands() {
        let wish = Arc::new(Wish::default());
        let account = Shared::new("bot");
        let mut bot = Guided::new(Sleeper::default(), wish.clone(), account);
        let (world, mut hands) = (LocalWorld::default(), Hands::default());
        let stopped = Event::Disconnected {
            code: None,
            retry_ms: 0,
        };
        bot.wake_ms = Some(10);
        for now_ms in 0..=5_010 {
            let due = hands.wake_ms().is_none_or(|at_ms| at_ms <= now_ms);
            if due {
                hands.set_wake(None);
                bot.act(now_ms, &world, Cause::Time, &mut hands);
            }
            // An event between does not move its moment.
            if now_ms % 700 == 0 {
                bot.act(now_ms, &world, Cause::Event(&stopped), &mut hands);
            }
        }
        assert_eq!(bot.bot.0, 2);
        assert!(hands.take_orders().is_empty());
        wish.still.store(true, Relaxed);
        bot.act(6_000, &world, Cause::Time, &mut hands);
        bot.act(11_000, &world, Cause::Time, &mut hands);
        assert_eq!(bot.bot.0, 2);
        let asked = [Order::Stop, Order::Inventory, Order::Inventory];
        assert_eq!(hands.take_orders(), asked);
    }

    #[test]
    fn whoever_does_not_come_back_is_told_once() {
        let mut account = Account::new("bot");
        account.is_in = true;
        let world = LocalWorld::default();
        let gone = Event::Disconnected {
            code: None,
            retry_ms: 0,
        };
        account.event(100, &gone, &world);
        account.event(9_000, &gone, &world);
        assert_eq!(account.overdue(100 + BACK_WITHIN_MS), None);
        assert!(account.overdue(101 + BACK_WITHIN_MS).is_some());
        assert_eq!(account.overdue(102 + BACK_WITHIN_MS), None);
        account.event(150_000, &gone, &world);
        account.excuse(200_000);
        assert_eq!(account.overdue(200_000), None);
        account.event(200_000, &Event::Stopped(StopReason::Superseded), &world);
        assert_eq!(account.lost, ["the character was opened elsewhere"]);
    }
}
