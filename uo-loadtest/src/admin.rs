//! Reads the nodes' own figures from their `/metrics`.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::http::{self, Line};

/// A node that does not answer within this time is reported as silent.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Pages that wait to be taken.
const PAGES_MAX: usize = 256;
/// Counters that each node has, and that grow with whatever it does.
const COUNTED_BY_ALL: [&str; 2] = ["uo_ticks_total", "uo_client_frames_out_total"];

/// One reading: every series of every node, summed over nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Reading {
    /// By name; series that differ in labels (but for `le`) are summed.
    sums: BTreeMap<String, f64>,
    /// The largest over all nodes and labels.
    peaks: BTreeMap<String, f64>,
    /// Buckets of histograms: by name without `_bucket`, the cumulative count at each upper bound. Those with other labels
    /// are there twice: summed over them, and as `name{label="value"}`.
    buckets: BTreeMap<String, BTreeMap<Bound, f64>>,
}

/// The upper bound of a bucket, in the order of size.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Bound(f64);

impl Eq for Bound {}
impl PartialOrd for Bound {
    fn partial_cmp(&self, other: &Bound) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Bound {
    fn cmp(&self, other: &Bound) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Tasks that read nodes again and again. Dropped, they end.
pub struct Meters {
    pages: mpsc::Receiver<(usize, String)>,
    _tasks: JoinSet<()>,
}

impl Meters {
    /// Reads each of `admins` every `pace`.
    pub fn begin(admins: &[String], pace: Duration) -> anyhow::Result<Meters> {
        let (sender, pages) = mpsc::channel(PAGES_MAX);
        let mut tasks = JoinSet::new();
        for (node, admin) in admins.iter().enumerate() {
            let mut line = Line::new(admin)?;
            let sender = sender.clone();
            tasks.spawn(async move {
                loop {
                    let answer = timeout(ANSWER_MAX, line.ask("GET", "/metrics")).await;
                    if let Ok(Ok(answer)) = answer
                        && answer.status == 200
                        && sender.send((node, answer.body)).await.is_err()
                    {
                        return;
                    }
                    sleep(pace).await;
                }
            });
        }
        Ok(Meters {
            pages,
            _tasks: tasks,
        })
    }

    /// The next page of any node, by its number.
    pub async fn next(&mut self) -> (usize, String) {
        let next = self.pages.recv().await;
        next.expect("its tasks live as long as it does")
    }
}

/// Reads all nodes.
pub async fn read(nodes: &[String]) -> anyhow::Result<Reading> {
    let mut reading = Reading::default();
    for node in nodes {
        let text = tokio::time::timeout(ANSWER_MAX, http::get(node, "/metrics"))
            .await
            .with_context(|| format!("{node} does not answer"))?
            .with_context(|| format!("no metrics from {node}"))?;
        reading.take(&text);
    }
    Ok(reading)
}

/// Readings of nodes whose processes come and go: what a process had counted when it was read last stays counted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Collected {
    ended: Reading,
    latest: BTreeMap<usize, Reading>,
}

impl Collected {
    /// Takes a node's page.
    pub fn take(&mut self, node: usize, text: &str) {
        let mut now = Reading::default();
        now.take(text);
        let fell = |name: &&str, before: &Reading| now.sums.get(*name) < before.sums.get(*name);
        if let Some(before) = self.latest.insert(node, now.clone())
            && COUNTED_BY_ALL.iter().any(|name| fell(name, &before))
        {
            self.ended.join(before);
        }
    }

    /// Everything that was counted so far, by processes that ended as well.
    pub fn reading(&self) -> Reading {
        let mut all = self.ended.clone();
        for latest in self.latest.values() {
            all.join(latest.clone());
        }
        all
    }
}

impl Reading {
    fn join(&mut self, other: Reading) {
        for (name, sum) in other.sums {
            *self.sums.entry(name).or_default() += sum;
        }
        for (name, peak) in other.peaks {
            let known = self.peaks.entry(name).or_insert(peak);
            *known = known.max(peak);
        }
        for (name, buckets) in other.buckets {
            let known = self.buckets.entry(name).or_default();
            for (bound, count) in buckets {
                *known.entry(bound).or_default() += count;
            }
        }
    }

    /// Takes one node's text in the exposition format.
    fn take(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((series, value)) = split_sample(line) else {
                continue;
            };
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            match (name.strip_suffix("_bucket"), upper_bound(labels)) {
                (Some(histogram), Some(bound)) => {
                    let mut add = |name: String| {
                        let buckets = self.buckets.entry(name).or_default();
                        *buckets.entry(bound).or_default() += value;
                    };
                    add(histogram.to_owned());
                    if let Some(labels) = other_labels(labels) {
                        add(format!("{histogram}{{{labels}}}"));
                    }
                }
                _ => {
                    *self.sums.entry(name.to_owned()).or_default() += value;
                    let peak = self.peaks.entry(name.to_owned()).or_insert(value);
                    *peak = peak.max(value);
                }
            }
        }
    }

    /// By how much a counter grew since `earlier`; none if the nodes do not have it.
    pub fn growth(&self, earlier: &Reading, name: &str) -> Option<f64> {
        let now = self.sums.get(name)?;
        Some(now - earlier.sums.get(name).copied().unwrap_or(0.0))
    }

    /// The largest value of a gauge over all nodes.
    pub fn peak(&self, name: &str) -> Option<f64> {
        self.peaks.get(name).copied()
    }

    /// The upper bound of the bucket that holds the `quantile` of what a histogram took since `earlier`: the true value is
    /// not larger. None if it took nothing.
    pub fn quantile(&self, earlier: &Reading, name: &str, quantile: f64) -> Option<f64> {
        let (_, high) = self.bucket(earlier, name, quantile)?;
        Some(high)
    }

    /// How often a histogram was added to since `earlier`; none if the nodes do not have it.
    pub fn count(&self, earlier: &Reading, name: &str) -> Option<f64> {
        let total = |reading: &Reading| {
            let buckets = reading.buckets.get(name)?;
            buckets.last_key_value().map(|(_, count)| *count)
        };
        Some(total(self)? - total(earlier).unwrap_or(0.0))
    }

    /// The bounds of the bucket that holds the largest of what a histogram took since `earlier`.
    pub fn longest(&self, earlier: &Reading, name: &str) -> Option<(f64, f64)> {
        self.bucket(earlier, name, 1.0)
    }

    fn bucket(&self, earlier: &Reading, name: &str, quantile: f64) -> Option<(f64, f64)> {
        let now = self.buckets.get(name)?;
        let before = earlier.buckets.get(name);
        let old = |bound: &Bound| before.and_then(|old| old.get(bound)).copied();
        let since: Vec<(f64, f64)> = now
            .iter()
            .map(|(bound, count)| (bound.0, count - old(bound).unwrap_or(0.0)))
            .collect();
        let total = since.last().map(|(_, count)| *count)?;
        if total <= 0.0 {
            return None;
        }
        let at = since
            .iter()
            .position(|(_, count)| *count >= total * quantile)?;
        let low = at.checked_sub(1).map_or(0.0, |before| since[before].0);
        Some((low, since[at].0))
    }
}

/// `name{labels} value [timestamp]` into the series and its value.
fn split_sample(line: &str) -> Option<(&str, f64)> {
    let end = line.rfind('}').map_or(0, |at| at + 1);
    let space = end + line[end..].find(' ')?;
    let value = line[space..].split_whitespace().next()?.parse().ok()?;
    Some((&line[..space], value))
}

/// The labels of a bucket without its bound; none if it has no others.
fn other_labels(labels: &str) -> Option<String> {
    let others = labels.trim_end_matches('}').split(',');
    let others: Vec<&str> = others.filter(|label| !label.starts_with("le=")).collect();
    (!others.is_empty()).then(|| others.join(","))
}

fn upper_bound(labels: &str) -> Option<Bound> {
    let (_, rest) = labels.split_once("le=\"")?;
    let (bound, _) = rest.split_once('"')?;
    bound.parse().ok().map(Bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str) -> Reading {
        let mut reading = Reading::default();
        reading.take(text);
        reading
    }

    #[test]
    fn counters_gauges_and_histograms_are_told_since_an_earlier_reading() {
        let earlier = reading(
            "# TYPE uo_fights counter\nuo_fights_total 5\n\
             uo_tick_seconds_bucket{le=\"0.001\"} 10\nuo_tick_seconds_bucket{le=\"0.01\"} 10\n\
             uo_tick_seconds_bucket{le=\"+Inf\"} 10\nuo_tick_seconds_count 10\n",
        );
        let now = reading(
            "uo_fights_total{node=\"a b\"} 7 1700000000\nuo_fights_total{node=\"c\"} 1\n\
             uo_tick_seconds_bucket{le=\"0.001\"} 60\nuo_tick_seconds_bucket{le=\"0.01\"} 109\n\
             uo_tick_seconds_bucket{le=\"+Inf\"} 110\nnonsense\n",
        );
        assert_eq!(now.growth(&earlier, "uo_fights_total"), Some(3.0));
        assert_eq!(now.growth(&earlier, "uo_deaths_total"), None);
        assert_eq!(now.peak("uo_fights_total"), Some(7.0));
        let quantile = |share| now.quantile(&earlier, "uo_tick_seconds", share);
        assert_eq!(quantile(0.5), Some(0.001));
        assert_eq!(quantile(0.99), Some(0.01));
        assert_eq!(quantile(1.0), Some(f64::INFINITY));
        assert_eq!(
            now.longest(&earlier, "uo_tick_seconds"),
            Some((0.01, f64::INFINITY))
        );
        assert_eq!(now.quantile(&now, "uo_tick_seconds", 0.5), None);
        assert_eq!(now.count(&earlier, "uo_tick_seconds"), Some(100.0));
    }

    #[test]
    fn what_a_process_had_counted_stays_counted_when_another_takes_its_place() {
        let mut collected = Collected::default();
        for (node, ticks) in [(0, 100), (1, 40), (0, 160), (0, 5), (0, 25)] {
            collected.take(node, &format!("uo_ticks_total {ticks}\n"));
        }
        let growth = collected
            .reading()
            .growth(&Reading::default(), "uo_ticks_total");
        assert_eq!(growth, Some(160.0 + 40.0 + 25.0));
    }

    #[test]
    fn a_histogram_with_labels_can_be_told_by_label() {
        let now = reading(
            "uo_gap_seconds_bucket{le=\"0.1\",cause=\"a\"} 3\nuo_gap_seconds_bucket{le=\"+Inf\",cause=\"a\"} 4\n\
             uo_gap_seconds_bucket{le=\"0.1\",cause=\"b\"} 1\nuo_gap_seconds_bucket{le=\"+Inf\",cause=\"b\"} 1\n",
        );
        let none = Reading::default();
        assert_eq!(now.count(&none, "uo_gap_seconds"), Some(5.0));
        assert_eq!(now.count(&none, "uo_gap_seconds{cause=\"a\"}"), Some(4.0));
        let quantile = now.quantile(&none, "uo_gap_seconds{cause=\"b\"}", 1.0);
        assert_eq!(quantile, Some(0.1));
    }
}
