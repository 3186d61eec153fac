//! Nodes of one process.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Parser;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use uo_proto::RegionId;
use uo_server::config::{Args, Config};
use uo_server::node::{Node, start_node_with};
use uo_server::peer::flags::PeerConfig;
use uo_server::peer::proof::{Secret, VERSION, VERSION_MIN};
use uo_server::store::any::AnyStore;
use uo_server::store::mem::MemStore;
use uo_server::store::row::Role;

use super::Arguments;
use crate::http;

/// Between two looks at something that can only be looked at.
const LOOK: Duration = Duration::from_millis(50);
/// From the first port to the first admin port.
const ADMIN_OFFSET: u16 = 100;

/// See the module.
pub struct Cluster {
    configs: BTreeMap<String, Config>,
    store: AnyStore,
    running: BTreeMap<String, Running>,
    regions: usize,
}

struct Running {
    node: Node,
    home: Home,
}

/// The runtime of a node: its tasks and sockets, which end when this is dropped.
struct Home(Option<Runtime>);

impl Home {
    fn new() -> std::io::Result<Home> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build()?;
        Ok(Home(Some(runtime)))
    }

    fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.0.as_ref().expect("it is not dropped yet").spawn(work)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Cluster {
    /// Nodes that are still to be started.
    pub fn new(arguments: &Arguments) -> anyhow::Result<Cluster> {
        let map = arguments.map.to_string();
        let flags = [
            "uo-server",
            "--store",
            "mem",
            "--tick-threads",
            "1",
            "--map",
            &map,
        ];
        let base = Config::check(Args::try_parse_from(flags)?)?;
        let at = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut configs = BTreeMap::new();
        for index in 0..arguments.sims + arguments.gateways {
            let gateway = index.checked_sub(arguments.sims);
            let mut config = base.clone();
            config.role = gateway.map_or(Role::Sim, |_| Role::Gateway);
            let name = match gateway {
                Some(gateway) => format!("gw-{}", gateway + 1),
                None => format!("sim-{}", index + 1),
            };
            config.node = name.as_str().into();
            config.listen = at(arguments.port + gateway.unwrap_or(0));
            config.admin = at(arguments.port + ADMIN_OFFSET + index);
            config.is_shared = true;
            config.peer = Some(PeerConfig {
                cluster: "inproc".into(),
                listen: at(0),
                advertise: None,
                secret: Secret::none(),
                versions: (VERSION_MIN, VERSION),
            });
            configs.insert(name, config);
        }
        Ok(Cluster {
            configs,
            store: AnyStore::Mem(MemStore::default()),
            running: BTreeMap::new(),
            regions: RegionId::count(arguments.map) as usize,
        })
    }

    /// Whether there is such a node.
    pub fn expect(&self, name: &str) -> anyhow::Result<()> {
        let names: Vec<&str> = self.names(|_| true).collect();
        ensure!(
            self.configs.contains_key(name),
            "there is no node {name:?}; there are {}",
            names.join(", ")
        );
        Ok(())
    }

    /// The nodes of a role, sims first.
    fn names(&self, is_it: impl Fn(Role) -> bool) -> impl Iterator<Item = &str> {
        let of = move |role: Role| {
            let all = self.configs.iter();
            all.filter(move |(_, config)| config.role == role)
        };
        let all = of(Role::Sim).chain(of(Role::Gateway));
        all.filter(move |(_, config)| is_it(config.role))
            .map(|(name, _)| name.as_str())
    }

    /// Starts every node.
    pub async fn start_all(&mut self) -> anyhow::Result<()> {
        let names: Vec<String> = self.names(|_| true).map(str::to_owned).collect();
        for name in names {
            self.start(&name).await?;
        }
        Ok(())
    }

    /// Starts a node.
    pub async fn start(&mut self, name: &str) -> anyhow::Result<()> {
        ensure!(!self.running.contains_key(name), "{name} runs already");
        let home = Home::new()?;
        let starting = start_node_with(self.configs[name].clone(), self.store.clone());
        let started = home.spawn(starting).await?;
        let node = started.with_context(|| format!("{name} cannot start"))?;
        self.running.insert(name.into(), Running { node, home });
        Ok(())
    }

    /// Ends a node without a word: its sockets are cut, its threads stop where they are.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let Running { node, home } = self.take(name)?;
        drop(home);
        node.crash().await;
        Ok(())
    }

    /// Stops a node in order.
    pub async fn stop(&mut self, name: &str) -> anyhow::Result<()> {
        let Running { node, home } = self.take(name)?;
        let stopped = home.spawn(node.stop()).await?;
        stopped.with_context(|| format!("the stop of {name}"))
    }

    fn take(&mut self, name: &str) -> anyhow::Result<Running> {
        let running = self.running.remove(name);
        running.with_context(|| format!("{name} does not run"))
    }

    /// Stops and starts one node after another, sims first, each when the cluster is whole again.
    pub async fn roll(&mut self, within: Duration) -> anyhow::Result<()> {
        let names: Vec<String> = self.names(|_| true).map(str::to_owned).collect();
        for name in names
            .iter()
            .filter(|name| self.running.contains_key(*name))
            .cloned()
            .collect::<Vec<_>>()
        {
            let began = Instant::now();
            self.stop(&name).await?;
            println!("  {name} stopped after {} ms", began.elapsed().as_millis());
            self.start(&name).await?;
            self.ready(within).await?;
        }
        Ok(())
    }

    /// Waits for `until`, and for requests to stop a node meanwhile. A node that ends by itself ends the run.
    pub async fn wait(&mut self, until: impl Future<Output = ()>) -> anyhow::Result<()> {
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return Ok(()),
                () = sleep(LOOK) => {}
            }
            let mut asked = Vec::new();
            for (name, running) in &mut self.running {
                let bell = running.node.stop_bell();
                if timeout(Duration::ZERO, bell.notified()).await.is_ok() {
                    asked.push(name.clone());
                } else if let Ok(why) = timeout(Duration::ZERO, running.node.ended()).await {
                    bail!("{name} ended: {why:#}");
                }
            }
            for name in asked {
                let began = Instant::now();
                self.stop(&name).await?;
                println!(
                    "{name} was asked to stop: done after {} ms",
                    began.elapsed().as_millis()
                );
            }
        }
    }

    /// Waits until every region is held (of a world that runs as a whole) and every node is ready.
    pub async fn ready(&self, within: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let mut held = 0;
            let mut waits_for = None;
            for (name, running) in &self.running {
                let admin = format!("http://{}", running.node.admin);
                let state: Value = serde_json::from_str(&http::get(&admin, "/state?fresh").await?)?;
                held += state["sim"]["regions"].as_array().map_or(0, Vec::len);
                if state["ready"] != true {
                    waits_for = Some(name);
                }
            }
            let runs_whole = self.regions <= uo_server::limits::REGIONS_ALWAYS_RUNNING_MAX as usize;
            if waits_for.is_none() && (!runs_whole || held == self.regions) {
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "after {} s {held} of {} regions are held, and {} is not ready",
                within.as_secs(),
                self.regions,
                waits_for.map_or("nobody", String::as_str)
            );
            sleep(LOOK).await;
        }
    }

    /// Where everything is, and what to do next.
    pub fn describe(&self) -> String {
        let listens = self.names(|role| role == Role::Gateway);
        let listens: Vec<String> = listens
            .map(|name| format!("ws://{}", self.configs[name].listen))
            .collect();
        let mut text = format!(
            "The cluster is up.\n\n  send in bots  uo-loadtest swarm --gateways {} --bots 200 --seconds 60\n",
            listens.join(",")
        );
        for name in self.names(|_| true) {
            let admin = self.configs[name].admin;
            let _ = writeln!(
                text,
                "  {name:<12}  http://{admin}/state  (/metrics, /crossings; POST /shutdown)"
            );
        }
        text
    }

    /// Stops everything: gateways first, so that their clients are told.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        let names: Vec<String> = self.names(|_| true).map(str::to_owned).collect();
        for name in names.into_iter().rev() {
            if self.running.contains_key(&name) {
                self.stop(&name).await?;
            }
        }
        Ok(())
    }
}
