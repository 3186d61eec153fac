//! Nodes of this process: sims and gateways over one store in memory, with real sockets between them.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Parser;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use uo_server::config::{Args, Config};
use uo_server::node::{Node, start_node_with};
use uo_server::peer::flags::PeerConfig;
use uo_server::peer::proof::{Secret, VERSION, VERSION_MIN};
use uo_server::store::any::AnyStore;
use uo_server::store::mem::MemStore;
use uo_server::store::row::Role;

use super::Shape;
use crate::node::ports::free_address;

/// How long the tasks of a node that ends may take.
const END_WITHIN: Duration = Duration::from_secs(2);
/// From the first port to the first admin port.
const ADMIN_OFFSET: u16 = 100;

/// See the module.
pub struct Nodes {
    configs: BTreeMap<String, Config>,
    store: AnyStore,
    running: BTreeMap<String, Running>,
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

impl Home {
    /// Ends everything on it, and waits until that is so: whoever is started next takes the same ports.
    async fn end(mut self) -> anyhow::Result<()> {
        if let Some(runtime) = self.0.take() {
            let ending = tokio::task::spawn_blocking(move || runtime.shutdown_timeout(END_WITHIN));
            ending.await?;
        }
        Ok(())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Nodes {
    /// Nodes that are still to be started. With a `port` gateways listen there and on those that follow, and a hundred
    /// higher each node has its admin address, sims first; without one they take ports that are free.
    pub fn new(shape: Shape, port: Option<u16>) -> anyhow::Result<Nodes> {
        let map = shape.map.to_string();
        let seed = shape.seed.to_string();
        let flags = [
            "uo-server",
            "--store",
            "mem",
            "--tick-threads",
            "1",
            "--map",
            &map,
            "--seed",
            &seed,
        ];
        let base = Config::check(Args::try_parse_from(flags)?)?;
        let loopback = |port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let address = |offset: u16| match port {
            Some(port) => Ok(loopback(port + offset)),
            None => anyhow::Ok(free_address()?.parse()?),
        };
        let mut configs = BTreeMap::new();
        for (index, (name, role)) in (0..).zip(shape.names()) {
            let mut config = base.clone();
            config.role = role;
            config.node = name.as_str().into();
            config.listen = match role {
                Role::Gateway => address(index - shape.sims)?,
                Role::Sim | Role::All => loopback(0),
            };
            config.admin = address(ADMIN_OFFSET + index)?;
            config.is_shared = true;
            config.peer = Some(PeerConfig {
                cluster: "inproc".into(),
                listen: loopback(0),
                advertise: None,
                secret: Secret::none(),
                versions: (VERSION_MIN, VERSION),
            });
            configs.insert(name, config);
        }
        Ok(Nodes {
            configs,
            store: AnyStore::Mem(MemStore::default()),
            running: BTreeMap::new(),
        })
    }

    /// Its admin address, as `http://host:port`.
    pub fn admin(&self, name: &str) -> String {
        format!("http://{}", self.configs[name].admin)
    }

    /// Where its clients connect.
    pub fn listen(&self, name: &str) -> String {
        format!("ws://{}", self.configs[name].listen)
    }

    /// Whether it runs.
    pub fn is_running(&self, name: &str) -> bool {
        self.running.contains_key(name)
    }

    /// Starts a node.
    pub async fn start(&mut self, name: &str) -> anyhow::Result<()> {
        ensure!(!self.is_running(name), "{name} runs already");
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
        home.end().await?;
        node.crash().await;
        Ok(())
    }

    /// Stops a node in order.
    pub async fn stop(&mut self, name: &str) -> anyhow::Result<()> {
        let Running { node, home } = self.take(name)?;
        let stopped = home.spawn(node.stop()).await?;
        home.end().await?;
        stopped.with_context(|| format!("the stop of {name}"))
    }

    fn take(&mut self, name: &str) -> anyhow::Result<Running> {
        let running = self.running.remove(name);
        running.with_context(|| format!("{name} does not run"))
    }

    /// Nodes that somebody asked to stop (`POST /shutdown`) since the last call.
    pub async fn asked_to_stop(&mut self) -> Vec<String> {
        let mut asked = Vec::new();
        for (name, running) in &mut self.running {
            let bell = running.node.stop_bell();
            if timeout(Duration::ZERO, bell.notified()).await.is_ok() {
                asked.push(name.clone());
            }
        }
        asked
    }

    /// A node that ended by itself, in words.
    pub async fn ended(&mut self) -> Option<String> {
        for (name, running) in &mut self.running {
            if let Ok(why) = timeout(Duration::ZERO, running.node.ended()).await {
                return Some(format!("{name} ended: {why:#}"));
            }
        }
        None
    }
}
