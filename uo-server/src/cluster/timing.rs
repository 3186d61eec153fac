//! The times of the cluster core, and whether they fit together.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use crate::limits;

/// Longest time that a flag may say: an hour. Sums of a few of them are far from the largest number.
const MS_MAX: u64 = 3_600_000;

/// Every time that decides about rights. Milliseconds but where the name says otherwise. All nodes of a world must have the
/// same ones: each relies on the others' fences.
#[derive(clap::Args, Clone, PartialEq, Eq, Hash, Debug)]
#[command(next_help_heading = "Times, in milliseconds and the same on every node of a world")]
pub struct Timing {
    /// A sim may act for this long after it sent the newest beat that was acknowledged.
    #[arg(long, default_value_t = limits::FENCE_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub fence_ms: u64,
    /// How often a node beats.
    #[arg(long, default_value_t = limits::BEAT_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub beat_ms: u64,
    /// After this long without an answer a beat has failed. The shell sees to it.
    #[arg(skip = limits::BEAT_TIMEOUT_MS)]
    pub beat_timeout_ms: u64,
    /// How often a node reads `nodes`.
    #[arg(long = "nodes-read-ms", default_value_t = limits::NODES_READ_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub read_ms: u64,
    /// How long a boot's row must stand still to be presumed gone.
    #[arg(long, default_value_t = limits::GONE_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub gone_ms: u64,
    /// The same for windows begun by the first read after an outage: those who were frozen are to thaw first.
    #[arg(long, default_value_t = limits::GONE_AFTER_OUTAGE_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub gone_after_outage_ms: u64,
    /// Without a successful read or an acknowledged beat for this long there is an outage.
    #[arg(long, default_value_t = limits::OUTAGE_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub outage_ms: u64,
    /// How long a row must say `fenced` at one life before its boot may be declared dead.
    #[arg(long, default_value_t = limits::FENCED_SEEN_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub fenced_seen_ms: u64,
    /// From the look at the fence to the last effect of what was then decided.
    #[arg(long, default_value_t = limits::ACT_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub act_ms: u64,
    /// How fast or slow a clock may run, in thousandths.
    #[arg(long, default_value_t = limits::CLOCK_ERROR_PERMILLE, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "THOUSANDTHS", hide_short_help = true)]
    pub clock_error_permille: u64,
    /// How long a compare-and-set of unknown outcome waits before it is repeated.
    #[arg(skip = limits::CAS_RETRY_MS)]
    pub cas_retry_ms: u64,
    /// The sim of rank k waits k times this before it takes a free region.
    #[arg(long, default_value_t = limits::RANK_WAIT_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub rank_wait_ms: u64,
    /// How often placement looks for regions to take, to drain and to retire.
    #[arg(long, default_value_t = limits::PLACEMENT_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub placement_ms: u64,
    /// A node gets regions back from others once it has been up for this long.
    #[arg(long, default_value_t = limits::SETTLED_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub settled_ms: u64,
    /// A sim that most gateways cannot reach for this long gives way to one that they can reach.
    #[arg(long, default_value_t = limits::CUT_OFF_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub cut_off_ms: u64,
    /// Starts of a node within this time count as one fit of sickness.
    #[arg(long, default_value_t = limits::STARTS_WINDOW_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub starts_window_ms: u64,
    /// After a drain that came to nothing, how long its region stays where it is.
    #[arg(long, default_value_t = limits::DRAIN_PAUSE_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub drain_pause_ms: u64,
    /// How often the leases are read back.
    #[arg(long, default_value_t = limits::LEASES_READ_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub leases_ms: u64,
    /// How often demand is written again.
    #[arg(long, default_value_t = limits::DEMAND_REFRESH_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub demand_refresh_ms: u64,
    /// When demand that is not written again expires, in seconds.
    #[arg(skip = limits::DEMAND_TTL_S)]
    pub demand_ttl_s: u32,
    /// How often demand is read, in a world that runs by demand.
    #[arg(long, default_value_t = limits::DEMAND_READ_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub demand_read_ms: u64,
    /// A region that nobody demanded for this long is retired.
    #[arg(long, default_value_t = limits::RETIRE_MS, value_parser = clap::value_parser!(u64).range(..=MS_MAX), value_name = "MS", hide_short_help = true)]
    pub retire_ms: u64,
    /// When a row of `nodes` expires, in seconds. It only sweeps up.
    #[arg(long, default_value_t = limits::NODE_TTL_S, value_parser = clap::value_parser!(u32).range(1..=3_600), value_name = "S", hide_short_help = true)]
    pub node_ttl_s: u32,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            fence_ms: limits::FENCE_MS,
            beat_ms: limits::BEAT_MS,
            beat_timeout_ms: limits::BEAT_TIMEOUT_MS,
            read_ms: limits::NODES_READ_MS,
            gone_ms: limits::GONE_MS,
            gone_after_outage_ms: limits::GONE_AFTER_OUTAGE_MS,
            outage_ms: limits::OUTAGE_MS,
            fenced_seen_ms: limits::FENCED_SEEN_MS,
            act_ms: limits::ACT_MS,
            clock_error_permille: limits::CLOCK_ERROR_PERMILLE,
            cas_retry_ms: limits::CAS_RETRY_MS,
            rank_wait_ms: limits::RANK_WAIT_MS,
            placement_ms: limits::PLACEMENT_MS,
            settled_ms: limits::SETTLED_MS,
            cut_off_ms: limits::CUT_OFF_MS,
            starts_window_ms: limits::STARTS_WINDOW_MS,
            drain_pause_ms: limits::DRAIN_PAUSE_MS,
            leases_ms: limits::LEASES_READ_MS,
            demand_refresh_ms: limits::DEMAND_REFRESH_MS,
            demand_ttl_s: limits::DEMAND_TTL_S,
            demand_read_ms: limits::DEMAND_READ_MS,
            retire_ms: limits::RETIRE_MS,
            node_ttl_s: limits::NODE_TTL_S,
        }
    }
}

/// Times that contradict each other.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TimingError {
    /// A time is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Another could be presumed gone while it still acts.
    #[error(
        "a node of which nothing is heard for {gone_ms} ms would be declared dead while it may still act on its own \
         fence of {fence_ms} ms; make the fence shorter or the other longer"
    )]
    FenceOutlivesWindow {
        /// The fence.
        fence_ms: u64,
        /// The window.
        gone_ms: u64,
    },
    /// Two beats in a row cannot be lost without a freeze.
    #[error(
        "with a beat every {beat_ms} ms, each with {beat_timeout_ms} ms to be acknowledged, two lost beats outlast the \
         fence of {fence_ms} ms"
    )]
    BeatsTooRare {
        /// Between two beats.
        beat_ms: u64,
        /// For each.
        beat_timeout_ms: u64,
        /// The fence.
        fence_ms: u64,
    },
    /// A relation between two others is broken.
    #[error("{less} ({less_is}) must be less than {more} ({more_is})")]
    Order {
        /// What must be less.
        less: &'static str,
        /// And is.
        less_is: u64,
        /// Than what.
        more: &'static str,
        /// And is.
        more_is: u64,
    },
}

impl Timing {
    /// Whether the times fit together; the first that do not.
    pub fn check(&self) -> Result<(), TimingError> {
        self.check_zeros()?;
        if !limits::fence_fits(
            self.fence_ms,
            self.act_ms,
            self.gone_ms,
            self.clock_error_permille,
        ) {
            return Err(TimingError::FenceOutlivesWindow {
                fence_ms: self.fence_ms,
                gone_ms: self.gone_ms,
            });
        }
        if !limits::beats_fit(self.beat_ms, self.beat_timeout_ms, self.fence_ms) {
            return Err(TimingError::BeatsTooRare {
                beat_ms: self.beat_ms,
                beat_timeout_ms: self.beat_timeout_ms,
                fence_ms: self.fence_ms,
            });
        }
        less(
            ("the window", self.gone_ms),
            ("the window after an outage", self.gone_after_outage_ms),
        )?;
        less(
            ("the time between two reads", self.read_ms),
            ("the time that makes an outage", self.outage_ms),
        )?;
        // The beat that permits a thaw still says `fenced`, and so does the one that was under way meanwhile.
        less(
            ("two beats", 2 * self.beat_ms),
            (
                "the time for which `fenced` must be seen",
                self.fenced_seen_ms,
            ),
        )?;
        less(
            (
                "the time between two writes of demand",
                self.demand_refresh_ms,
            ),
            ("its time to live", u64::from(self.demand_ttl_s) * 1000),
        )?;
        less(
            ("the time between two reads of demand", self.demand_read_ms),
            ("the time after which a region is retired", self.retire_ms),
        )
    }

    /// Whether they fit to the store's own times, which are no flags.
    pub fn check_with_store(&self) -> Result<(), TimingError> {
        let fence = ("the fence", self.fence_ms);
        let request = limits::STORE_PLAIN_TIMEOUT_MS.max(limits::STORE_CAS_TIMEOUT_MS);
        less(("the time for a request", request), fence)?;
        let silence = limits::STORE_KEEPALIVE_MS + limits::STORE_KEEPALIVE_TIMEOUT_MS;
        less(
            ("the time in which a dead connection is found", silence),
            fence,
        )?;
        less(("the time that makes an outage", self.outage_ms), fence)?;
        less(
            ("the window after an outage", self.gone_after_outage_ms),
            (
                "the time to live of a node's row",
                u64::from(self.node_ttl_s) * 1000,
            ),
        )
    }

    fn check_zeros(&self) -> Result<(), TimingError> {
        let named = [
            ("the fence", self.fence_ms),
            ("the time between two beats", self.beat_ms),
            ("the time for a beat", self.beat_timeout_ms),
            ("the time between two reads", self.read_ms),
            ("the time between two looks at placement", self.placement_ms),
            ("the time between two reads of the leases", self.leases_ms),
            ("the wait before a repeated request", self.cas_retry_ms),
            (
                "the time between two writes of demand",
                self.demand_refresh_ms,
            ),
            ("the time between two reads of demand", self.demand_read_ms),
        ];
        match named.into_iter().find(|(_, ms)| *ms == 0) {
            Some((name, _)) => Err(TimingError::Zero(name)),
            None => Ok(()),
        }
    }
}

fn less(less: (&'static str, u64), more: (&'static str, u64)) -> Result<(), TimingError> {
    if less.1 < more.1 {
        return Ok(());
    }
    Err(TimingError::Order {
        less: less.0,
        less_is: less.1,
        more: more.0,
        more_is: more.1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_fit() {
        assert_eq!(Timing::default().check(), Ok(()));
    }

    #[test]
    fn times_that_contradict_each_other_are_refused() {
        type Break = fn(&mut Timing);
        let cases: &[(Break, &str)] = &[
            (|t| t.beat_ms = 0, "must be at least 1"),
            // 2000 ms on a clock that is 1 % slow, and 50 ms to act, are 2070.2 ms; 2090 ms on a fast one are 2069.3 ms.
            (
                |t| t.gone_ms = 2_090,
                "declared dead while it may still act",
            ),
            (|t| t.clock_error_permille = 1000, "declared dead while"),
            (|t| t.beat_ms = 600, "two lost beats outlast"),
            (|t| t.gone_after_outage_ms = 2_500, "the window (2500)"),
            (|t| t.read_ms = 1_000, "the time between two reads (1000)"),
            (|t| t.fenced_seen_ms = 800, "two beats (800)"),
            (|t| t.demand_ttl_s = 3, "its time to live (3000)"),
        ];
        for (break_it, sentence) in cases {
            let mut timing = Timing::default();
            break_it(&mut timing);
            let error = timing.check().expect_err("it is refused").to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }

    #[test]
    fn times_that_contradict_the_store_are_refused() {
        type Break = fn(&mut Timing);
        let cases: &[(Break, &str)] = &[
            (|t| t.fence_ms = 1_000, "the time for a request (1000)"),
            (|t| t.fence_ms = 1_800, "a dead connection is found (1800)"),
            (|t| t.outage_ms = 2_000, "makes an outage (2000)"),
            (|t| t.node_ttl_s = 5, "a node's row (5000)"),
        ];
        assert_eq!(Timing::default().check_with_store(), Ok(()));
        for (break_it, sentence) in cases {
            let mut timing = Timing::default();
            break_it(&mut timing);
            let error = timing.check_with_store().expect_err("it is refused");
            assert!(error.to_string().contains(sentence), "{error}");
        }
    }

    #[test]
    fn the_window_is_compared_to_the_millisecond() {
        let with = |gone_ms| Timing {
            gone_ms,
            ..Timing::default()
        };
        assert!(with(2_091).check().is_ok(), "2091 / 1.01 = 2070.3");
        assert!(with(2_090).check().is_err(), "2090 / 1.01 = 2069.3");
    }
}
