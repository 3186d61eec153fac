//! The transport between processes: who listens, who dials, and who tells the cores.
//!
//! One task, the keeper, owns the [`Links`] and hears of everything that happens to them, in one order; what it tells the
//! cores they hear in that order. Each connection has a task of its own, which hands what it reads to the cores only
//! between the keeper's word that it is the link and its own last word to the keeper.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{sleep, timeout};

use super::connection::{Connection, Ended, Proven, Toward};
use super::lane::{Counts, Lane, add};
use super::links::{self, ConnId, Effect, Input, Links, PeerAddress};
use super::local::LocalTransport;
use super::outbound::Bounds;
use super::proof::{Hello, Secret};
use super::rule::{declined, since};
use super::socket::{Endpoint, Event};
use super::{Message, Transport};
use crate::clock::Clock;
use crate::identity::{Holder, NodeName};
use crate::limits::PEER_HANDSHAKE_MS;

/// What connections have to tell and the keeper has not heard yet.
const EVENTS_MAX: usize = 1_024;
/// After the system refused a connection, it is not asked for the next at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How a node presents itself to others.
#[derive(Clone, Debug)]
pub struct Presence {
    /// What it says of itself.
    pub hello: Hello,
    /// What it proves to know.
    pub secret: Secret,
    /// How much may wait for one node.
    pub bounds: Bounds,
}

/// See the module.
pub struct TcpTransport {
    local: Arc<LocalTransport>,
    routes: RwLock<BTreeMap<NodeName, Arc<Lane>>>,
    peers: watch::Sender<Vec<PeerAddress>>,
    stop: watch::Sender<bool>,
    counts: Arc<Counts>,
    seen: Mutex<(links::Counters, Vec<Proven>)>,
}

impl TcpTransport {
    /// Links this node to the others that call at `listener`, or that [`Transport::peers_are`] tells of. To be called
    /// inside a tokio runtime.
    pub fn start(
        listener: TcpListener,
        presence: Presence,
        local: Arc<LocalTransport>,
        clock: Clock,
    ) -> Arc<TcpTransport> {
        let (events, heard) = mpsc::channel(EVENTS_MAX);
        let transport = Arc::new(TcpTransport {
            local,
            routes: RwLock::default(),
            peers: watch::Sender::default(),
            stop: watch::Sender::new(false),
            counts: Arc::default(),
            seen: Mutex::default(),
        });
        let Holder { node, boot } = presence.hello.holder.clone();
        let keeper = Keeper {
            links: Links::new(node, presence.hello.role, boot.0 as u64),
            presence,
            transport: transport.clone(),
            clock,
            events,
            conns: BTreeMap::new(),
        };
        tokio::spawn(keeper.run(listener, heard));
        transport
    }

    /// Ends all links, and listens no more.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// What is counted.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What the links count.
    pub fn link_counters(&self) -> links::Counters {
        self.seen().0
    }

    /// The links there are, and what waits at each, for `/state`.
    pub fn observe(&self) -> Value {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        let peers = self.seen().1.clone();
        let peers = peers.into_iter().map(|peer| {
            let waiting = routes.get(&peer.holder.node).map_or(0, |lane| lane.len());
            json!({
                "node": peer.holder.node,
                "boot": peer.holder.boot,
                "role": peer.role,
                "version": peer.version,
                "waiting": waiting,
            })
        });
        Value::Array(peers.collect())
    }

    /// A node that is not upgraded yet is not sent what it does not know, and whoever waits for its answer gets one.
    fn send_over(&self, lane: &Lane, from: &Holder, message: Message) {
        let older = lane.peer().filter(|peer| peer.version < since(&message));
        let Some(peer) = older else {
            return lane.push(from.boot, message, &self.counts);
        };
        add(&self.counts.too_new, 1);
        if let Some(answer) = declined(&message) {
            self.local.send(&peer.holder, self.local.me(), answer);
        }
    }

    fn seen(&self) -> MutexGuard<'_, (links::Counters, Vec<Proven>)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn route(&self, node: NodeName, lane: Option<Arc<Lane>>) {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let before = match lane {
            Some(lane) => routes.insert(node, lane),
            None => routes.remove(&node),
        };
        drop(routes);
        let unsent = before.map_or(0, |lane| lane.len());
        add(&self.counts.not_linked, unsent as u64);
    }
}

impl Transport for TcpTransport {
    fn send(&self, from: &Holder, to: &NodeName, message: Message) {
        if to == self.local.me() {
            return self.local.send(from, to, message);
        }
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        match routes.get(to) {
            Some(lane) => self.send_over(lane, from, message),
            None => add(&self.counts.not_linked, 1),
        }
    }

    fn peers_are(&self, peers: Vec<PeerAddress>) {
        self.peers.send_replace(peers);
    }
}

/// The task that owns the links.
struct Keeper {
    links: Links,
    presence: Presence,
    transport: Arc<TcpTransport>,
    clock: Clock,
    events: mpsc::Sender<Event>,
    conns: BTreeMap<ConnId, Conn>,
}

struct Conn {
    lane: Arc<Lane>,
    admitted: Option<oneshot::Sender<()>>,
}

impl Keeper {
    async fn run(mut self, listener: TcpListener, mut heard: mpsc::Receiver<Event>) {
        let mut peers = self.transport.peers.subscribe();
        // What was said before this task began to run is news to it as well.
        peers.mark_changed();
        let mut stop = self.transport.stop.subscribe();
        loop {
            let wait_ms = self.links.wake_at().saturating_sub(self.clock.now());
            tokio::select! {
                () = stopped(&mut stop) => break,
                Some(event) = heard.recv() => self.hear(event).await,
                Ok(()) = peers.changed() => {
                    let peers = peers.borrow_and_update().clone();
                    self.handle(Input::Peers(peers), None).await;
                }
                called = listener.accept() => match called {
                    Ok((stream, from)) => {
                        let from = from.ip().to_string();
                        self.handle(Input::Called { from }, Some(stream)).await;
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a peer could not be let in");
                        sleep(ACCEPT_PAUSE).await;
                    }
                },
                () = sleep(Duration::from_millis(wait_ms)) => self.handle(Input::Tick, None).await,
            }
        }
        for conn in self.conns.values() {
            conn.lane.close(Ended::Stopped);
        }
    }

    async fn hear(&mut self, event: Event) {
        let input = match event {
            Event::Proven {
                conn,
                peer,
                admitted,
            } => {
                if let Some(known) = self.conns.get_mut(&conn) {
                    known.admitted = Some(admitted);
                }
                Input::Proven { conn, peer }
            }
            Event::Ended { conn, why } => {
                self.conns.remove(&conn);
                Input::Ended { conn, why }
            }
        };
        self.handle(input, None).await;
    }

    /// Gives the links an input, and turns what follows into calls. `caller` is who waits to be greeted.
    async fn handle(&mut self, input: Input, mut caller: Option<TcpStream>) {
        let mut effects = Vec::new();
        self.links.handle(self.clock.now(), input, &mut effects);
        let mut admitted = Vec::new();
        for effect in effects {
            match effect {
                Effect::Dial {
                    conn,
                    node,
                    address,
                } => self.dial(conn, node, address),
                Effect::Greet { conn } => {
                    if let Some(stream) = caller.take() {
                        self.greet(conn, stream);
                    }
                }
                Effect::TurnAway => drop(caller.take()),
                Effect::Admit { conn, peer } => {
                    if let Some(known) = self.conns.get_mut(&conn) {
                        let lane = Some(known.lane.clone());
                        known.lane.leads_to(peer.clone());
                        admitted.extend(known.admitted.take());
                        self.transport.route(peer.holder.node.clone(), lane);
                    }
                    tracing::info!(node = %peer.holder.node, boot = %peer.holder.boot, version = peer.version, "linked");
                }
                Effect::Close { conn, why } => {
                    if let Some(known) = self.conns.get(&conn) {
                        known.lane.close(why);
                    }
                }
                Effect::Linked { nodes } => self.transport.local.linked(nodes).await,
                Effect::Lost { node } => {
                    self.transport.route(node.clone(), None);
                    self.transport.local.peer_lost(node).await;
                }
                Effect::Report { whom, why } => {
                    tracing::warn!(peer = %whom, %why, "a connection to a peer has ended, or came to nothing");
                }
            }
        }
        let linked = self.links.linked().cloned().collect();
        *self.transport.seen() = (self.links.counters(), linked);
        // Only now may they deliver: the cores know of the link.
        for admitted in admitted {
            let _ = admitted.send(());
        }
    }

    fn dial(&mut self, conn: ConnId, node: NodeName, address: String) {
        let endpoint = self.endpoint(conn, Toward::Dialed(node));
        let events = self.events.clone();
        let is_open = !self.presence.secret.is_none();
        tokio::spawn(async move {
            let opening = TcpStream::connect(&address);
            let within = Duration::from_millis(PEER_HANDSHAKE_MS);
            let why = match timeout(within, opening).await {
                Ok(Ok(stream)) if is_open || is_near(stream.peer_addr()) => {
                    return endpoint.run(stream).await;
                }
                Ok(Ok(_)) => Ended::NotLoopback,
                Ok(Err(error)) => Ended::Unreachable(format!("{address}: {error}")),
                Err(_) => Ended::Unreachable(format!("{address}: it takes too long")),
            };
            // This node stops, and wants to know nothing any more.
            let _ = events.send(Event::Ended { conn, why }).await;
        });
    }

    fn greet(&mut self, conn: ConnId, stream: TcpStream) {
        let endpoint = self.endpoint(conn, Toward::Accepted);
        if self.presence.secret.is_none() && !is_near(stream.peer_addr()) {
            endpoint.lane.close(Ended::NotLoopback);
        }
        tokio::spawn(endpoint.run(stream));
    }

    fn endpoint(&mut self, conn: ConnId, toward: Toward) -> Endpoint {
        let (closer, closing) = mpsc::channel(1);
        let lane = Arc::new(Lane::new(self.presence.bounds, closer));
        let known = Conn {
            lane: lane.clone(),
            admitted: None,
        };
        self.conns.insert(conn, known);
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).expect("the system has randomness");
        let Presence { hello, secret, .. } = self.presence.clone();
        Endpoint {
            conn,
            machine: Connection::new(hello, secret, nonce, toward, self.clock.now()),
            lane,
            closing,
            events: self.events.clone(),
            local: self.transport.local.clone(),
            counts: self.transport.counts.clone(),
            clock: self.clock,
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // The other end is never gone: the keeper holds it.
    let _ = stop.wait_for(|&stop| stop).await;
}

/// Whether nobody outside of this machine can be there.
fn is_near(address: std::io::Result<SocketAddr>) -> bool {
    address.is_ok_and(|address| address.ip().is_loopback())
}

#[cfg(test)]
mod tests;
