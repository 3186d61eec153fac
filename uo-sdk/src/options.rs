//! Whom to connect to, and how.

use uo_proto::Encoding;

/// What a client needs to know before it connects.
#[derive(Clone, Debug)]
pub struct Options {
    /// `ws://host:port` of at least one gateway. The first is tried first; others take over when it fails.
    pub gateways: Vec<String>,
    /// The character's name: 1 to 32 letters, digits, `_` or `-`.
    pub name: String,
    /// Only where accounts are on.
    pub password: Option<String>,
    /// JSON text or MessagePack binary frames.
    pub encoding: Encoding,
    /// From which the jitter of reconnecting is drawn. Give each client its own.
    pub seed: u64,
    /// How often the server is asked for a `pong`, in milliseconds; 0 is never.
    pub ping_interval_ms: u64,
    /// `SO_RCVBUF` in bytes; none leaves it to the system. A small one makes a client that does not read felt soon.
    pub receive_buffer_bytes: Option<u32>,
}

impl Options {
    /// Options for `name` at one gateway, with the defaults: JSON, a ping every 10 s.
    pub fn new(gateway: impl Into<String>, name: impl Into<String>) -> Options {
        let name = name.into();
        Options {
            gateways: vec![gateway.into()],
            password: None,
            encoding: Encoding::Json,
            seed: uo_proto::CharId::of_name(&name).0,
            ping_interval_ms: 10_000,
            receive_buffer_bytes: None,
            name,
        }
    }
}
