//! What the whole swarm sent, got and saw: shared by all bots, read by the live line and the summary.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use uo_proto::{Order, ServerMsg, close};
use uo_sdk::bot::Observer;
use uo_sdk::bots::BotKind;
use uo_sdk::client::Traffic;
use uo_sdk::{Event, LocalWorld, SendError, StopReason};

use super::felt::{Cause, Felt, Senses};

/// Latencies beyond this are recorded as this, in microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;
/// Different sentences that are remembered; more are counted under one heading.
const NOTES_MAX: usize = 32;
/// An order that no delta answered for so long counts as unanswered.
const UNANSWERED: Duration = Duration::from_secs(2);
/// Orders of one bot whose answer is awaited; the client itself keeps no more.
const PENDING_MAX: usize = 256;

/// Counters, all growing.
#[derive(Default)]
pub struct Counters {
    /// Bots that were welcomed at least once.
    pub welcomed: AtomicU64,
    /// Sessions begun.
    pub logins: AtomicU64,
    /// Sessions that went on over a new connection.
    pub resumes: AtomicU64,
    /// Connections lost while in the world.
    pub lost: AtomicU64,
    /// Logins that a full server put off.
    pub refused: AtomicU64,
    /// Attempts that ended before a welcome for any other reason.
    pub failed: AtomicU64,
    /// Broken promises of the protocol.
    pub violations: AtomicU64,
    /// Bots whose session ended for good.
    pub stopped: AtomicU64,
    /// Sessions that their bot ended in order, to log in again.
    pub logouts: AtomicU64,
    /// Orders sent.
    pub orders: AtomicU64,
    /// Orders that the bot's own client refused.
    pub orders_refused: AtomicU64,
    /// Orders that no delta answered.
    pub orders_unanswered: AtomicU64,
    /// Fights that bots began.
    pub fights: AtomicU64,
    /// Fights that were reset.
    pub fights_reset: AtomicU64,
    /// Deltas received.
    pub deltas: AtomicU64,
    /// Entities that those deltas told of, the own one included.
    pub entities: AtomicU64,
    /// Frames received.
    pub frames: AtomicU64,
    /// Payload bytes received.
    pub bytes: AtomicU64,
}

/// Who is in the world.
struct Presence {
    in_world: u64,
    peak: u64,
    /// Microseconds that sessions were in the world, summed over them, until `since`.
    session_us: u64,
    since: Instant,
}

impl Presence {
    fn change(&mut self, change: impl FnOnce(u64) -> u64) {
        let now = Instant::now();
        self.session_us += self.under_way_us(now);
        self.since = now;
        self.in_world = change(self.in_world);
        self.peak = self.peak.max(self.in_world);
    }

    fn under_way_us(&self, now: Instant) -> u64 {
        self.in_world * now.duration_since(self.since).as_micros() as u64
    }
}

/// What came since the last look.
pub struct Window {
    /// Latencies of orders, in microseconds.
    pub latencies: Histogram<u64>,
    /// The longest gap of each cause, in microseconds.
    pub gap_us_max: BTreeMap<Cause, u64>,
}

/// Latencies in microseconds.
struct Latencies {
    /// Since the live line was last drawn.
    window: Histogram<u64>,
    /// Since the measurement began.
    whole: Histogram<u64>,
}

/// Players' gaps in microseconds.
#[derive(Default)]
struct Gaps {
    /// Since the measurement began.
    whole: BTreeMap<Cause, Histogram<u64>>,
    /// The longest since the live line was last drawn.
    window_max: BTreeMap<Cause, u64>,
}

/// Everything the swarm counts.
pub struct Tally {
    /// Counters.
    pub counters: Counters,
    presence: Mutex<Presence>,
    /// Other players in view, summed over bots.
    others: AtomicU64,
    drains: AtomicBool,
    latencies: Mutex<Latencies>,
    resumes: Mutex<Histogram<u64>>,
    gaps: Mutex<Gaps>,
    notes: Mutex<BTreeMap<String, u64>>,
}

impl Tally {
    /// Nothing counted yet.
    pub fn new() -> Arc<Tally> {
        Arc::new(Tally {
            counters: Counters::default(),
            presence: Mutex::new(Presence {
                in_world: 0,
                peak: 0,
                session_us: 0,
                since: Instant::now(),
            }),
            others: AtomicU64::new(0),
            drains: AtomicBool::new(false),
            latencies: Mutex::new(Latencies {
                window: histogram(),
                whole: histogram(),
            }),
            resumes: Mutex::new(histogram()),
            gaps: Mutex::new(Gaps::default()),
            notes: Mutex::new(BTreeMap::new()),
        })
    }

    /// Bots that are in the world now.
    pub fn in_world(&self) -> u64 {
        lock(&self.presence).in_world
    }

    /// Most bots that were in the world at once.
    pub fn peak(&self) -> u64 {
        lock(&self.presence).peak
    }

    /// For how long sessions were in the world so far, in microseconds, summed over them.
    pub fn session_us(&self) -> u64 {
        let presence = lock(&self.presence);
        presence.session_us + presence.under_way_us(Instant::now())
    }

    /// How many other players a bot in the world sees now, on average.
    pub fn others_in_view(&self) -> f64 {
        self.others.load(Relaxed) as f64 / self.in_world().max(1) as f64
    }

    /// What came since the last call.
    pub fn take_window(&self) -> Window {
        Window {
            latencies: std::mem::replace(&mut lock(&self.latencies).window, histogram()),
            gap_us_max: std::mem::take(&mut lock(&self.gaps).window_max),
        }
    }

    /// Forgets the latencies and gaps so far: the measurement begins.
    pub fn begin(&self) {
        lock(&self.latencies).whole.clear();
        lock(&self.gaps).whole.clear();
    }

    /// The latencies since the measurement began.
    pub fn latencies(&self) -> Histogram<u64> {
        lock(&self.latencies).whole.clone()
    }

    /// Players' gaps since the measurement began, in microseconds; see [`felt`](super::felt).
    pub fn gaps(&self, cause: Cause) -> Histogram<u64> {
        let gaps = lock(&self.gaps);
        gaps.whole.get(&cause).cloned().unwrap_or_else(histogram)
    }

    /// Whether regions are being moved in order, to which gaps are then put down that nothing else explains.
    pub fn set_drains(&self, drains: bool) {
        self.drains.store(drains, Relaxed);
    }

    /// From a lost connection to the first state shown on the next one.
    pub fn resumes(&self) -> Histogram<u64> {
        lock(&self.resumes).clone()
    }

    /// What was out of the ordinary, and how often.
    pub fn notes(&self) -> BTreeMap<String, u64> {
        lock(&self.notes).clone()
    }

    /// Remembers something out of the ordinary.
    pub fn note(&self, what: String) {
        let mut notes = lock(&self.notes);
        let key = if notes.len() < NOTES_MAX || notes.contains_key(&what) {
            what
        } else {
            "and other things".into()
        };
        *notes.entry(key).or_default() += 1;
    }

    fn felt(&self, felt: Felt) {
        self.counters.fights.fetch_add(felt.fights, Relaxed);
        let reset = &self.counters.fights_reset;
        reset.fetch_add(felt.fights_reset, Relaxed);
        if let Some(us) = felt.resume_us {
            lock(&self.resumes).saturating_record(us.max(1));
        }
        if !felt.gaps.is_empty() {
            let mut gaps = lock(&self.gaps);
            let drains = self.drains.load(Relaxed);
            for (cause, us) in felt.gaps {
                let cause = match cause {
                    Cause::Other if drains => Cause::Drain,
                    cause => cause,
                };
                let whole = gaps.whole.entry(cause).or_insert_with(histogram);
                whole.saturating_record(us.max(1));
                let longest = gaps.window_max.entry(cause).or_default();
                *longest = us.max(*longest);
            }
        }
    }

    fn answered(&self, sent: Instant, now: Instant) {
        let us = (now.duration_since(sent).as_micros() as u64).clamp(1, LATENCY_US_MAX);
        let mut latencies = lock(&self.latencies);
        latencies.window.saturating_record(us);
        latencies.whole.saturating_record(us);
    }
}

/// Three significant figures up to a minute.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("the bounds are sound")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches one bot.
///
/// The latency of an order runs from the moment the bot gives it to its client until this process has decoded the first
/// delta whose `ack` covers it, which is the delta that shows the tick in which the battle took it. Waiting in this
/// process on either way is part of it.
pub struct Watch {
    tally: Arc<Tally>,
    kind: BotKind,
    pending: VecDeque<(u64, Instant)>,
    welcomed: bool,
    in_world: bool,
    senses: Senses,
    /// Other players in its view.
    others: u64,
    began: Instant,
}

impl Watch {
    /// Watches a bot of this kind.
    pub fn new(tally: Arc<Tally>, kind: BotKind) -> Watch {
        Watch {
            tally,
            kind,
            pending: VecDeque::new(),
            welcomed: false,
            in_world: false,
            senses: Senses::default(),
            others: 0,
            began: Instant::now(),
        }
    }

    /// Whether what this bot meets is for its own choice: a deaf one must expect to be cut off, and measures nothing.
    fn is_deaf(&self) -> bool {
        self.kind == BotKind::Deaf
    }

    fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    fn enter(&mut self, resumed: bool) {
        let counters = &self.tally.counters;
        if !std::mem::replace(&mut self.welcomed, true) {
            counters.welcomed.fetch_add(1, Relaxed);
        }
        if resumed {
            counters.resumes.fetch_add(1, Relaxed);
        } else {
            counters.logins.fetch_add(1, Relaxed);
            self.pending.clear();
        }
        if !std::mem::replace(&mut self.in_world, true) {
            lock(&self.tally.presence).change(|bots| bots + 1);
        }
    }

    fn look_around(&mut self, world: &LocalWorld) {
        let others = world.others().filter(|other| !other.is_mob()).count() as u64;
        self.see(others);
    }

    fn see(&mut self, others: u64) {
        // The sum wraps around where fewer are seen than before, and back.
        let more = others.wrapping_sub(std::mem::replace(&mut self.others, others));
        self.tally.others.fetch_add(more, Relaxed);
    }

    fn leave(&mut self) -> bool {
        self.see(0);
        let was_in = std::mem::replace(&mut self.in_world, false);
        if was_in {
            lock(&self.tally.presence).change(|bots| bots - 1);
        }
        was_in
    }

    fn disconnected(&mut self, code: Option<u16>) {
        let why = code.map_or("no close code".to_owned(), |code| format!("code {code}"));
        if self.leave() {
            if !self.is_deaf() {
                self.tally.counters.lost.fetch_add(1, Relaxed);
                self.tally.note(format!("lost a connection: {why}"));
            }
        } else if code == Some(close::TRY_LATER) {
            self.tally.counters.refused.fetch_add(1, Relaxed);
        } else {
            self.tally.counters.failed.fetch_add(1, Relaxed);
            self.tally.note(format!("an attempt failed: {why}"));
        }
    }

    fn delta(&mut self, delta: &uo_proto::Delta) {
        let counters = &self.tally.counters;
        counters.deltas.fetch_add(1, Relaxed);
        counters
            .entities
            .fetch_add((delta.enter.len() + delta.update.len()) as u64, Relaxed);
        if self.pending.front().is_none_or(|(seq, _)| *seq > delta.ack) {
            return;
        }
        let now = Instant::now();
        while let Some((_, sent)) = self.pending.pop_front_if(|(seq, _)| *seq <= delta.ack) {
            if !self.is_deaf() {
                self.tally.answered(sent, now);
            }
        }
    }
}

impl Observer for Watch {
    fn sent(&mut self, seq: u64, order: &Order) {
        let now_us = self.now_us();
        self.senses.sent(now_us, seq, order);
        self.tally.counters.orders.fetch_add(1, Relaxed);
        if self.pending.len() < PENDING_MAX {
            self.pending.push_back((seq, Instant::now()));
        }
    }

    fn event(&mut self, event: &Event, world: &LocalWorld) {
        if !self.is_deaf() {
            let now_us = self.now_us();
            self.tally.felt(self.senses.event(now_us, event, world));
        }
        match event {
            Event::Welcomed { resumed, .. } => self.enter(*resumed),
            Event::Disconnected { code, .. } => self.disconnected(*code),
            Event::Violation(violation) => {
                self.tally.counters.violations.fetch_add(1, Relaxed);
                self.tally
                    .note(format!("protocol error: {}", shape(&violation.to_string())));
            }
            Event::Stopped(StopReason::LoggedOut) if self.kind == BotKind::Churn => {
                self.leave();
                self.pending.clear();
                self.senses = Senses::default();
                self.tally.counters.logouts.fetch_add(1, Relaxed);
            }
            Event::Stopped(reason) => {
                self.leave();
                self.tally.counters.stopped.fetch_add(1, Relaxed);
                self.tally.note(format!("stopped: {reason}"));
            }
            Event::Message(ServerMsg::Delta(delta)) => {
                self.delta(delta);
                if !(delta.enter.is_empty() && delta.leave.is_empty()) {
                    self.look_around(world);
                }
            }
            Event::Message(ServerMsg::Snapshot(_)) => self.look_around(world),
            Event::Message(ServerMsg::Error(error)) => {
                self.tally.note(format!("answered {:?}", error.code));
            }
            Event::Message(_) => {}
        }
    }

    fn traffic(&mut self, more: Traffic) {
        let counters = &self.tally.counters;
        counters.frames.fetch_add(more.frames_received, Relaxed);
        counters.bytes.fetch_add(more.bytes_received, Relaxed);
    }

    fn refused(&mut self, error: SendError) {
        self.tally.counters.orders_refused.fetch_add(1, Relaxed);
        if !self.is_deaf() {
            self.tally.note(format!("an order was not sent: {error}"));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.in_world && !self.is_deaf() {
            let old = |(_, sent): &&(u64, Instant)| sent.elapsed() > UNANSWERED;
            let unanswered = self.pending.iter().filter(old).count();
            let counter = &self.tally.counters.orders_unanswered;
            counter.fetch_add(unanswered as u64, Relaxed);
        }
        self.leave();
    }
}

/// A sentence without its numbers, so that alike ones are counted together.
fn shape(sentence: &str) -> String {
    let mut shape = String::with_capacity(sentence.len());
    for letter in sentence.chars() {
        let letter = if letter.is_ascii_digit() { '#' } else { letter };
        if letter != '#' || !shape.ends_with('#') {
            shape.push(letter);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use uo_proto::Delta;

    use super::*;

    fn delta(ack: u64) -> Event {
        Event::Message(ServerMsg::Delta(Delta {
            tick: 1,
            ack,
            ..Delta::default()
        }))
    }

    #[test]
    fn an_order_is_answered_by_the_first_delta_that_covers_it() {
        let tally = Tally::new();
        let mut watch = Watch::new(tally.clone(), BotKind::Combat);
        let world = LocalWorld::default();
        for seq in 1..=3 {
            watch.sent(seq, &Order::Stop);
        }
        watch.event(&delta(0), &world);
        assert_eq!(tally.latencies().len(), 0);
        watch.event(&delta(2), &world);
        watch.event(&delta(2), &world);
        assert_eq!(tally.latencies().len(), 2);
        watch.event(&delta(3), &world);
        assert_eq!(tally.take_window().latencies.len(), 3);
        assert_eq!(tally.take_window().latencies.len(), 0);
    }

    #[test]
    fn sentences_that_differ_in_numbers_are_one() {
        assert_eq!(shape("a gap before number 17"), "a gap before number #");
    }

    #[test]
    fn who_comes_and_goes_is_not_lost() {
        let tally = Tally::new();
        let world = LocalWorld::default();
        for kind in [BotKind::Churn, BotKind::Wander] {
            let mut watch = Watch::new(tally.clone(), kind);
            watch.enter(false);
            watch.event(&Event::Stopped(StopReason::LoggedOut), &world);
        }
        let counters = &tally.counters;
        assert_eq!(counters.logouts.load(Relaxed), 1);
        assert_eq!(counters.stopped.load(Relaxed), 1);
        assert_eq!(tally.in_world(), 0);
    }

    #[test]
    fn a_deaf_bot_that_is_cut_off_is_no_loss() {
        let tally = Tally::new();
        let world = LocalWorld::default();
        for kind in [BotKind::Deaf, BotKind::Wander] {
            let mut watch = Watch::new(tally.clone(), kind);
            watch.enter(false);
            watch.event(
                &Event::Disconnected {
                    code: Some(close::SLOW_CONSUMER),
                    retry_ms: 0,
                },
                &world,
            );
        }
        assert_eq!(tally.counters.lost.load(Relaxed), 1);
        assert_eq!(tally.peak(), 1);
        assert_eq!(tally.in_world(), 0);
    }
}
