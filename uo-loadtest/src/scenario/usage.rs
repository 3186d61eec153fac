//! What the servers used: processor time, which their ends do not take back, and memory.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeMap;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// By process: what it had used when it was looked at last.
    cpu_us: BTreeMap<u32, u64>,
    begin_us: u64,
    /// Resident memory of all processes, at each look.
    rss_bytes: Vec<u64>,
}

impl Usage {
    /// Takes what each process has used: processor time in microseconds, resident memory in bytes.
    pub fn take(&mut self, processes: impl IntoIterator<Item = (u32, (u64, u64))>) {
        let mut total = 0;
        for (pid, (cpu_us, rss_bytes)) in processes {
            self.cpu_us.insert(pid, cpu_us);
            total += rss_bytes;
        }
        if total > 0 {
            self.rss_bytes.push(total);
        }
    }

    /// The measurement begins.
    pub fn begin(&mut self) {
        self.begin_us = self.cpu_us.values().sum();
        self.rss_bytes.clear();
    }

    /// Processor time since then; none if there are no processes.
    pub fn cpu_us(&self) -> Option<u64> {
        let total: u64 = self.cpu_us.values().sum();
        (!self.cpu_us.is_empty()).then(|| total - self.begin_us)
    }

    /// The mean of the resident memory since then.
    pub fn rss_bytes(&self) -> Option<u64> {
        let looks = self.rss_bytes.len() as u64;
        (looks > 0).then(|| self.rss_bytes.iter().sum::<u64>() / looks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_used_stays_used_when_it_is_gone() {
        let mut usage = Usage::default();
        assert_eq!((usage.cpu_us(), usage.rss_bytes()), (None, None));
        usage.take([(1, (100, 7)), (2, (50, 3))]);
        usage.begin();
        usage.take([(1, (400, 8)), (2, (50, 4))]);
        usage.take([(2, (90, 4)), (3, (20, 4))]);
        assert_eq!(usage.cpu_us(), Some(300 + 40 + 20));
        assert_eq!(usage.rss_bytes(), Some(10));
    }
}
