//! What a process costs, as the system tells it in `/proc`.

use anyhow::Context;

/// Clock ticks of `/proc/PID/stat` in a second: fixed by Linux' interface, whatever the kernel itself counts in.
const CLOCK_TICKS_PER_S: u64 = 100;

/// What a process has used so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// Processor time in its own code, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel on its behalf, in microseconds.
    pub kernel_us: u64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
}

impl Cost {
    /// Of the process with this number.
    pub fn of(pid: u32) -> anyhow::Result<Cost> {
        let read = |file: &str| {
            let path = format!("/proc/{pid}/{file}");
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))
        };
        Cost::parse(&read("stat")?, &read("status")?)
            .with_context(|| format!("/proc/{pid} has another form than expected"))
    }

    fn parse(stat: &str, status: &str) -> Option<Cost> {
        // The name of the program is in brackets and may have any letter in it, so that fields are counted behind it.
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let us = |at: usize| {
            let ticks: u64 = fields.get(at)?.parse().ok()?;
            Some(ticks * (1_000_000 / CLOCK_TICKS_PER_S))
        };
        let rss = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let rss_kib: u64 = rss.split_whitespace().next()?.parse().ok()?;
        Some(Cost {
            user_us: us(11)?,
            kernel_us: us(12)?,
            rss_bytes: rss_kib * 1024,
        })
    }

    /// All its processor time, in microseconds.
    pub fn cpu_us(&self) -> u64 {
        self.user_us + self.kernel_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_a_name_with_brackets() {
        let stat = "4242 (uo) 7 8 (x) S 1 4242 4242 0 -1 4194560 100 0 0 0 150 450 0 0 20 0 5 0 100 1000 200 1";
        let status = "Name:\tuo\nVmPeak:\t  9000 kB\nVmRSS:\t  2048 kB\nThreads:\t5\n";
        let cost = Cost::parse(stat, status).expect("it is read");
        assert_eq!((cost.user_us, cost.kernel_us), (1_500_000, 4_500_000));
        assert_eq!(cost.cpu_us(), 6_000_000);
        assert_eq!(cost.rss_bytes, 2 * 1024 * 1024);
        assert_eq!(Cost::parse("4242 (uo) S 1", status), None);
        assert_eq!(Cost::parse(stat, "Name:\tuo\n"), None);
    }

    #[test]
    fn this_process_has_a_cost() {
        let cost = Cost::of(std::process::id()).expect("it runs");
        assert!(cost.rss_bytes > 0);
        assert!(Cost::of(u32::MAX).is_err());
    }
}
