//! How messages become bytes: JSON text frames or MessagePack binary frames, from the same types.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{ClientMsg, NumberedOrder};

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
    /// Not JSON, not UTF-8 or not MessagePack at all: the connection closes with 1007.
    #[error("not decodable: {0}")]
    Garbage(String),
    /// Well-formed, but not a message: answered with `invalid`, the connection stays.
    #[error("{0}")]
    Invalid(String),
}

impl Encoding {
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
    pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, DecodeError> {
        match self {
            Encoding::Json => {
                serde_json::from_slice(bytes).map_err(|error| match error.classify() {
                    serde_json::error::Category::Data => DecodeError::Invalid(error.to_string()),
                    _ => DecodeError::Garbage(error.to_string()),
                })
            }
            Encoding::MessagePack => rmp_serde::from_slice(bytes)
                .map_err(|error| DecodeError::Invalid(error.to_string())),
        }
    }

    /// Reads a client's message.
    pub fn decode_client(self, bytes: &[u8]) -> Result<ClientMsg, DecodeError> {
        #[derive(serde::Deserialize)]
        struct Head {
            r#type: String,
        }
        let head: Head = self.decode(bytes)?;
        Ok(match head.r#type.as_str() {
            "login" => ClientMsg::Login(self.decode(bytes)?),
            "resume" => ClientMsg::Resume(self.decode(bytes)?),
            "ping" => ClientMsg::Ping(self.decode(bytes)?),
            _ => ClientMsg::Order(self.decode::<NumberedOrder>(bytes)?),
        })
    }

    /// Writes a client's message.
    pub fn encode_client(self, msg: &ClientMsg) -> Vec<u8> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum Tagged<'a> {
            Login(&'a crate::Login),
            Resume(&'a crate::Resume),
            Ping(&'a crate::Ping),
        }
        match msg {
            ClientMsg::Login(login) => self.encode(&Tagged::Login(login)),
            ClientMsg::Resume(resume) => self.encode(&Tagged::Resume(resume)),
            ClientMsg::Ping(ping) => self.encode(&Tagged::Ping(ping)),
            ClientMsg::Order(order) => self.encode(order),
        }
    }
}
