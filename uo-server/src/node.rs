//! The composition root: builds the cores and shells of a node, and ends them in order.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Notify, oneshot};
use tokio::task::JoinHandle;
use uo_proto::Limits;

use crate::admin::meters::Meters;
use crate::admin::{Admin, router};
use crate::clock::Clock;
use crate::config::{Config, StoreChoice};
use crate::gateway::connection::Hub;
use crate::gateway::core::{Config as GatewayConfig, GatewayCore};
use crate::gateway::loops::GatewayLoop;
use crate::gateway::mailbox::GatewayMail;
use crate::gateway::{accept, core as gateway_core};
use crate::identity::{BootId, Holder};
use crate::limits::{CLIENT_MESSAGE_BYTES_MAX, INBOX_MAX, MESSAGES_BURST, MESSAGES_PER_S};
use crate::peer::local::LocalTransport;
use crate::sim::core::{self as sim_core, SimConfig, SimCore};
use crate::sim::loops::SimLoop;
use crate::sim::mailbox::SimMail;
use crate::sim::schedule::precedence;
use crate::store::any::{AnyStore, Driver};
use crate::store::local::LocalStore;
use crate::store::mem::MemStore;
use crate::store::scylla::{self, ScyllaStore};
use crate::store::{Life, Reply, Request, Store, WorldRow};
use crate::sys;

/// A stop that takes longer than this is ended anyway.
const STOP_WAIT: Duration = Duration::from_secs(30);
/// How long a stop waits, once the sim is done, for clients to read their farewell. Most have by then; those that do not
/// read at all never will.
const FAREWELL_WAIT: Duration = Duration::from_secs(1);
/// How often it is looked whether they have.
const FAREWELL_LOOK: Duration = Duration::from_millis(5);

/// A running node.
pub struct Node {
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators look.
    pub admin: SocketAddr,
    stop: Arc<Notify>,
    stopping: Arc<AtomicBool>,
    sim: crossbeam_channel::Sender<SimMail>,
    gateway: crossbeam_channel::Sender<GatewayMail>,
    sim_done: oneshot::Receiver<()>,
    gateway_done: oneshot::Receiver<()>,
    hub: Arc<Hub>,
    accepting: JoinHandle<()>,
    administering: JoinHandle<()>,
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
    begin_life(&store, &me).await?;

    // A few milliseconds now, instead of the first long walk's tick.
    let world = &config.world;
    world.regions().for_each(|region| world.prepare(region));

    // Bound before anything runs, so that a taken port is the first thing said.
    let clients =
        accept::listen(config.listen).with_context(|| taken("--listen", config.listen))?;
    let admin_listener = tokio::net::TcpListener::bind(config.admin)
        .await
        .with_context(|| taken("--admin", config.admin))?;
    let (listen, admin_address) = (clients.local_addr()?, admin_listener.local_addr()?);

    let clock = Clock::start();
    let meters = Arc::new(Meters::default());
    let (sim_sender, sim_inbox) = crossbeam_channel::bounded(INBOX_MAX);
    let (gateway_sender, gateway_inbox) = crossbeam_channel::bounded(INBOX_MAX);
    let transport = Arc::new(LocalTransport::new(
        me.clone(),
        sim_sender.clone(),
        gateway_sender.clone(),
    ));
    let driver = Driver::new(store.clone(), Handle::current());
    let hub = Arc::new(Hub::new(gateway_sender.clone()));

    let sim = SimLoop {
        core: SimCore::new(SimConfig::alone(me.clone(), config.world.clone())),
        regions: uo_proto::RegionId::count(config.world.size()),
        clock,
        inbox: sim_inbox,
        replies: sim_sender.clone(),
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
    let advertise = match config.advertise.is_empty() {
        true => vec![format!("ws://{listen}")],
        false => config.advertise.clone(),
    };
    let gateway = GatewayLoop {
        core: GatewayCore::new(gateway_config(&config, &me, advertise)),
        clock,
        inbox: gateway_inbox,
        replies: gateway_sender.clone(),
        transport: transport.clone(),
        driver,
        hub: hub.clone(),
        meters: meters.clone(),
        connections: BTreeMap::new(),
    };
    let sim_done = spawn_sim(sim, store, me.boot)?;
    let gateway_done = spawn_gateway(gateway)?;

    let (stop, stopping) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let admin = Arc::new(Admin {
        me,
        sim: sim_sender.clone(),
        gateway: gateway_sender.clone(),
        hub: hub.clone(),
        transport,
        meters,
        stop: stop.clone(),
        stopping: stopping.clone(),
        cache: Mutex::new(None),
    });
    let accepting = tokio::spawn(accept::run(clients, hub.clone(), config.connections_max));
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
        gateway: gateway_sender,
        sim_done,
        gateway_done,
        hub,
        accepting,
        administering,
    })
}

impl Node {
    /// Waits until somebody asks this node to stop (`POST /shutdown`).
    pub async fn asked_to_stop(&self) {
        self.stop.notified().await;
    }

    /// Stops in order: clients are told where to go, characters are saved and released, and so are the regions.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.stopping.store(true, Ordering::Relaxed);
        let ended = async {
            // The gateway first: what its clients still asked for reaches the sim before it saves.
            let _ = self
                .gateway
                .send(GatewayMail::Input(gateway_core::Input::Stop));
            let _ = self.gateway_done.await;
            // Whoever comes now is better refused than left without an answer.
            self.accepting.abort();
            let _ = self.sim.send(SimMail::Input(sim_core::Input::Stop));
            let _ = self.sim_done.await;
            let _ = tokio::time::timeout(FAREWELL_WAIT, everybody_left(&self.hub)).await;
        };
        let in_time = tokio::time::timeout(STOP_WAIT, ended).await;
        self.accepting.abort();
        self.administering.abort();
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

/// A boot is written down as alive before it does anything.
async fn begin_life(store: &AnyStore, me: &Holder) -> anyhow::Result<()> {
    let request = Request::LifeBegin {
        node: me.node.clone(),
        boot: me.boot,
    };
    match store.call(request).await? {
        Reply::Life(Some(Life::Alive(1))) => Ok(()),
        other => bail!("the store answered a new boot with {other:?}"),
    }
}

fn gateway_config(config: &Config, me: &Holder, gateways: Vec<String>) -> GatewayConfig {
    GatewayConfig {
        me: me.clone(),
        world: Arc::new(config.world.clone()),
        members: vec![me.clone()],
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

fn new_boot() -> BootId {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    BootId(u128::from_be_bytes(bytes))
}

fn spawn_gateway(gateway: GatewayLoop<LocalTransport>) -> anyhow::Result<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    std::thread::Builder::new()
        .name("gateway".into())
        .spawn(move || {
            gateway.run();
            let _ = done.send(());
        })?;
    Ok(ended)
}

/// A tick thread that panics declares its boot dead and ends the process, so that its regions fail over at once.
fn spawn_sim(
    sim: SimLoop<LocalTransport>,
    store: AnyStore,
    boot: BootId,
) -> anyhow::Result<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    let runtime = Handle::current();
    std::thread::Builder::new()
        .name("tick".into())
        .spawn(move || {
            if catch_unwind(AssertUnwindSafe(|| sim.run())).is_err() {
                tracing::error!(
                    "the tick thread panicked; this boot is declared dead and the process ends"
                );
                let death = Request::LifeCas {
                    boot,
                    from: Some(Life::Alive(1)),
                    to: Life::Dead,
                };
                let declare = async {
                    // In vain, it only costs the others the time of their own evidence.
                    let _ = tokio::time::timeout(Duration::from_secs(1), store.call(death)).await;
                };
                runtime.block_on(declare);
                std::process::exit(101);
            }
            let _ = done.send(());
        })?;
    Ok(ended)
}
