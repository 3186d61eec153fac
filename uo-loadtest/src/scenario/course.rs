//! The run: ramp, chaos, and the closing, in which everybody stands and is looked at.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::Arguments;
use super::bots::Bots;
use super::clients::Clients;
use super::outcome::{Done, Findings, Outcome};
use super::watching::Watching;
use crate::chaos::{Step, What};
use crate::cluster::Cluster;
use crate::http;
use crate::judge::Violation;
use crate::judge::oracle::{self, Seen, Truth, Verdict, Wrong};
use crate::swarm::summary::Counted;

/// How long everybody may take to be told what they carry, once they stand.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);
/// How long what the bots did last may take to be over: walks, blows, wounds.
const SETTLES: Duration = Duration::from_secs(3);
/// From one set of pages to the next: everything that stood still in between has long reached every view.
const STILL: Duration = Duration::from_millis(1_500);
/// Between two looks at something that can only be looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How often views are compared. An error counts when two comparisons in a row show it.
const COMPARISONS: usize = 4;
/// How long a page may take.
const PAGE_WITHIN: Duration = Duration::from_secs(10);
/// How long game clients may go on when the time is over.
const CLIENTS_WITHIN: Duration = Duration::from_secs(20);
/// How long after a drain its gaps may be felt.
const FELT_WITHIN: Duration = Duration::from_secs(1);
/// How long bots may take to show what they see.
const VIEWS_WITHIN: Duration = Duration::from_secs(3);

/// Runs it; true when nothing was violated.
pub async fn run(arguments: Arguments) -> anyhow::Result<bool> {
    std::fs::create_dir_all(&arguments.out)
        .with_context(|| format!("cannot make {}", arguments.out.display()))?;
    let mut cluster = arguments.cluster().await?;
    let (steps, seconds) = arguments.plan(&cluster)?;
    cluster.start_all().await?;
    println!(
        "{} are up: {} bots log in",
        cluster.names().join(", "),
        arguments.bots
    );
    let began = Instant::now();
    let swarm = arguments.swarm(cluster.gateways(), seconds);
    let bots = Bots::enter(&swarm, began)?;
    let watching = Watching::begin(&cluster, bots, arguments.held_within_ms, began)?;
    let mut course = Course {
        cluster,
        watching,
        clients: None,
        done: Vec::new(),
    };
    let (early, late): (Vec<Step>, Vec<Step>) = steps
        .into_iter()
        .partition(|step| step.second < arguments.ramp.as_secs());
    for step in &early {
        course.wait(Duration::from_secs(step.second)).await;
        course.perform(step).await;
    }
    course.wait(arguments.ramp).await;
    course.watching.measure();
    if let Some(command) = arguments
        .client_cmd
        .as_ref()
        .filter(|_| arguments.clients > 0)
    {
        let urls = course.cluster.gateways();
        let clients = Clients::start(arguments.clients, command, &urls, &arguments.out)?;
        course.clients = Some(clients);
    }
    for step in &late {
        course.wait(Duration::from_secs(step.second)).await;
        course.perform(step).await;
    }
    course.wait(Duration::from_secs(seconds)).await;
    let findings = course.close(arguments.bots).await?;
    let outcome = Outcome {
        arguments: &arguments,
        swarm: &swarm,
        watching: &course.watching,
        done: &course.done,
        stops: course.cluster.stops(),
        findings: &findings,
    };
    outcome.tell()
}

struct Course {
    cluster: Cluster,
    watching: Watching,
    clients: Option<Clients>,
    done: Vec<Done>,
}

impl Course {
    /// Watches until then. A node that ends by itself is told.
    async fn wait(&mut self, since_began: Duration) {
        let end_ms = since_began.as_millis() as u64;
        while self.watching.now_ms() < end_ms {
            let next_ms = (self.watching.now_ms() + 1_000).min(end_ms);
            self.watching.until(Duration::from_millis(next_ms)).await;
            if let Some(why) = self.cluster.ended().await {
                self.watching.note([Violation::Ended(why)]);
            }
        }
    }

    async fn perform(&mut self, step: &Step) {
        let at_ms = self.watching.now_ms();
        println!("{:>4}s  {step}", at_ms / 1_000);
        if let (What::Kill | What::Pause, Some(node)) = (step.what, &step.node) {
            self.watching.lost(node);
        }
        let drains = step.is_drain();
        self.watching.bots.tally.set_drains(drains);
        let performed = self.watching.during(self.cluster.perform(step)).await;
        let took_ms = self.watching.now_ms() - at_ms;
        let outcome = match &performed {
            Ok(()) => format!("done after {took_ms} ms"),
            Err(error) => format!("failed after {took_ms} ms: {error:#}"),
        };
        println!("{:>4}s  {step}: {outcome}", self.watching.now_ms() / 1_000);
        if let Err(error) = performed {
            let why = format!("{step}: {error:#}");
            self.watching.note([Violation::Ended(why)]);
        }
        if drains {
            // Whoever was handed over last feels it after the step.
            self.watching.during(sleep(FELT_WITHIN)).await;
            self.watching.bots.tally.set_drains(false);
        }
        self.done.push(Done {
            at_ms,
            step: step.deed(),
            outcome,
        });
    }

    /// Everybody stands and is asked; then what they see is compared with what there is, and the cluster ends.
    async fn close(&mut self, bots: usize) -> anyhow::Result<Findings> {
        println!("the time is over: everybody stands and is looked at");
        let in_at_end = self.watching.bots.tally.in_world();
        let counted = Counted::now(&self.watching.bots.tally);
        let measured = counted.since(&self.watching.measured.counted).elapsed();
        self.watching.bots.stand();
        self.watching.during(sleep(SETTLES)).await;
        let asked = Instant::now();
        while !self.watching.bots.unanswered().is_empty() && asked.elapsed() < ANSWERED_WITHIN {
            self.watching.during(sleep(LOOK)).await;
        }
        let silent = self.watching.bots.unanswered();
        let silent = self.describe(silent).await?;
        let untold = silent.into_iter().map(|(name, place)| {
            let what = "is in the world and is not told what it carries";
            Violation::Ended(format!("{name} {what}: {place}"))
        });
        self.watching.note(untold);
        let (compared, wrong) = self.compare().await?;
        let broken = self.watching.bots.broken();
        let promises = self.watching.bots.promises();
        let sessions_lost = self.watching.judge_sessions(bots);
        let clients = match &mut self.clients {
            Some(clients) => self.watching.during(clients.end(CLIENTS_WITHIN)).await?,
            None => Vec::new(),
        };
        self.watching.bots.leave();
        let ended = self.watching.during(self.cluster.end()).await;
        if let Err(error) = ended {
            self.watching
                .note([Violation::Ended(format!("the end: {error:#}"))]);
        }
        Ok(Findings {
            counted,
            measured,
            in_at_end,
            compared,
            view_errors: wrong.iter().map(ToString::to_string).collect(),
            broken,
            promises,
            sessions_lost,
            clients,
        })
    }

    /// What the nodes have of those characters and their sessions: for whoever looks for the cause.
    async fn describe(&self, names: Vec<String>) -> anyhow::Result<Vec<(String, String)>> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let pages = self.pages().await?;
        let of = |name: &str| -> String {
            let lists = pages
                .iter()
                .flat_map(|page| [&page["sim"]["characters"], &page["gateway"]["sessions"]]);
            let entries = lists.filter_map(Value::as_array).flatten();
            let own = entries.filter(|entry| entry["name"] == name);
            own.map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        let described = names.into_iter().map(|name| {
            let place = of(&name);
            (name, place)
        });
        Ok(described.collect())
    }

    /// How much of views was compared, and what was wrong with them twice in a row.
    async fn compare(&mut self) -> anyhow::Result<(u64, BTreeSet<Wrong>)> {
        let (mut compared, mut errors) = (0, BTreeSet::new());
        let mut suspected: BTreeSet<Wrong> = BTreeSet::new();
        for _ in 0..COMPARISONS {
            let before = self.truth().await?;
            self.watching.during(sleep(STILL)).await;
            let views: Vec<Seen> = self.watching.bots.views(VIEWS_WITHIN).await;
            let after = self.truth().await?;
            let Verdict {
                compared: more,
                wrong,
            } = oracle::compare(&before, &after, &views);
            compared += more;
            errors.extend(wrong.intersection(&suspected).cloned());
            suspected = wrong;
        }
        Ok((compared, errors))
    }

    async fn truth(&self) -> anyhow::Result<Truth> {
        Truth::of(&self.pages().await?)
    }

    /// Everything, of every node that runs.
    async fn pages(&self) -> anyhow::Result<Vec<Value>> {
        let mut pages: Vec<Value> = Vec::new();
        for name in self.cluster.names() {
            if self.cluster.is_running(&name) {
                let admin = self.cluster.admin(&name);
                let page = timeout(PAGE_WITHIN, http::get(&admin, "/state?full"))
                    .await
                    .with_context(|| format!("{name} does not show its page"))??;
                pages.push(serde_json::from_str(&page)?);
            }
        }
        Ok(pages)
    }
}
