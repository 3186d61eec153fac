//! Frames assembled from fragments: the encoding of an entity, an object or an event is made once per version and copied
//! into the frame of everyone who sees it.
//!
//! A fragment is what [`Encoding::encode`] makes of an [`EntityEnter`](crate::EntityEnter), an
//! [`EntityState`](crate::EntityState), an [`ObjectState`](crate::ObjectState), a
//! [`CombatEvent`](crate::CombatEvent) or a [`Speech`](crate::Speech). The assembled bytes are those that serde makes of
//! the whole message; a property test holds the two together.

use super::Encoding;
use crate::EntityId;

/// The parts of a [`Delta`](crate::Delta). The three iterators yield fragments in the encoding of the frame.
#[derive(Clone, Copy, Debug)]
pub struct DeltaParts<'a, E, U, O> {
    /// The gateway's tick.
    pub tick: u64,
    /// Highest order `seq` that the battle took.
    pub ack: u64,
    /// Fragments of entities that came into view.
    pub enter: E,
    /// Fragments of entities in view that changed.
    pub update: U,
    /// Entities that went out of view.
    pub leave: &'a [EntityId],
    /// Fragments of objects that changed.
    pub objects: O,
}

impl Encoding {
    /// Appends a `delta` to `out`.
    pub fn write_delta<E, U, O>(self, out: &mut Vec<u8>, parts: DeltaParts<'_, E, U, O>)
    where
        E: ExactSizeIterator<Item: AsRef<[u8]>>,
        U: ExactSizeIterator<Item: AsRef<[u8]>>,
        O: ExactSizeIterator<Item: AsRef<[u8]>>,
    {
        let (enters, updates) = (parts.enter.len() > 0, parts.update.len() > 0);
        let (leaves, objects) = (!parts.leave.is_empty(), parts.objects.len() > 0);
        let lists = [enters, updates, leaves, objects];
        let fields = 2 + lists.into_iter().filter(|&has_any| has_any).count() as u32;
        let mut map = MapWriter::begin(self, out, "delta", fields);
        map.number("tick", parts.tick);
        map.number("ack", parts.ack);
        if enters {
            map.list("enter", parts.enter);
        }
        if updates {
            map.list("update", parts.update);
        }
        if leaves {
            map.ids("leave", parts.leave);
        }
        if objects {
            map.list("objects", parts.objects);
        }
        map.end();
    }

    /// Appends a `snapshot` to `out`.
    pub fn write_snapshot<E, O>(self, out: &mut Vec<u8>, entities: E, objects: O)
    where
        E: ExactSizeIterator<Item: AsRef<[u8]>>,
        O: ExactSizeIterator<Item: AsRef<[u8]>>,
    {
        let mut map = MapWriter::begin(self, out, "snapshot", 2);
        map.list("entities", entities);
        map.list("objects", objects);
        map.end();
    }

    /// Appends an `event` to `out`; `combat` is the fragment of a [`CombatEvent`](crate::CombatEvent).
    pub fn write_event(self, out: &mut Vec<u8>, seq: u64, at_ms: u64, combat: &[u8]) {
        self.write_reliable(out, "event", seq, at_ms, "combat", combat);
    }

    /// Appends a `said` to `out`; `speech` is the fragment of a [`Speech`](crate::Speech).
    pub fn write_said(self, out: &mut Vec<u8>, seq: u64, at_ms: u64, speech: &[u8]) {
        self.write_reliable(out, "said", seq, at_ms, "speech", speech);
    }

    fn write_reliable(
        self,
        out: &mut Vec<u8>,
        kind: &str,
        seq: u64,
        at_ms: u64,
        key: &str,
        body: &[u8],
    ) {
        let mut map = MapWriter::begin(self, out, kind, 3);
        map.number("seq", seq);
        map.number("at_ms", at_ms);
        map.key(key);
        map.out.extend_from_slice(body);
        map.end();
    }
}

const ENDLESS: &str = "a Vec takes every byte";

/// Writes a message as a map, field by field. Names are ours and need no escapes.
struct MapWriter<'a> {
    encoding: Encoding,
    out: &'a mut Vec<u8>,
}

impl<'a> MapWriter<'a> {
    /// Begins a message of type `kind` with so many `fields` beside the type.
    fn begin(encoding: Encoding, out: &'a mut Vec<u8>, kind: &str, fields: u32) -> MapWriter<'a> {
        match encoding {
            Encoding::Json => {
                out.extend_from_slice(b"{\"type\":\"");
                out.extend_from_slice(kind.as_bytes());
                out.push(b'"');
            }
            Encoding::MessagePack => {
                rmp::encode::write_map_len(out, 1 + fields).expect(ENDLESS);
                rmp::encode::write_str(out, "type").expect(ENDLESS);
                rmp::encode::write_str(out, kind).expect(ENDLESS);
            }
        }
        MapWriter { encoding, out }
    }

    fn key(&mut self, name: &str) {
        match self.encoding {
            Encoding::Json => {
                self.out.extend_from_slice(b",\"");
                self.out.extend_from_slice(name.as_bytes());
                self.out.extend_from_slice(b"\":");
            }
            Encoding::MessagePack => rmp::encode::write_str(self.out, name).expect(ENDLESS),
        }
    }

    fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        self.encoding.write(&value, self.out);
    }

    fn list(&mut self, name: &str, items: impl ExactSizeIterator<Item: AsRef<[u8]>>) {
        self.key(name);
        self.array_begin(items.len());
        for (at, item) in items.enumerate() {
            self.array_next(at);
            self.out.extend_from_slice(item.as_ref());
        }
        self.array_end();
    }

    fn ids(&mut self, name: &str, ids: &[EntityId]) {
        self.key(name);
        self.encoding.write(&ids, self.out);
    }

    fn array_begin(&mut self, length: usize) {
        match self.encoding {
            Encoding::Json => self.out.push(b'['),
            Encoding::MessagePack => {
                let length = u32::try_from(length).expect("a view has fewer than 2^32 entities");
                rmp::encode::write_array_len(self.out, length).expect(ENDLESS);
            }
        }
    }

    fn array_next(&mut self, at: usize) {
        if self.encoding == Encoding::Json && at > 0 {
            self.out.push(b',');
        }
    }

    fn array_end(&mut self) {
        if self.encoding == Encoding::Json {
            self.out.push(b']');
        }
    }

    fn end(self) {
        if self.encoding == Encoding::Json {
            self.out.push(b'}');
        }
    }
}
