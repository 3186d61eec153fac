//! The object writes of one region: stamped, one at a time, the newest state of each object.
//!
//! A batch whose outcome is unknown is written again under a *new* stamp, together with what changed meanwhile: should
//! the first one still arrive, it is older and loses.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

use uo_proto::{ObjectKey, ObjectState, RegionId};

use crate::limits::OBJECT_WRITE_ROWS_MAX;
use crate::store::row::{self, ObjectRow, RowError};
use crate::store::{Request, Stamp};

/// The `n` of the first write after a seal, whose tombstone and rows are 0 and 1.
const FIRST_N: u32 = 2;

/// Objects by key, each as it is to be written.
type Batch = BTreeMap<ObjectKey, ObjectState>;

/// What one region has to write, and how far it is durable.
#[derive(Debug)]
pub struct Journal {
    region: RegionId,
    epoch: u64,
    next_n: u32,
    pending: Batch,
    /// The earliest tick that `pending` holds something of.
    pending_since: u64,
    flight: Option<Flight>,
}

/// The write under way.
#[derive(Debug)]
struct Flight {
    stamp: Stamp,
    batch: Batch,
    since: u64,
}

/// The stored rows of a region.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StoredObjects {
    /// The highest epoch that wrote one of them; 0 if there is none.
    pub epoch_max: u64,
    /// What they hold, in the order of their keys.
    pub objects: Vec<ObjectState>,
}

impl Journal {
    /// The journal of `region`, sealed under `epoch`.
    pub fn new(region: RegionId, epoch: u64) -> Journal {
        Journal {
            region,
            epoch,
            next_n: FIRST_N,
            pending: Batch::new(),
            pending_since: u64::MAX,
            flight: None,
        }
    }

    /// Notes what changed in `tick`. Gives the write to send, if none is under way.
    pub fn record(&mut self, tick: u64, objects: &[ObjectState]) -> Option<Request> {
        for object in objects {
            debug_assert_eq!(object.key.region(), self.region);
            self.pending.insert(object.key, *object);
            self.pending_since = self.pending_since.min(tick);
        }
        self.next_write()
    }

    /// The write with that stamp is acknowledged. Gives the next one, if there is more to write. An answer to another
    /// write than the one under way says nothing.
    pub fn acked(&mut self, stamp: Stamp) -> Option<Request> {
        self.flight.take_if(|flight| flight.stamp == stamp)?;
        self.next_write()
    }

    /// The write with that stamp failed or its outcome is unknown. Nothing is sent until [`Journal::next_write`] is asked, so
    /// that the caller paces the retries of a store that is away.
    pub fn failed(&mut self, stamp: Stamp) {
        if let Some(flight) = self.flight.take_if(|flight| flight.stamp == stamp) {
            self.pending_since = self.pending_since.min(flight.since);
            for (key, object) in flight.batch {
                self.pending.entry(key).or_insert(object);
            }
        }
    }

    /// The next write, if there is something to write, nothing under way and a stamp left. Send it at once.
    pub fn next_write(&mut self) -> Option<Request> {
        if self.flight.is_some() || self.pending.is_empty() || self.is_exhausted() {
            return None;
        }
        let since = self.pending_since;
        let rest = self
            .pending
            .keys()
            .nth(OBJECT_WRITE_ROWS_MAX)
            .copied()
            .map(|first_left| self.pending.split_off(&first_left))
            .unwrap_or_default();
        let batch = std::mem::replace(&mut self.pending, rest);
        if self.pending.is_empty() {
            self.pending_since = u64::MAX;
        }
        let stamp = Stamp {
            number: self.epoch,
            n: self.next_n,
        };
        self.next_n += 1;
        let rows = batch
            .values()
            .map(|object| (object.key, stored(self.epoch, object)))
            .collect();
        self.flight = Some(Flight {
            stamp,
            batch,
            since,
        });
        Some(Request::ObjectsWrite {
            region: self.region,
            stamp,
            rows,
        })
    }

    /// Whether the stamps of this epoch are used up: the caller claims and seals the next one, then [`Journal::renew`].
    pub fn is_exhausted(&self) -> bool {
        self.next_n > Stamp::N_MAX
    }

    /// Goes on under a higher epoch, sealed with everything recorded so far, the write under way included.
    pub fn renew(&mut self, epoch: u64) {
        debug_assert!(epoch > self.epoch);
        *self = Journal::new(self.region, epoch);
    }

    /// The tick up to which everything recorded is acknowledged; `u64::MAX` when nothing is outstanding.
    pub fn flushed_through(&self) -> u64 {
        let flight_since = self.flight.as_ref().map_or(u64::MAX, |flight| flight.since);
        match self.pending_since.min(flight_since) {
            u64::MAX => u64::MAX,
            since => since.saturating_sub(1),
        }
    }

    /// Whether everything recorded is acknowledged.
    pub fn is_flushed(&self) -> bool {
        self.flight.is_none() && self.pending.is_empty()
    }
}

/// The rows of a seal: all of `objects` that are worth a row.
pub fn seal_rows(epoch: u64, objects: &[ObjectState]) -> Vec<(ObjectKey, Vec<u8>)> {
    objects
        .iter()
        .filter_map(|object| stored(epoch, object).map(|bytes| (object.key, bytes)))
        .collect()
}

/// Reads what [`Request::ObjectsRead`] gave.
pub fn read_rows(rows: &[(ObjectKey, Vec<u8>)]) -> Result<StoredObjects, RowError> {
    let mut stored = StoredObjects::default();
    for (_, bytes) in rows {
        let row: ObjectRow = row::decode(bytes)?;
        stored.epoch_max = stored.epoch_max.max(row.epoch);
        stored.objects.push(row.state);
    }
    stored.objects.sort_unstable_by_key(|object| object.key);
    Ok(stored)
}

/// The row of an object; none: its absence says as much. What was made at run time and is gone leaves nothing behind,
/// while a generated object that is gone would otherwise be generated again.
fn stored(epoch: u64, object: &ObjectState) -> Option<Vec<u8>> {
    let leaves_nothing = object.gone && object.key.is_runtime();
    (!leaves_nothing).then(|| {
        row::encode(&ObjectRow {
            epoch,
            state: *object,
        })
    })
}

#[cfg(test)]
mod tests;
