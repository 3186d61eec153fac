//! Asks the system to let the threads of the simulation go first.
//!
//! A tick thread needs little time, but on time: a busy machine must not make it wait behind everybody else. Whether
//! it may go first is the operator's decision (on Linux the limits `RTPRIO` and `NICE`, or the capability `SYS_NICE`),
//! so a refusal is said once, and the node goes on without.

use std::fmt;
use std::sync::Once;

/// What a thread is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// The tick thread itself.
    Tick,
    /// A thread of the pool that ticks regions in parallel.
    Pool,
}

/// What the system granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precedence {
    /// Runs before every ordinary thread of the machine.
    RealTime,
    /// Gets a larger share of a busy machine.
    Raised,
    /// Runs like everything else.
    Ordinary,
}

impl fmt::Display for Precedence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precedence::RealTime => "real-time",
            Precedence::Raised => "raised",
            Precedence::Ordinary => "ordinary",
        })
    }
}

/// Asks precedence for the thread that calls this. What was not granted is logged by the first thread to learn it.
pub fn ask(work: Work) -> Precedence {
    static REFUSED: Once = Once::new();
    system::ask(work).unwrap_or_else(|reason| {
        REFUSED.call_once(|| {
            tracing::warn!(%reason, "the system refuses the simulation precedence; on a busy machine ticks may run late");
        });
        Precedence::Ordinary
    })
}

#[cfg(target_os = "linux")]
mod system {
    use std::io;

    use super::{Precedence, Work};

    /// Above all ordinary threads, and far below the kernel's own.
    const REAL_TIME_PRIORITY: i32 = 10;
    const NICE: i32 = -10;

    /// Real time for the tick thread only. The pool shares its cores with gateway and store: were all of it to go
    /// first, an overloaded sim would cut itself off from both.
    pub(super) fn ask(work: Work) -> io::Result<Precedence> {
        if work == Work::Tick && real_time().is_ok() {
            return Ok(Precedence::RealTime);
        }
        // Named by its id, a thread is one process to this call.
        match rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
            Ok(()) => Ok(Precedence::Raised),
            Err(errno) => Err(errno.into()),
        }
    }

    #[allow(
        unsafe_code,
        reason = "no safe wrapper sets a policy together with the reset on fork"
    )]
    fn real_time() -> io::Result<()> {
        let parameters = libc::sched_param {
            sched_priority: REAL_TIME_PRIORITY,
        };
        // Threads that this one starts later are ordinary again.
        let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
        // SAFETY: 0 is the calling thread, and the parameters outlive the call, which only reads them.
        match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(target_os = "macos")]
mod system {
    //! Written from the system's declarations; its effect has not been measured on a Mac yet.

    use std::io;
    use std::time::Duration;

    use super::{Precedence, Work};
    use crate::sim::schedule::Deadlines;

    /// What a tick usually needs, and within which time of its deadline it must have had that.
    const COMPUTATION: Duration = Duration::from_millis(10);
    const CONSTRAINT: Duration = Duration::from_millis(25);

    pub(super) fn ask(work: Work) -> io::Result<Precedence> {
        let (result, granted) = match work {
            Work::Tick => (time_constraint(), Precedence::RealTime),
            Work::Pool => (user_interactive(), Precedence::Raised),
        };
        result.map(|()| granted)
    }

    #[allow(
        unsafe_code,
        deprecated,
        reason = "Mach calls; one of them is not worth the crate that libc names instead"
    )]
    fn time_constraint() -> io::Result<()> {
        let mut timebase = libc::mach_timebase_info { numer: 0, denom: 0 };
        // SAFETY: the call fills the structure it is given.
        let status = unsafe { libc::mach_timebase_info(&raw mut timebase) };
        if status != libc::KERN_SUCCESS || timebase.numer == 0 {
            return Err(io::Error::other("the clock's time base is unknown"));
        }
        // The kernel counts in ticks of its own clock.
        let ticks = |time: Duration| {
            let ticks = time.as_nanos() * u128::from(timebase.denom) / u128::from(timebase.numer);
            u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        let mut policy = libc::thread_time_constraint_policy {
            period: ticks(Deadlines::PERIOD),
            computation: ticks(COMPUTATION),
            constraint: ticks(CONSTRAINT),
            preemptible: 1,
        };
        // SAFETY: the thread is the calling one, and flavour, structure and count belong together.
        let status = unsafe {
            libc::thread_policy_set(
                libc::pthread_mach_thread_np(libc::pthread_self()),
                libc::THREAD_TIME_CONSTRAINT_POLICY as libc::thread_policy_flavor_t,
                (&raw mut policy).cast(),
                libc::THREAD_TIME_CONSTRAINT_POLICY_COUNT,
            )
        };
        match status {
            libc::KERN_SUCCESS => Ok(()),
            status => Err(io::Error::other(format!(
                "thread_policy_set answered {status}"
            ))),
        }
    }

    #[allow(unsafe_code, reason = "a call of the system's thread library")]
    fn user_interactive() -> io::Result<()> {
        // SAFETY: it takes plain values and concerns the calling thread.
        match unsafe {
            libc::pthread_set_qos_class_self_np(libc::qos_class_t::QOS_CLASS_USER_INTERACTIVE, 0)
        } {
            0 => Ok(()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod system {
    use std::io;

    use super::{Precedence, Work};

    pub(super) fn ask(_: Work) -> io::Result<Precedence> {
        Err(io::Error::other("how to ask this system is not known"))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The policy and the niceness of the calling thread, as the kernel tells them.
    fn in_force() -> (i32, i32) {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // The name, the second field, may hold spaces; it ends at the last parenthesis.
        let fields: Vec<&str> = stat
            .rsplit_once(')')
            .unwrap()
            .1
            .split_whitespace()
            .collect();
        (
            fields[41 - 3].parse().unwrap(),
            fields[19 - 3].parse().unwrap(),
        )
    }

    /// What is told as granted is in force, with or without the permission to ask; and it ends with the thread.
    /// Without the reset on fork the child fails this.
    #[test]
    fn what_is_granted_is_in_force_for_this_thread_only() {
        const FIFO: i32 = 1;
        let before = in_force();
        for work in [Work::Tick, Work::Pool] {
            let (granted, found, child) = std::thread::spawn(move || {
                let granted = ask(work);
                (
                    granted,
                    in_force(),
                    std::thread::spawn(in_force).join().unwrap(),
                )
            })
            .join()
            .unwrap();
            match granted {
                Precedence::RealTime => {
                    assert_eq!(work, Work::Tick);
                    assert_eq!(found.0, FIFO);
                    assert_eq!(
                        child.0, before.0,
                        "a thread started by the tick thread must be ordinary"
                    );
                }
                Precedence::Raised => assert!(found.1 < before.1, "{found:?} after {before:?}"),
                Precedence::Ordinary => assert_eq!(found, before),
            }
        }
        assert_eq!(in_force(), before);
    }
}
