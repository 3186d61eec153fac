//! Messages of servers, read without a buffer between the frame and the message.

use super::{Checked, DecodeError, Encoding, unknown_type};
use crate::ServerMsg;

impl Encoding {
    /// Reads a server's message.
    pub fn decode_server(self, bytes: &[u8]) -> Result<ServerMsg, DecodeError> {
        let frame = Checked::new(self, bytes)?;
        match frame.leading_type() {
            Some(name) => read(name, frame),
            None => read(&frame.head()?.r#type, frame),
        }
    }
}

fn read(name: &str, frame: Checked<'_>) -> Result<ServerMsg, DecodeError> {
    Ok(match name {
        "welcome" => ServerMsg::Welcome(frame.parse()?),
        "server_status" => ServerMsg::ServerStatus(frame.parse()?),
        "snapshot" => ServerMsg::Snapshot(frame.parse()?),
        "delta" => ServerMsg::Delta(frame.parse()?),
        "event" => ServerMsg::Event(frame.parse()?),
        "said" => ServerMsg::Said(frame.parse()?),
        "respawned" => ServerMsg::Respawned(frame.parse()?),
        "step_rejected" => ServerMsg::StepRejected(frame.parse()?),
        "looked" => ServerMsg::Looked(frame.parse()?),
        "inventory" => ServerMsg::Inventory(frame.parse()?),
        "missed" => ServerMsg::Missed(frame.parse()?),
        "saved" => ServerMsg::Saved(frame.parse()?),
        "pong" => ServerMsg::Pong(frame.parse()?),
        "error" => ServerMsg::Error(frame.parse()?),
        "goodbye" => ServerMsg::Goodbye(frame.parse()?),
        _ => return Err(unknown_type(name)),
    })
}
