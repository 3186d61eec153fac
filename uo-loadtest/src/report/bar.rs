//! A bar: what a figure of the report must not exceed, as `order_to_delta_ms.p99<=100`.
//!
//! A list of times is judged by its longest, any other list by its length. A figure that was not measured meets no bar:
//! a run that measured nothing must not pass for a good one.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use super::Report;

/// What a figure must not exceed.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    name: String,
    at_most: f64,
}

/// Why a text is no bar.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum BarError {
    /// It does not have the form.
    #[error("`{0}` is no bar: it takes the form name<=value, as order_to_delta_ms.p99<=100")]
    Form(String),
    /// What follows `<=` is no number.
    #[error("`{0}` is no number")]
    Number(String),
    /// The report has no such figure.
    #[error("the report has no figure `{name}`; it has {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Every figure there is; those below the asked name, if there are any.
        known: Vec<String>,
    },
}

/// A bar, and whether it was met.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judged {
    /// The bar, as `name<=value`.
    pub bar: String,
    /// The figure; null if it was not measured, and then the bar is not met.
    pub value: Option<f64>,
    /// Whether the figure was measured and does not exceed the bar.
    pub is_met: bool,
}

impl FromStr for Bar {
    type Err = BarError;

    fn from_str(text: &str) -> Result<Bar, BarError> {
        let (name, at_most) = text
            .split_once("<=")
            .map(|(name, at_most)| (name.trim(), at_most.trim()))
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| BarError::Form(text.into()))?;
        let at_most = at_most
            .parse()
            .ok()
            .filter(|at_most: &f64| at_most.is_finite())
            .ok_or_else(|| BarError::Number(at_most.into()))?;
        let known = known_names();
        if known.iter().any(|known| known == name) {
            let name = name.into();
            return Ok(Bar { name, at_most });
        }
        let below = format!("{name}.");
        let mut near = known.clone();
        near.retain(|known| known.starts_with(&below));
        Err(BarError::Unknown {
            name: name.into(),
            known: if near.is_empty() { known } else { near },
        })
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}<={}", self.name, self.at_most)
    }
}

impl Bar {
    /// Holds a report, as JSON, against this bar.
    pub fn judge(&self, report: &Value) -> Judged {
        let found = self
            .name
            .split('.')
            .try_fold(report, |at, key| at.get(key))
            .and_then(|found| figure(&self.name, found));
        Judged {
            bar: self.to_string(),
            value: found,
            is_met: found.is_some_and(|value| value <= self.at_most),
        }
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.value, self.is_met) {
            (Some(value), true) => write!(f, "{} is met: {value:.4}", self.bar),
            (Some(value), false) => write!(f, "{} is not met: {value:.4}", self.bar),
            (None, _) => write!(f, "{} is not met: it was not measured", self.bar),
        }
    }
}

/// Holds a report against all bars.
pub fn judge(bars: &[Bar], report: &Report) -> Vec<Judged> {
    if bars.is_empty() {
        return Vec::new();
    }
    let report = serde_json::to_value(report).unwrap_or_default();
    bars.iter().map(|bar| bar.judge(&report)).collect()
}

/// The number that a value is judged by.
fn figure(name: &str, value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Array(times) if name.ends_with("_ms") => {
            times.iter().filter_map(Value::as_f64).reduce(f64::max)
        }
        Value::Array(list) => Some(list.len() as f64),
        _ => None,
    }
}

/// Every figure that a bar can be set for, in the order of the report.
fn known_names() -> Vec<String> {
    let mut names = Vec::new();
    let report = serde_json::to_value(Report::default()).unwrap_or_default();
    collect(None, &report, &mut names);
    names
}

fn collect(path: Option<&str>, value: &Value, names: &mut Vec<String>) {
    match (value, path) {
        (Value::Object(fields), _) => {
            for (key, value) in fields {
                let below = path.map_or(key.clone(), |path| format!("{path}.{key}"));
                collect(Some(&below), value, names);
            }
        }
        (Value::Number(_) | Value::Null | Value::Array(_), Some(path)) if !is_no_figure(path) => {
            names.push(path.into());
        }
        _ => {}
    }
}

/// What no bar can sensibly be set for: what was asked for, and what is judged already.
fn is_no_figure(path: &str) -> bool {
    matches!(path, "seed" | "store" | "bars" | "series" | "chaos")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Spread;

    fn judged(bar: &str, report: &Report) -> Judged {
        let bar: Bar = bar.parse().expect(bar);
        judge(&[bar], report).remove(0)
    }

    #[test]
    fn a_figure_is_found_by_its_path_and_may_reach_the_bar() {
        let mut report = Report::default();
        report.order_to_delta_ms.p99 = Some(75.0);
        let met = judged("order_to_delta_ms.p99<=75", &report);
        assert!(met.is_met);
        assert_eq!(met.to_string(), "order_to_delta_ms.p99<=75 is met: 75.0000");
        let missed = judged(" order_to_delta_ms.p99 <= 74.9 ", &report);
        assert!(!missed.is_met);
        assert_eq!(missed.value, Some(75.0));
        report.player_gap_ms.crash = Spread {
            count: 2,
            ..Spread::default()
        };
        assert!(judged("player_gap_ms.crash.count<=2", &report).is_met);
    }

    #[test]
    fn what_was_not_measured_meets_no_bar() {
        let report = Report::default();
        for bar in [
            "tick_ms.p99<=10",
            "proof.coins_lost<=0",
            "failover_ms<=4000",
        ] {
            let judged = judged(bar, &report);
            assert_eq!((judged.value, judged.is_met), (None, false), "{bar}");
            assert!(judged.to_string().ends_with("it was not measured"));
        }
    }

    #[test]
    fn times_are_judged_by_the_longest_and_other_lists_by_their_length() {
        let mut report = Report {
            failover_ms: vec![2_900.0, 3_400.0, 3_100.0],
            ..Report::default()
        };
        assert_eq!(judged("failover_ms<=4000", &report).value, Some(3_400.0));
        assert!(judged("invariants.violations<=0", &report).is_met);
        report.invariants.violations.push("two holders".into());
        assert!(!judged("invariants.violations<=0", &report).is_met);
    }

    #[test]
    fn what_is_no_bar_is_answered_with_what_would_be_one() {
        let why = |text: &str| Bar::from_str(text).expect_err(text);
        assert_eq!(why("fences"), BarError::Form("fences".into()));
        assert_eq!(why("<=3"), BarError::Form("<=3".into()));
        assert_eq!(why("fences<=few"), BarError::Number("few".into()));
        assert_eq!(why("fences<=NaN"), BarError::Number("NaN".into()));
        let BarError::Unknown { known, .. } = why("tick_ms<=10") else {
            panic!("it is a group of figures");
        };
        assert_eq!(known, ["tick_ms.max", "tick_ms.p50", "tick_ms.p99"]);
        let text = why("no_such<=10").to_string();
        for name in ["sessions.lost", "stop_ms", "per_session.rss_bytes"] {
            assert!(text.contains(name), "{text}");
        }
        assert!(!text.contains("seed"), "{text}");
    }
}
