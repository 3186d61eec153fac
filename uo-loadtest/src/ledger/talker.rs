//! One client: says its lines when they are due, and hears everybody's, its own included.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use hdrhistogram::Histogram;
use tokio::time::{Instant, sleep_until, timeout_at};
use uo_proto::{CharId, Order, ServerMsg};
use uo_sdk::{Client, Event, Options, SendError};

use super::book::{Balance, Book};
use super::line::{Form, Line};

/// Latencies beyond this are recorded as this, in microseconds.
const LATENCY_US_MAX: u64 = 60_000_000;
/// Once everything was said and nothing comes for so long, nothing will.
const QUIET: Duration = Duration::from_secs(3);
/// Different troubles of one client that are remembered.
const TROUBLES_MAX: usize = 8;

/// What is said in one round; the same for all.
#[derive(Debug)]
pub struct Script {
    /// How lines are written.
    pub form: Form,
    /// Who speaks, by number.
    pub speakers: Vec<CharId>,
    /// Lines that each says.
    pub lines: u64,
    /// Time from one line of a speaker to its next.
    pub pause: Duration,
    /// When the first line is due.
    pub start: Instant,
    /// When everything has been said.
    pub said_by: Instant,
    /// When nobody waits any longer for what has not come, even while something comes.
    pub end: Instant,
    /// Deliveries that are on their way now: each line that was said counts once for each who is to hear it.
    pub under_way: AtomicI64,
}

impl Script {
    /// When a line is due: the speakers take turns within each pause.
    fn due(&self, line: Line) -> Instant {
        let turn = self
            .pause
            .mul_f64(line.sender as f64 / self.speakers.len().max(1) as f64);
        self.start + self.pause.mul_f64(line.number as f64) + turn
    }
}

/// What one client heard in one round, or all of them together.
#[derive(Debug)]
pub struct Heard {
    /// Whether everything came as it should.
    pub balance: Balance,
    /// From when a line was due to when it was heard, in microseconds.
    pub latency_us: Histogram<u64>,
    /// When the last line came.
    pub last: Instant,
    /// Most deliveries that were on their way at once, as far as this client saw.
    pub under_way_max: i64,
    /// Lines that the server, or its own client for good, would not take.
    pub refused: u64,
    /// How often a line had to wait because too many were not acknowledged.
    pub held: u64,
    /// How late it was with a line, at most.
    pub late_max: Duration,
    /// How often its connection was lost.
    pub evicted: u64,
    /// Promises of the protocol that were broken.
    pub troubles: BTreeMap<String, u64>,
}

impl Heard {
    /// Nothing so far.
    pub fn new() -> Heard {
        Heard {
            balance: Balance::default(),
            latency_us: histogram(),
            last: Instant::now(),
            under_way_max: 0,
            refused: 0,
            held: 0,
            late_max: Duration::ZERO,
            evicted: 0,
            troubles: BTreeMap::new(),
        }
    }

    /// Takes in what another client heard.
    pub fn add(&mut self, other: Heard) {
        self.balance += other.balance;
        self.latency_us += other.latency_us;
        self.last = self.last.max(other.last);
        self.under_way_max = self.under_way_max.max(other.under_way_max);
        self.refused += other.refused;
        self.held += other.held;
        self.late_max = self.late_max.max(other.late_max);
        self.evicted += other.evicted;
        for (what, times) in other.troubles {
            *self.troubles.entry(what).or_default() += times;
        }
    }

    fn trouble(&mut self, what: String) {
        if self.troubles.len() < TROUBLES_MAX || self.troubles.contains_key(&what) {
            *self.troubles.entry(what).or_default() += 1;
        }
    }
}

/// Three significant figures up to a minute.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("the bounds are sound")
}

/// One of those who take part.
pub struct Talker {
    client: Client,
    number: usize,
}

impl Talker {
    /// Logs in as speaker `number`.
    pub async fn enter(options: Options, number: usize) -> anyhow::Result<Talker> {
        let client = Client::connect(options).await?;
        Ok(Talker { client, number })
    }

    /// Who it is.
    pub fn char_id(&self) -> Option<CharId> {
        self.client.welcome().map(|welcome| welcome.char_id)
    }

    /// The longest line that its server takes, in bytes.
    pub fn say_bytes_max(&self) -> usize {
        self.client
            .welcome()
            .map_or(0, |welcome| welcome.limits.say_bytes as usize)
    }

    /// Waits until all of them are in view.
    pub async fn see(&mut self, all: &[CharId]) {
        let sees = |client: &Client| {
            let world = client.world();
            all.iter().all(|id| world.entity(id.entity()).is_some())
        };
        while !sees(&self.client) {
            self.client.next().await;
        }
    }

    /// Says and hears one round.
    pub async fn talk(&mut self, script: Arc<Script>) -> Heard {
        let mut heard = Heard::new();
        let mut book = Book::new(script.speakers.len(), script.lines);
        let mut said = 0;
        let mut is_held = false;
        while !(said == script.lines && book.is_full()) {
            let line = Line {
                sender: self.number,
                number: said,
            };
            // A line that is held waits for news from the server.
            let is_due = said < script.lines && !is_held;
            let due = is_due.then(|| script.due(line));
            let now = Instant::now();
            let end = script.end.min(script.said_by.max(heard.last) + QUIET);
            if now >= end {
                break;
            }
            if let Some(due) = due.filter(|&due| due <= now) {
                is_held = !self.say(&script, line, now - due, &mut heard);
                said += u64::from(!is_held);
                continue;
            }
            let wait = due.map_or(end, |due| due.min(end));
            // Ready events are taken without a look at the clock's wheel.
            tokio::select! {
                biased;
                event = self.client.next() => {
                    is_held = false;
                    self.hear(&script, &event, &mut book, &mut heard);
                }
                () = sleep_until(wait) => {}
            }
        }
        heard.balance = book.balance();
        heard
    }

    /// Takes what comes between two rounds, so that no answer is overdue: for so long.
    pub async fn rest(&mut self, until: Instant) {
        while timeout_at(until, self.client.next()).await.is_ok() {}
    }

    /// Says a line; false if it has to wait.
    fn say(&mut self, script: &Script, line: Line, late: Duration, heard: &mut Heard) -> bool {
        heard.late_max = heard.late_max.max(late);
        let text = script.form.write(line);
        match self.client.send(Order::Say { text }) {
            Ok(_) => {
                let listeners = script.speakers.len() as i64;
                let before = script.under_way.fetch_add(listeners, Relaxed);
                heard.under_way_max = heard.under_way_max.max(before + listeners);
            }
            Err(SendError::Full) => {
                heard.held += 1;
                return false;
            }
            Err(error) => {
                heard.refused += 1;
                heard.trouble(format!("a line was not sent: {error}"));
            }
        }
        true
    }

    fn hear(&mut self, script: &Script, event: &Event, book: &mut Book, heard: &mut Heard) {
        match event {
            Event::Message(ServerMsg::Said(said)) => {
                let line = script.form.read(&said.speech.text);
                let line = line
                    .filter(|line| script.speakers.get(line.sender) == Some(&said.speech.char_id));
                let Some(line) = line else {
                    return book.enter_unknown();
                };
                book.enter(line.sender, line.number);
                heard.last = Instant::now();
                script.under_way.fetch_sub(1, Relaxed);
                let us = (heard.last - script.due(line)).as_micros() as u64;
                heard.latency_us.saturating_record(us.max(1));
            }
            Event::Message(ServerMsg::Error(error)) => {
                heard.refused += 1;
                heard.trouble(format!("answered {:?}: {}", error.code, error.message));
            }
            Event::Message(ServerMsg::Missed(missed)) => heard.trouble(format!("{missed:?}")),
            Event::Disconnected { code, .. } => {
                heard.evicted += 1;
                heard.trouble(format!("the connection was lost, code {code:?}"));
            }
            Event::Violation(violation) => heard.trouble(violation.to_string()),
            Event::Stopped(reason) => heard.trouble(format!("stopped: {reason}")),
            Event::Message(_) | Event::Welcomed { .. } => {}
        }
    }
}
