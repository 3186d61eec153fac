//! A whole cluster that this program starts, disturbs and ends.
//!
//! Reading order:
//! - this file: what can be done to any of them;
//! - [`inproc`]: nodes of this process;
//! - [`processes`]: nodes that are processes of their own;
//! - [`network`]: the ways between them; [`ring`]: the database under them.

pub mod inproc;
pub mod network;
pub mod pids;
pub mod processes;
pub mod ring;

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use uo_proto::RegionId;
use uo_server::store::row::Role;

use crate::chaos::{Stage, Step, What};
use crate::http;
use pids::Pids;

/// Between two looks at something that can only be looked at.
const LOOK: Duration = Duration::from_millis(50);
/// How long an answer may take; a busy node is asked again.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// How long the nodes may take to hold everything and to reach each other.
pub const READY_WITHIN: Duration = Duration::from_secs(90);

/// How large a cluster is, and of what world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Nodes called sim-1, sim-2 and so on.
    pub sims: u16,
    /// Nodes called gw-1, gw-2 and so on.
    pub gateways: u16,
    /// Side of the map in tiles.
    pub map: u16,
    /// The world's seed.
    pub seed: u64,
}

impl Shape {
    /// Every node and what it does, sims first.
    pub fn names(self) -> impl Iterator<Item = (String, Role)> {
        let sims = (1..=self.sims).map(|number| (format!("sim-{number}"), Role::Sim));
        let gateways = (1..=self.gateways).map(|number| (format!("gw-{number}"), Role::Gateway));
        sims.chain(gateways)
    }

    /// How many regions are held at any time: all of them, or none that is sure where a region runs only while somebody
    /// needs it.
    pub fn regions_held(self) -> Option<usize> {
        let regions = RegionId::count(self.map);
        (regions <= uo_server::limits::REGIONS_ALWAYS_RUNNING_MAX).then_some(regions as usize)
    }
}

/// See the module.
pub struct Cluster {
    shape: Shape,
    nodes: Nodes,
    stops: Vec<Stopped>,
}

/// A stop in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// Whether it had regions to hand on.
    pub is_sim: bool,
    /// How long it took.
    pub took_ms: u64,
}

enum Nodes {
    Inproc(inproc::Nodes),
    Processes(Box<processes::Nodes>),
}

impl Cluster {
    /// Nodes of this process, still to be started; see [`inproc::Nodes::new`] for `port`.
    pub fn inproc(shape: Shape, port: Option<u16>) -> anyhow::Result<Cluster> {
        Ok(Cluster {
            shape,
            nodes: Nodes::Inproc(inproc::Nodes::new(shape, port)?),
            stops: Vec::new(),
        })
    }

    /// Nodes that are processes, still to be started.
    pub async fn processes(shape: Shape, setup: processes::Setup) -> anyhow::Result<Cluster> {
        Ok(Cluster {
            shape,
            nodes: Nodes::Processes(Box::new(processes::Nodes::new(shape, setup).await?)),
            stops: Vec::new(),
        })
    }

    /// How large it is.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What can be done to it.
    pub fn stage(&self) -> Stage {
        match &self.nodes {
            Nodes::Inproc(_) => Stage {
                nodes: self.names(),
                one_process: true,
                ..Stage::default()
            },
            Nodes::Processes(nodes) => nodes.stage(),
        }
    }

    /// Every node, sims first.
    pub fn names(&self) -> Vec<String> {
        match &self.nodes {
            Nodes::Inproc(_) => self.shape.names().map(|(name, _)| name).collect(),
            Nodes::Processes(nodes) => nodes.names().to_vec(),
        }
    }

    /// The admin address of a node, as `http://host:port`.
    pub fn admin(&self, name: &str) -> String {
        match &self.nodes {
            Nodes::Inproc(nodes) => nodes.admin(name),
            Nodes::Processes(nodes) => nodes.admin(name),
        }
    }

    /// Where clients connect, as `ws://host:port`.
    pub fn gateways(&self) -> Vec<String> {
        let gateways = self
            .shape
            .names()
            .filter(|(_, role)| *role == Role::Gateway);
        match &self.nodes {
            Nodes::Inproc(nodes) => gateways.map(|(name, _)| nodes.listen(&name)).collect(),
            Nodes::Processes(nodes) => nodes.gateways(),
        }
    }

    /// Whether a node runs.
    pub fn is_running(&self, name: &str) -> bool {
        match &self.nodes {
            Nodes::Inproc(nodes) => nodes.is_running(name),
            Nodes::Processes(nodes) => nodes.is_running(name),
        }
    }

    /// The processes of the nodes, if they are that; those that are started later as well.
    pub fn pids(&self) -> Pids {
        match &self.nodes {
            Nodes::Inproc(_) => Pids::default(),
            Nodes::Processes(nodes) => nodes.pids(),
        }
    }

    /// The stops in order so far.
    pub fn stops(&self) -> &[Stopped] {
        &self.stops
    }

    /// Starts every node, and waits until all is held and everybody is reached.
    pub async fn start_all(&mut self) -> anyhow::Result<()> {
        for name in self.names() {
            self.start(&name).await?;
        }
        self.ready(READY_WITHIN).await
    }

    /// Does what a step says.
    pub async fn perform(&mut self, step: &Step) -> anyhow::Result<()> {
        if let (Nodes::Processes(nodes), Some(node)) = (&mut self.nodes, &step.node)
            && nodes.is_database(node)
        {
            return nodes.perform(step, node).await;
        }
        match (step.what, &step.node) {
            (What::Rolling, _) => self.roll(READY_WITHIN).await,
            (What::Kill, Some(node)) => self.kill(node).await,
            (What::Stop, Some(node)) => self.stop(node).await,
            (What::Start, Some(node)) => self.start(node).await,
            (_, Some(node)) => match &mut self.nodes {
                Nodes::Inproc(_) => bail!("{step}: this takes nodes that are processes"),
                Nodes::Processes(nodes) => nodes.perform(step, node).await,
            },
            (_, None) => bail!("{step}: it names no node"),
        }
    }

    /// Starts a node.
    pub async fn start(&mut self, name: &str) -> anyhow::Result<()> {
        match &mut self.nodes {
            Nodes::Inproc(nodes) => nodes.start(name).await,
            Nodes::Processes(nodes) => nodes.start(name).await,
        }
    }

    /// Ends a node where it stands.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        match &mut self.nodes {
            Nodes::Inproc(nodes) => nodes.kill(name).await,
            Nodes::Processes(nodes) => nodes.kill(name),
        }
    }

    /// Stops a node in order.
    pub async fn stop(&mut self, name: &str) -> anyhow::Result<()> {
        let began = Instant::now();
        match &mut self.nodes {
            Nodes::Inproc(nodes) => nodes.stop(name).await?,
            Nodes::Processes(nodes) => nodes.stop(name).await?,
        }
        self.stops.push(Stopped {
            is_sim: !name.starts_with("gw-"),
            took_ms: began.elapsed().as_millis() as u64,
        });
        Ok(())
    }

    /// Stops and starts one node after another, sims first, each when the cluster is whole again.
    pub async fn roll(&mut self, within: Duration) -> anyhow::Result<()> {
        for name in self.names() {
            if self.is_running(&name) {
                self.stop(&name).await?;
                self.start(&name).await?;
                self.ready(within).await?;
            }
        }
        Ok(())
    }

    /// Nodes that somebody asked to stop (`POST /shutdown`) since the last call.
    pub async fn asked_to_stop(&mut self) -> Vec<String> {
        match &mut self.nodes {
            Nodes::Inproc(nodes) => nodes.asked_to_stop().await,
            Nodes::Processes(_) => Vec::new(),
        }
    }

    /// A node that ended by itself, in words.
    pub async fn ended(&mut self) -> Option<String> {
        match &mut self.nodes {
            Nodes::Inproc(nodes) => nodes.ended().await,
            Nodes::Processes(nodes) => nodes.ended(),
        }
    }

    /// Waits until every region is held (of a world that runs as a whole) and every node that runs is ready.
    pub async fn ready(&mut self, within: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(why) = self.ended().await {
                bail!(why);
            }
            let missing = self.missing().await;
            let Some(missing) = missing else {
                return Ok(());
            };
            ensure!(
                Instant::now() < deadline,
                "after {} s {missing}",
                within.as_secs()
            );
            sleep(LOOK).await;
        }
    }

    /// What the cluster lacks, in words.
    async fn missing(&self) -> Option<String> {
        let mut held = 0;
        for name in self.names() {
            if !self.is_running(&name) {
                continue;
            }
            let admin = self.admin(&name);
            let asked = timeout(ANSWER_MAX, http::get(&admin, "/state?fresh")).await;
            let Some(state) = asked
                .ok()
                .and_then(Result::ok)
                .and_then(|page| serde_json::from_str::<Value>(&page).ok())
            else {
                return Some(format!("{name} does not answer"));
            };
            if state["ready"] != true {
                return Some(format!("{name} is not ready"));
            }
            held += state["sim"]["regions"].as_array().map_or(0, Vec::len);
        }
        let regions = self.shape.regions_held();
        regions
            .filter(|&regions| held != regions)
            .map(|regions| format!("{held} of {regions} regions are held"))
    }

    /// Where everything is, and what to do next.
    pub fn describe(&self) -> String {
        let gateways = self.gateways().join(",");
        let mut text = format!(
            "The cluster is up.\n\n  send in bots  uo-loadtest swarm --gateways {gateways} --bots 200 --seconds 60\n",
        );
        for name in self.names() {
            let admin = self.admin(&name);
            let _ = writeln!(
                text,
                "  {name:<12}  {admin}/state  (/metrics, /crossings; POST /shutdown)"
            );
        }
        text
    }

    /// Stops everything: gateways first, so that their clients are told.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        if let Nodes::Processes(nodes) = &mut self.nodes {
            nodes.undisturb()?;
        }
        for name in self.names().into_iter().rev() {
            if self.is_running(&name) {
                self.stop(&name).await?;
            }
        }
        Ok(())
    }
}
