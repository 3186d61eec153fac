//! The network of a cluster: a proxy before each node, and before each node of the database for each node. Whatever they
//! say to each other passes here, and can be cut or slowed by whom it concerns.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use anyhow::Context;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::sleep;
use uo_server::peer::wire::{self, Packet, Received};

use crate::node::ports::free_address;
use crate::proxy::relay::{Caller, Relay};
use crate::proxy::way::{Stretch, Way};

/// Connections of one proxy at a time.
const CONNECTIONS_MAX: u32 = 1_000;
/// Longest frame in which a node says who it is.
const HELLO_BYTES_MAX: usize = 4_096;
/// Between two looks at a connection whose first frame is not complete.
const HELLO_LOOK: Duration = Duration::from_millis(2);

/// See the module. Dropped, every connection through it is closed.
pub struct Network {
    stretches: BTreeMap<String, watch::Sender<Stretch>>,
    runtime: Option<Runtime>,
}

impl Network {
    /// The network of these nodes, and nodes of the database. Everything passes.
    pub fn new(names: impl IntoIterator<Item = String>) -> anyhow::Result<Network> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("network")
            .enable_all()
            .build()?;
        let stretches = names
            .into_iter()
            .map(|name| (name, watch::Sender::new(Stretch::default())));
        Ok(Network {
            stretches: stretches.collect(),
            runtime: Some(runtime),
        })
    }

    /// A proxy before a node; its address. Other nodes that connect to it are known by what they say first.
    pub async fn before_node(&self, name: &str, to: &str) -> anyhow::Result<String> {
        let ways: BTreeMap<String, Way> = self
            .stretches
            .keys()
            .map(|caller| (caller.clone(), self.way(caller, name)))
            .collect();
        let caller: Caller = Box::new(move |stream| -> Pin<Box<dyn Future<Output = _> + Send>> {
            let ways = ways.clone();
            Box::pin(async move { ways.get(&caller_of(stream).await?).cloned() })
        });
        let relay = Relay::new(to.into(), Way::along([]), CONNECTIONS_MAX);
        self.serve(relay.known_callers(caller)).await
    }

    /// A proxy between a node and a node of the database; its address.
    pub async fn between(
        &self,
        name: &str,
        database: &str,
        to: SocketAddr,
    ) -> anyhow::Result<String> {
        let relay = Relay::new(to.to_string(), self.way(name, database), CONNECTIONS_MAX);
        self.serve(relay).await
    }

    /// Nothing reaches this node or leaves it.
    pub fn cut(&self, name: &str) {
        self.set(name, |stretch| stretch.is_cut = true);
    }

    /// Whatever reaches it or leaves it takes longer.
    pub fn slow(&self, name: &str, delay: Duration) {
        self.set(name, |stretch| stretch.delay = delay);
    }

    /// Everything passes.
    pub fn heal(&self, name: &str) {
        self.set(name, |stretch| *stretch = Stretch::default());
    }

    /// Everything passes everywhere.
    pub fn heal_all(&self) {
        self.stretches.keys().for_each(|name| self.heal(name));
    }

    fn set(&self, name: &str, change: impl FnOnce(&mut Stretch)) {
        if let Some(stretch) = self.stretches.get(name) {
            stretch.send_modify(change);
        }
    }

    fn way(&self, one: &str, other: &str) -> Way {
        let stretch = |name: &str| Some(self.stretches.get(name)?.subscribe());
        Way::along([one, other].into_iter().filter_map(stretch))
    }

    async fn serve(&self, mut relay: Relay) -> anyhow::Result<String> {
        let address = free_address()?;
        let runtime = self.runtime.as_ref().context("the network is down")?;
        // Bound where it is served: a socket belongs to its runtime.
        let bound = address.clone();
        let listener = runtime
            .spawn(async move { TcpListener::bind(bound).await })
            .await??;
        runtime.spawn(async move { relay.serve(&listener).await });
        Ok(address)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Who says hello on a connection between nodes. Nothing is taken from it.
async fn caller_of(stream: &TcpStream) -> Option<String> {
    let mut buffer = vec![0; HELLO_BYTES_MAX];
    loop {
        let there = stream.peek(&mut buffer).await.ok()?;
        let frame = &buffer[..there];
        if let Some((length, content)) = frame.split_first_chunk::<{ wire::LENGTH_BYTES }>() {
            let length = u32::from_be_bytes(*length) as usize;
            if length + wire::LENGTH_BYTES > HELLO_BYTES_MAX {
                return None;
            }
            if let Some(content) = content.get(..length) {
                return match wire::read(content).ok()? {
                    Received::Packet(Packet::Hello(hello)) => Some(hello.holder.node.to_string()),
                    _ => None,
                };
            }
        }
        if there == 0 {
            return None;
        }
        sleep(HELLO_LOOK).await;
    }
}
