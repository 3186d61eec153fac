//! The gateway's thread: the shell around the gateway core.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::connection::Hub;
use super::core::{ConnId, Effect, GatewayCore, Input};
use super::frames::Frames;
use super::line::Line;
use super::mailbox::{GatewayMail, Outgoing};
use crate::admin::meters::Meters;
use crate::clock::Clock;
use crate::crash::Crash;
use crate::identity::Holder;
use crate::pace::Pace;
use crate::peer::Transport;
use crate::store::any::Driver;

/// Letters handled before effects are carried out.
const LETTERS_BETWEEN_EFFECTS: usize = 128;
/// Writes that this thread does by itself before it turns to its inbox again: some milliseconds.
const WRITES_HERE_MAX: usize = 512;
/// How often it is looked whether tasks have written what was left to them.
const LOOK_EVERY_MS: u64 = 5;
/// How long this thread sleeps at most: so often it looks whether it is to end.
const SLEEP_MS_MAX: u64 = 50;

/// Everything that the gateway's thread works with.
pub struct GatewayLoop<T: ?Sized> {
    /// The core.
    pub core: GatewayCore,
    /// This node and the boot with which its process began: what a gateway is known by.
    pub me: Holder,
    /// The node's clock.
    pub clock: Clock,
    /// Where letters arrive.
    pub inbox: Receiver<GatewayMail>,
    /// Where store replies are posted: the same inbox.
    pub replies: Sender<GatewayMail>,
    /// The way to other cores.
    pub transport: Arc<T>,
    /// The way to the store.
    pub driver: Driver,
    /// Set once this thread is to end without another word.
    pub crash: Crash,
    /// What the connections share.
    pub hub: Arc<Hub>,
    /// What is measured.
    pub meters: Arc<Meters>,
    /// Every connection.
    pub connections: BTreeMap<ConnId, Connection>,
    /// Those whose frames this thread has written to the end.
    pub written: Vec<ConnId>,
    /// Those whose tasks are still at it.
    pub left_to_tasks: BTreeSet<ConnId>,
}

/// Where a connection's frames go.
pub struct Connection {
    line: Arc<Line>,
    task: mpsc::Sender<Outgoing>,
}

impl<T: Transport + ?Sized> GatewayLoop<T> {
    /// Runs until the core has stopped, or nobody can write to it any more.
    pub fn run(mut self) {
        let (mut effects, mut pace) = (Vec::new(), Pace::new());
        while !self.crash.has_come() {
            let now = self.clock.now();
            let mut next = self.core.wake_at();
            if !self.left_to_tasks.is_empty() {
                next = next.min(now + LOOK_EVERY_MS);
            }
            let mut wait = Duration::from_millis(next.saturating_sub(now).min(SLEEP_MS_MAX));
            wait = match self.written.is_empty() {
                true => pace.rest(wait),
                false => Duration::ZERO,
            };
            match self.inbox.recv_timeout(wait) {
                Ok(letter) => {
                    pace.woken();
                    self.read(letter, &mut effects);
                    for letter in self.inbox.clone().try_iter().take(LETTERS_BETWEEN_EFFECTS) {
                        self.read(letter, &mut effects);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let mut conns = match self.left_to_tasks.is_empty() {
                true => Vec::new(),
                false => self.hub.take_written(),
            };
            for conn in &conns {
                self.left_to_tasks.remove(conn);
            }
            conns.append(&mut self.written);
            if !conns.is_empty() {
                self.core
                    .handle(self.clock.now(), Input::Writable { conns }, &mut effects);
            }
            let now = self.clock.now();
            if now >= self.core.wake_at() {
                let begun = Instant::now();
                self.core.handle(now, Input::Timer, &mut effects);
                self.meters.flush.record(begun.elapsed());
            }
            self.meters.measured(self.core.take_measured());
            if self.carry_out(&mut effects) {
                return;
            }
        }
    }

    fn read(&mut self, letter: GatewayMail, effects: &mut Vec<Effect>) {
        match letter {
            GatewayMail::Input(input) => {
                if let Input::Closed { conn } = input {
                    self.forget(conn);
                }
                self.core.handle(self.clock.now(), input, effects);
            }
            GatewayMail::Connected { conn, line, task } => {
                self.connections.insert(conn, Connection { line, task });
            }
            // Whoever asked may have gone.
            GatewayMail::Observe { full, answer } => drop(answer.send(self.core.observe(full))),
            GatewayMail::Crossings { query, answer } => {
                drop(answer.send(self.core.recorder().newest(&query)));
            }
        }
    }

    /// Turns effects into calls; whether the core has stopped.
    fn carry_out(&mut self, effects: &mut Vec<Effect>) -> bool {
        let mut stopped = false;
        let mut more = Vec::new();
        let is_write = |effect: &&Effect| matches!(effect, Effect::Write { .. });
        // Of very many writes the first are left to the tasks: on other cores they go on meanwhile.
        let mut writes = effects.iter().filter(is_write).count();
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => self.transport.send(&self.me, &to, message),
                Effect::Store { ticket, request } => {
                    let replies = self.replies.clone();
                    let timer = self.meters.store.start();
                    self.driver.run(request, move |reply| {
                        timer.stop();
                        // The thread has ended: so has whoever wanted the reply.
                        let _ = replies.send(GatewayMail::Input(Input::Store { ticket, reply }));
                    });
                }
                Effect::Write { conn, frames, ping } => {
                    self.write(conn, frames, ping, writes <= WRITES_HERE_MAX);
                    writes -= 1;
                }
                Effect::Close {
                    conn,
                    last,
                    code,
                    reason,
                } => {
                    self.meters.closed(code);
                    self.tell(conn, Outgoing::Close { last, code, reason });
                    self.forget(conn);
                }
                Effect::WantEntropy { tokens } => more.push(Input::Entropy {
                    tokens: entropy(tokens),
                }),
                Effect::Stopped => stopped = true,
            }
        }
        for input in more {
            self.core.handle(self.clock.now(), input, effects);
        }
        stopped
    }

    /// Writes here and now, or has the task do it.
    fn write(&mut self, conn: ConnId, frames: Frames, ping: Option<u64>, here: bool) {
        let Some(Connection { line, .. }) = self.connections.get(&conn) else {
            return;
        };
        self.hub.count(&frames);
        if let Err(error) = line.queue(frames, ping) {
            tracing::error!(?conn, %error, "what was encoded is no message");
        }
        match here && line.write_now() {
            true => self.written.push(conn),
            false => {
                self.left_to_tasks.insert(conn);
                self.tell(conn, Outgoing::GoOn);
            }
        }
    }

    fn forget(&mut self, conn: ConnId) {
        self.connections.remove(&conn);
        self.left_to_tasks.remove(&conn);
    }

    fn tell(&mut self, conn: ConnId, out: Outgoing) {
        let Some(connection) = self.connections.get(&conn) else {
            return;
        };
        match connection.task.try_send(out) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                // The core has one write under way at a time, so this is a bug; the client is the smaller loss.
                tracing::error!(?conn, "a connection's queue overflowed; it is closed");
                self.forget(conn);
            }
            Err(TrySendError::Closed(_)) => self.forget(conn),
        }
    }
}

fn entropy(tokens: usize) -> Vec<[u8; 24]> {
    let mut tokens = vec![[0; 24]; tokens];
    for token in &mut tokens {
        getrandom::fill(token).expect("the system has randomness");
    }
    tokens
}
