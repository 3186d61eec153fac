//! The tick thread: the shell around the sim core.
//!
//! It ticks at absolute deadlines and handles messages in between. Store calls run as tasks and come back as letters; the
//! thread waits for nothing but its inbox.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::core::{Effect, Input, SimCore};
use super::mailbox::SimMail;
use super::schedule::Deadlines;
use super::schedule::precedence::{self, Work};
use crate::admin::meters::Meters;
use crate::clock::Clock;
use crate::peer::Transport;
use crate::store::any::Driver;

/// Above this much work in one tick the next one runs on the pool.
const PARALLEL_ABOVE: Duration = Duration::from_millis(8);
/// Letters handled before the clock is looked at again.
const LETTERS_BETWEEN_LOOKS: usize = 64;

/// Everything that the tick thread works with.
pub struct SimLoop<T> {
    /// The core.
    pub core: SimCore,
    /// The node's clock.
    pub clock: Clock,
    /// Where letters arrive.
    pub inbox: Receiver<SimMail>,
    /// Where store replies are posted: the same inbox.
    pub replies: Sender<SimMail>,
    /// The way to other cores.
    pub transport: Arc<T>,
    /// The way to the store.
    pub driver: Driver,
    /// What is measured.
    pub meters: Arc<Meters>,
    /// The pool for heavy ticks.
    pub pool: rayon::ThreadPool,
}

impl<T: Transport> SimLoop<T> {
    /// Runs until the core has stopped, or nobody can write to it any more.
    pub fn run(mut self) {
        // What was granted is logged there.
        let _ = precedence::ask(Work::Tick);
        let mut deadlines = Deadlines::from(self.clock.elapsed() + Deadlines::PERIOD);
        let mut effects = Vec::new();
        let mut parallel = false;
        loop {
            if let Some(due) = deadlines.take(self.clock.elapsed()) {
                let begun = Instant::now();
                let now = self.clock.now();
                let core = &mut self.core;
                if parallel {
                    self.pool
                        .install(|| core.handle(now, Input::Tick { parallel }, &mut effects));
                } else {
                    core.handle(now, Input::Tick { parallel }, &mut effects);
                }
                if self.carry_out(&mut effects) {
                    return;
                }
                let work = begun.elapsed();
                parallel = work > PARALLEL_ABOVE;
                self.meters.ticked(due, work);
                for handoff_ms in self.core.take_handoff_ms() {
                    self.meters
                        .handoff
                        .record(Duration::from_millis(handoff_ms.into()));
                }
            }
            match self
                .inbox
                .recv_timeout(deadlines.wait(self.clock.elapsed()))
            {
                Ok(letter) => {
                    if self.open(letter, &mut effects) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Handles `letter` and some of those behind it; whether the core has stopped.
    fn open(&mut self, letter: SimMail, effects: &mut Vec<Effect>) -> bool {
        self.read(letter, effects);
        for letter in self.inbox.clone().try_iter().take(LETTERS_BETWEEN_LOOKS) {
            self.read(letter, effects);
        }
        self.carry_out(effects)
    }

    fn read(&mut self, letter: SimMail, effects: &mut Vec<Effect>) {
        match letter {
            SimMail::Input(input) => self.core.handle(self.clock.now(), input, effects),
            // Whoever asked may have gone.
            SimMail::Observe { full, answer } => drop(answer.send(self.core.observe(full))),
        }
    }

    /// Turns effects into calls; whether the core has stopped.
    fn carry_out(&mut self, effects: &mut Vec<Effect>) -> bool {
        let mut stopped = false;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } => self.transport.send(&to, message),
                Effect::Store { ticket, request } => {
                    let replies = self.replies.clone();
                    let timer = self.meters.store.start();
                    self.driver.run(request, move |reply| {
                        timer.stop();
                        // The thread has ended: so has whoever wanted the reply.
                        let _ = replies.send(SimMail::Input(Input::Store { ticket, reply }));
                    });
                }
                Effect::Stopped => stopped = true,
            }
        }
        stopped
    }
}
