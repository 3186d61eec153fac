//! What the shells measure: durations as Prometheus histograms and as quantiles of the last minute, and counts.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram as Hdr;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use crate::crossing::{GapCause, Measured};
use crate::sim::schedule::Due;

/// The window of quantiles: this many slices of [`SLICE`] each.
const SLICES: usize = 6;
const SLICE: Duration = Duration::from_secs(10);
/// Durations above this are counted as this.
const DURATION_MAX_US: u64 = 60_000_000;
/// Upper bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 22] = [
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.010,
    0.015, 0.020, 0.025, 0.035, 0.045, 0.050, 0.1, 0.25, 0.5, 1.0,
];

/// A duration that happens again and again.
#[derive(Debug)]
pub struct Timing {
    /// Since the start.
    pub histogram: Histogram,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    slices: Vec<Hdr<u64>>,
    current: usize,
    since: Instant,
}

/// Seconds of the last minute.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Quantiles {
    /// Median.
    pub p50: f64,
    /// 99 of 100 are no longer.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Default for Timing {
    fn default() -> Self {
        let slice = Hdr::new_with_bounds(1, DURATION_MAX_US, 2).expect("the bounds are in order");
        Timing {
            histogram: Histogram::new(BUCKETS),
            window: Mutex::new(Window {
                slices: vec![slice; SLICES],
                current: 0,
                since: Instant::now(),
            }),
        }
    }
}

impl Timing {
    /// Notes one duration.
    pub fn record(&self, duration: Duration) {
        self.histogram.observe(duration.as_secs_f64());
        let mut window = self.window.lock().expect("nothing panics while it is held");
        window.turn();
        let current = window.current;
        window.slices[current].saturating_record(duration.as_micros() as u64);
    }

    /// The quantiles of the last minute.
    pub fn quantiles(&self) -> Quantiles {
        let mut window = self.window.lock().expect("nothing panics while it is held");
        window.turn();
        let mut all = window.slices[0].clone();
        for slice in &window.slices[1..] {
            all.add(slice).expect("the slices have the same bounds");
        }
        let seconds = |micros: u64| micros as f64 / 1e6;
        Quantiles {
            p50: seconds(all.value_at_quantile(0.5)),
            p99: seconds(all.value_at_quantile(0.99)),
            max: seconds(all.max()),
        }
    }

    /// A stopwatch for this timing.
    pub fn start(&self) -> Stopwatch {
        Stopwatch {
            histogram: self.histogram.clone(),
            begun: Instant::now(),
        }
    }
}

impl Window {
    fn turn(&mut self) {
        let mut turns = 0;
        while self.since.elapsed() >= SLICE && turns < SLICES {
            self.current = (self.current + 1) % SLICES;
            self.slices[self.current].reset();
            self.since += SLICE;
            turns += 1;
        }
        if turns == SLICES {
            self.since = Instant::now();
        }
    }
}

/// Running since it was made; for work that ends on another thread (its quantiles are not kept).
#[derive(Debug)]
pub struct Stopwatch {
    histogram: Histogram,
    begun: Instant,
}

impl Stopwatch {
    /// Notes the time that passed.
    pub fn stop(self) {
        self.histogram.observe(self.begun.elapsed().as_secs_f64());
    }
}

/// Upper bounds of the buckets of crossings and gaps, in seconds.
const GAP_BUCKETS: [f64; 24] = [
    0.001, 0.002, 0.005, 0.01, 0.025, 0.045, 0.055, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.35, 0.5,
    0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0, 30.0,
];

/// Why a player saw nothing new.
#[derive(Clone, PartialEq, Eq, Hash, Debug, prometheus_client::encoding::EncodeLabelSet)]
pub struct CauseLabel {
    /// See [`GapCause::name`].
    pub cause: &'static str,
}

/// A phase of a crossing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, prometheus_client::encoding::EncodeLabelSet)]
pub struct PhaseLabel {
    /// See [`crate::crossing::Phase::name`].
    pub phase: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// What the flight recorders of this node measure.
#[derive(Debug)]
pub struct Crossings {
    /// Players' gaps.
    pub gaps: Histograms<CauseLabel>,
    /// Phases of crossings.
    pub phases: Histograms<PhaseLabel>,
}

impl Default for Crossings {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(GAP_BUCKETS);
        let gaps = Family::new_with_constructor(histogram);
        // A cause that never was is told as one that was never.
        for cause in GapCause::ALL {
            let cause = cause.name();
            drop(gaps.get_or_create(&CauseLabel { cause }));
        }
        let phases = Family::new_with_constructor(histogram);
        Crossings { gaps, phases }
    }
}

/// A close code.
#[derive(Clone, PartialEq, Eq, Hash, Debug, prometheus_client::encoding::EncodeLabelSet)]
pub struct CodeLabel {
    /// The WebSocket close code.
    pub code: u16,
}

/// Everything the shells of one node measure.
#[derive(Debug, Default)]
pub struct Meters {
    /// Ticks: the work of each.
    pub tick: Timing,
    /// Ticks so far.
    pub ticks: AtomicU64,
    /// Ticks that began late.
    pub ticks_late: AtomicU64,
    /// Ticks that were left out because the thread was more than a period behind.
    pub ticks_skipped: AtomicU64,
    /// Beats that were not acknowledged in time.
    pub beats_failed: AtomicU64,
    /// Handoffs, from leaving one battle to entering the next.
    pub handoff: Timing,
    /// Drains, from the freeze of a region until another node serves it.
    pub drain: Timing,
    /// Crossings and gaps.
    pub crossings: Crossings,
    /// Store calls.
    pub store: Timing,
    /// Gateway flushes.
    pub flush: Timing,
    /// Connections that the gateway closed, by code.
    pub closes: Family<CodeLabel, Counter>,
}

impl Meters {
    /// Notes a tick.
    pub fn ticked(&self, due: Due, work: Duration) {
        self.tick.record(work);
        self.ticks.fetch_add(1, Ordering::Relaxed);
        self.ticks_late
            .fetch_add(due.late_ticks(), Ordering::Relaxed);
        self.ticks_skipped.fetch_add(due.skipped, Ordering::Relaxed);
    }

    /// Notes what a core has measured.
    pub fn measured(&self, measured: Vec<Measured>) {
        let seconds = |ms: u64| ms as f64 / 1e3;
        for measured in measured {
            match measured {
                Measured::Gap(cause, ms) => {
                    let cause = cause.name();
                    let gaps = &self.crossings.gaps;
                    gaps.get_or_create(&CauseLabel { cause })
                        .observe(seconds(ms));
                }
                Measured::Phase(phase, ms) => {
                    let phase = phase.name();
                    let phases = &self.crossings.phases;
                    phases
                        .get_or_create(&PhaseLabel { phase })
                        .observe(seconds(ms));
                }
            }
        }
    }

    /// Notes a close.
    pub fn closed(&self, code: u16) {
        self.closes.get_or_create(&CodeLabel { code }).inc();
    }
}
