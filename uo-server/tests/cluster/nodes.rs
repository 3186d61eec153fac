//! Nodes, and how they end.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};
use uo_proto::{CharId, RegionId};
use uo_server::cluster::rank::{self, NodeKey};
use uo_server::cluster::timing::Timing;
use uo_server::config::{Args, Config};
use uo_server::identity::{BootId, Holder, Nonce};
use uo_server::limits::REGIONS_ALWAYS_RUNNING_MAX;
use uo_server::node::{Node, start_node_with};
use uo_server::peer::flags::PeerConfig;
use uo_server::peer::proof::{Secret, VERSION, VERSION_MIN};
use uo_server::store::any::AnyStore;
use uo_server::store::mem::MemStore;
use uo_server::store::row::Role;
use uo_server::store::{ClaimRow, Request, Right, Store};
use uo_world::World;

use super::door::Door;

/// What a test waits for comes within this, or not at all.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at something that can only be looked at.
const LOOK: Duration = Duration::from_millis(25);
/// What the nodes of a test know and nobody else does.
pub const SECRET: &str = "known to the nodes of this test";

/// Runs a test that waits for sockets.
pub fn run(test: impl Future<Output = ()>) {
    // RUST_LOG=info shows what the nodes say.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_test_writer()
        .try_init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(async {
        let within = timeout(Duration::from_secs(120), test).await;
        within.expect("the test takes too long");
    });
    runtime.shutdown_background();
}

/// Every node of a test.
pub struct Cluster {
    pub world: World,
    store: AnyStore,
    nodes: BTreeMap<String, Running>,
}

struct Running {
    node: Node,
    /// Its tasks and sockets, which end when it does.
    runtime: Runtime,
    /// The way by which other nodes reach it.
    door: Door,
    /// It is not of the version before, which knows no drains.
    takes_drains: bool,
}

/// Short, and in the relations that the check demands.
pub fn timing() -> Timing {
    let timing = Timing {
        fence_ms: 1_200,
        beat_ms: 250,
        beat_timeout_ms: 250,
        read_ms: 100,
        gone_ms: 1_500,
        gone_after_outage_ms: 3_000,
        outage_ms: 600,
        fenced_seen_ms: 600,
        rank_wait_ms: 300,
        placement_ms: 100,
        settled_ms: 1_000,
        cut_off_ms: 1_000,
        drain_pause_ms: 2_000,
        leases_ms: 1_000,
        demand_refresh_ms: 500,
        demand_read_ms: 250,
        ..Timing::default()
    };
    timing.check().expect("they fit together");
    timing
}

impl Cluster {
    /// No nodes yet, and a world of so many tiles a side.
    pub fn new(map: u16) -> Cluster {
        Cluster {
            world: World::new(7, map).expect("a good size"),
            store: AnyStore::Mem(MemStore::default()),
            nodes: BTreeMap::new(),
        }
    }

    /// Starts nodes of these names together: `gate..` are gateways, all others sims. Waits until all of them are ready.
    pub async fn start_all(&mut self, names: &[&str]) {
        if self.nodes.is_empty() {
            self.leave_to_heirs().await;
        }
        for name in names {
            let role = match name.starts_with("gate") {
                true => Role::Gateway,
                false => Role::Sim,
            };
            self.start(name, role).await;
        }
        self.ready().await;
    }

    /// Every region was held by a boot that is no more. Until that is certain the sims that start can only look on, and by
    /// then they know each other: each takes its share, where the first would take everything.
    pub async fn leave_to_heirs(&self) {
        if self.is_demand_driven() {
            return;
        }
        let former = Holder {
            node: "sim-0".into(),
            boot: BootId(0),
        };
        for region in self.world.regions() {
            let to = ClaimRow {
                holder: Some(former.clone()),
                number: 1,
                nonce: Nonce(0),
            };
            let right = Right::Region(region);
            let seen = None;
            let claim = Request::ClaimCas { right, seen, to };
            self.store.call(claim).await.expect("it is in memory");
        }
    }

    /// Starts a node.
    pub async fn start(&mut self, name: &str, role: Role) {
        let config = self.config(name, role);
        self.start_with(config).await.expect("it starts");
    }

    /// What a node is started with, but for its peer address.
    pub fn config(&self, name: &str, role: Role) -> Config {
        let args = Args::try_parse_from(["uo-server", "--store", "mem", "--tick-threads", "1"]);
        let mut config = Config::check(args.expect("they are flags")).expect("they are good");
        let free = "127.0.0.1:0".parse().expect("an address");
        config.role = role;
        config.node = name.into();
        config.listen = free;
        config.admin = free;
        config.world = self.world.clone();
        config.timing = timing();
        config.is_shared = true;
        config.peer = Some(PeerConfig {
            cluster: "test".into(),
            listen: free,
            advertise: None,
            secret: Secret::parse(SECRET).expect("long enough"),
            versions: (VERSION_MIN, VERSION),
        });
        config
    }

    /// Starts a node as `config` says, behind a door.
    pub async fn start_with(&mut self, config: Config) -> anyhow::Result<()> {
        let name = config.node.to_string();
        let running = self.launch(config).await?;
        let before = self.nodes.insert(name, running);
        assert!(before.is_none(), "two nodes of one name");
        Ok(())
    }

    /// Starts a process that ends by itself, and gives its reason.
    pub async fn ends_by_itself(&self, config: Config) -> String {
        let mut running = self.launch(config).await.expect("it starts");
        let why = timeout(PATIENCE, running.node.ended()).await;
        running.runtime.shutdown_background();
        why.expect("it ends").to_string()
    }

    async fn launch(&self, mut config: Config) -> anyhow::Result<Running> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let door = runtime.spawn(Door::open()).await??;
        let newest = config.peer.as_ref().map(|peer| peer.versions.1);
        if let Some(peer) = &mut config.peer {
            peer.advertise = Some(door.address.to_string());
        }
        let started = runtime.spawn(start_node_with(config, self.store.clone()));
        let node = match started.await? {
            Ok(node) => node,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        if let Some(peer) = node.peer {
            door.leads_to(peer);
        }
        Ok(Running {
            node,
            runtime,
            door,
            takes_drains: newest == Some(VERSION),
        })
    }

    /// Waits until every node is ready: all regions are held, and gateways reach all sims.
    pub async fn ready(&self) {
        for name in self.nodes.keys() {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let state = self.state(name).await;
                if state["ready"] == true {
                    break;
                }
                assert!(
                    Instant::now() < deadline,
                    "{name} is never ready: {state:#}"
                );
                sleep(LOOK).await;
            }
        }
        if !self.is_demand_driven() {
            self.until("each region is held by its best sim", async || {
                let held = self.holders().await;
                let best = self.best_holders();
                let is_right = |(region, best): (&RegionId, &String)| match held.get(region) {
                    Some(holder) => holder == best || !self.nodes[best].takes_drains,
                    None => false,
                };
                best.iter().all(is_right)
            })
            .await;
        }
        // Each may be ready for a cluster that it does not know whole.
        self.until("every node sees and reaches every other", async || {
            for name in self.nodes.keys() {
                let members = self.state(name).await["cluster"]["members"]
                    .as_array()
                    .map(Vec::len);
                if members != Some(self.nodes.len())
                    || !self.linked(name).await.is_superset(&self.partners(name))
                {
                    return false;
                }
            }
            true
        })
        .await;
    }

    /// Where all regions are once nothing moves any more.
    pub fn best_holders(&self) -> BTreeMap<RegionId, String> {
        let sims = self.sims();
        let keys: Vec<NodeKey> = sims
            .iter()
            .map(|sim| NodeKey::of(&(**sim).into()))
            .collect();
        let best = |region| Some((region, sims[rank::best(region, &keys)?].clone()));
        self.world.regions().filter_map(best).collect()
    }

    fn is_demand_driven(&self) -> bool {
        RegionId::count(self.world.size()) > REGIONS_ALWAYS_RUNNING_MAX
    }

    /// Those to which a node has a link when all is well.
    fn partners(&self, name: &str) -> BTreeSet<String> {
        let is_gate = |name: &str| name.starts_with("gate");
        let others = self.nodes.keys().filter(|&other| other != name);
        others
            .filter(|other| !(is_gate(name) && is_gate(other)))
            .cloned()
            .collect()
    }

    /// Waits until `is_so`.
    pub async fn until(&self, what: &str, mut is_so: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_so().await {
            assert!(Instant::now() < deadline, "waited in vain: {what}");
            sleep(LOOK).await;
        }
    }

    /// Ends a node without a word: its sockets are cut, its threads stop where they are.
    pub async fn crash(&mut self, name: &str) {
        let running = self.nodes.remove(name).expect("it runs");
        running.runtime.shutdown_background();
        running.node.crash().await;
    }

    /// Stops a node in order.
    pub async fn stop(&mut self, name: &str) {
        let running = self.nodes.remove(name).expect("it runs");
        let stopped = running.runtime.spawn(running.node.stop());
        stopped.await.expect("no panic").expect("it stops in time");
        running.runtime.shutdown_background();
    }

    /// The way by which others reach a node.
    pub fn door(&self, name: &str) -> &Door {
        &self.nodes[name].door
    }

    /// Where clients connect.
    pub fn gateway(&self, name: &str) -> String {
        let listen = self.nodes[name].node.listen.expect("it has sessions");
        format!("ws://{listen}")
    }

    /// What a node says of itself now.
    pub async fn state(&self, name: &str) -> Value {
        self.get(name, "/state?fresh").await
    }

    /// The same with every character and session.
    pub async fn state_full(&self, name: &str) -> Value {
        self.get(name, "/state?full").await
    }

    /// What the flight recorder of a node has.
    pub async fn crossings(&self, name: &str) -> Vec<Value> {
        let page = self.get(name, "/crossings?n=1000").await;
        page["crossings"].as_array().expect("it is a list").clone()
    }

    async fn get(&self, name: &str, path: &str) -> Value {
        self.ask(name, "GET", path).await.1
    }

    /// Status and body of what an operator asks for.
    pub async fn post(&self, name: &str, path: &str) -> (u16, Value) {
        self.ask(name, "POST", path).await
    }

    async fn ask(&self, name: &str, method: &str, path: &str) -> (u16, Value) {
        let (status, text) = self.ask_text(name, method, path).await;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        (status, body)
    }

    /// The sum of a counter's samples in the metrics of a node.
    pub async fn counter(&self, name: &str, counter: &str) -> u64 {
        let (_, text) = self.ask_text(name, "GET", "/metrics").await;
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let named = lines.filter(|(metric, _)| *metric == format!("uo_{counter}_total"));
        named
            .filter_map(|(_, value)| value.parse::<u64>().ok())
            .sum()
    }

    async fn ask_text(&self, name: &str, method: &str, path: &str) -> (u16, String) {
        let admin = self.nodes[name].node.admin;
        let asked = async {
            let mut stream = TcpStream::connect(admin).await?;
            let request =
                format!("{method} {path} HTTP/1.1\r\nhost: {admin}\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            std::io::Result::Ok(text)
        };
        let text = asked.await.expect("its admin server answers");
        let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
        let body = text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned());
        status.zip(body).expect("an answer has a status and a body")
    }

    /// The nodes to which a node has a link.
    pub async fn linked(&self, name: &str) -> BTreeSet<String> {
        let state = self.state(name).await;
        let peers = state["peers"].as_array().cloned().unwrap_or_default();
        peers
            .iter()
            .filter_map(|peer| peer["node"].as_str().map(String::from))
            .collect()
    }

    /// The versions that a node speaks with others, by their names.
    pub async fn versions(&self, name: &str) -> BTreeMap<String, u64> {
        let state = self.state(name).await;
        let peers = state["peers"].as_array().cloned().unwrap_or_default();
        let version =
            |peer: &Value| Some((peer["node"].as_str()?.to_owned(), peer["version"].as_u64()?));
        peers.iter().filter_map(version).collect()
    }

    /// The regions that a sim runs.
    pub async fn regions(&self, name: &str) -> BTreeSet<RegionId> {
        let state = self.state(name).await;
        let regions = state["sim"]["regions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ids = regions.iter().filter_map(|region| region["id"].as_u64());
        ids.map(|id| RegionId(id as u32)).collect()
    }

    /// Which sim runs each region.
    pub async fn holders(&self) -> BTreeMap<RegionId, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut holders = BTreeMap::new();
            let mut twice = None;
            for name in self.sims() {
                for region in self.regions(&name).await {
                    let before = holders.insert(region, name.clone());
                    twice = twice.or(before.map(|before| (region, before, name.clone())));
                }
            }
            let Some(twice) = twice else { return holders };
            // Each is asked at its own moment, and a region may move in between.
            assert!(
                Instant::now() < deadline,
                "two sims run a region: {twice:?}"
            );
            sleep(LOOK).await;
        }
    }

    /// The sims that run.
    pub fn sims(&self) -> Vec<String> {
        let names = self.nodes.keys().filter(|name| !name.starts_with("gate"));
        names.cloned().collect()
    }

    /// The sims that have that character in a battle.
    pub async fn owners(&self, name: &str) -> Vec<String> {
        let id = CharId::of_name(name).0;
        let mut owners = Vec::new();
        for sim in self.sims() {
            let state = self.state_full(&sim).await;
            let characters = state["sim"]["characters"].as_array().cloned();
            let is_it = |character: &Value| {
                character["phase"] == "playing"
                    && (character["id"] == id || character["name"] == name)
            };
            if characters.unwrap_or_default().iter().any(is_it) {
                owners.push(sim);
            }
        }
        owners
    }

    /// Waits until that sim, and no other, has the character in a battle.
    pub async fn until_owned(&self, name: &str, sim: &str) {
        let what = format!("{name} is at {sim}");
        self.until(&what, async || self.owners(name).await == [sim])
            .await;
    }

    /// Ends every node without waiting for a farewell.
    pub async fn end(mut self) {
        let names: Vec<String> = self.nodes.keys().cloned().collect();
        for name in names {
            self.crash(&name).await;
        }
    }
}

impl Drop for Cluster {
    /// A test that failed leaves its nodes where they are; their runtimes may not be dropped inside another.
    fn drop(&mut self) {
        for (_, running) in std::mem::take(&mut self.nodes) {
            running.runtime.shutdown_background();
        }
    }
}
