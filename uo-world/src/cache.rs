//! A bounded memory of values that can be computed again at any time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Remembers at most one value a slot; which slot a key belongs to is the caller's business. Keys of different slots
/// never wait for each other, and none ever waits for a computation.
pub struct Cache<K, V> {
    slots: Vec<Mutex<Slot<K, V>>>,
}

/// A key and its value, once there is one.
type Slot<K, V> = Option<(K, Arc<V>)>;

impl<K: PartialEq + Copy, V> Cache<K, V> {
    /// A memory of `slots` values.
    pub fn new(slots: usize) -> Cache<K, V> {
        Cache {
            slots: (0..slots).map(|_| Mutex::new(None)).collect(),
        }
    }

    /// The value of `key`, remembered or made. Two threads that miss at once both make it: equal keys have equal values.
    pub fn get_or_make(&self, slot: usize, key: K, make: impl FnOnce() -> V) -> Arc<V> {
        if let Some((known, value)) = &*self.lock(slot)
            && *known == key
        {
            return Arc::clone(value);
        }
        let value = Arc::new(make());
        *self.lock(slot) = Some((key, Arc::clone(&value)));
        value
    }

    fn lock(&self, slot: usize) -> MutexGuard<'_, Slot<K, V>> {
        // A slot is replaced whole, so a panic elsewhere cannot have left it half written.
        self.slots[slot]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
