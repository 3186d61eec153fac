//! The tick thread: the shell around the sim core.
//!
//! It ticks at absolute deadlines and handles messages in between. Store calls run as tasks and come back as letters; the
//! thread waits for nothing but its inbox.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};
use uo_proto::RegionId;

use super::core::{Effect, Input, News, SimCore};
use super::mailbox::SimMail;
use super::schedule::Deadlines;
use super::schedule::precedence::{self, Work};
use crate::admin::meters::Meters;
use crate::clock::Clock;
use crate::peer::Transport;
use crate::store::any::Driver;
use crate::store::{ClaimRow, Reply, Request, StoreError};

/// Above this much work in one tick the next one runs on the pool.
const PARALLEL_ABOVE: Duration = Duration::from_millis(8);
/// Letters handled before the clock is looked at again.
const LETTERS_BETWEEN_LOOKS: usize = 64;

/// Everything that the tick thread works with.
pub struct SimLoop<T> {
    /// The core.
    pub core: SimCore,
    /// How many regions the map has.
    pub regions: u32,
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
        let may_act = Input::Fence { fallen: false };
        self.core.handle(self.clock.now(), may_act, &mut effects);
        self.read_leases();
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
            SimMail::Leases(reply) => self.take_all(reply, effects),
            // Whoever asked may have gone.
            SimMail::Observe { full, answer } => drop(answer.send(self.core.observe(full))),
        }
    }

    fn read_leases(&self) {
        let replies = self.replies.clone();
        self.driver.run(Request::LeasesRead, move |reply| {
            let _ = replies.send(SimMail::Leases(reply));
        });
    }

    /// The store of a one-process shard is locked by it: every other boot is dead, and every region is its own to take.
    fn take_all(&mut self, reply: Result<Reply, StoreError>, effects: &mut Vec<Effect>) {
        let Ok(Reply::Leases(rows)) = reply else {
            return self.read_leases();
        };
        let mut rows: BTreeMap<RegionId, ClaimRow> = rows.into_iter().collect();
        let now = self.clock.now();
        for holder in rows.values().filter_map(|row| row.holder.clone()) {
            let dead = Input::Dead { boot: holder.boot };
            self.core.handle(now, dead, effects);
        }
        for region in (0..self.regions).map(RegionId) {
            let row = rows.remove(&region);
            let take = Input::Take { region, row };
            self.core.handle(now, take, effects);
        }
    }

    fn hear(&mut self, news: News, effects: &mut Vec<Effect>) -> bool {
        let answer = match news {
            News::Suspect { boot } => Input::Dead { boot },
            News::Gone { region, row } => Input::Take { region, row },
            News::Drained => return true,
            _ => return false,
        };
        self.core.handle(self.clock.now(), answer, effects);
        false
    }

    /// Turns effects into calls; whether the core has stopped.
    fn carry_out(&mut self, effects: &mut Vec<Effect>) -> bool {
        let mut stopped = false;
        let mut more = Vec::new();
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
                Effect::News(news) => stopped |= self.hear(news, &mut more),
            }
        }
        if !more.is_empty() {
            stopped |= self.carry_out(&mut more);
        }
        stopped
    }
}
