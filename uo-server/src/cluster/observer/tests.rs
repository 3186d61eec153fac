//! Windows, read by read.

use super::*;

const A: BootId = BootId(1);
const B: BootId = BootId(2);

struct Watcher {
    observer: Observer,
    timing: Timing,
}

impl Watcher {
    fn new() -> Watcher {
        Watcher {
            observer: Observer::new(Planted::NONE),
            timing: Timing::default(),
        }
    }

    fn pass(&mut self, ms: u64) {
        let presumed = self.observer.elapse(ms, &self.timing);
        assert_eq!(presumed, [], "nothing is presumed because time passes");
    }

    fn send(&mut self) {
        self.observer.read_sent(&self.timing);
    }

    fn receive(&mut self, rows: &[Sighting]) -> Vec<Evidence> {
        self.observer.read_received(rows, &self.timing)
    }

    fn read(&mut self, rows: &[Sighting]) -> Vec<Evidence> {
        self.send();
        self.receive(rows)
    }

    /// Reads every 200 ms for `ms` and returns what the last one gave; none before it may give anything.
    fn read_for(&mut self, ms: u64, rows: &[Sighting]) -> Vec<Evidence> {
        let mut last = Vec::new();
        for passed in (0..ms).step_by(200) {
            assert_eq!(last, [], "after {passed} of {ms} ms");
            self.pass(200);
            last = self.read(rows);
        }
        last
    }
}

fn row(boot: BootId, beat: u64) -> Sighting {
    Sighting {
        boot,
        beat,
        says: Says::Nothing,
    }
}

fn fenced(boot: BootId, beat: u64, life: u64) -> Sighting {
    Sighting {
        says: Says::Fenced { life },
        ..row(boot, beat)
    }
}

#[test]
fn a_row_that_stands_still_is_presumed_gone_by_a_read_sent_after_its_window() {
    let mut watcher = Watcher::new();
    assert_eq!(watcher.read(&[row(A, 7)]), []);
    assert_eq!(watcher.read_for(2_600, &[row(A, 7)]), [Evidence::Gone(A)]);
    assert!(watcher.observer.is_gone(A));
    watcher.pass(200);
    assert_eq!(
        watcher.read(&[row(A, 7)]),
        [Evidence::Gone(A)],
        "until it is dealt with"
    );
    watcher.pass(200);
    assert_eq!(watcher.read(&[row(A, 8)]), []);
    assert!(!watcher.observer.is_gone(A));
}

#[test]
fn a_row_that_moves_is_never_presumed_gone() {
    let mut watcher = Watcher::new();
    for beat in 0..50 {
        assert_eq!(watcher.read_for(400, &[row(A, beat)]), []);
    }
}

/// Measured at the receipt, the slow read would presume gone who has beaten since it was answered. (`ripe` set in
/// `read_received`: red.)
#[test]
fn what_counts_is_when_the_read_was_sent() {
    let mut watcher = Watcher::new();
    watcher.read(&[row(A, 7)]);
    watcher.read_for(2_400, &[row(A, 7)]);
    watcher.send();
    watcher.pass(900);
    assert_eq!(watcher.receive(&[row(A, 7)]), []);
    assert_eq!(watcher.read(&[row(A, 7)]), [Evidence::Gone(A)]);
}

/// Measured from the sending of the first read, the beat may have been new long after it.
#[test]
fn a_window_begins_with_the_receipt() {
    let mut watcher = Watcher::new();
    watcher.send();
    watcher.pass(900);
    watcher.receive(&[row(A, 7)]);
    assert_eq!(watcher.read_for(2_400, &[row(A, 7)]), []);
    assert_eq!(watcher.read_for(200, &[row(A, 7)]), [Evidence::Gone(A)]);
}

#[test]
fn a_failed_read_or_beat_begins_every_window_again() {
    let fail_read = |watcher: &mut Watcher| {
        watcher.send();
        watcher.observer.read_failed();
    };
    let fail_beat = |watcher: &mut Watcher| watcher.observer.own_beat_failed();
    let fails: [&dyn Fn(&mut Watcher); 2] = [&fail_read, &fail_beat];
    for fail in fails {
        let mut watcher = Watcher::new();
        watcher.read(&[row(A, 7)]);
        watcher.read_for(2_400, &[row(A, 7)]);
        fail(&mut watcher);
        assert_eq!(
            watcher.read_for(2_600, &[row(A, 7)]),
            [],
            "begun by the first of these"
        );
        assert_eq!(watcher.read_for(200, &[row(A, 7)]), [Evidence::Gone(A)]);
    }
}

#[test]
fn a_beat_that_fails_under_a_ripe_read_spoils_it() {
    let mut watcher = Watcher::new();
    watcher.read(&[row(A, 7)]);
    watcher.read_for(2_400, &[row(A, 7)]);
    watcher.pass(200);
    watcher.send();
    watcher.observer.own_beat_failed();
    assert_eq!(watcher.receive(&[row(A, 7)]), []);
}

#[test]
fn after_an_outage_of_reads_windows_are_twice_as_long() {
    let mut watcher = Watcher::new();
    watcher.read(&[row(A, 7)]);
    watcher.pass(1_100);
    assert!(watcher.observer.is_outage());
    watcher.read(&[row(A, 7), row(B, 1)]);
    assert!(!watcher.observer.is_outage());
    let gone = watcher.read_for(5_000, &[row(A, 7), row(B, 1)]);
    assert_eq!(gone, [Evidence::Gone(A), Evidence::Gone(B)]);
}

/// (`is_mute` replaced by false: red.)
#[test]
fn beats_that_are_not_acknowledged_make_an_outage_too() {
    let mut watcher = Watcher::new();
    watcher.observer.own_beat_acknowledged();
    watcher.read(&[row(A, 7)]);
    watcher.read_for(1_000, &[row(A, 7)]);
    assert!(watcher.observer.is_outage());
    watcher.observer.own_beat_acknowledged();
    watcher.read(&[row(A, 7)]);
    assert!(!watcher.observer.is_outage());
    assert_eq!(watcher.read_for(800, &[row(A, 7)]), []);
    for _ in 0..20 {
        watcher.observer.own_beat_acknowledged();
        assert_eq!(watcher.read_for(200, &[row(A, 7)]), []);
    }
    watcher.observer.own_beat_acknowledged();
    assert_eq!(watcher.read_for(200, &[row(A, 7)]), [Evidence::Gone(A)]);
}

#[test]
fn whoever_moves_after_an_outage_is_watched_as_always() {
    let mut watcher = Watcher::new();
    watcher.pass(1_100);
    watcher.read(&[row(A, 7)]);
    watcher.read(&[row(A, 8)]);
    assert_eq!(watcher.read_for(2_600, &[row(A, 8)]), [Evidence::Gone(A)]);
}

/// A boot that a lease names and no row shows: reads that were sent before the lease was read say nothing about it. (The
/// window begun at once: red.)
#[test]
fn the_window_of_an_absent_boot_begins_with_the_first_read_sent_after_it_was_named() {
    let mut watcher = Watcher::new();
    watcher.read_for(4_000, &[]);
    watcher.send();
    watcher.observer.watch(A, &watcher.timing.clone());
    assert_eq!(watcher.receive(&[]), []);
    assert_eq!(watcher.read(&[]), [], "this one begins it");
    assert_eq!(watcher.read_for(2_600, &[]), [Evidence::Gone(A)]);
}

#[test]
fn an_absent_boot_that_appears_is_not_gone() {
    let mut watcher = Watcher::new();
    watcher.observer.watch(A, &watcher.timing.clone());
    watcher.read_for(2_600, &[]);
    assert_eq!(watcher.read(&[row(A, 1)]), []);
    assert_eq!(watcher.read_for(2_600, &[row(A, 1)]), [Evidence::Gone(A)]);
}

#[test]
fn fenced_counts_after_a_second_of_reads_at_the_same_life() {
    let mut watcher = Watcher::new();
    watcher.read(&[fenced(A, 1, 3)]);
    assert_eq!(watcher.read_for(800, &[fenced(A, 2, 3)]), []);
    watcher.pass(200);
    assert_eq!(watcher.read(&[fenced(A, 3, 4)]), [], "another life");
    assert_eq!(watcher.read_for(800, &[fenced(A, 3, 4)]), []);
    assert_eq!(
        watcher.read_for(200, &[fenced(A, 4, 4)]),
        [Evidence::Fenced(A, 4)]
    );
    assert_eq!(watcher.read(&[row(A, 5)]), [], "it has thawed");
    assert_eq!(watcher.read(&[fenced(A, 6, 5)]), []);
}

/// The beat that permits a thaw still says `fenced`: after an outage everybody's does. (The look at `doubled` removed:
/// red.)
#[test]
fn fenced_does_not_count_in_a_doubled_window() {
    let mut watcher = Watcher::new();
    watcher.pass(1_100);
    watcher.read(&[fenced(A, 1, 3)]);
    assert_eq!(watcher.read_for(4_800, &[fenced(A, 1, 3)]), []);
    assert_eq!(
        watcher.read(&[fenced(A, 2, 3)]),
        [],
        "and begins anew after it"
    );
    assert_eq!(watcher.read_for(800, &[fenced(A, 3, 3)]), []);
    assert_eq!(
        watcher.read_for(200, &[fenced(A, 4, 3)]),
        [Evidence::Fenced(A, 3)]
    );
}

#[test]
fn done_counts_at_once() {
    let mut watcher = Watcher::new();
    let done = Sighting {
        says: Says::Done { life: 2 },
        ..row(A, 9)
    };
    assert_eq!(watcher.read(&[done]), [Evidence::Done(A, 2)]);
}

#[test]
fn an_answer_without_a_read_changes_nothing() {
    let mut watcher = Watcher::new();
    watcher.send();
    watcher.observer.read_failed();
    let before = watcher.observer.clone();
    assert_eq!(watcher.receive(&[row(A, 7)]), []);
    assert_eq!(watcher.observer, before);
}
