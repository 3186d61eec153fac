//! What many clients are told is encoded once: per version of an entity or object, per event, and per encoding.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use uo_proto::{Encoding, EntityInfo, EntityState};

use crate::peer::message::PublicEvent;

/// The encodings of one value, made when first asked for. Forgetting keeps the memory for the next version.
#[derive(Clone, Debug, Default)]
pub struct Fragment([Vec<u8>; 2]);

impl Fragment {
    /// The value has changed.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(Vec::clear);
    }

    /// Sees to it that [`Fragment::get`] has `value` in `encoding`; true if it had to be encoded.
    pub fn encode(&mut self, encoding: Encoding, value: &impl Serialize) -> bool {
        let bytes = &mut self.0[encoding as usize];
        let is_new = bytes.is_empty();
        if is_new {
            encoding.write(value, bytes);
        }
        is_new
    }

    /// What [`Fragment::encode`] made.
    pub fn get(&self, encoding: Encoding) -> &[u8] {
        &self.0[encoding as usize]
    }
}

/// An [`uo_proto::EntityEnter`] that borrows its parts; the same bytes.
#[derive(Serialize)]
pub struct Enter<'a> {
    /// What does not change.
    pub info: &'a EntityInfo,
    /// What does.
    pub state: &'a EntityState,
}

/// Something public that happened, shared by the streams of all who are told.
#[derive(Debug)]
pub struct PublicRecord {
    what: PublicEvent,
    fragments: [OnceLock<Box<[u8]>>; 2],
}

impl PublicRecord {
    /// A record of `what`.
    pub fn new(what: PublicEvent) -> Arc<PublicRecord> {
        Arc::new(PublicRecord {
            what,
            fragments: Default::default(),
        })
    }

    /// Appends the `event` or `said` message that is number `seq` of a session's public stream.
    pub fn write(&self, encoding: Encoding, seq: u64, at_ms: u64, out: &mut Vec<u8>) {
        let fragment = self.fragments[encoding as usize].get_or_init(|| {
            let bytes = match &self.what {
                PublicEvent::Combat(combat) => encoding.encode(combat),
                PublicEvent::Said(speech) => encoding.encode(speech),
            };
            bytes.into_boxed_slice()
        });
        match &self.what {
            PublicEvent::Combat(_) => encoding.write_event(out, seq, at_ms, fragment),
            PublicEvent::Said(_) => encoding.write_said(out, seq, at_ms, fragment),
        }
    }
}
