//! Nodes of one cluster that are watched and judged all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use uo_proto::RegionId;

use crate::judge::{Holders, Violation};
use crate::node::{Look, Node, Sample, Watch};

/// How often nodes are looked at while nothing special happens.
const CALM: Duration = Duration::from_millis(200);
/// How often when every millisecond counts.
const CLOSE: Duration = Duration::from_millis(20);
/// For how long nothing may have moved: longer than a sim has to be there before regions are handed to it.
const STEADY_MS: u64 = 7_000;
/// Violations that are kept; the first ones tell most.
const VIOLATIONS_MAX: usize = 100;

/// See the module.
pub struct Fleet {
    /// The nodes. Their order is that of the indices everywhere here.
    pub nodes: Vec<Node>,
    watch: Watch,
    holders: Holders,
    latest: BTreeMap<usize, Sample>,
    violations: BTreeSet<Violation>,
}

impl Fleet {
    /// Watches `nodes` from now on.
    pub fn new(nodes: Vec<Node>) -> anyhow::Result<Fleet> {
        let admins: Vec<String> = nodes.iter().map(|node| node.admin().to_owned()).collect();
        Ok(Fleet {
            nodes,
            watch: Watch::begin(&admins, "/state?fresh", CALM, Instant::now())?,
            holders: Holders::default(),
            latest: BTreeMap::new(),
            violations: BTreeSet::new(),
        })
    }

    /// Milliseconds since the watch began.
    pub fn now_ms(&self) -> u64 {
        self.watch.now_ms()
    }

    /// Looks closely, or not.
    pub fn look_closely(&self, closely: bool) {
        self.watch.set_pace(if closely { CLOSE } else { CALM });
    }

    /// Everything that was seen of who holds what.
    pub fn holders(&self) -> &Holders {
        &self.holders
    }

    /// The newest look at a node, if it answered.
    pub fn look(&self, node: usize) -> Option<&Look> {
        self.latest.get(&node)?.look.as_ref().ok()
    }

    /// The newest sample of a node.
    pub fn sample(&self, node: usize) -> Option<&Sample> {
        self.latest.get(&node)
    }

    /// What was found to be wrong since the last call.
    pub fn take_violations(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.violations).into_iter().collect()
    }

    /// Notes something that is wrong.
    pub fn note(&mut self, violations: impl IntoIterator<Item = Violation>) {
        for violation in violations {
            if self.violations.len() < VIOLATIONS_MAX {
                self.violations.insert(violation);
            }
        }
    }

    /// Waits for the next look at any node, and judges it.
    pub async fn next(&mut self) -> Sample {
        let sample = self.watch.next().await;
        let violations = self.holders.judge(&sample);
        self.note(violations);
        self.latest.insert(sample.node, sample.clone());
        sample
    }

    /// Watches until `is_so`, for at most `within_ms`; when it became so, or none.
    pub async fn until(
        &mut self,
        within_ms: u64,
        mut is_so: impl FnMut(&mut Fleet, &Sample) -> bool,
    ) -> Option<u64> {
        let deadline = self.now_ms() + within_ms;
        loop {
            let sample = self.next().await;
            if is_so(self, &sample) {
                return Some(sample.received_ms);
            }
            if self.now_ms() >= deadline {
                return None;
            }
        }
    }

    /// Watches for this long.
    pub async fn pass(&mut self, ms: u64) {
        self.until(ms, |_, _| false).await;
    }

    /// The regions that nodes for which `counts` holds serve, as their newest answers show.
    pub fn held_by(&self, counts: impl Fn(usize) -> bool) -> BTreeSet<RegionId> {
        let nodes = (0..self.nodes.len()).filter(|&node| counts(node));
        let looks = nodes.filter_map(|node| self.look(node));
        looks
            .filter(|look| !look.is_fenced)
            .flat_map(|look| look.regions.keys().copied())
            .collect()
    }

    /// Watches until every node acts and knows of all others, and all `regions` are held by one each.
    pub async fn settle(&mut self, regions: usize, within: Duration) -> anyhow::Result<()> {
        self.look_closely(false);
        // Whoever was started a moment ago has not answered since.
        let asked_after = self.now_ms();
        let mut ended = None;
        let settled = self
            .until(within.as_millis() as u64, |fleet, _| {
                ended = fleet.ended();
                ended.is_some() || fleet.is_settled(asked_after, regions)
            })
            .await;
        if let Some(ended) = ended {
            bail!("{ended}");
        }
        ensure!(
            settled.is_some(),
            "after {} s the cluster is not whole: {}",
            within.as_secs(),
            self.describe(regions)
        );
        Ok(())
    }

    /// Watches until the cluster is whole and no region has changed its node for so long that nobody hands on any more: what
    /// a sim starts with is moved to it only after it has been there for a while.
    pub async fn steady(&mut self, regions: usize, within: Duration) -> anyhow::Result<()> {
        let deadline = self.now_ms() + within.as_millis() as u64;
        loop {
            let left = deadline.saturating_sub(self.now_ms());
            self.settle(regions, Duration::from_millis(left)).await?;
            let before = self.assignment();
            let changed = self.until(STEADY_MS, |fleet, _| {
                fleet.ended().is_some() || fleet.assignment() != before
            });
            if changed.await.is_none() {
                return Ok(());
            }
        }
    }

    /// Which regions each node serves.
    fn assignment(&self) -> Vec<BTreeSet<RegionId>> {
        let served = |node| {
            let look = self.look(node);
            look.map_or_else(BTreeSet::new, |look| look.regions.keys().copied().collect())
        };
        (0..self.nodes.len()).map(served).collect()
    }

    fn is_settled(&self, asked_after: u64, regions: usize) -> bool {
        let answered = |node: usize| {
            let sample = self.sample(node);
            sample.is_some_and(|sample| sample.sent_ms >= asked_after)
                && self.look(node).is_some_and(|look| !look.is_fenced)
        };
        let served = |node| self.look(node).map_or(0, |look| look.regions.len());
        let looks = || (0..self.nodes.len()).filter_map(|node| self.look(node));
        let know_each_other =
            looks().all(|look| looks().all(|other| look.members.contains(&other.boot)));
        (0..self.nodes.len()).all(answered)
            && know_each_other
            && self.held_by(|_| true).len() == regions
            && (0..self.nodes.len()).map(served).sum::<usize>() == regions
    }

    /// Deaths that those nodes learned of, summed.
    pub fn deaths_known(&self, counts: impl Fn(usize) -> bool) -> u64 {
        let nodes = (0..self.nodes.len()).filter(|&node| counts(node));
        nodes.filter_map(|node| Some(self.look(node)?.deaths)).sum()
    }

    /// A node that ended by itself.
    fn ended(&mut self) -> Option<String> {
        self.nodes.iter_mut().find_map(|node| {
            let status = node.ended().ok()??;
            let log = node.log();
            Some(format!(
                "{} ended ({status}); see {}",
                node.name(),
                log.display()
            ))
        })
    }

    /// Who holds how much, in words.
    fn describe(&self, regions: usize) -> String {
        let each = self.nodes.iter().enumerate().map(|(index, node)| {
            let what = match self.sample(index).map(|sample| &sample.look) {
                Some(Ok(look)) if look.is_fenced => {
                    format!("is fenced with {}", look.regions.len())
                }
                Some(Ok(look)) => format!("holds {}", look.regions.len()),
                Some(Err(error)) => format!("does not answer ({error})"),
                None => "was never asked".into(),
            };
            format!("{} {what}", node.name())
        });
        let each: Vec<String> = each.collect();
        format!("of {regions} regions {}", each.join(", "))
    }
}
