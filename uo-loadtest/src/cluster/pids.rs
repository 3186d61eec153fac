//! The processes that were started, for whoever looks at them meanwhile.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// See the module. Copies share what they know.
#[derive(Clone, Debug, Default)]
pub struct Pids(Arc<Mutex<BTreeSet<u32>>>);

impl Pids {
    /// One more.
    pub fn add(&self, pid: Option<u32>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(pid);
    }

    /// All of them, those that are gone as well.
    pub fn all(&self) -> Vec<u32> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().copied().collect()
    }
}
