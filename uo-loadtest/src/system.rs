//! What this process may open and has used.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Microseconds of the clock ticks in which Linux tells what a process has used, on every architecture in use.
const PROC_TICK_US: u64 = 10_000;

/// Allows as many open sockets as the system grants: each bot needs one.
pub fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        eprintln!(
            "the limit of open files stays at {:?}: {error}",
            limit.current
        );
    }
}

/// What a process has used: its processor time in microseconds, and its resident memory in bytes. None where the system
/// does not tell, or the process is gone.
pub fn process_usage(pid: u32) -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may have blanks in it. From the state on, user and system time are 12th and 13th.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse().unwrap_or(0)).sum();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.split_whitespace().next()?.parse().ok()?;
    Some((ticks * PROC_TICK_US, kib * 1_024))
}

/// Processor time that this process used so far, in microseconds; none where the system does not tell.
pub fn cpu_us() -> Option<u64> {
    // Nanoseconds since the process began to run, summed over its threads.
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(clock.tv_sec)
        .ok()
        .map(|seconds| seconds * 1_000_000 + clock.tv_nsec as u64 / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_has_used_something_and_one_that_is_gone_tells_nothing() {
        let (_, rss_bytes) = process_usage(std::process::id()).expect("it runs");
        assert!(rss_bytes > 100_000, "{rss_bytes}");
        assert_eq!(process_usage(u32::MAX), None);
    }
}
