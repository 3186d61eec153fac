//! What the nodes say of themselves between two readings of their metrics, in the names of the report.

use crate::admin::Reading;
use crate::report::run::{Report, ServerGaps, Ticks, World};
use crate::report::series::Second;
use crate::report::{Quantiles, Spread};

/// Adds to a report what the nodes counted from `before` to `after`.
pub fn fill(report: &mut Report, before: &Reading, after: &Reading) {
    let growth = |metric| whole(after.growth(before, metric));
    let gaps = |cause| {
        let series = format!("uo_player_gap_seconds{{cause=\"{cause}\"}}");
        spread(before, after, &series)
    };
    report.tick_ms = Quantiles {
        max: longest_tick_ms(before, after),
        ..quantiles(before, after, "uo_tick_seconds")
    };
    report.handoff_ms = spread(before, after, "uo_handoff_seconds");
    report.ticks = Ticks {
        late: growth("uo_ticks_late_total"),
        total: growth("uo_ticks_total"),
    };
    let Ticks { late, total } = report.ticks;
    let share = |(late, total): (u64, u64)| late as f64 / total.max(1) as f64;
    report.late_ticks = late.zip(total).map(share);
    report.world = World {
        fights: growth("uo_fights_total"),
        deaths: growth("uo_deaths_total"),
        respawns: growth("uo_respawns_total"),
        objects_broken: growth("uo_objects_broken_total"),
    };
    report.server_gap_ms = ServerGaps {
        border: gaps("border"),
        pin: gaps("pin"),
        drain: gaps("drain"),
        forward: gaps("forward"),
        failover: gaps("failover"),
        freeze: gaps("freeze"),
        resume: gaps("resume"),
    };
}

/// Adds to one second what the nodes counted in it.
pub fn fill_second(second: &mut Second, before: &Reading, after: &Reading) {
    second.tick_ms = quantiles(before, after, "uo_tick_seconds");
    second.late_ticks = whole(after.growth(before, "uo_ticks_late_total"));
}

/// The longest tick. The histogram knows for sure in which bucket it is; the gauge of the nodes' last minute is exact, but
/// may be of another time: it counts if it falls into that bucket.
fn longest_tick_ms(before: &Reading, after: &Reading) -> Option<f64> {
    let (low, high) = after.longest(before, "uo_tick_seconds")?;
    let exact = after.peak("uo_tick_max_seconds");
    let exact = exact.filter(|seconds| *seconds > low && *seconds <= high);
    // The bucket without an upper bound tells no number.
    let seconds = exact.unwrap_or(high);
    seconds.is_finite().then_some(seconds * 1e3)
}

fn quantiles(before: &Reading, after: &Reading, series: &str) -> Quantiles {
    let ms = |share| {
        let seconds = after.quantile(before, series, share)?;
        seconds.is_finite().then_some(seconds * 1e3)
    };
    Quantiles {
        p50: ms(0.5),
        p99: ms(0.99),
        max: ms(1.0),
    }
}

fn spread(before: &Reading, after: &Reading, series: &str) -> Spread {
    let Quantiles { p50, p99, max } = quantiles(before, after, series);
    Spread {
        count: whole(after.count(before, series)).unwrap_or_default(),
        p50,
        p99,
        max,
    }
}

/// A count that came as a floating-point number.
fn whole(count: Option<f64>) -> Option<u64> {
    count.map(|count| count as u64)
}
