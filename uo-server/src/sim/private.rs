//! The private reliable stream of one character: numbered without gaps, kept until the client has it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::VecDeque;

use uo_proto::ServerMsg;

use crate::limits::PRIVATE_KEPT_MAX;

/// What one player alone is told, in order, across gateways and owners.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PrivateStream {
    last: u64,
    /// The newest messages, oldest first, their numbers without a gap up to `last`.
    kept: VecDeque<ServerMsg>,
}

impl PrivateStream {
    /// A stream that goes on from a row or an offer.
    pub fn from_parts(last: u64, kept: Vec<ServerMsg>) -> PrivateStream {
        let mut stream = PrivateStream {
            last,
            kept: kept.into(),
        };
        stream.bound();
        stream
    }

    /// The number of the newest message; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Messages that are not acknowledged, oldest first.
    pub fn kept(&self) -> Vec<ServerMsg> {
        self.kept.iter().cloned().collect()
    }

    /// Adds the message that `build` makes of its number.
    pub fn push(&mut self, build: impl FnOnce(u64) -> ServerMsg) -> &ServerMsg {
        self.last += 1;
        self.kept.push_back(build(self.last));
        self.bound();
        &self.kept[self.kept.len() - 1]
    }

    /// The client has everything up to `through`.
    pub fn acknowledge(&mut self, through: u64) {
        while self.first_kept() <= through && self.kept.pop_front().is_some() {}
    }

    /// The client comes back and has everything up to `has`. Gives the number up to which messages are gone that it does
    /// not have; what is left in [`PrivateStream::kept`] is to be sent again. `crashed`: the last owner died, so there
    /// may have been messages that nobody remembers.
    pub fn resume(&mut self, has: u64, crashed: bool) -> Option<u64> {
        if has > self.last {
            // The client saw messages that were not checkpointed: their numbers must not be used again.
            self.last = has;
            self.kept.clear();
            return Some(has);
        }
        self.acknowledge(has);
        let dropped_through = self.first_kept() - 1;
        if dropped_through > has {
            Some(dropped_through)
        } else {
            crashed.then_some(has)
        }
    }

    fn first_kept(&self) -> u64 {
        self.last + 1 - self.kept.len() as u64
    }

    fn bound(&mut self) {
        while self.kept.len() > PRIVATE_KEPT_MAX {
            self.kept.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use uo_proto::{ErrorCode, ErrorMsg};

    use super::*;

    fn error(private: u64) -> ServerMsg {
        ServerMsg::Error(ErrorMsg {
            code: ErrorCode::NotNow,
            message: String::new(),
            seq: None,
            private: Some(private),
        })
    }

    fn stream(messages: u64) -> PrivateStream {
        let mut stream = PrivateStream::default();
        for _ in 0..messages {
            stream.push(error);
        }
        stream
    }

    fn numbers(stream: &PrivateStream) -> Vec<u64> {
        stream
            .kept()
            .iter()
            .filter_map(ServerMsg::private)
            .collect()
    }

    #[test]
    fn keeps_what_is_not_acknowledged() {
        let mut stream = stream(5);
        stream.acknowledge(3);
        assert_eq!(numbers(&stream), [4, 5]);
        stream.acknowledge(99);
        assert_eq!(numbers(&stream), [] as [u64; 0]);
        stream.push(error);
        assert_eq!(numbers(&stream), [6]);
    }

    #[test]
    fn says_what_was_dropped_at_the_bound() {
        let mut stream = stream(PRIVATE_KEPT_MAX as u64 + 10);
        assert_eq!(stream.resume(4, false), Some(10));
        assert_eq!(numbers(&stream).first(), Some(&11));
    }

    #[test]
    fn resumes_without_loss_when_everything_is_kept() {
        let mut stream = stream(5);
        assert_eq!(stream.resume(2, false), None);
        assert_eq!(numbers(&stream), [3, 4, 5]);
        assert_eq!(
            stream.resume(5, true),
            Some(5),
            "a crash may have lost what nobody remembers"
        );
    }

    #[test]
    fn numbers_that_a_client_saw_are_not_used_again() {
        let mut stream = stream(5);
        assert_eq!(stream.resume(8, true), Some(8));
        assert_eq!(stream.push(error).private(), Some(9));
    }
}
