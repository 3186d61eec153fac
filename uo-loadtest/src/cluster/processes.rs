//! Nodes that are processes of their own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::net::lookup_host;
use tokio::time::{Instant, sleep, timeout};
use uo_server::store::row::Role;

use super::Shape;
use super::network::Network;
use super::pids::Pids;
use super::ring::Ring;
use crate::chaos::{Stage, Step, What};
use crate::http;
use crate::node::ports::free_address;
use crate::node::{Node, Plan};

/// How long a node may take until it answers at all.
const ANSWERS_WITHIN: Duration = Duration::from_secs(60);
/// Between two questions whether it does.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// How long one of them waits.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// How long a stop may take: the server ends itself after 30 s.
const STOP_WITHIN: Duration = Duration::from_secs(40);
/// The name of a node that does everything.
const ALL: &str = "all-1";

/// Where the nodes keep the world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Store {
    /// In the memory of the one node.
    Mem,
    /// In a folder of the one node.
    Local(PathBuf),
    /// In a database that all of them share.
    Database(Vec<String>),
}

/// How the processes are started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The server's program.
    pub program: PathBuf,
    /// Where logs go.
    pub out: PathBuf,
    /// Where the world is kept.
    pub store: Store,
    /// The keyspace, in a database.
    pub keyspace: String,
    /// How nodes of the database are disturbed, if they may be.
    pub ring: Option<String>,
    /// Further flags for every node.
    pub flags: Vec<String>,
}

/// See the module. Dropped, every process is killed.
pub struct Nodes {
    names: Vec<String>,
    nodes: BTreeMap<String, Node>,
    listens: BTreeMap<String, String>,
    databases: Vec<String>,
    network: Option<Network>,
    ring: Option<Ring>,
    paused: Vec<String>,
    forgets: bool,
    pids: Pids,
}

impl Nodes {
    /// Nodes that are still to be started. Makes the tables of a database.
    pub async fn new(shape: Shape, setup: Setup) -> anyhow::Result<Nodes> {
        let mut nodes = Nodes {
            names: Vec::new(),
            nodes: BTreeMap::new(),
            listens: BTreeMap::new(),
            databases: Vec::new(),
            network: None,
            ring: setup.ring.clone().map(Ring::new),
            paused: Vec::new(),
            forgets: setup.store == Store::Mem,
            pids: Pids::default(),
        };
        match &setup.store {
            Store::Mem => nodes.add_alone(shape, &setup, "mem".into())?,
            Store::Local(dir) => {
                nodes.add_alone(shape, &setup, format!("local:{}", dir.display()))?;
            }
            Store::Database(hosts) => nodes.add_all(shape, &setup, hosts).await?,
        }
        Ok(nodes)
    }

    fn add_alone(&mut self, shape: Shape, setup: &Setup, store: String) -> anyhow::Result<()> {
        let listen = free_address()?;
        let flags = ["--role", "all", "--listen", &listen, "--store", &store];
        self.add(shape, setup, ALL, flags.map(Into::into).into())?;
        self.listens.insert(ALL.into(), listen);
        Ok(())
    }

    async fn add_all(
        &mut self,
        shape: Shape,
        setup: &Setup,
        hosts: &[String],
    ) -> anyhow::Result<()> {
        let store = format!("scylla://{}/{}", hosts.join(","), setup.keyspace);
        make_schema(&setup.program, &store)?;
        let mut addresses = Vec::new();
        for host in hosts {
            addresses.push(resolved(host).await?);
        }
        self.databases = (1..=hosts.len()).map(|n| format!("db-{n}")).collect();
        let all = shape.names().map(|(name, _)| name);
        let network = Network::new(all.chain(self.databases.clone()))?;
        for (name, role) in shape.names() {
            let mut rules = Vec::new();
            let mut near = Vec::new();
            for (database, &address) in self.databases.iter().zip(&addresses) {
                let proxy = network.between(&name, database, address).await?;
                rules.push(format!("{address}={proxy}"));
                near.push(proxy);
            }
            let store = format!("scylla://{}/{}", near.join(","), setup.keyspace);
            let peer = free_address()?;
            let told = network.before_node(&name, &peer).await?;
            let role_name = match role {
                Role::Gateway => "gateway",
                Role::Sim | Role::All => "sim",
            };
            let rules = rules.join(",");
            let mut flags: Vec<String> = [
                ["--role", role_name],
                ["--store", &store],
                ["--store-translate", &rules],
                ["--peer-listen", &peer],
                ["--peer-advertise", &told],
                ["--cluster", &setup.keyspace.replace('_', "-")],
            ]
            .concat()
            .into_iter()
            .map(Into::into)
            .collect();
            if role == Role::Gateway {
                let listen = free_address()?;
                flags.extend(["--listen".into(), listen.clone()]);
                self.listens.insert(name.clone(), listen);
            }
            self.add(shape, setup, &name, flags)?;
        }
        self.network = Some(network);
        Ok(())
    }

    fn add(
        &mut self,
        shape: Shape,
        setup: &Setup,
        name: &str,
        mut flags: Vec<String>,
    ) -> anyhow::Result<()> {
        flags.extend(["--map".into(), shape.map.to_string()]);
        flags.extend(["--seed".into(), shape.seed.to_string()]);
        flags.extend(setup.flags.clone());
        let node = Node::new(Plan {
            program: setup.program.clone(),
            name: name.into(),
            arguments: flags,
            out: setup.out.clone(),
        })?;
        self.nodes.insert(name.into(), node);
        self.names.push(name.into());
        Ok(())
    }

    /// What can be done to them.
    pub fn stage(&self) -> Stage {
        Stage {
            nodes: self.names.clone(),
            databases: self.databases.clone(),
            databases_are_ours: self.ring.is_some(),
            one_process: false,
            alone: self.network.is_none(),
            forgets: self.forgets,
        }
    }

    /// Every node, sims first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Its admin address, as `http://host:port`.
    pub fn admin(&self, name: &str) -> String {
        self.nodes[name].admin().to_owned()
    }

    /// Where clients connect.
    pub fn gateways(&self) -> Vec<String> {
        let listens = self.listens.values();
        listens.map(|listen| format!("ws://{listen}")).collect()
    }

    /// Whether it has a process.
    pub fn is_running(&self, name: &str) -> bool {
        self.nodes[name].pid().is_some()
    }

    /// Every process that was ever started, now and later.
    pub fn pids(&self) -> Pids {
        self.pids.clone()
    }

    /// Does what a step says that is about the network, about standing still, or about the database.
    pub async fn perform(&mut self, step: &Step, node: &str) -> anyhow::Result<()> {
        let is_database = self.databases.iter().any(|known| known == node);
        match step.what {
            What::Cut => self.network()?.cut(node),
            What::Heal => self.network()?.heal(node),
            What::Slow(ms) => self.network()?.slow(node, Duration::from_millis(ms)),
            what if is_database => {
                let ring = self.ring.as_mut().context("the database is not ours")?;
                return ring.perform(what.name(), node).await;
            }
            What::Pause => {
                self.nodes[node].pause()?;
                self.paused.push(node.into());
            }
            What::Resume => {
                self.nodes[node].resume()?;
                self.paused.retain(|paused| paused != node);
            }
            What::Kill | What::Stop | What::Start | What::Rolling => {
                bail!("{step}: this is done elsewhere")
            }
        }
        Ok(())
    }

    /// Whether steps about it are for [`Nodes::perform`].
    pub fn is_database(&self, name: &str) -> bool {
        self.databases.iter().any(|known| known == name)
    }

    fn network(&self) -> anyhow::Result<&Network> {
        self.network.as_ref().context("there is no network here")
    }

    /// Starts a process, and waits until it answers.
    pub async fn start(&mut self, name: &str) -> anyhow::Result<()> {
        let pids = self.pids.clone();
        let node = self.node(name)?;
        node.start()?;
        pids.add(node.pid());
        let began = Instant::now();
        let admin = node.admin().to_owned();
        loop {
            let asked = timeout(ANSWER_MAX, http::get(&admin, "/healthz")).await;
            if matches!(asked, Ok(Ok(_))) {
                return Ok(());
            }
            if let Some(why) = ended(node)? {
                bail!(why);
            }
            ensure!(
                began.elapsed() < ANSWERS_WITHIN,
                "{name} does not answer within {} s; see {}",
                ANSWERS_WITHIN.as_secs(),
                node.log().display()
            );
            sleep(ASK_EVERY).await;
        }
    }

    /// SIGKILL.
    pub fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.paused.retain(|paused| paused != name);
        self.node(name)?.kill()
    }

    /// SIGTERM, and its end.
    pub async fn stop(&mut self, name: &str) -> anyhow::Result<()> {
        let node = self.node(name)?;
        node.terminate()?;
        let status = node.wait_end(STOP_WITHIN).await?;
        ensure!(
            status.success(),
            "{name} ended with {status}; see {}",
            node.log().display()
        );
        Ok(())
    }

    /// A process that ended by itself, in words.
    pub fn ended(&mut self) -> Option<String> {
        self.nodes.values_mut().find_map(|node| ended(node).ok()?)
    }

    /// Everything that stands still or is cut off goes on.
    pub fn undisturb(&mut self) -> anyhow::Result<()> {
        if let Some(network) = &self.network {
            network.heal_all();
        }
        for name in std::mem::take(&mut self.paused) {
            self.nodes[&name].resume()?;
        }
        Ok(())
    }

    fn node(&mut self, name: &str) -> anyhow::Result<&mut Node> {
        let node = self.nodes.get_mut(name);
        node.with_context(|| format!("there is no node {name}"))
    }
}

fn ended(node: &mut Node) -> anyhow::Result<Option<String>> {
    let status = node.ended()?;
    Ok(status.map(|status| {
        let log = node.log();
        format!("{} ended ({status}); see {}", node.name(), log.display())
    }))
}

/// Makes the keyspace and the tables; `UO_SCYLLA_RF` says how often each row is kept.
fn make_schema(program: &Path, store: &str) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(["schema", "--store", store])
        .output()
        .with_context(|| format!("cannot run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "the schema cannot be made: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(())
}

/// The address under which a node of the database tells of itself; its port is 9042 unless it is said.
async fn resolved(host: &str) -> anyhow::Result<SocketAddr> {
    let host = match host.rsplit_once(':') {
        Some(_) => host.to_owned(),
        None => format!("{host}:9042"),
    };
    let mut found = lookup_host(&host)
        .await
        .with_context(|| format!("cannot find {host}"))?;
    found
        .next()
        .with_context(|| format!("{host} has no address"))
}
