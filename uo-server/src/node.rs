//! The composition root: builds the cores and shells of a node, and ends them in order.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify, oneshot};
use tokio::task::JoinHandle;
use uo_proto::{Limits, RegionId};
use uo_world::World;

use crate::admin::meters::Meters;
use crate::admin::{Admin, router};
use crate::clock::Clock;
use crate::cluster::core::{ClusterConfig, ExitReason};
use crate::config::{Config, StoreChoice};
use crate::crash::Crash;
use crate::gateway::connection::Hub;
use crate::gateway::core::{Config as GatewayConfig, GatewayCore};
use crate::gateway::lookout::Lookout;
use crate::gateway::loops::GatewayLoop;
use crate::gateway::mailbox::GatewayMail;
use crate::gateway::watch::LookoutLoop;
use crate::gateway::{accept, core as gateway_core};
use crate::identity::Holder;
use crate::limits::{
    CLIENT_MESSAGE_BYTES_MAX, INBOX_MAX, MESSAGES_BURST, MESSAGES_PER_S, REGIONS_ALWAYS_RUNNING_MAX,
};
use crate::peer::Transport;
use crate::peer::local::LocalTransport;
use crate::peer::tcp::TcpTransport;
use crate::planted::Planted;
use crate::sim::core::SimConfig;
use crate::sim::loops::{Panicked, SimLoop, new_boot};
use crate::sim::mailbox::SimMail;
use crate::sim::member::{self, Member};
use crate::sim::schedule::precedence;
use crate::store::any::{AnyStore, Driver};
use crate::store::local::LocalStore;
use crate::store::mem::MemStore;
use crate::store::row::Role;
use crate::store::scylla::{self, ScyllaStore};
use crate::store::{Reply, Request, Store, WorldRow};
use crate::sys;

/// A stop that takes longer than this is ended anyway.
const STOP_WAIT: Duration = Duration::from_secs(30);
/// How long a stop waits, once the sim is done, for clients to read their farewell. Most have by then; those that do not
/// read at all never will.
const FAREWELL_WAIT: Duration = Duration::from_secs(1);
/// The exit code of a process whose tick thread panicked.
const EXIT_PANICKED: i32 = 101;
/// How often it is looked whether they have.
const FAREWELL_LOOK: Duration = Duration::from_millis(5);

/// A running node.
pub struct Node {
    /// Where clients connect, if they do.
    pub listen: Option<SocketAddr>,
    /// Where operators look.
    pub admin: SocketAddr,
    /// Where other nodes connect, if they can.
    pub peer: Option<SocketAddr>,
    /// Its name, and the boot with which this process began.
    pub me: Holder,
    stop: Arc<Notify>,
    stopping: Arc<AtomicBool>,
    /// The thread with the cluster core: the tick thread, or that of a lookout.
    member: crossbeam_channel::Sender<SimMail>,
    member_ended: oneshot::Receiver<Option<ExitReason>>,
    gate: Option<Gate>,
    links: Option<Arc<TcpTransport>>,
    administering: JoinHandle<()>,
    crash: Crash,
}

/// The gateway's part of a node.
struct Gate {
    inbox: crossbeam_channel::Sender<GatewayMail>,
    ended: oneshot::Receiver<()>,
    hub: Arc<Hub>,
    accepting: JoinHandle<()>,
}

/// Starts a node. It serves from the moment this returns; `/readyz` says when every region is held.
pub async fn start_node(config: Config) -> anyhow::Result<Node> {
    let store = open_store(&config.store).await?;
    start_node_with(config, store).await
}

/// Starts a node on a store that is open already: several nodes of one process can share one in memory.
pub async fn start_node_with(config: Config, store: AnyStore) -> anyhow::Result<Node> {
    sys::raise_open_files();
    let me = Holder {
        node: config.node.clone(),
        boot: new_boot(),
    };
    check_world(&store, &config).await?;

    // A few milliseconds now, instead of the first long walk's tick. A world of which only a part runs waits for it.
    let world = &config.world;
    if config.role != Role::Gateway && !is_demand_driven(world) {
        world.regions().for_each(|region| world.prepare(region));
    }

    let bound = Bound::open(&config).await?;
    let at = Addresses::of(&bound, &config)?;
    let (member_sender, member_inbox) = crossbeam_channel::bounded(INBOX_MAX);
    let (gateway_sender, gateway_inbox) = crossbeam_channel::bounded(INBOX_MAX);
    let gateway = bound.clients.is_some().then(|| gateway_sender.clone());
    let local = Arc::new(LocalTransport::new(
        me.node.clone(),
        member_sender.clone(),
        gateway.clone(),
    ));
    let clock = Clock::start();
    let links = match (&config.peer, bound.peers) {
        (Some(peer), Some(listener)) => {
            let presence = peer.presence(me.clone(), config.role);
            Some(TcpTransport::start(
                listener,
                presence,
                local.clone(),
                clock,
            ))
        }
        _ => None,
    };
    let shell = Shell {
        me: me.clone(),
        clock,
        member: member_sender,
        gateway,
        transport: match &links {
            Some(links) => links.clone(),
            None => local.clone(),
        },
        driver: Driver::new(store.clone(), Handle::current()),
        hub: Arc::new(Hub::new(gateway_sender)),
        meters: Arc::new(Meters::default()),
        crash: Crash::default(),
    };
    let member_ended = match config.role {
        Role::Gateway => shell.spawn_lookout(&config, &at, member_inbox)?,
        Role::Sim | Role::All => shell.spawn_sim(&config, &at, member_inbox)?,
    };
    let gate = match bound.clients {
        Some(clients) => Some(shell.open_gate(&config, &at, clients, gateway_inbox)?),
        None => None,
    };

    let (stop, stopping) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let admin = Arc::new(Admin {
        node: me.node.clone(),
        role: config.role,
        sim: shell.member.clone(),
        gateway: shell.gateway,
        hub: shell.hub,
        local,
        links: links.clone(),
        meters: shell.meters,
        store,
        stop: stop.clone(),
        stopping: stopping.clone(),
        clock,
        cache: Mutex::new(None),
    });
    let admin_listener = bound.admin;
    let administering = tokio::spawn(async move {
        if let Err(error) = axum::serve(admin_listener, router(admin)).await {
            tracing::error!(%error, "the admin server has ended");
        }
    });
    Ok(Node {
        listen: at.listen,
        admin: at.admin,
        peer: at.peer_listen,
        me,
        stop,
        stopping,
        member: shell.member,
        member_ended,
        gate,
        links,
        administering,
        crash: shell.crash,
    })
}

/// The sockets of a node. Bound before anything runs, so that a taken port is the first thing said.
struct Bound {
    clients: Option<TcpListener>,
    admin: TcpListener,
    peers: Option<TcpListener>,
}

impl Bound {
    async fn open(config: &Config) -> anyhow::Result<Bound> {
        let clients = match config.role {
            Role::Sim => None,
            Role::All | Role::Gateway => {
                let bound = accept::listen(config.listen);
                Some(bound.with_context(|| taken("--listen", config.listen))?)
            }
        };
        let admin = TcpListener::bind(config.admin)
            .await
            .with_context(|| taken("--admin", config.admin))?;
        let peers = match &config.peer {
            None => None,
            Some(peer) => {
                let bound = TcpListener::bind(peer.listen).await;
                Some(bound.with_context(|| taken("--peer-listen", peer.listen))?)
            }
        };
        Ok(Bound {
            clients,
            admin,
            peers,
        })
    }
}

/// Where a node can be reached, and what others are told of that.
struct Addresses {
    listen: Option<SocketAddr>,
    admin: SocketAddr,
    peer_listen: Option<SocketAddr>,
    /// What the other nodes are told.
    peer: Option<String>,
    /// What clients are told.
    clients: Vec<String>,
}

impl Addresses {
    fn of(bound: &Bound, config: &Config) -> std::io::Result<Addresses> {
        let address = |it: &Option<TcpListener>| it.as_ref().map(|it| it.local_addr()).transpose();
        let (listen, peer_listen) = (address(&bound.clients)?, address(&bound.peers)?);
        let advertised = config.peer.as_ref().and_then(|it| it.advertise.clone());
        Ok(Addresses {
            listen,
            admin: bound.admin.local_addr()?,
            peer_listen,
            peer: peer_listen.map(|bound| advertised.unwrap_or_else(|| bound.to_string())),
            clients: match (config.advertise.is_empty(), listen) {
                (true, Some(listen)) => vec![format!("ws://{listen}")],
                _ => config.advertise.clone(),
            },
        })
    }
}

/// What the threads of a node have in common.
struct Shell {
    me: Holder,
    clock: Clock,
    member: crossbeam_channel::Sender<SimMail>,
    gateway: Option<crossbeam_channel::Sender<GatewayMail>>,
    transport: Arc<dyn Transport>,
    driver: Driver,
    hub: Arc<Hub>,
    meters: Arc<Meters>,
    crash: Crash,
}

impl Shell {
    /// The tick thread. One that panicked, or whose region did, has ended its boot's life, and the process goes with it.
    fn spawn_sim(
        &self,
        config: &Config,
        at: &Addresses,
        inbox: crossbeam_channel::Receiver<SimMail>,
    ) -> anyhow::Result<oneshot::Receiver<Option<ExitReason>>> {
        let cluster = cluster_config(config, &self.me, at);
        let mut sim = SimConfig::alone(self.me.clone(), config.world.clone());
        if config.role == Role::Sim {
            sim.told.clear();
        }
        let sim = SimLoop {
            member: Member::new(cluster, sim, self.clock.now()),
            clock: self.clock,
            inbox,
            replies: self.member.clone(),
            gateway: self.gateway.clone(),
            hub: self.hub.clone(),
            transport: self.transport.clone(),
            driver: self.driver.clone(),
            meters: self.meters.clone(),
            crash: self.crash.clone(),
            pool: rayon::ThreadPoolBuilder::new()
                .num_threads(config.tick_threads)
                .thread_name(|index| format!("tick-{index}"))
                .start_handler(|_| {
                    let _ = precedence::ask(precedence::Work::Pool);
                })
                .build()?,
        };
        spawn("tick", move || match sim.run() {
            Ok(Some(ExitReason::Died)) | Err(Panicked) => std::process::exit(EXIT_PANICKED),
            Ok(why) => why,
        })
    }

    /// The thread that stands in for the tick thread where there is no sim.
    fn spawn_lookout(
        &self,
        config: &Config,
        at: &Addresses,
        inbox: crossbeam_channel::Receiver<SimMail>,
    ) -> anyhow::Result<oneshot::Receiver<Option<ExitReason>>> {
        let cluster = cluster_config(config, &self.me, at);
        let lookout = LookoutLoop {
            lookout: Lookout::new(cluster, self.clock.now()),
            clock: self.clock,
            inbox,
            replies: self.member.clone(),
            gateway: self.gateway.clone().context("a gateway has sessions")?,
            hub: self.hub.clone(),
            transport: self.transport.clone(),
            driver: self.driver.clone(),
            meters: self.meters.clone(),
            crash: self.crash.clone(),
        };
        spawn("lookout", move || lookout.run())
    }

    /// The gateway's thread, and the door of its clients.
    fn open_gate(
        &self,
        config: &Config,
        at: &Addresses,
        clients: TcpListener,
        inbox: crossbeam_channel::Receiver<GatewayMail>,
    ) -> anyhow::Result<Gate> {
        let sender = self.gateway.clone().context("a gateway has sessions")?;
        let gateway = GatewayLoop {
            core: GatewayCore::new(gateway_config(config, &self.me, at.clients.clone())),
            me: self.me.clone(),
            clock: self.clock,
            inbox,
            replies: sender.clone(),
            transport: self.transport.clone(),
            driver: self.driver.clone(),
            crash: self.crash.clone(),
            hub: self.hub.clone(),
            meters: self.meters.clone(),
            connections: BTreeMap::new(),
            written: Vec::new(),
            left_to_tasks: BTreeSet::new(),
        };
        let accepting = accept::run(clients, self.hub.clone(), config.connections_max);
        Ok(Gate {
            inbox: sender,
            ended: spawn("gateway", move || gateway.run())?,
            hub: self.hub.clone(),
            accepting: tokio::spawn(accepting),
        })
    }
}

/// Runs a thread, and tells how it ended. Whoever waits for that may have given up.
fn spawn<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<oneshot::Receiver<T>> {
    let (done, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.into());
    thread.spawn(move || drop(done.send(run())))?;
    Ok(ended)
}

impl Node {
    /// Rung when somebody asks this node to stop (`POST /shutdown`).
    pub fn stop_bell(&self) -> Arc<Notify> {
        self.stop.clone()
    }

    /// Waits until the node ends by itself, and says why in words.
    pub async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.member_ended).await {
            Ok(Some(why)) => anyhow::Error::new(why),
            Ok(None) | Err(_) => anyhow::anyhow!("a thread of this node has ended"),
        }
    }

    /// Ends the node as SIGKILL ends a process: its threads stop where they are, and nobody is told. What its tasks hold,
    /// sockets above all, goes with the runtime that it was started on.
    #[doc(hidden)]
    pub async fn crash(self) {
        self.crash.now();
        let _ = self.member_ended.await;
        if let Some(gate) = self.gate {
            let _ = gate.ended.await;
        }
    }

    /// Stops in order: clients are told where to go, characters are saved and released, and so are the regions.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.stopping.store(true, Ordering::Relaxed);
        let ended = async {
            // The gateway first: what its clients still asked for reaches the sim before it saves.
            if let Some(gate) = &mut self.gate {
                let stop = gateway_core::Input::Stop;
                let _ = gate.inbox.send(GatewayMail::Input(stop));
                let _ = (&mut gate.ended).await;
                // Whoever comes now is better refused than left without an answer.
                gate.accepting.abort();
            }
            let _ = self.member.send(SimMail::Input(member::Input::Stop));
            let _ = self.member_ended.await;
            if let Some(gate) = &self.gate {
                let _ = tokio::time::timeout(FAREWELL_WAIT, everybody_left(&gate.hub)).await;
            }
        };
        let in_time = tokio::time::timeout(STOP_WAIT, ended).await;
        if let Some(gate) = &self.gate {
            gate.accepting.abort();
        }
        self.administering.abort();
        if let Some(links) = &self.links {
            links.stop();
        }
        match in_time {
            Ok(()) => Ok(()),
            Err(_) => bail!(
                "the stop took more than {} s and was cut short",
                STOP_WAIT.as_secs()
            ),
        }
    }
}

/// The end of the process would cut short what was not written yet.
async fn everybody_left(hub: &Hub) {
    while hub.open.load(Ordering::Relaxed) > 0 {
        tokio::time::sleep(FAREWELL_LOOK).await;
    }
}

fn taken(flag: &str, address: SocketAddr) -> String {
    format!("cannot listen on {address}; is another server running? {flag} takes another address")
}

async fn open_store(choice: &StoreChoice) -> anyhow::Result<AnyStore> {
    Ok(match choice {
        StoreChoice::Mem => AnyStore::Mem(MemStore::default()),
        StoreChoice::Local(dir) => AnyStore::Local(Arc::new(LocalStore::open(dir)?)),
        StoreChoice::Scylla { access, make } => {
            if let Some(replicas) = make {
                scylla::create(access, *replicas).await?;
            }
            AnyStore::Scylla(Arc::new(ScyllaStore::open(access.clone()).await?))
        }
    })
}

/// A world that was made from another seed would have its trees in other places: its stored objects would not fit.
async fn check_world(store: &AnyStore, config: &Config) -> anyhow::Result<()> {
    let row = WorldRow {
        seed: config.world.seed(),
        size: config.world.size(),
        content: uo_world::CONTENT_VERSION,
    };
    match store.call(Request::WorldPin { row }).await? {
        Reply::World(there) if there == row => Ok(()),
        Reply::World(there) => bail!(
            "this store keeps the world of --seed {} --map {} (content version {}), and this server was started for \
             --seed {} --map {} (content version {}); start it with the former, or give --store another place",
            there.seed,
            there.size,
            there.content,
            row.seed,
            row.size,
            row.content
        ),
        other => bail!("the store answered a pinned world with {other:?}"),
    }
}

fn is_demand_driven(world: &World) -> bool {
    RegionId::count(world.size()) > REGIONS_ALWAYS_RUNNING_MAX
}

fn cluster_config(config: &Config, me: &Holder, at: &Addresses) -> ClusterConfig {
    ClusterConfig {
        me: me.clone(),
        role: config.role,
        regions: RegionId::count(config.world.size()),
        demand_driven: is_demand_driven(&config.world),
        // Nobody else can have the others' store open.
        others_are_dead: !config.is_shared,
        peer: at.peer.clone(),
        clients: at.clients.clone(),
        timing: config.timing.clone(),
        planted: Planted::NONE,
    }
}

fn gateway_config(config: &Config, me: &Holder, gateways: Vec<String>) -> GatewayConfig {
    GatewayConfig {
        me: me.clone(),
        world: Arc::new(config.world.clone()),
        members: Vec::new(),
        gateways,
        spells: uo_combat::table::spells(),
        limits: Limits {
            messages_per_s: MESSAGES_PER_S,
            messages_burst: MESSAGES_BURST,
            message_bytes: CLIENT_MESSAGE_BYTES_MAX as u32,
            say_bytes: config.say_bytes,
        },
        reliable_lane_max: config.reliable_lane_max,
        seed: me.boot.0 as u64,
    }
}
