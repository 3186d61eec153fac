//! The composition root: builds the cores and shells of a node, and ends them in order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
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
use crate::gateway::connection::Hub;
use crate::gateway::core::{Config as GatewayConfig, GatewayCore};
use crate::gateway::loops::GatewayLoop;
use crate::gateway::mailbox::GatewayMail;
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
use crate::{Millis, sys};

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
    stop: Arc<Notify>,
    stopping: Arc<AtomicBool>,
    sim: crossbeam_channel::Sender<SimMail>,
    sim_ended: oneshot::Receiver<Option<ExitReason>>,
    gate: Option<Gate>,
    links: Option<Arc<TcpTransport>>,
    administering: JoinHandle<()>,
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
    sys::raise_open_files();
    let store = open_store(&config.store).await?;
    let me = Holder {
        node: config.node.clone(),
        boot: new_boot(),
    };
    check_world(&store, &config).await?;

    // A few milliseconds now, instead of the first long walk's tick. A world of which only a part runs waits for it.
    let world = &config.world;
    if !is_demand_driven(world) {
        world.regions().for_each(|region| world.prepare(region));
    }

    // Bound before anything runs, so that a taken port is the first thing said.
    let clients = match config.role {
        Role::Sim => None,
        Role::All | Role::Gateway => {
            let bound = accept::listen(config.listen);
            Some(bound.with_context(|| taken("--listen", config.listen))?)
        }
    };
    let admin_listener = tokio::net::TcpListener::bind(config.admin)
        .await
        .with_context(|| taken("--admin", config.admin))?;
    let peers = match &config.peer {
        None => None,
        Some(peer) => {
            let bound = tokio::net::TcpListener::bind(peer.listen).await;
            Some((
                peer,
                bound.with_context(|| taken("--peer-listen", peer.listen))?,
            ))
        }
    };
    let listen = clients.as_ref().map(|it| it.local_addr()).transpose()?;
    let admin_address = admin_listener.local_addr()?;
    let advertise = match (config.advertise.is_empty(), listen) {
        (true, Some(listen)) => vec![format!("ws://{listen}")],
        _ => config.advertise.clone(),
    };

    let clock = Clock::start();
    let meters = Arc::new(Meters::default());
    let (sim_sender, sim_inbox) = crossbeam_channel::bounded(INBOX_MAX);
    let (gateway_sender, gateway_inbox) = crossbeam_channel::bounded(INBOX_MAX);
    let gateway_inbox = clients.is_some().then_some(gateway_inbox);
    let gateway_sender_used = gateway_inbox.is_some().then(|| gateway_sender.clone());
    let local = Arc::new(LocalTransport::new(
        me.node.clone(),
        sim_sender.clone(),
        gateway_sender_used.clone(),
    ));
    let mut transport: Arc<dyn Transport> = local.clone();
    let (mut links, mut peer_address) = (None, None);
    if let Some((peer, listener)) = peers {
        let bound = listener.local_addr()?.to_string();
        peer_address = Some(peer.advertise.clone().unwrap_or(bound));
        let presence = peer.presence(me.clone(), config.role);
        let linked = TcpTransport::start(listener, presence, local.clone(), clock);
        links = Some(linked.clone());
        transport = linked;
    }
    let driver = Driver::new(store.clone(), Handle::current());
    let hub = Arc::new(Hub::new(gateway_sender));

    let member = member(&config, &me, peer_address, &advertise, clock.now());
    let sim = SimLoop {
        member,
        clock,
        inbox: sim_inbox,
        replies: sim_sender.clone(),
        gateway: gateway_sender_used.clone(),
        hub: hub.clone(),
        transport: transport.clone(),
        driver: driver.clone(),
        meters: meters.clone(),
        pool: rayon::ThreadPoolBuilder::new()
            .num_threads(config.tick_threads)
            .thread_name(|index| format!("tick-{index}"))
            .start_handler(|_| {
                let _ = precedence::ask(precedence::Work::Pool);
            })
            .build()?,
    };
    let sim_ended = spawn_sim(sim)?;
    let mut gate = None;
    if let (Some(clients), Some(inbox), Some(sender)) =
        (clients, gateway_inbox, gateway_sender_used.clone())
    {
        let gateway = GatewayLoop {
            core: GatewayCore::new(gateway_config(&config, &me, advertise)),
            me: me.clone(),
            clock,
            inbox,
            replies: sender.clone(),
            transport: transport.clone(),
            driver,
            hub: hub.clone(),
            meters: meters.clone(),
            connections: BTreeMap::new(),
        };
        gate = Some(Gate {
            inbox: sender,
            ended: spawn_gateway(gateway)?,
            hub: hub.clone(),
            accepting: tokio::spawn(accept::run(clients, hub.clone(), config.connections_max)),
        });
    }

    let (stop, stopping) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let admin = Arc::new(Admin {
        node: me.node,
        role: config.role,
        sim: sim_sender.clone(),
        gateway: gateway_sender_used,
        hub,
        local,
        links: links.clone(),
        meters,
        store,
        stop: stop.clone(),
        stopping: stopping.clone(),
        clock,
        cache: Mutex::new(None),
    });
    let administering = tokio::spawn(async move {
        if let Err(error) = axum::serve(admin_listener, router(admin)).await {
            tracing::error!(%error, "the admin server has ended");
        }
    });
    Ok(Node {
        listen,
        admin: admin_address,
        stop,
        stopping,
        sim: sim_sender,
        sim_ended,
        gate,
        links,
        administering,
    })
}

impl Node {
    /// Rung when somebody asks this node to stop (`POST /shutdown`).
    pub fn stop_bell(&self) -> Arc<Notify> {
        self.stop.clone()
    }

    /// Waits until the node ends by itself, and says why in words.
    pub async fn ended(&mut self) -> anyhow::Error {
        match (&mut self.sim_ended).await {
            Ok(Some(why)) => anyhow::Error::new(why),
            Ok(None) | Err(_) => anyhow::anyhow!("the tick thread has ended"),
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
            let _ = self.sim.send(SimMail::Input(member::Input::Stop));
            let _ = self.sim_ended.await;
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

/// The cores that say what this node may simulate, and simulate it.
fn member(
    config: &Config,
    me: &Holder,
    peer: Option<String>,
    clients: &[String],
    now: Millis,
) -> Member {
    let world = &config.world;
    let regions = RegionId::count(world.size());
    let cluster = ClusterConfig {
        me: me.clone(),
        role: config.role,
        regions,
        demand_driven: is_demand_driven(world),
        // Nobody else can have the others' store open.
        others_are_dead: !matches!(config.store, StoreChoice::Scylla { .. }),
        peer,
        clients: clients.to_vec(),
        timing: config.timing.clone(),
        planted: Planted::NONE,
    };
    let mut sim = SimConfig::alone(me.clone(), world.clone());
    if config.role == Role::Sim {
        sim.told.clear();
    }
    Member::new(cluster, sim, now)
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
            say_bytes: uo_proto::validate::SAY_BYTES_MAX as u32,
        },
        seed: me.boot.0 as u64,
    }
}

fn spawn_gateway(gateway: GatewayLoop<dyn Transport>) -> anyhow::Result<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    std::thread::Builder::new()
        .name("gateway".into())
        .spawn(move || {
            gateway.run();
            let _ = done.send(());
        })?;
    Ok(ended)
}

/// A tick thread that panicked, or whose region did, has ended its boot's life, and the process goes with it.
fn spawn_sim(sim: SimLoop<dyn Transport>) -> anyhow::Result<oneshot::Receiver<Option<ExitReason>>> {
    let (done, ended) = oneshot::channel();
    std::thread::Builder::new()
        .name("tick".into())
        .spawn(move || match sim.run() {
            Ok(Some(ExitReason::Died)) | Err(Panicked) => std::process::exit(EXIT_PANICKED),
            // Whoever waits for it may have given up.
            Ok(why) => drop(done.send(why)),
        })?;
    Ok(ended)
}
