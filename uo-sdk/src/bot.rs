//! What decides for a character, and the runner that lets it play.
//!
//! A bot is pure: it sees the time, the local world and what woke it, and says what to do through its [`Hands`]. The
//! same seed and the same world give the same play.

use std::time::Duration;

use uo_proto::{Order, ServerMsg};

use crate::client::{LoginError, Traffic};
use crate::event::{Event, SendError, StopReason};
use crate::{Client, LocalWorld, Options};

/// Most orders a bot has in its hands at once; more are dropped, as a gateway's burst limit would.
const ORDERS_MAX: usize = 16;

/// Why a bot is asked.
#[derive(Clone, Copy, Debug)]
pub enum Cause<'a> {
    /// The time it asked to be woken at has come.
    Time,
    /// Something happened; the world has taken it already.
    Event(&'a Event),
}

/// What a bot wants.
#[derive(Debug, Default)]
pub struct Hands {
    orders: Vec<Order>,
    wake_ms: Option<u64>,
    listen: Option<bool>,
    relogin_ms: Option<u64>,
}

impl Hands {
    /// Gives an order.
    pub fn order(&mut self, order: Order) {
        if self.orders.len() < ORDERS_MAX {
            self.orders.push(order);
        }
    }

    /// Asks to be woken at this time with [`Cause::Time`]. The newest call counts; each is good for one waking.
    pub fn wake_at(&mut self, at_ms: u64) {
        self.wake_ms = Some(at_ms);
    }

    /// Stops or begins again to read from the socket.
    pub fn listen(&mut self, listening: bool) {
        self.listen = Some(listening);
    }

    /// Leaves the world, and logs in again as a new session at this time.
    pub fn leave_until(&mut self, at_ms: u64) {
        self.relogin_ms = Some(at_ms);
        self.order(Order::Logout);
    }

    /// Replaces the moment that was asked for, or asks for none: for a bot that lets another play through its hands.
    pub fn set_wake(&mut self, at_ms: Option<u64>) {
        self.wake_ms = at_ms;
    }

    /// What was ordered, emptied: for those who drive a bot without a [`Runner`].
    pub fn take_orders(&mut self) -> Vec<Order> {
        std::mem::take(&mut self.orders)
    }

    /// When the bot wants to be woken.
    pub fn wake_ms(&self) -> Option<u64> {
        self.wake_ms
    }
}

/// Decides for one character.
pub trait Bot: Send {
    /// Decides. Called at the first welcome, for every event, and at the times asked for. `now_ms` counts from the start
    /// of the runner.
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands);
}

impl Bot for Box<dyn Bot> {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        self.as_mut().act(now_ms, world, cause, hands);
    }
}

/// Watches a runner: measurements hang here. Each method does nothing unless written.
pub trait Observer: Send {
    /// An order was handed to the client under this number.
    fn sent(&mut self, _seq: u64, _order: &Order) {}
    /// An event arrived and the world took it.
    fn event(&mut self, _event: &Event, _world: &LocalWorld) {}
    /// This much went over the wire since the last call.
    fn traffic(&mut self, _more: Traffic) {}
    /// A bot's order was refused by its own client.
    fn refused(&mut self, _error: SendError) {}
}

impl Observer for () {}

/// Lets a bot play one character, over losses, resumes and logins.
pub struct Runner<B, O = ()> {
    options: Options,
    bot: B,
    observer: O,
}

impl<B: Bot> Runner<B> {
    /// A runner that nobody watches.
    pub fn new(options: Options, bot: B) -> Runner<B> {
        Runner {
            options,
            bot,
            observer: (),
        }
    }
}

impl<B: Bot, O: Observer> Runner<B, O> {
    /// The same runner, watched.
    pub fn observed<P: Observer>(self, observer: P) -> Runner<B, P> {
        Runner {
            options: self.options,
            bot: self.bot,
            observer,
        }
    }

    /// Plays until the session ends for good. Dropping the future ends it as a lost line does.
    pub async fn run(mut self) -> Result<StopReason, LoginError> {
        let mut play = Play {
            client: Client::start(self.options.clone())?,
            hands: Hands::default(),
            seen: Traffic::default(),
            began: tokio::time::Instant::now(),
        };
        loop {
            let stopped = play.session(&mut self.bot, &mut self.observer).await;
            let again_ms = play.hands.relogin_ms.take();
            let (StopReason::LoggedOut, Some(again_ms)) = (stopped, again_ms) else {
                return Ok(stopped);
            };
            tokio::time::sleep_until(play.began + Duration::from_millis(again_ms)).await;
            play.client = Client::start(self.options.clone())?;
            play.seen = Traffic::default();
        }
    }
}

/// One character at play.
struct Play {
    client: Client,
    hands: Hands,
    seen: Traffic,
    began: tokio::time::Instant,
}

impl Play {
    /// Plays one session to its end.
    async fn session<B: Bot, O: Observer>(&mut self, bot: &mut B, watch: &mut O) -> StopReason {
        loop {
            let event = match self.hands.wake_ms {
                None => Some(self.client.next().await),
                Some(at_ms) => {
                    let due = self.began + Duration::from_millis(at_ms);
                    tokio::time::timeout_at(due, self.client.next()).await.ok()
                }
            };
            if let Some(event) = &event {
                self.measure(event, watch);
            } else {
                self.hands.wake_ms = None;
            }
            if let Some(Event::Stopped(reason)) = event {
                return reason;
            }
            let cause = event.as_ref().map_or(Cause::Time, Cause::Event);
            let now_ms = self.began.elapsed().as_millis() as u64;
            bot.act(now_ms, self.client.world(), cause, &mut self.hands);
            self.follow(watch);
        }
    }

    fn measure<O: Observer>(&mut self, event: &Event, watch: &mut O) {
        watch.event(event, self.client.world());
        let total = self.client.traffic();
        watch.traffic(Traffic {
            bytes_received: total.bytes_received - self.seen.bytes_received,
            frames_received: total.frames_received - self.seen.frames_received,
        });
        self.seen = total;
    }

    /// Does what the bot's hands hold.
    fn follow<O: Observer>(&mut self, watch: &mut O) {
        for order in self.hands.orders.drain(..) {
            match self.client.send(order.clone()) {
                Ok(seq) => watch.sent(seq, &order),
                Err(error) => watch.refused(error),
            }
        }
        if let Some(listening) = self.hands.listen.take() {
            self.client.set_listening(listening);
        }
    }
}

/// Whether an event says that the own character is in the world and may act: after a welcome or a respawn.
pub fn begins_life(event: &Event) -> bool {
    matches!(
        event,
        Event::Welcomed { .. } | Event::Message(ServerMsg::Respawned(_))
    )
}
