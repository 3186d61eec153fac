//! Proof that nothing was missed: the two reliable streams are numbered without gaps.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use uo_proto::MissedCount;

/// What the number of a reliable message says about it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The next one: take it.
    New,
    /// Seen on an earlier connection of this session: drop it.
    Duplicate,
    /// Seen on this very connection: the server broke its promise.
    Repeated,
    /// At least one before it was lost: the server broke its promise.
    Gap,
}

/// One reliable stream of a session, over all its connections.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    /// Highest number seen in this session.
    last: u64,
    /// Highest number seen on this connection; 0 before the first.
    last_here: u64,
    /// The numbering is not known (after an unknown number of losses): whatever comes next is right.
    rebase: bool,
}

impl Stream {
    /// A new session: its first message has number one.
    pub fn restart(&mut self) {
        *self = Stream::default();
    }

    /// The same session on a new connection.
    pub fn resume(&mut self) {
        self.last_here = 0;
    }

    /// The highest number seen: what `resume` tells the server.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// A message with this number arrived.
    pub fn take(&mut self, number: u64) -> Verdict {
        if std::mem::take(&mut self.rebase) {
            (self.last, self.last_here) = (number, number);
            return Verdict::New;
        }
        if number <= self.last_here {
            return Verdict::Repeated;
        }
        if number <= self.last {
            self.last_here = number;
            return Verdict::Duplicate;
        }
        let gap = number != self.last + 1;
        (self.last, self.last_here) = (number, number);
        if gap { Verdict::Gap } else { Verdict::New }
    }

    /// The server says that it could not keep so many.
    pub fn missed(&mut self, count: MissedCount) {
        match count {
            MissedCount::Count(count) => self.last = self.last.saturating_add(count),
            MissedCount::Unknown => self.rebase = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use Verdict::*;

    use super::*;

    fn verdicts(stream: &mut Stream, numbers: &[u64]) -> Vec<Verdict> {
        numbers.iter().map(|&number| stream.take(number)).collect()
    }

    #[test]
    fn a_gap_and_a_repeat_are_seen() {
        let mut stream = Stream::default();
        assert_eq!(
            verdicts(&mut stream, &[1, 2, 4, 5, 5, 6]),
            [New, New, Gap, New, Repeated, New]
        );
    }

    #[test]
    fn the_first_message_of_a_session_must_be_number_one() {
        assert_eq!(Stream::default().take(2), Gap);
    }

    #[test]
    fn a_replay_after_a_resume_is_dropped_up_to_what_was_seen() {
        let mut stream = Stream::default();
        verdicts(&mut stream, &[1, 2, 3]);
        stream.resume();
        assert_eq!(
            verdicts(&mut stream, &[2, 3, 4, 4]),
            [Duplicate, Duplicate, New, Repeated]
        );
        stream.resume();
        assert_eq!(stream.take(6), Gap);
    }

    #[test]
    fn announced_losses_are_no_gap() {
        let mut stream = Stream::default();
        verdicts(&mut stream, &[1, 2]);
        stream.resume();
        stream.missed(MissedCount::Count(3));
        assert_eq!(stream.take(6), New);
        stream.resume();
        stream.missed(MissedCount::Unknown);
        assert_eq!(verdicts(&mut stream, &[3, 4, 6]), [New, New, Gap]);
    }
}
