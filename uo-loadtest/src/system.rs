//! What this process may open and has used.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

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

/// Processor time that this process used so far, in microseconds; none where the system does not tell.
pub fn cpu_us() -> Option<u64> {
    // Nanoseconds since the process began to run, summed over its threads.
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(clock.tv_sec)
        .ok()
        .map(|seconds| seconds * 1_000_000 + clock.tv_nsec as u64 / 1_000)
}
