//! The tick thread: the shell around a member.
//!
//! It ticks at absolute deadlines and handles messages in between. Store calls run as tasks and come back as letters; the
//! thread waits for nothing but its inbox.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use super::mailbox::SimMail;
use super::member::{Effect, Input, Member, Ticket};
use super::report::Report;
use super::schedule::Deadlines;
use super::schedule::precedence::{self, Work};
use crate::admin::meters::Meters;
use crate::clock::Clock;
use crate::cluster::core::{self as cluster, ClusterCore, ExitReason};
use crate::crash::Crash;
use crate::gateway::connection::Hub;
use crate::gateway::mailbox::{self, GatewayMail};
use crate::identity::BootId;
use crate::pace::Pace;
use crate::peer::Transport;
use crate::store::any::Driver;
use crate::store::row::NodeLoad;
use crate::store::{Request, StoreError};

/// Above this much work in one tick the next one runs on the pool.
const PARALLEL_ABOVE: Duration = Duration::from_millis(8);
/// Letters handled before the clock is looked at again.
const LETTERS_BETWEEN_LOOKS: usize = 64;
/// How often the others are told how busy this node is.
const LOAD_EVERY: Duration = Duration::from_secs(1);
/// How long a thread that panicked tries to end the life of its boot.
const LAST_WILL_MAX: Duration = Duration::from_secs(1);
/// How often it looks whether it is time to try again.
const LAST_WILL_LOOK: Duration = Duration::from_millis(20);
/// Answers that wait for it.
const LAST_WILL_REQUESTS_MAX: usize = 16;

/// Everything that the tick thread works with.
pub struct SimLoop<T: ?Sized> {
    /// The cores.
    pub member: Member,
    /// The node's clock.
    pub clock: Clock,
    /// Where letters arrive.
    pub inbox: Receiver<SimMail>,
    /// Where store replies are posted: the same inbox.
    pub replies: Sender<SimMail>,
    /// The gateway of this process.
    pub gateway: Option<Sender<GatewayMail>>,
    /// Its connections.
    pub hub: Arc<Hub>,
    /// The way to other cores.
    pub transport: Arc<T>,
    /// The way to the store.
    pub driver: Driver,
    /// What is measured.
    pub meters: Arc<Meters>,
    /// Set once this thread is to end without another word.
    pub crash: Crash,
    /// The pool for heavy ticks.
    pub pool: rayon::ThreadPool,
}

/// Why the thread ends; none: nobody can write to it any more.
type End = Option<ExitReason>;

impl<T: Transport + ?Sized> SimLoop<T> {
    /// Runs until the member wants to exit, and says why. A panic ends the life of this boot, so that others take over at
    /// once, and says so.
    pub fn run(mut self) -> Result<End, Panicked> {
        match catch_unwind(AssertUnwindSafe(|| self.run_on())) {
            Ok(end) => Ok(end),
            Err(_) => {
                tracing::error!(
                    "the tick thread panicked: this boot is declared dead, and the process ends"
                );
                // What panicked once may do so again: then the others have to find out by themselves.
                let last_will = AssertUnwindSafe(|| {
                    end_life(self.member.into_cluster(), &self.clock, &self.driver)
                });
                let _ = catch_unwind(last_will);
                Err(Panicked)
            }
        }
    }

    fn run_on(&mut self) -> End {
        // What was granted is logged there.
        let _ = precedence::ask(Work::Tick);
        let mut deadlines = Deadlines::from(self.clock.elapsed() + Deadlines::PERIOD);
        let mut effects = Vec::new();
        let (mut parallel, mut pace) = (false, Pace::new());
        let mut load_told = Instant::now();
        // The first thing that happens is that it begins: a store answers sooner than the first tick is due.
        self.handle(Input::Load(self.load()), &mut effects);
        if let Some(end) = self.carry_out(&mut effects) {
            return Some(end);
        }
        loop {
            if self.crash.has_come() {
                return None;
            }
            if let Some(due) = deadlines.take(self.clock.elapsed()) {
                let begun = Instant::now();
                self.tick(parallel, &mut effects);
                if let Some(end) = self.carry_out(&mut effects) {
                    return Some(end);
                }
                let work = begun.elapsed();
                parallel = work > PARALLEL_ABOVE;
                self.meters.ticked(due, work);
                for handoff_ms in self.member.take_handoff_ms() {
                    let took = Duration::from_millis(handoff_ms.into());
                    self.meters.handoff.record(took);
                }
                for drain_ms in self.member.take_drain_ms() {
                    let took = Duration::from_millis(drain_ms.into());
                    self.meters.drain.record(took);
                }
                self.meters.measured(self.member.take_measured());
                if load_told.elapsed() > LOAD_EVERY {
                    load_told = Instant::now();
                    self.handle(Input::Load(self.load()), &mut effects);
                }
            }
            let wait = pace.rest(deadlines.wait(self.clock.elapsed()));
            match self.inbox.recv_timeout(wait) {
                Ok(letter) => {
                    pace.woken();
                    if let Some(end) = self.open(letter, &mut effects) {
                        return Some(end);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn tick(&mut self, parallel: bool, effects: &mut Vec<Effect>) {
        let input = Input::Tick { parallel };
        let now = self.clock.now();
        let before = Report::of(&self.member);
        if parallel {
            let member = &mut self.member;
            self.pool.install(|| member.handle(now, input, effects));
        } else {
            self.member.handle(now, input, effects);
        }
        self.note(&before);
    }

    fn handle(&mut self, input: Input, effects: &mut Vec<Effect>) {
        let before = Report::of(&self.member);
        self.member.handle(self.clock.now(), input, effects);
        self.note(&before);
    }

    fn note(&self, before: &Report) {
        let now = Report::of(&self.member);
        if now != *before {
            let sick = self.member.sim_core().quarantined();
            now.log(before, self.member.me(), sick);
        }
    }

    fn load(&self) -> NodeLoad {
        let tick_ms = self.meters.tick.quantiles().p99 * 1e3;
        NodeLoad {
            sessions: self.hub.open.load(Ordering::Relaxed) as u32,
            regions: self.member.sim_core().gauges().regions as u32,
            tick_p99_ms: tick_ms.ceil() as u32,
        }
    }

    /// Handles `letter` and some of those behind it.
    fn open(&mut self, letter: SimMail, effects: &mut Vec<Effect>) -> End {
        self.read(letter, effects);
        for letter in self.inbox.clone().try_iter().take(LETTERS_BETWEEN_LOOKS) {
            self.read(letter, effects);
        }
        self.carry_out(effects)
    }

    fn read(&mut self, letter: SimMail, effects: &mut Vec<Effect>) {
        match letter {
            SimMail::Input(input) => self.handle(input, effects),
            // Whoever asked may have gone.
            SimMail::Observe { detail, answer } => {
                drop(answer.send(self.member.observe(detail)));
            }
            SimMail::Drain { region, to, answer } => {
                let now = self.clock.now();
                let wished = self.member.wish(now, region, to.as_ref(), effects);
                drop(answer.send(wished));
            }
            SimMail::Crossings { query, answer } => {
                let recorder = self.member.sim_core().recorder();
                drop(answer.send(recorder.newest(&query)));
            }
            #[cfg(feature = "planted-bugs")]
            SimMail::Panic(Some(region)) => self.member.plant_panic(region),
            #[cfg(feature = "planted-bugs")]
            SimMail::Panic(None) => panic!("somebody asked for it"),
        }
    }

    /// Turns effects into calls.
    fn carry_out(&mut self, effects: &mut Vec<Effect>) -> End {
        let mut end = None;
        let mut more = Vec::new();
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { from, to, message } => self.transport.send(&from, &to, message),
                Effect::Store { ticket, request } => self.ask(ticket, request),
                Effect::Reach(reach) => {
                    if let Some(gateway) = &self.gateway {
                        mailbox::tell_reach(gateway, reach);
                    }
                }
                Effect::Peers { peers } => self.transport.peers_are(peers),
                Effect::WantBoot => more.push(Input::NewBoot { boot: new_boot() }),
                Effect::Exit { why } => end = Some(why),
            }
        }
        if !more.is_empty() {
            let mut effects = Vec::new();
            for input in more {
                self.handle(input, &mut effects);
            }
            end = self.carry_out(&mut effects).or(end);
        }
        end
    }

    fn ask(&self, ticket: Ticket, request: Request) {
        let replies = self.replies.clone();
        let timer = self.meters.store.start();
        let meters = self.meters.clone();
        let is_beat = matches!(request, Request::NodeBeat { .. });
        self.driver.run(request, move |reply| {
            timer.stop();
            if is_beat && matches!(reply, Err(StoreError::Unknown(_) | StoreError::Refused(_))) {
                meters.beats_failed.fetch_add(1, Ordering::Relaxed);
            }
            // The thread has ended: so has whoever wanted the reply.
            let _ = replies.send(SimMail::Input(Input::Store { ticket, reply }));
        });
    }
}

/// The tick thread panicked. Nothing of this boot may act any more.
#[derive(Debug)]
pub struct Panicked;

/// Has a boot declared dead by its own cluster core. Nothing else of it is asked any more.
fn end_life(mut cluster: ClusterCore, clock: &Clock, driver: &Driver) {
    let deadline = Instant::now() + LAST_WILL_MAX;
    let (sender, replies) = crossbeam_channel::bounded(LAST_WILL_REQUESTS_MAX);
    let mut input = cluster::Input::Dying;
    while Instant::now() < deadline {
        let mut effects = Vec::new();
        cluster.handle(clock.now(), input, &mut effects);
        for effect in effects {
            match effect {
                cluster::Effect::Store { ticket, request } => {
                    let sender = sender.clone();
                    driver.run(request, move |reply| {
                        // Nobody waits for more than a few.
                        let _ = sender.try_send((ticket, reply));
                    });
                }
                cluster::Effect::Exit { .. } => return,
                _ => {}
            }
        }
        input = match replies.recv_timeout(LAST_WILL_LOOK) {
            Ok((ticket, reply)) => cluster::Input::Store { ticket, reply },
            Err(_) => cluster::Input::Tick,
        };
    }
}

/// A boot that nobody had before.
pub fn new_boot() -> BootId {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    BootId(u128::from_be_bytes(bytes))
}
