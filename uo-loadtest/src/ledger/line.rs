//! A line that is said: who says it in which round, its number, and filling up to its size.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

/// Shortest line that has room for its numbers, in bytes.
pub const BYTES_MIN: usize = 32;

/// What the rest of a line is made of: readable, and not all the same.
const FILLING: &[u8] = b"the quick brown fox jumps over the lazy dog; ";

/// How the lines of one round are written and read.
#[derive(Clone, Debug)]
pub struct Form {
    round: u32,
    filling: String,
}

/// A line, read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Line {
    /// Which sender.
    pub sender: usize,
    /// Its number, from 0.
    pub number: u64,
}

impl Form {
    /// The form of the lines of a round, of exactly `bytes` each.
    pub fn new(round: u32, bytes: usize) -> Form {
        let filling = FILLING.iter().cycle().map(|&byte| char::from(byte));
        Form {
            round,
            filling: filling.take(bytes.max(BYTES_MIN)).collect(),
        }
    }

    /// Writes a line.
    pub fn write(&self, line: Line) -> String {
        let mut text = format!("{} {} {} ", self.round, line.sender, line.number);
        text.push_str(&self.filling[text.len()..]);
        text
    }

    /// Reads a line; none if it is not one of this round, whole and unchanged.
    pub fn read(&self, text: &str) -> Option<Line> {
        let mut parts = text.splitn(4, ' ');
        let round: u32 = parts.next()?.parse().ok()?;
        let sender = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        let filling = parts.next()?;
        let wanted = self.filling.get(text.len().checked_sub(filling.len())?..)?;
        (round == self.round && filling == wanted).then_some(Line { sender, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_has_its_size() {
        let form = Form::new(7, 1_024);
        for line in [(0, 0), (15, 479), (31, u64::MAX)] {
            let (sender, number) = line;
            let line = Line { sender, number };
            let text = form.write(line);
            assert_eq!(text.len(), 1_024);
            assert_eq!(form.read(&text), Some(line));
        }
    }

    #[test]
    fn what_is_of_another_round_or_garbled_is_no_line() {
        let form = Form::new(7, 64);
        let text = form.write(Line {
            sender: 3,
            number: 5,
        });
        assert_eq!(Form::new(8, 64).read(&text), None);
        assert_eq!(form.read(&text[..63]), None);
        assert_eq!(form.read(&text.replace("fox", "box")), None);
        assert_eq!(form.read(&format!("{text}!")), None);
        assert_eq!(form.read("En garde!"), None);
        assert_eq!(form.read(""), None);
    }
}
