//! Which plots a report has.
#![deny(clippy::disallowed_methods, clippy::disallowed_types)]

use std::collections::BTreeSet;

use super::plot::{COLOURS, Form, Layer, Mark, Plot, Scale, Shape, number};
use super::series::Second;
use super::{Quantiles, Report};

/// Nodes whose regions are drawn by themselves; those of more are drawn together.
const HOLDERS_MAX: usize = 6;
/// Causes of gaps, in the order of their shapes and colours.
const CAUSES: [&str; 6] = ["crossing", "crash", "drain", "gateway", "store", "other"];
/// A tick has this long.
const TICK_MS: f64 = 50.0;

/// The plots of a report, those with nothing to show left out.
pub fn charts(report: &Report) -> Vec<Plot> {
    let charts = [latency, gaps, ticks, sessions, regions].map(|chart| chart(report));
    charts.into_iter().flatten().collect()
}

/// What was done, as marks of plots.
pub fn marks(report: &Report) -> Vec<Mark> {
    let mark = |step: &super::run::ChaosStep| Mark {
        at_s: step.at_s,
        label: step.step.clone(),
    };
    report.chaos.iter().map(mark).collect()
}

/// Where the time axis ends.
pub fn end_s(report: &Report) -> f64 {
    let seconds = report.series.iter().map(|second| second.at_s);
    let steps = report.chaos.iter().map(|step| step.at_s);
    seconds.chain(steps).fold(1.0, f64::max)
}

fn points(report: &Report, value: impl Fn(&Second) -> Option<f64>) -> Vec<(f64, Option<f64>)> {
    let series = report.series.iter();
    series.map(|second| (second.at_s, value(second))).collect()
}

fn values(layers: &[Layer]) -> Vec<f64> {
    let all = layers.iter().flat_map(|layer| &layer.points);
    all.filter_map(|(_, value)| *value).collect()
}

/// p50, p99 and the longest, each with a look of its own.
fn quantile_layers(
    report: &Report,
    of: impl Fn(&Second) -> &Quantiles,
    colour: usize,
) -> Vec<Layer> {
    let layer = |name: &str, form, value: &dyn Fn(&Quantiles) -> Option<f64>| Layer {
        name: name.into(),
        form,
        colour,
        points: points(report, |second| value(of(second))),
    };
    vec![
        layer("longest", Form::Thin, &|times| times.max),
        layer("p99", Form::Strong, &|times| times.p99),
        layer("p50", Form::Dashed, &|times| times.p50),
    ]
}

fn told(times: &Quantiles) -> String {
    let ms = |ms: Option<f64>| ms.map_or("not measured".into(), |ms| format!("{} ms", number(ms)));
    format!(
        "p50 {}, p99 {}, longest {}",
        ms(times.p50),
        ms(times.p99),
        ms(times.max)
    )
}

fn latency(report: &Report) -> Option<Plot> {
    let layers = quantile_layers(report, |second| &second.order_to_delta_ms, 0);
    let values = values(&layers);
    let longest = values.iter().copied().reduce(f64::max)?;
    let bar = report
        .bars
        .iter()
        .find_map(|judged| judged.bar.strip_prefix("order_to_delta_ms.p99<="))
        .and_then(|at_most| at_most.parse::<f64>().ok())
        .filter(|at_most| *at_most <= 4.0 * longest);
    let limits: Vec<(f64, String)> = bar
        .map(|ms| (ms, "bar for p99".into()))
        .into_iter()
        .collect();
    let shown = values.iter().chain(limits.iter().map(|(ms, _)| ms));
    Some(Plot {
        title: "From an order to the delta that shows it".into(),
        unit: "ms",
        summary: told(&report.order_to_delta_ms),
        scale: Scale::fitting(&shown.copied().collect::<Vec<_>>()),
        layers,
        limits,
    })
}

fn gaps(report: &Report) -> Option<Plot> {
    let layers: Vec<Layer> = CAUSES
        .into_iter()
        .zip(Shape::ALL)
        .enumerate()
        .map(|(index, (cause, shape))| Layer {
            name: cause.into(),
            form: Form::Dots(shape),
            colour: index,
            points: points(report, |second| second.gap_ms_max.get(cause).copied()),
        })
        .collect();
    let values = values(&layers);
    let least = values.iter().copied().reduce(f64::min)?;
    let longest = values.iter().copied().reduce(f64::max)?;
    Some(Plot {
        title: "Longest gap that a player saw in its own character, each second, by cause".into(),
        unit: "ms",
        summary: format!("the longest took {} ms", number(longest)),
        scale: Scale::log(least, longest),
        layers,
        limits: Vec::new(),
    })
}

fn ticks(report: &Report) -> Option<Plot> {
    let mut layers = quantile_layers(report, |second| &second.tick_ms, 2);
    let longest = values(&layers).into_iter().reduce(f64::max)?;
    layers.push(Layer {
        name: "late ticks".into(),
        form: Form::Dots(Shape::Triangle),
        colour: 5,
        points: points(report, |second| {
            second.tick_ms.max.filter(|_| second.late_ticks > Some(0))
        }),
    });
    let late = report.late_ticks.unwrap_or_default() * 100.0;
    let is_near = longest > TICK_MS / 2.0;
    let limits = is_near.then(|| (TICK_MS, "a whole tick".into()));
    Some(Plot {
        title: "Work of a server's tick".into(),
        unit: "ms",
        summary: format!("{}, {} % late", told(&report.tick_ms), number(late)),
        scale: Scale::linear(if is_near {
            longest.max(TICK_MS)
        } else {
            longest
        }),
        layers,
        limits: limits.into_iter().collect(),
    })
}

fn sessions(report: &Report) -> Option<Plot> {
    if report.series.is_empty() {
        return None;
    }
    let sessions = Layer {
        name: "in the world".into(),
        form: Form::Strong,
        colour: 4,
        points: points(report, |second| Some(second.sessions as f64)),
    };
    Some(Plot {
        title: "Sessions".into(),
        unit: "sessions",
        summary: format!(
            "{} at most, {} lost",
            report.sessions.peak, report.sessions.lost
        ),
        scale: Scale::linear(report.bots.max(report.sessions.peak) as f64),
        layers: vec![sessions],
        limits: vec![(report.bots as f64, format!("{} bots", report.bots))],
    })
}

fn regions(report: &Report) -> Option<Plot> {
    let holders = report
        .series
        .iter()
        .flat_map(|second| second.regions.keys());
    let holders: BTreeSet<&String> = holders.collect();
    let holders: Vec<&String> = holders.into_iter().collect();
    if holders.is_empty() {
        return None;
    }
    let alone = if holders.len() > HOLDERS_MAX + 1 {
        HOLDERS_MAX
    } else {
        holders.len()
    };
    let (alone, together) = holders.split_at(alone);
    let held = |second: &Second, holder: &str| {
        let regions = second.regions.get(holder).copied();
        regions.unwrap_or_default() as f64
    };
    let mut layers: Vec<Layer> = alone
        .iter()
        .enumerate()
        .map(|(index, holder)| Layer {
            name: (*holder).clone(),
            form: Form::Area,
            colour: index % COLOURS,
            points: points(report, |second| Some(held(second, holder))),
        })
        .collect();
    if !together.is_empty() {
        layers.push(Layer {
            name: format!("{} others", together.len()),
            form: Form::Area,
            colour: COLOURS - 1,
            points: points(report, |second| {
                Some(together.iter().map(|holder| held(second, holder)).sum())
            }),
        });
    }
    let totals = report
        .series
        .iter()
        .map(|second| second.regions.values().sum::<u64>());
    let most = totals.clone().max().unwrap_or_default();
    let held_by = report.series.last().map(|second| &second.regions);
    let held_by: Vec<String> = held_by
        .into_iter()
        .flatten()
        .map(|(holder, regions)| format!("{holder} {regions}"))
        .collect();
    Some(Plot {
        title: "Regions by the node that serves them".into(),
        unit: "regions",
        summary: format!("{most} at most; at the end {}", held_by.join(", ")),
        scale: Scale::linear(most as f64),
        layers,
        limits: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::run::ChaosStep;

    fn second(at_s: f64, nodes: usize) -> Second {
        Second {
            at_s,
            sessions: 10,
            order_to_delta_ms: Quantiles {
                p50: Some(30.0),
                p99: Some(50.0),
                max: Some(60.0),
            },
            gap_ms_max: [("crash".to_owned(), 900.0)].into(),
            regions: (0..nodes)
                .map(|node| (format!("sim-{node:02}"), 8))
                .collect(),
            ..Second::default()
        }
    }

    #[test]
    fn what_was_not_measured_has_no_plot() {
        assert!(charts(&Report::default()).is_empty());
        let report = Report {
            series: vec![second(1.0, 0), second(2.0, 0)],
            ..Report::default()
        };
        let titles: Vec<String> = charts(&report).into_iter().map(|plot| plot.title).collect();
        assert_eq!(titles.len(), 3, "{titles:?}");
        assert!(!titles.iter().any(|title| title.contains("tick")));
    }

    #[test]
    fn many_holders_are_drawn_together_and_none_is_lost() {
        let report = Report {
            series: vec![second(1.0, 30)],
            ..Report::default()
        };
        let plot = regions(&report).expect("a plot");
        assert_eq!(plot.layers.len(), HOLDERS_MAX + 1);
        let drawn: f64 = values(&plot.layers).iter().sum();
        assert_eq!(drawn, 240.0);
        assert_eq!(plot.layers[HOLDERS_MAX].name, "24 others");
    }

    #[test]
    fn the_axis_reaches_the_last_step() {
        let mut report = Report {
            series: vec![second(30.0, 1)],
            ..Report::default()
        };
        assert_eq!(end_s(&report), 30.0);
        report.chaos.push(ChaosStep {
            at_s: 31.5,
            ..ChaosStep::default()
        });
        assert_eq!((end_s(&report), marks(&report).len()), (31.5, 1));
    }
}
