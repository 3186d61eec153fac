//! Several frames in one buffer: one allocation and one write per session and flush.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::ops::Range;

/// Whole WebSocket messages back to back. Each is text or binary as the connection's encoding says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frames {
    /// The messages, one behind the other.
    pub bytes: Vec<u8>,
    /// Where each message but the last ends in `bytes`.
    splits: Vec<u32>,
}

impl Frames {
    /// One message.
    pub fn one(bytes: Vec<u8>) -> Frames {
        Frames {
            bytes,
            splits: Vec::new(),
        }
    }

    /// Appends the message that `write` appends to the bytes it is given; nothing, if it writes nothing.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        if start > 0 && self.bytes.len() > start {
            self.splits.push(start as u32);
        }
    }

    /// Whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many messages.
    pub fn len(&self) -> usize {
        if self.is_empty() {
            0
        } else {
            self.splits.len() + 1
        }
    }

    /// Where each message lies in `bytes`.
    pub fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let end = (!self.is_empty()).then_some(self.bytes.len());
        let ends = self.splits.iter().map(|&end| end as usize).chain(end);
        ends.scan(0, |start, end| {
            let range = *start..end;
            *start = end;
            Some(range)
        })
    }

    /// Each message.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ranges().map(|range| &self.bytes[range])
    }

    /// Forgets the messages and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.splits.clear();
    }

    /// The messages in memory of just their size; this buffer is empty afterwards and keeps its memory.
    pub fn take_exact(&mut self) -> Frames {
        let taken = Frames {
            bytes: self.bytes.as_slice().to_vec(),
            splits: self.splits.as_slice().to_vec(),
        };
        self.clear();
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_went_in() {
        let mut frames = Frames::default();
        assert_eq!((frames.len(), frames.iter().count()), (0, 0));
        for message in ["a", "", "bcd", "ef"] {
            frames.push(|out| out.extend_from_slice(message.as_bytes()));
        }
        let texts: Vec<&[u8]> = frames.iter().collect();
        assert_eq!(texts, [&b"a"[..], b"bcd", b"ef"]);
        assert_eq!(frames.len(), 3);
        assert_eq!(frames.take_exact().len(), 3);
        assert!(frames.is_empty());
        assert_eq!(Frames::one(b"x".to_vec()).iter().count(), 1);
    }
}
