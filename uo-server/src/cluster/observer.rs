//! Which boots are presumed gone: rows of `nodes` that stand still from one read to a fresh one.
//!
//! One read is under way at a time. For each boot there is a *window*: the time since the receipt of the first read that
//! showed its present beat. When a read is *sent* each window notes whether it is long enough ("ripe"); only the handler
//! of that very read may presume a boot gone, when the beat still has not moved. Any other order can be wrong: measured
//! from receipt to receipt, or without a read that was sent afterwards, the newest beats may be on their way to us.
//!
//! Whoever cannot read or beat itself learns nothing about others: a failed read or a failed beat of one's own starts
//! every window again. After an outage the windows begun by the first read are twice as long, so that those who were
//! frozen by it thaw before anybody presumes anything.
//!
//! A presumption is no fact yet; [`life`](super::life) makes it one.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use super::age::Age;
use super::timing::Timing;
use crate::identity::BootId;
use crate::planted::{Planted, PlantedBug};

/// What a row says that bears on life and death.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Says {
    /// Nothing of the kind.
    Nothing,
    /// That it does not act until it thaws, at the life that it names.
    Fenced {
        /// That life.
        life: u64,
    },
    /// That it will never act again, at the life that it names.
    Done {
        /// That life.
        life: u64,
    },
}

/// One row of a read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Sighting {
    /// Whose.
    pub boot: BootId,
    /// Its beat. Only whether it differs from the one before means anything.
    pub beat: u64,
    /// What it says.
    pub says: Says,
}

/// What a read gives reason to believe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Evidence {
    /// That boot is presumed gone: it acts no more unless it thaws.
    Gone(BootId),
    /// That boot said at this life, for long enough, that it is fenced.
    Fenced(BootId, u64),
    /// That boot said that it is done with this life.
    Done(BootId, u64),
}

impl Evidence {
    /// Whom it is about.
    pub fn boot(self) -> BootId {
        match self {
            Evidence::Gone(boot) | Evidence::Fenced(boot, _) | Evidence::Done(boot, _) => boot,
        }
    }
}

/// What is known of one boot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Window {
    /// Its present beat; none: no row of it.
    beat: Option<u64>,
    /// Since the receipt of the first read that showed this; none: no read has since the window was started (again).
    age: Option<Age>,
    /// No read was sent yet since this boot was named. The one under way says nothing about it.
    unasked: bool,
    /// Begun by the first read after an outage.
    doubled: bool,
    /// The read under way was sent when this window was long enough.
    ripe: bool,
    /// Presumed gone, until it moves.
    gone: bool,
    fenced: Option<FencedFor>,
}

/// A row that says `fenced`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct FencedFor {
    life: u64,
    /// Since the receipt of the first read that showed this, outside doubled windows.
    age: Age,
    /// The read under way was sent when that was long enough.
    ripe: bool,
}

impl Window {
    fn new(beat: Option<u64>) -> Window {
        Window {
            beat,
            age: None,
            unasked: false,
            doubled: false,
            ripe: false,
            gone: false,
            fenced: None,
        }
    }

    fn length_ms(&self, timing: &Timing) -> u64 {
        if self.doubled {
            timing.gone_after_outage_ms
        } else {
            timing.gone_ms
        }
    }

    fn begin(&mut self, beat: Option<u64>, doubled: bool) {
        self.beat = beat;
        self.age = Some(Age::ZERO);
        self.doubled = doubled;
        self.ripe = false;
    }

    /// The next read that shows it begins it again.
    fn restart(&mut self) {
        self.age = None;
        self.ripe = false;
        self.fenced = None;
    }

    fn elapse(&mut self, ms: u64, timing: &Timing) {
        let length_ms = self.length_ms(timing);
        if let Some(age) = &mut self.age {
            age.elapse(ms, length_ms);
        }
        if let Some(fenced) = &mut self.fenced {
            fenced.age.elapse(ms, timing.fenced_seen_ms);
        }
    }

    fn is_long_enough(&self, timing: &Timing) -> bool {
        self.age
            .is_some_and(|age| age.reached(self.length_ms(timing)))
    }

    /// Takes in what a read shows, and whether it is for the first time.
    fn show(&mut self, beat: Option<u64>, doubled: bool) {
        let moved = self.beat != beat;
        if moved {
            self.gone = false;
        }
        if moved || self.age.is_none() {
            self.begin(beat, doubled);
        }
    }

    /// Whether it has said `fenced` for long enough.
    fn says_fenced(&mut self, says: Says, timing: &Timing, planted: Planted) -> Option<u64> {
        let Says::Fenced { life } = says else {
            self.fenced = None;
            return None;
        };
        if planted.has(PlantedBug::FencedKillsAtOnce) {
            return Some(life);
        }
        if self.doubled {
            self.fenced = None;
            return None;
        }
        match &mut self.fenced {
            Some(fenced) if fenced.life == life => fenced.ripe.then_some(life),
            _ => {
                self.fenced = Some(FencedFor {
                    life,
                    age: Age::ZERO,
                    ripe: timing.fenced_seen_ms == 0,
                });
                None
            }
        }
    }
}

/// One node's view of all others. The caller leaves out its own boots, those that are dead, and one read while another
/// is under way.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Observer {
    windows: BTreeMap<BootId, Window>,
    reading: bool,
    /// Since the receipt of the last successful read.
    read: Age,
    /// Since the receipt of the last acknowledgement of an own beat; none: this node does not beat yet.
    beat: Option<Age>,
    /// There is an outage, or was one until the next read.
    outage: bool,
    planted: Planted,
}

impl Observer {
    /// An observer that has seen nothing.
    pub fn new(planted: Planted) -> Observer {
        Observer {
            windows: BTreeMap::new(),
            reading: false,
            read: Age::ZERO,
            beat: None,
            outage: false,
            planted,
        }
    }

    /// `ms` pass. To be called before anything else that happens is looked at. What it returns is empty but for a
    /// planted bug: nothing is presumed because time passes.
    pub fn elapse(&mut self, ms: u64, timing: &Timing) -> Vec<Evidence> {
        self.read.elapse(ms, timing.outage_ms);
        if let Some(beat) = &mut self.beat {
            beat.elapse(ms, timing.outage_ms);
        }
        for window in self.windows.values_mut() {
            window.elapse(ms, timing);
        }
        let is_deaf = self.read.reached(timing.outage_ms);
        if (is_deaf || self.is_mute(timing)) && !self.outage {
            self.outage = true;
            self.restart();
        }
        if self.planted.has(PlantedBug::UnchangedWithoutFreshRead) {
            return self.unchanged(timing);
        }
        Vec::new()
    }

    /// Whether no own beat was acknowledged for too long.
    fn is_mute(&self, timing: &Timing) -> bool {
        let counts = !self.planted.has(PlantedBug::OutageByReadsAlone);
        counts && self.beat.is_some_and(|beat| beat.reached(timing.outage_ms))
    }

    fn restart(&mut self) {
        for window in self.windows.values_mut() {
            window.restart();
        }
    }

    fn unchanged(&self, timing: &Timing) -> Vec<Evidence> {
        self.windows
            .iter()
            .filter(|(_, window)| window.is_long_enough(timing))
            .map(|(boot, _)| Evidence::Gone(*boot))
            .collect()
    }

    /// A row names this boot. If nothing is known of it, the next read to be sent begins its window.
    pub fn watch(&mut self, boot: BootId, timing: &Timing) {
        if self.windows.contains_key(&boot) {
            return;
        }
        let mut window = Window::new(None);
        if self.planted.has(PlantedBug::AbsentWindowBeforeLease) {
            window.age = Some(Age::of(timing.gone_ms));
            window.ripe = self.reading;
        } else {
            window.unasked = true;
        }
        self.windows.insert(boot, window);
    }

    /// Nothing about this boot is of interest any more: it is dead.
    pub fn forget(&mut self, boot: BootId) {
        self.windows.remove(&boot);
    }

    /// A read of `nodes` goes out.
    pub fn read_sent(&mut self, timing: &Timing) {
        self.reading = true;
        for window in self.windows.values_mut() {
            window.unasked = false;
            window.ripe = window.is_long_enough(timing);
            if let Some(fenced) = &mut window.fenced {
                fenced.ripe = fenced.age.reached(timing.fenced_seen_ms);
            }
        }
    }

    /// The read under way failed.
    pub fn read_failed(&mut self) {
        self.reading = false;
        self.restart();
    }

    /// The read under way shows these rows, in the order of their boots, each once.
    pub fn read_received(&mut self, rows: &[Sighting], timing: &Timing) -> Vec<Evidence> {
        if !std::mem::take(&mut self.reading) {
            return Vec::new();
        }
        self.read = Age::ZERO;
        let doubled = self.outage;
        self.outage = self.is_mute(timing);
        let mut evidence = Vec::new();
        for row in rows {
            let window = self
                .windows
                .entry(row.boot)
                .or_insert_with(|| Window::new(Some(row.beat)));
            window.unasked = false;
            window.show(Some(row.beat), doubled);
            if let Says::Done { life } = row.says {
                evidence.push(Evidence::Done(row.boot, life));
            }
            if let Some(life) = window.says_fenced(row.says, timing, self.planted) {
                evidence.push(Evidence::Fenced(row.boot, life));
            }
        }
        for (boot, window) in &mut self.windows {
            let is_shown = rows.binary_search_by_key(boot, |row| row.boot).is_ok();
            if !is_shown && !window.unasked {
                window.show(None, doubled);
                window.fenced = None;
            }
            if is_gone(window, is_shown, timing, self.planted) {
                window.gone = true;
                evidence.push(Evidence::Gone(*boot));
            }
            window.ripe = false;
        }
        evidence
    }

    /// An own beat goes out.
    pub fn own_beat_sent(&mut self) {
        self.beat.get_or_insert(Age::ZERO);
    }

    /// An own beat was acknowledged.
    pub fn own_beat_acknowledged(&mut self) {
        self.beat = Some(Age::ZERO);
    }

    /// An own beat failed, or nobody knows.
    pub fn own_beat_failed(&mut self) {
        if !self.planted.has(PlantedBug::OutageByReadsAlone) {
            self.restart();
        }
    }

    /// Whether this boot is presumed gone.
    pub fn is_gone(&self, boot: BootId) -> bool {
        self.windows.get(&boot).is_some_and(|window| window.gone)
    }

    /// Whether anything is known of this boot, or asked.
    pub fn knows(&self, boot: BootId) -> bool {
        self.windows.contains_key(&boot)
    }

    /// Boots that no row shows, or whose row has stood still for half of their window: it is time to learn their lives.
    pub fn suspects<'a>(&'a self, timing: &'a Timing) -> impl Iterator<Item = BootId> + 'a {
        self.windows
            .iter()
            .filter(|(_, window)| {
                let half_ms = window.length_ms(timing) / 2;
                window.beat.is_none() || window.age.is_some_and(|age| age.reached(half_ms))
            })
            .map(|(boot, _)| *boot)
    }

    /// Whether there is an outage, or was one until the next read.
    pub fn is_outage(&self) -> bool {
        self.outage
    }

    /// How many boots are known.
    pub fn known(&self) -> usize {
        self.windows.len()
    }

    /// Replaces each beat by what `rank` makes of it. For model checkers: states whose beats differ by name only are to
    /// be equal, and only whether a beat moved matters.
    pub fn renumber(&mut self, mut rank: impl FnMut(BootId, u64) -> u64) {
        for (boot, window) in &mut self.windows {
            if let Some(beat) = &mut window.beat {
                *beat = rank(*boot, *beat);
            }
        }
    }

    /// The same for the lives that rows which say `fenced` name.
    pub fn renumber_lives(&mut self, mut rank: impl FnMut(BootId, u64) -> u64) {
        for (boot, window) in &mut self.windows {
            if let Some(fenced) = &mut window.fenced {
                fenced.life = rank(*boot, fenced.life);
            }
        }
    }

    /// Which boots say `fenced`, and at which lives.
    pub fn fenced(&self) -> impl Iterator<Item = (BootId, u64)> + '_ {
        let fenced =
            |(boot, window): (&BootId, &Window)| Some((*boot, window.fenced.as_ref()?.life));
        self.windows.iter().filter_map(fenced)
    }

    /// Whether the window of this boot is one that an outage made longer.
    pub fn is_doubled(&self, boot: BootId) -> bool {
        self.windows.get(&boot).is_some_and(|window| window.doubled)
    }
}

/// Whether the read that just came presumes a boot gone.
fn is_gone(window: &Window, is_shown: bool, timing: &Timing, planted: Planted) -> bool {
    if planted.has(PlantedBug::PresenceByTtl) {
        return !is_shown && !window.unasked;
    }
    if planted.has(PlantedBug::UnchangedReceiptToReceipt) {
        return window.is_long_enough(timing);
    }
    window.ripe
}

#[cfg(test)]
mod tests;
