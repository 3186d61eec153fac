//! The rules of being a client: log in, resume, number orders, check the reliable streams, come back after a loss.
//!
//! A pure state machine. The shell tells it what happened ([`Input`], with the time) and does what it says ([`Action`]);
//! [`Event`]s are for whoever plays. Times are milliseconds on any clock that does not go back.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::{
    ClientMsg, ErrorCode, Goodbye, Login, Order, PROTOCOL_VERSION, Ping, Resume, ServerMsg,
    Welcome, close,
};

use crate::backoff::{Backoff, Retry};
use crate::event::{Event, SendError, StopReason, Violation};
use crate::gateways::Gateways;
use crate::outbox::Outbox;
use crate::streams::{Stream, Verdict};
use crate::{Dice, Options};

/// A connection that is not open within this time is given up.
const CONNECT_MS_MAX: u64 = 5_000;
/// The same where another gateway could be tried instead.
const CONNECT_ELSEWHERE_MS_MAX: u64 = 1_500;
/// A greeting that is not answered within this time is given up. The answer may wait for a region that moves.
const WELCOME_MS_MAX: u64 = 30_000;
/// A connection on which nothing was heard for this long is given up; pings make a living one heard from sooner.
const SILENCE_MS_MAX: u64 = 30_000;
/// A connection that lasted this long was a success: the next loss is met with the shortest wait again.
const STABLE_MS: u64 = 5_000;
/// A logout whose connection is not closed within this time is done anyhow.
const LOGOUT_MS_MAX: u64 = 2_000;

/// What happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Input {
    /// The connection asked for is open.
    Opened,
    /// The connection asked for could not be made. `retry_after_ms` is what the server asked for, if it answered.
    Failed {
        /// From a `Retry-After` header.
        retry_after_ms: Option<u64>,
    },
    /// A message arrived.
    Message(ServerMsg),
    /// A frame arrived that is no message.
    Undecodable(String),
    /// The connection is gone; the code is the one the server gave, if it gave one.
    Closed {
        /// One of [`uo_proto::close`].
        code: Option<u16>,
    },
    /// Time passed: see [`Session::deadline_ms`].
    Time,
}

/// What the shell is to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// Open a connection to this gateway; answer with [`Input::Opened`] or [`Input::Failed`].
    Connect {
        /// `ws://host:port`.
        gateway: String,
    },
    /// Send this on the open connection.
    Send(ClientMsg),
    /// Forget the connection, or the attempt to make one. No [`Input::Closed`] follows.
    Abandon,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No connection until then.
    Waiting { until_ms: u64 },
    /// The shell is opening one.
    Connecting { until_ms: u64 },
    /// `login` or `resume` is sent.
    Greeting { until_ms: u64 },
    /// After `welcome`.
    Playing { since_ms: u64 },
    /// `logout` is sent.
    Leaving { until_ms: u64 },
    /// Nothing more happens.
    Stopped,
}

/// One client's session, over all its connections.
#[derive(Clone, Debug)]
pub struct Session {
    name: String,
    password: Option<String>,
    ping_interval_ms: u64,
    phase: Phase,
    gateways: Gateways,
    backoff: Backoff,
    dice: Dice,
    /// From the newest `welcome`; none before the first and after a refused resume.
    token: Option<String>,
    /// Whether a session ever began: until then orders are refused rather than kept.
    began: bool,
    outbox: Outbox,
    public: Stream,
    private: Stream,
    /// The server's last word on this connection, if it said one.
    goodbye: Option<Goodbye>,
    version_refused: bool,
    heard_ms: u64,
    pinged_ms: u64,
    nonce: u64,
    listening: bool,
    actions: VecDeque<Action>,
    events: VecDeque<Event>,
}

impl Session {
    /// A session that begins to connect at its first [`Input::Time`].
    pub fn new(options: &Options) -> Session {
        Session {
            name: options.name.clone(),
            password: options.password.clone(),
            ping_interval_ms: options.ping_interval_ms,
            phase: Phase::Waiting { until_ms: 0 },
            gateways: Gateways::new(options.gateways.clone()),
            backoff: Backoff::default(),
            dice: Dice::new(options.seed),
            token: None,
            began: false,
            outbox: Outbox::default(),
            public: Stream::default(),
            private: Stream::default(),
            goodbye: None,
            version_refused: false,
            heard_ms: 0,
            pinged_ms: 0,
            nonce: 0,
            listening: true,
            actions: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// What to do next, in order.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// What to tell the player next, in order.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When [`Input::Time`] is due; none when nothing waits for time.
    pub fn deadline_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Waiting { until_ms }
            | Phase::Connecting { until_ms }
            | Phase::Greeting { until_ms }
            | Phase::Leaving { until_ms } => Some(until_ms),
            Phase::Playing { .. } => self.silence_ms().into_iter().chain(self.ping_ms()).min(),
            Phase::Stopped => None,
        }
    }

    /// Numbers an order and sends it, or keeps it for the next connection. Returns its number.
    pub fn send(&mut self, order: Order, now_ms: u64) -> Result<u64, SendError> {
        match self.phase {
            Phase::Stopped | Phase::Leaving { .. } => return Err(SendError::Stopped),
            _ if !self.began => return Err(SendError::NotLoggedIn),
            _ => {}
        }
        let leaves = order == Order::Logout;
        let order = self.outbox.push(order).ok_or(SendError::Full)?;
        let seq = order.seq;
        if let Phase::Playing { .. } = self.phase {
            let message = ClientMsg::Order(order.clone());
            self.actions.push_back(Action::Send(message));
            if leaves {
                self.phase = Phase::Leaving {
                    until_ms: now_ms + LOGOUT_MS_MAX,
                };
            }
        } else if leaves {
            self.actions.push_back(Action::Abandon);
            self.stop(StopReason::LoggedOut);
        }
        Ok(seq)
    }

    /// Whether the player reads. One that does not cannot tell silence from its own deafness.
    pub fn set_listening(&mut self, listening: bool, now_ms: u64) {
        self.listening = listening;
        self.heard_ms = self.heard_ms.max(now_ms);
    }

    /// Whether the character is in the world and its connection stands.
    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Whether no further attempt will be made.
    pub fn is_stopped(&self) -> bool {
        self.phase == Phase::Stopped
    }

    /// Orders that the server has not taken yet.
    pub fn orders_waiting(&self) -> usize {
        self.outbox.len()
    }

    /// Something happened.
    pub fn handle(&mut self, input: Input, now_ms: u64) {
        if self.is_stopped() {
            return;
        }
        match input {
            Input::Opened => self.on_opened(now_ms),
            Input::Failed {
                retry_after_ms: Some(asked_ms),
            } => {
                self.gateways.advance();
                self.lose(None, Retry::Broken, asked_ms, now_ms);
            }
            Input::Failed {
                retry_after_ms: None,
            } => self.pass_over(None, now_ms),
            Input::Message(message) => {
                self.heard_ms = now_ms;
                self.on_message(message, now_ms);
            }
            Input::Undecodable(why) => {
                self.heard_ms = now_ms;
                self.violation(Violation::Undecodable(why));
            }
            Input::Closed { code } => self.on_closed(code, now_ms),
            Input::Time => self.on_time(now_ms),
        }
    }

    fn on_time(&mut self, now_ms: u64) {
        if self.deadline_ms().is_none_or(|due_ms| now_ms < due_ms) {
            return;
        }
        match self.phase {
            Phase::Waiting { .. } => self.connect(now_ms),
            Phase::Connecting { .. } | Phase::Greeting { .. } => {
                self.actions.push_back(Action::Abandon);
                self.pass_over(None, now_ms);
            }
            Phase::Playing { .. } if self.silence_ms().is_some_and(|due_ms| now_ms >= due_ms) => {
                self.actions.push_back(Action::Abandon);
                self.on_closed(None, now_ms);
            }
            Phase::Playing { .. } => self.ping(now_ms),
            Phase::Leaving { .. } => {
                self.actions.push_back(Action::Abandon);
                self.stop(StopReason::LoggedOut);
            }
            Phase::Stopped => {}
        }
    }

    fn connect(&mut self, now_ms: u64) {
        self.phase = Phase::Connecting {
            until_ms: now_ms
                + match self.gateways.has_others() {
                    true => CONNECT_ELSEWHERE_MS_MAX,
                    false => CONNECT_MS_MAX,
                },
        };
        self.goodbye = None;
        let gateway = self.gateways.current().unwrap_or_default().to_owned();
        self.actions.push_back(Action::Connect { gateway });
    }

    fn on_opened(&mut self, now_ms: u64) {
        self.phase = Phase::Greeting {
            until_ms: now_ms + WELCOME_MS_MAX,
        };
        self.heard_ms = now_ms;
        let greeting = match &self.token {
            Some(token) => ClientMsg::Resume(Resume {
                token: token.clone(),
                last_seq: self.public.last(),
                last_private: self.private.last(),
            }),
            None => ClientMsg::Login(Login {
                name: self.name.clone(),
                password: self.password.clone(),
                version: PROTOCOL_VERSION,
            }),
        };
        self.actions.push_back(Action::Send(greeting));
    }

    fn on_message(&mut self, message: ServerMsg, now_ms: u64) {
        if !self.is_new(&message) {
            return;
        }
        match message {
            ServerMsg::Welcome(welcome) => return self.on_welcome(welcome, now_ms),
            ServerMsg::Snapshot(_) | ServerMsg::Delta(_) if self.is_greeting() => {
                return self.violation(Violation::Unexpected("state before a welcome"));
            }
            ServerMsg::Delta(ref delta) => self.outbox.acknowledge(delta.ack),
            ServerMsg::Missed(missed) => {
                self.public.missed(missed.public);
                self.private.missed(missed.private);
            }
            ServerMsg::Goodbye(ref goodbye) => {
                self.gateways.learn(&goodbye.gateways);
                self.goodbye = Some(goodbye.clone());
            }
            ServerMsg::Error(ref error) => match error.code {
                ErrorCode::Version => self.version_refused = true,
                ErrorCode::Invalid => {
                    self.violation(Violation::CalledInvalid(error.message.clone()));
                }
                _ => {}
            },
            _ => {}
        }
        self.events.push_back(Event::Message(message));
    }

    /// Checks a reliable message's number; false for what an earlier connection brought already.
    fn is_new(&mut self, message: &ServerMsg) -> bool {
        let (stream, number, verdict) = match (message.public(), message.private()) {
            (Some(number), _) => ("public", number, self.public.take(number)),
            (None, Some(number)) => ("private", number, self.private.take(number)),
            (None, None) => return true,
        };
        match verdict {
            Verdict::New => true,
            Verdict::Duplicate => false,
            Verdict::Repeated => {
                self.violation(Violation::Repeated { stream, number });
                false
            }
            Verdict::Gap => {
                self.violation(Violation::Gap { stream, number });
                true
            }
        }
    }

    fn on_welcome(&mut self, welcome: Box<Welcome>, now_ms: u64) {
        if !self.is_greeting() {
            return self.violation(Violation::Unexpected("a second welcome"));
        }
        let resumed = self.token.is_some();
        self.token = Some(welcome.token.clone());
        self.began = true;
        self.gateways.learn(&welcome.gateways);
        self.gateways.arrived();
        self.phase = Phase::Playing { since_ms: now_ms };
        self.pinged_ms = now_ms;
        if resumed {
            let again = self.outbox.resume(welcome.last_order);
            let again = again.map(|order| Action::Send(ClientMsg::Order(order.clone())));
            self.actions.extend(again);
        } else {
            self.outbox.restart();
        }
        self.events.push_back(Event::Welcomed { welcome, resumed });
    }

    fn on_closed(&mut self, code: Option<u16>, now_ms: u64) {
        if matches!(self.phase, Phase::Waiting { .. }) {
            return;
        }
        if matches!(self.phase, Phase::Leaving { .. }) {
            return self.stop(StopReason::LoggedOut);
        }
        if matches!(self.phase, Phase::Playing { since_ms } if now_ms >= since_ms + STABLE_MS) {
            self.backoff.reset();
        }
        let asked_ms = self.goodbye.as_ref().map_or(0, |goodbye| goodbye.after_ms);
        match code {
            _ if self.version_refused => self.stop(StopReason::Version),
            Some(close::SUPERSEDED) => self.stop(StopReason::Superseded),
            Some(close::UNAUTHORISED) if self.token.take().is_none() => {
                self.stop(StopReason::Unauthorised);
            }
            // The session is not known any more; the character is: begin a new session.
            Some(close::UNAUTHORISED) => self.lose(code, Retry::Moved, asked_ms, now_ms),
            Some(close::TRY_LATER) => {
                self.gateways.advance();
                self.lose(code, Retry::Full, asked_ms, now_ms);
            }
            Some(close::RESTART | close::GOING_AWAY) => self.move_on(code, asked_ms, now_ms),
            // It said goodbye, and ended before it could close.
            None if self.goodbye.is_some() => self.move_on(code, asked_ms, now_ms),
            Some(
                blame @ (close::PROTOCOL_ERROR
                | close::WRONG_KIND
                | close::NOT_DECODABLE
                | close::POLICY
                | close::TOO_BIG),
            ) => {
                self.violation(Violation::ClosedFor(blame));
                self.lose(code, Retry::Full, asked_ms, now_ms);
            }
            // The line may be all that was lost: here nothing that was said meanwhile is missed.
            _ if self.is_playing() => self.lose(code, Retry::Broken, asked_ms, now_ms),
            _ => self.pass_over(code, now_ms),
        }
    }

    /// The gateway sends us away: to one of those that it named, when it asked for.
    fn move_on(&mut self, code: Option<u16>, asked_ms: u64, now_ms: u64) {
        let named = self.goodbye.take().map(|goodbye| goodbye.gateways);
        let named = named.unwrap_or_default();
        self.gateways.go_to_one_of(&named, &mut self.dice);
        self.lose(code, Retry::Moved, asked_ms, now_ms);
    }

    /// This gateway does not take us: the next one is tried, and once all were, back-off begins.
    fn pass_over(&mut self, code: Option<u16>, now_ms: u64) {
        let retry = match self.gateways.advance() {
            true => Retry::Broken,
            false => Retry::Next,
        };
        self.lose(code, retry, 0, now_ms);
    }

    /// The connection is gone: come back after the longer of what back-off says and what the server asked for.
    fn lose(&mut self, code: Option<u16>, retry: Retry, asked_ms: u64, now_ms: u64) {
        let wait_ms = self.backoff.next_ms(retry, &mut self.dice);
        // What the server asks everyone to wait is stretched a little, or everyone would return at once.
        let asked_ms = asked_ms + self.dice.below(asked_ms / 4 + 1);
        let retry_ms = now_ms + wait_ms.max(asked_ms);
        if self.token.is_some() {
            self.public.resume();
            self.private.resume();
        } else {
            self.public.restart();
            self.private.restart();
        }
        self.phase = Phase::Waiting { until_ms: retry_ms };
        self.events
            .push_back(Event::Disconnected { code, retry_ms });
    }

    fn stop(&mut self, reason: StopReason) {
        self.phase = Phase::Stopped;
        self.events.push_back(Event::Stopped(reason));
    }

    fn ping(&mut self, now_ms: u64) {
        self.nonce += 1;
        self.pinged_ms = now_ms;
        let ping = ClientMsg::Ping(Ping { nonce: self.nonce });
        self.actions.push_back(Action::Send(ping));
    }

    fn violation(&mut self, violation: Violation) {
        self.events.push_back(Event::Violation(violation));
    }

    fn is_greeting(&self) -> bool {
        matches!(self.phase, Phase::Greeting { .. })
    }

    fn silence_ms(&self) -> Option<u64> {
        let pings = self.ping_interval_ms > 0;
        (self.listening && pings).then_some(self.heard_ms + SILENCE_MS_MAX)
    }

    fn ping_ms(&self) -> Option<u64> {
        (self.ping_interval_ms > 0).then_some(self.pinged_ms + self.ping_interval_ms)
    }
}

#[cfg(test)]
mod tests;
