//! The end of a node without a farewell, as tests of failover need it: what SIGKILL is to a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tells the threads of a node to end at once. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Crash(Arc<AtomicBool>);

impl Crash {
    /// From now on nothing more is decided, said or written.
    pub fn now(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether it is the end.
    pub fn has_come(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
