//! What crosses the wire between nodes: frames of a four-byte length (big-endian) and one MessagePack value, a [`Packet`].
//!
//! A length is only a promise: memory is taken for bytes that arrived, never for bytes that were announced. A frame that
//! is not MessagePack ends its connection. One that is, but says nothing this build knows, is skipped and counted: the
//! next version may have sent it.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use uo_proto::{DecodeError, Encoding};

use super::Message;
use super::proof::{Hello, Mac, Nonce};
use super::rule::is_known_kind;
use crate::identity::BootId;

/// Bytes of a frame's length.
pub const LENGTH_BYTES: usize = 4;

/// One frame's content.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are told by their names and types")]
pub enum Packet {
    /// Who the sender says it is. The dialer's comes first.
    Hello(Hello),
    /// Prove that you know the secret, over this nonce.
    Challenge { nonce: Nonce },
    /// The proof.
    Proof { mac: Mac },
    /// The connection ends, for this reason, in words.
    Refused { why: String },
    /// Are you there? `at` is the sender's clock, and means nothing to anybody else.
    Ping { at: u64 },
    /// Yes.
    Pong { at: u64 },
    /// A message, in the name of this boot of the sender: a process that was declared dead goes on as another.
    Carry { boot: BootId, message: Message },
}

/// What a frame turned out to be.
#[derive(Clone, PartialEq, Debug)]
pub enum Received {
    /// Something to act on.
    Packet(Packet),
    /// A kind of packet or message that this build does not know.
    Unknown {
        /// Its name.
        kind: String,
    },
    /// A known kind with content that this build cannot read.
    Unreadable {
        /// Its name.
        kind: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Why bytes are not frames. The connection ends: there is no telling where the next frame begins.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FrameError {
    /// It is longer than is allowed here.
    #[error("a frame of {bytes} bytes, where {max} are allowed")]
    TooLong {
        /// Its announced length.
        bytes: usize,
        /// The bound.
        max: usize,
    },
    /// Not one MessagePack value, or not one that names a kind.
    #[error("a frame that is none: {0}")]
    Garbage(String),
}

/// Appends `packet` as a frame. A frame that is too long is not appended.
pub fn write(packet: &Packet, bytes_max: usize, out: &mut Vec<u8>) -> Result<(), FrameError> {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    Encoding::MessagePack.write(packet, out);
    let bytes = out.len() - start - LENGTH_BYTES;
    if bytes > bytes_max {
        out.truncate(start);
        return Err(FrameError::TooLong {
            bytes,
            max: bytes_max,
        });
    }
    let length = u32::try_from(bytes).expect("the bound fits");
    out[start..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// What the content of a frame says.
pub fn read(content: &[u8]) -> Result<Received, FrameError> {
    match Encoding::MessagePack.decode::<Packet>(content) {
        Ok(packet) => Ok(Received::Packet(packet)),
        Err(DecodeError::Garbage(why)) => Err(FrameError::Garbage(why)),
        Err(error) => {
            let kind = kind_of(content).map_err(|why| FrameError::Garbage(why.to_string()))?;
            Ok(match is_known_kind(&kind) {
                true => Received::Unreadable {
                    kind,
                    why: error.to_string(),
                },
                false => Received::Unknown { kind },
            })
        }
    }
}

/// Cuts the frames out of a stream.
#[derive(Clone, Debug, Default)]
pub struct FrameReader {
    bytes: Vec<u8>,
    /// How much of `bytes` was cut out already.
    taken: usize,
}

impl FrameReader {
    /// Takes in what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        // After a rare large frame its memory is given back.
        if self.bytes.is_empty() && self.bytes.capacity() > crate::limits::PEER_WRITE_BYTES * 4 {
            self.bytes = Vec::new();
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The content of the next frame, if all of it is there. `bytes_max` is what the sender may send by now.
    pub fn next(&mut self, bytes_max: usize) -> Result<Option<&[u8]>, FrameError> {
        let Some((length, rest)) = self.bytes[self.taken..].split_first_chunk::<LENGTH_BYTES>()
        else {
            return Ok(None);
        };
        let bytes = u32::from_be_bytes(*length) as usize;
        if bytes > bytes_max {
            return Err(FrameError::TooLong {
                bytes,
                max: bytes_max,
            });
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        let start = self.taken + LENGTH_BYTES;
        self.taken = start + bytes;
        Ok(Some(&self.bytes[start..self.taken]))
    }

    /// Bytes that memory is taken for.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// The kind of a packet, or of the message that it carries: `Ping`, `ToSim.Attach`.
fn kind_of(content: &[u8]) -> Result<String, DecodeError> {
    #[derive(Deserialize)]
    struct Carried {
        message: Named<Named<IgnoredAny>>,
    }
    let outer: Named<IgnoredAny> = Encoding::MessagePack.decode(content)?;
    if outer.name != "Carry" {
        return Ok(outer.name);
    }
    let packet: Named<Carried> = Encoding::MessagePack.decode(content)?;
    let carried = packet.value.map(|carried| carried.message);
    Ok(match carried {
        Some(Named { name, value }) => match value {
            Some(inner) => format!("{name}.{}", inner.name),
            None => name,
        },
        None => outer.name,
    })
}

/// A variant of an enum that need not be known: its name, and what it holds.
struct Named<T> {
    name: String,
    value: Option<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Seen<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name, or a map from one")
            }

            fn visit_str<E>(self, name: &str) -> Result<Named<T>, E> {
                let (name, value) = (name.to_owned(), None);
                Ok(Named { name, value })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let missing = || serde::de::Error::custom("an empty map");
                let (name, value) = map.next_entry()?.ok_or_else(missing)?;
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Named {
                    name,
                    value: Some(value),
                })
            }
        }
        deserializer.deserialize_any(Seen(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests;
