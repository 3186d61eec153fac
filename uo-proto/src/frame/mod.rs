//! How messages become bytes and bytes become messages: JSON text frames or MessagePack binary frames, from the same
//! types.
//!
//! Reading order:
//! - this file: the two encodings, and one value to bytes and back;
//! - [`structure`]: the walk over a MessagePack frame that comes before any decoding;
//! - [`client`]: messages of clients, which are not to be trusted;
//! - [`server`]: messages of servers;
//! - [`fragment`]: frames assembled from parts that were encoded before.

mod client;
mod fragment;
mod server;
mod structure;

pub use fragment::DeltaParts;
pub use structure::{DEPTH_MAX, StructureError};

use serde::de::{Deserialize, DeserializeOwned};
use serde::{Deserialize as DeriveDeserialize, Serialize};

use crate::Refusal;

/// Which of the two encodings a connection speaks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Encoding {
    /// Text frames; the default when the client offers no subprotocol.
    #[default]
    Json,
    /// Binary frames; structs as maps with named fields.
    MessagePack,
}

/// Why bytes are not a message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    /// Text that is not UTF-8 or bytes that are not MessagePack: the connection closes with 1007.
    #[error("not decodable: {0}")]
    Garbage(String),
    /// Not JSON, or well-formed but not a message: answered with `invalid`, the connection stays.
    #[error("{why}")]
    Invalid {
        /// What is wrong with it, for people; at most [`REASON_BYTES_MAX`] bytes.
        why: String,
        /// The order it would have been, if that much could be read.
        seq: Option<u64>,
    },
    /// A message with a field out of its bounds: answered with `invalid`, the connection stays.
    #[error("{why}")]
    Refused {
        /// Which bound.
        why: Refusal,
        /// The order it would have been.
        seq: Option<u64>,
    },
}

/// Longest reason of a [`DecodeError`] in bytes: decoders quote what they were given, and that may be a whole frame.
pub const REASON_BYTES_MAX: usize = 200;

impl DecodeError {
    fn invalid(why: impl ToString) -> DecodeError {
        DecodeError::Invalid {
            why: shortened(why.to_string()),
            seq: None,
        }
    }

    /// The same error, about order `of`.
    fn about(mut self, of: Option<u64>) -> DecodeError {
        if let DecodeError::Invalid { seq, .. } | DecodeError::Refused { seq, .. } = &mut self {
            *seq = of;
        }
        self
    }

    /// The order that was meant, for the `error` that answers it.
    pub fn seq(&self) -> Option<u64> {
        match self {
            DecodeError::Garbage(_) => None,
            DecodeError::Invalid { seq, .. } | DecodeError::Refused { seq, .. } => *seq,
        }
    }
}

fn shortened(mut text: String) -> String {
    if text.len() > REASON_BYTES_MAX {
        text.truncate(text.floor_char_boundary(REASON_BYTES_MAX - "…".len()));
        text.push('…');
        text.shrink_to_fit();
    }
    text
}

impl Encoding {
    /// Both encodings.
    pub const ALL: [Encoding; 2] = [Encoding::Json, Encoding::MessagePack];

    /// The WebSocket subprotocol that names it.
    pub const fn subprotocol(self) -> &'static str {
        match self {
            Encoding::Json => "felucca.v2.json",
            Encoding::MessagePack => "felucca.v2.msgpack",
        }
    }

    /// Appends `value` to `out`.
    pub fn write<T: Serialize>(self, value: &T, out: &mut Vec<u8>) {
        match self {
            Encoding::Json => serde_json::to_writer(out, value).expect("our types serialise"),
            Encoding::MessagePack => {
                rmp_serde::encode::write_named(out, value).expect("our types serialise");
            }
        }
    }

    /// `value` as bytes.
    pub fn encode<T: Serialize>(self, value: &T) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        self.write(value, &mut out);
        out
    }

    /// Reads one value that takes up all of `bytes`.
    ///
    /// Memory is bounded by a small multiple of the frame's size, whatever lengths the frame declares. Messages are
    /// better read by [`Encoding::decode_client`] and [`Encoding::decode_server`], which do not buffer.
    pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, DecodeError> {
        Checked::new(self, bytes)?.parse()
    }
}

/// A frame that is sound as far as that can be told without its type.
#[derive(Clone, Copy)]
enum Checked<'a> {
    /// UTF-8. That it is JSON shows when it is parsed: `serde_json` bounds its own depth and believes no lengths.
    Json(&'a str),
    /// Exactly one value, with all its text UTF-8 and all its lengths true.
    MessagePack(&'a [u8]),
}

/// What tells one message from another.
#[derive(DeriveDeserialize)]
struct Head<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
    #[serde(default)]
    seq: Option<u64>,
}

impl<'a> Checked<'a> {
    fn new(encoding: Encoding, bytes: &'a [u8]) -> Result<Checked<'a>, DecodeError> {
        match encoding {
            Encoding::Json => std::str::from_utf8(bytes)
                .map(Checked::Json)
                .map_err(|error| DecodeError::Garbage(error.to_string())),
            Encoding::MessagePack => structure::check(bytes)
                .map(|()| Checked::MessagePack(bytes))
                .map_err(|error| DecodeError::Garbage(error.to_string())),
        }
    }

    fn parse<T: Deserialize<'a>>(self) -> Result<T, DecodeError> {
        match self {
            Checked::Json(text) => serde_json::from_str(text).map_err(DecodeError::invalid),
            Checked::MessagePack(bytes) => {
                rmp_serde::from_slice(bytes).map_err(DecodeError::invalid)
            }
        }
    }

    /// Reads the head of a message. A message is a map; serde would also take an array of the fields in their order.
    fn head(self) -> Result<Head<'a>, DecodeError> {
        let is_map = match self {
            Checked::Json(text) => text.trim_ascii_start().starts_with('{'),
            Checked::MessagePack(bytes) => structure::is_map(bytes),
        };
        if is_map {
            self.parse()
        } else {
            Err(DecodeError::invalid(
                "a message is a map with a field `type`",
            ))
        }
    }

    /// The type of a message that begins with it, as those of our own writers do, without reading on.
    fn leading_type(self) -> Option<&'a str> {
        match self {
            Checked::Json(text) => {
                let (name, _) = text.strip_prefix(r#"{"type":""#)?.split_once('"')?;
                (!name.contains('\\')).then_some(name)
            }
            Checked::MessagePack(bytes) => {
                let (&map, rest) = bytes.split_first()?;
                let (&length, rest) = rest.strip_prefix(b"\xa4type")?.split_first()?;
                let is_short = map & 0xf0 == 0x80 && length & 0xe0 == 0xa0;
                let name = rest.get(..usize::from(length & 0x1f))?;
                is_short.then(|| std::str::from_utf8(name).ok())?
            }
        }
    }
}

/// What a message of a type that this build does not know is answered with.
fn unknown_type(name: &str) -> DecodeError {
    DecodeError::invalid(format_args!("unknown type {name:?}"))
}
