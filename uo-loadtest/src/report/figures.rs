//! What times are told by: how many there were, their quantiles, the longest.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use hdrhistogram::Histogram;
use serde::Serialize;

/// Quantiles of times in milliseconds; null where nothing was measured.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Quantiles {
    /// Half of them took no longer.
    pub p50: Option<f64>,
    /// All but one of a hundred took no longer.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

/// How many times were measured, and their quantiles in milliseconds; null where there were none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Half of them took no longer.
    pub p50: Option<f64>,
    /// All but one of a hundred took no longer.
    pub p99: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

impl Quantiles {
    /// Of a histogram of microseconds.
    pub fn of_us(times: &Histogram<u64>) -> Quantiles {
        Quantiles {
            p50: quantile_ms(times, 0.5),
            p99: quantile_ms(times, 0.99),
            max: quantile_ms(times, 1.0),
        }
    }
}

impl Spread {
    /// Of a histogram of microseconds.
    pub fn of_us(times: &Histogram<u64>) -> Spread {
        let Quantiles { p50, p99, max } = Quantiles::of_us(times);
        Spread {
            count: times.len(),
            p50,
            p99,
            max,
        }
    }
}

/// A quantile of a histogram of microseconds, in milliseconds; none where nothing was recorded.
pub fn quantile_ms(times: &Histogram<u64>, quantile: f64) -> Option<f64> {
    let us = times.value_at_quantile(quantile).min(times.max());
    (!times.is_empty()).then_some(us as f64 / 1e3)
}

/// A time for people: `33.2`, or `-` where there was none.
pub fn ms_text(ms: Option<f64>) -> String {
    ms.map_or("-".into(), |ms| format!("{ms:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_milliseconds_and_none_as_none() {
        let mut times = Histogram::new_with_bounds(1, 60_000_000, 3).expect("sound bounds");
        assert_eq!(Spread::of_us(&times), Spread::default());
        for us in [1_000, 2_000, 90_500] {
            times.record(us).expect("within bounds");
        }
        let spread = Spread::of_us(&times);
        assert_eq!(spread.count, 3);
        assert_eq!(spread.p50.map(f64::round), Some(2.0));
        assert_eq!(spread.max.map(f64::floor), Some(90.0));
        assert_eq!(ms_text(Some(33.24)), "33.2");
        assert_eq!(ms_text(None), "-");
    }
}
