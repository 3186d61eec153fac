//! The gateway's thread: the shell around the gateway core.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;

use super::connection::Hub;
use super::core::{ConnId, Effect, GatewayCore, Input};
use super::mailbox::{GatewayMail, Outgoing};
use crate::admin::meters::Meters;
use crate::clock::Clock;
use crate::crash::Crash;
use crate::identity::Holder;
use crate::peer::Transport;
use crate::store::any::Driver;

/// Letters handled before effects are carried out.
const LETTERS_BETWEEN_EFFECTS: usize = 128;
/// How often it is looked whether sockets have taken what they were given.
const LOOK_EVERY_MS: u64 = 5;

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
    /// Where each connection's frames go.
    pub connections: BTreeMap<ConnId, mpsc::Sender<Outgoing>>,
}

impl<T: Transport + ?Sized> GatewayLoop<T> {
    /// Runs until the core has stopped, or nobody can write to it any more.
    pub fn run(mut self) {
        let mut effects = Vec::new();
        while !self.crash.has_come() {
            let now = self.clock.now();
            let wait = self
                .core
                .wake_at()
                .min(now + LOOK_EVERY_MS)
                .saturating_sub(now);
            match self.inbox.recv_timeout(Duration::from_millis(wait)) {
                Ok(letter) => {
                    self.read(letter, &mut effects);
                    for letter in self.inbox.clone().try_iter().take(LETTERS_BETWEEN_EFFECTS) {
                        self.read(letter, &mut effects);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let conns = self.hub.take_written();
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
            GatewayMail::Input(input) => self.core.handle(self.clock.now(), input, effects),
            GatewayMail::Connected { conn, frames } => drop(self.connections.insert(conn, frames)),
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
                    self.tell(conn, Outgoing::Write { frames, ping })
                }
                Effect::Close {
                    conn,
                    last,
                    code,
                    reason,
                } => {
                    self.meters.closed(code);
                    self.tell(conn, Outgoing::Close { last, code, reason });
                    self.connections.remove(&conn);
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

    fn tell(&mut self, conn: ConnId, out: Outgoing) {
        let Some(frames) = self.connections.get(&conn) else {
            return;
        };
        match frames.try_send(out) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                // The core has one write under way at a time, so this is a bug; the client is the smaller loss.
                tracing::error!(?conn, "a connection's queue overflowed; it is closed");
                self.connections.remove(&conn);
            }
            Err(TrySendError::Closed(_)) => {
                self.connections.remove(&conn);
            }
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
