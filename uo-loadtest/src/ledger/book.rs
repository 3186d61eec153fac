//! The bookkeeping: which lines one receiver has heard of whom, and whether each came once and in its turn.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// What a line that arrived was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The next of its sender.
    Next,
    /// One or more before it are not there, yet.
    Early,
    /// A later one came before it.
    Late,
    /// It was there already.
    Doubled,
    /// No sender of this round says it.
    Unknown,
}

/// What one receiver, or all of them together, have heard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// Lines that should have come.
    pub expected: u64,
    /// Of those, lines that came.
    pub delivered: u64,
    /// Lines that came once more.
    pub doubled: u64,
    /// Lines that came after a later one of the same sender.
    pub disordered: u64,
    /// Lines that nobody of this round said.
    pub unknown: u64,
}

impl Balance {
    /// Lines that never came.
    pub fn missing(&self) -> u64 {
        self.expected - self.delivered
    }

    /// Whether every line came exactly once and in order, and nothing else did.
    pub fn is_exact(&self) -> bool {
        self.missing() + self.doubled + self.disordered + self.unknown == 0
    }
}

impl std::ops::AddAssign for Balance {
    fn add_assign(&mut self, other: Balance) {
        self.expected += other.expected;
        self.delivered += other.delivered;
        self.doubled += other.doubled;
        self.disordered += other.disordered;
        self.unknown += other.unknown;
    }
}

/// What one receiver has heard of one sender.
#[derive(Clone, Debug, Default)]
struct Page {
    /// A bit for each line.
    heard: Vec<u64>,
    /// One above the highest line heard.
    next: u64,
}

/// What one receiver has heard of everybody.
#[derive(Clone, Debug)]
pub struct Book {
    pages: Vec<Page>,
    /// Lines that each sender says, numbered from 0.
    lines: u64,
    balance: Balance,
}

impl Book {
    /// An empty book for `senders`, of whom each says so many lines.
    pub fn new(senders: usize, lines: u64) -> Book {
        Book {
            pages: vec![Page::default(); senders],
            lines,
            balance: Balance {
                expected: senders as u64 * lines,
                ..Balance::default()
            },
        }
    }

    /// Line `line` of `sender` arrived.
    pub fn enter(&mut self, sender: usize, line: u64) -> Entry {
        let page = self.pages.get_mut(sender);
        let Some(page) = page.filter(|_| line < self.lines) else {
            self.balance.unknown += 1;
            return Entry::Unknown;
        };
        let (word, bit) = ((line / 64) as usize, 1u64 << (line % 64));
        if page.heard.len() <= word {
            page.heard.resize(word + 1, 0);
        }
        if page.heard[word] & bit != 0 {
            self.balance.doubled += 1;
            return Entry::Doubled;
        }
        page.heard[word] |= bit;
        self.balance.delivered += 1;
        if line < page.next {
            self.balance.disordered += 1;
            return Entry::Late;
        }
        let entry = if line == page.next {
            Entry::Next
        } else {
            Entry::Early
        };
        page.next = line + 1;
        entry
    }

    /// Something arrived that is no line of this round.
    pub fn enter_unknown(&mut self) {
        self.balance.unknown += 1;
    }

    /// Whether every line came, in whatever order.
    pub fn is_full(&self) -> bool {
        self.balance.missing() == 0
    }

    /// What came and what did not.
    pub fn balance(&self) -> Balance {
        self.balance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A book of two senders with four lines each, in which these were entered.
    fn book(entries: &[(usize, u64)]) -> (Book, Vec<Entry>) {
        let mut book = Book::new(2, 4);
        let entries = entries.iter();
        let entries = entries.map(|&(sender, line)| book.enter(sender, line));
        let entries = entries.collect();
        (book, entries)
    }

    const ALL: [(usize, u64); 8] = [
        (0, 0),
        (1, 0),
        (1, 1),
        (0, 1),
        (0, 2),
        (1, 2),
        (1, 3),
        (0, 3),
    ];

    #[test]
    fn everything_once_and_in_order_is_exact_however_senders_mix() {
        let (book, entries) = book(&ALL);
        assert!(entries.iter().all(|&entry| entry == Entry::Next));
        assert!(book.is_full() && book.balance().is_exact());
        assert_eq!(book.balance().delivered, 8);
    }

    #[test]
    fn a_line_that_was_dropped_is_missing() {
        for dropped in 0..ALL.len() {
            let mut lines = ALL.to_vec();
            lines.remove(dropped);
            let (book, _) = book(&lines);
            assert_eq!(book.balance().missing(), 1);
            assert_eq!(book.balance().disordered, 0);
            assert!(!book.is_full() && !book.balance().is_exact());
        }
    }

    #[test]
    fn a_line_that_was_doubled_is_found_at_once_or_later() {
        for (doubled, place) in [(0, 1), (0, 8), (3, 5), (7, 8)] {
            let mut lines = ALL.to_vec();
            lines.insert(place, ALL[doubled]);
            let (book, entries) = book(&lines);
            assert_eq!(entries[place], Entry::Doubled);
            assert_eq!((book.balance().doubled, book.balance().missing()), (1, 0));
            assert!(book.is_full() && !book.balance().is_exact());
        }
    }

    #[test]
    fn two_lines_that_were_swapped_are_out_of_order() {
        let mut lines = ALL.to_vec();
        lines.swap(3, 4);
        let (book, entries) = book(&lines);
        assert_eq!(entries[3..5], [Entry::Early, Entry::Late]);
        assert_eq!(book.balance().disordered, 1);
        assert!(book.is_full() && !book.balance().is_exact());
        // Those of different senders have no order.
        let mut lines = ALL.to_vec();
        lines.swap(0, 1);
        assert!(self::book(&lines).0.balance().is_exact());
    }

    #[test]
    fn what_nobody_said_is_unknown() {
        let (mut book, entries) = book(&[(2, 0), (0, 4)]);
        assert_eq!(entries, [Entry::Unknown; 2]);
        book.enter_unknown();
        assert_eq!(book.balance().unknown, 3);
    }
}
