//! Raw flags and environment become one checked [`Config`] before anything starts.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::{Parser, Subcommand, ValueEnum};
use uo_proto::{SAY_BYTES_BOUND, SAY_BYTES_MAX};
use uo_world::World;

use crate::cluster::timing::Timing;
use crate::database::{DatabaseArgs, SchemaArgs};
use crate::identity::NodeName;
use crate::limits::{NAME_BYTES_MAX, RELIABLE_LANE_MAX, RELIABLE_LANE_MAX_RANGE};
use crate::peer::flags::{PeerArgs, PeerConfig, is_name};
use crate::store::row::Role;
use crate::store::scylla::Access;

/// Felucca: one seamless world, from a laptop to a fleet.
///
/// Without flags it starts a playable one-process shard that keeps its world in the platform's data folder.
#[derive(Parser, Clone, Debug)]
#[command(name = "uo-server", version, args_conflicts_with_subcommands = true)]
pub struct Args {
    /// Instead of a server.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What this process does.
    #[arg(long, value_enum, default_value_t = RoleArg::All)]
    role: RoleArg,
    /// The node's lasting name.
    #[arg(long, default_value = "all-1", value_name = "NAME")]
    node: String,
    /// Where clients connect (WebSocket).
    #[arg(long, default_value = "127.0.0.1:7777", value_name = "ADDR")]
    listen: SocketAddr,
    /// Where operators look (HTTP).
    #[arg(long, default_value = "127.0.0.1:7780", value_name = "ADDR")]
    admin: SocketAddr,
    /// The addresses that clients are told for resuming; the default is the one of --listen.
    #[arg(long, value_delimiter = ',', value_name = "URL,..")]
    advertise: Vec<String>,
    /// Where the world is kept: `mem`, `local`, `local:DIR` or `scylla://host:9042,host2[/keyspace]`.
    #[arg(long, default_value = "local", value_name = "STORE")]
    store: String,
    #[command(flatten)]
    database: DatabaseArgs,
    #[command(flatten)]
    peer: PeerArgs,
    /// The world's seed. A kept world refuses another one.
    #[arg(long, default_value_t = 7, value_name = "N")]
    seed: u64,
    /// Side of the map in tiles, a multiple of 64. A kept world refuses another one.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    map: u16,
    /// How names become characters. `dev`: a name is an account, without a password; beyond loopback it must be asked for.
    #[arg(long, value_enum)]
    auth: Option<AuthArg>,
    /// How log lines are written.
    #[arg(long, value_enum, default_value_t = LogFormat::Human)]
    log_format: LogFormat,
    /// Open connections, in all.
    #[arg(
        long,
        env = "UO_LIMIT_CONNECTIONS",
        default_value_t = 20_000,
        value_name = "N"
    )]
    limit_connections: usize,
    /// Bytes of one `say`.
    #[arg(
        long,
        env = "UO_LIMIT_SAY_BYTES",
        default_value_t = SAY_BYTES_MAX as u32,
        value_parser = clap::value_parser!(u32).range(1..=SAY_BYTES_BOUND as i64),
        value_name = "N"
    )]
    limit_say_bytes: u32,
    /// Reliable messages that wait for one connection, and that are kept for its resume.
    #[arg(
        long,
        env = "UO_LIMIT_RELIABLE_LANE",
        default_value_t = RELIABLE_LANE_MAX as u64,
        value_parser = clap::value_parser!(u64).range(RELIABLE_LANE_MAX_RANGE),
        value_name = "N"
    )]
    limit_reliable_lane: u64,
    /// Threads that tick regions when there is much to do; 0 is half the cores.
    #[arg(long, env = "UO_TICK_THREADS", default_value_t = 0, value_name = "N")]
    tick_threads: usize,
    #[command(flatten)]
    timing: Timing,
}

/// What to do instead of running a server.
#[derive(Subcommand, Clone, Debug)]
pub enum Command {
    /// Make the keyspace and tables of a database.
    Schema(SchemaArgs),
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum RoleArg {
    /// Sessions only.
    Gateway,
    /// Regions only.
    Sim,
    /// Both in one process.
    All,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum AuthArg {
    /// Names are accounts.
    Dev,
}

/// How log lines are written.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Where the world is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreChoice {
    /// In memory: gone with the process.
    Mem,
    /// In a folder of this machine.
    Local(PathBuf),
    /// In a database.
    Scylla {
        /// Which, and how to log in.
        access: Access,
        /// Make what is missing there, a keyspace with so many replicas; none: only verify.
        make: Option<u8>,
    },
}

impl fmt::Display for StoreChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreChoice::Mem => f.write_str("mem"),
            StoreChoice::Local(dir) => write!(f, "local:{}", dir.display()),
            StoreChoice::Scylla { access, .. } => write!(f, "{}", access.place),
        }
    }
}

/// What a node is started with; every field is checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// What this process does.
    pub role: Role,
    /// The node's lasting name.
    pub node: NodeName,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Where operators look.
    pub admin: SocketAddr,
    /// What clients are told for resuming; empty: the address that was bound.
    pub advertise: Vec<String>,
    /// Where the world is kept.
    pub store: StoreChoice,
    /// Other nodes have the store open as well.
    pub is_shared: bool,
    /// How it is linked to other nodes, if others can share the store.
    pub peer: Option<PeerConfig>,
    /// The world.
    pub world: World,
    /// How log lines are written.
    pub log_format: LogFormat,
    /// Open connections, in all.
    pub connections_max: usize,
    /// Bytes of one `say`.
    pub say_bytes: u32,
    /// Reliable messages that wait for one connection.
    pub reliable_lane_max: usize,
    /// Threads of the tick pool, at least one.
    pub tick_threads: usize,
    /// The times that decide about rights; they fit together.
    pub timing: Timing,
}

impl Config {
    /// Checks `args`; each refusal says what to do instead.
    pub fn check(args: Args) -> anyhow::Result<Config> {
        let role = match args.role {
            RoleArg::All => Role::All,
            RoleArg::Sim => Role::Sim,
            RoleArg::Gateway => Role::Gateway,
        };
        ensure!(
            is_name(&args.node),
            "--node {:?}: a name is made of at most {NAME_BYTES_MAX} letters, digits and dashes, like all-1",
            args.node
        );
        if !args.listen.ip().is_loopback() && args.auth.is_none() {
            bail!(
                "--listen {} can be reached from other machines, and in dev mode anybody can play any name; \
                 say --auth dev if that is what you want",
                args.listen
            );
        }
        ensure!(
            args.admin.ip().is_loopback(),
            "--admin {}: the admin address has no token yet and so stays on loopback",
            args.admin
        );
        let world = World::new(args.seed, args.map)
            .map_err(|error| anyhow::anyhow!("--map {}: {error}", args.map))?;
        ensure!(
            args.limit_connections > 0,
            "--limit-connections must be at least 1"
        );
        args.timing.check()?;
        args.timing.check_with_store()?;
        let store = store_choice(&args)?;
        let is_shared = matches!(store, StoreChoice::Scylla { .. });
        ensure!(
            role == Role::All || is_shared,
            "--role {}: no other process can share a world that is kept with --store {}; it takes a database \
             (scylla://host:9042)",
            if role == Role::Sim { "sim" } else { "gateway" },
            args.store
        );
        Ok(Config {
            role,
            node: args.node.as_str().into(),
            listen: args.listen,
            admin: args.admin,
            advertise: args.advertise,
            is_shared,
            peer: args.peer.check(&args.store, is_shared)?,
            store,
            world,
            log_format: args.log_format,
            connections_max: args.limit_connections,
            say_bytes: args.limit_say_bytes,
            reliable_lane_max: args.limit_reliable_lane as usize,
            tick_threads: match args.tick_threads {
                0 => {
                    std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2))
                }
                threads => threads,
            },
            timing: args.timing,
        })
    }
}

fn store_choice(args: &Args) -> anyhow::Result<StoreChoice> {
    let text = args.store.as_str();
    if let Some(place) = text.strip_prefix("scylla://") {
        let access = args.database.access(place);
        return Ok(StoreChoice::Scylla {
            access: access.with_context(|| format!("--store {text}"))?,
            // A node of a cluster starts where others run: a schema is made there once, by `uo-server schema`.
            make: (args.role == RoleArg::All).then(|| args.database.replicas()),
        });
    }
    match text.split_once(':') {
        None if text == "mem" => Ok(StoreChoice::Mem),
        None if text == "local" => {
            let dirs = directories::ProjectDirs::from("", "", "felucca")
                .context("this user has no home folder; say --store local:DIR")?;
            Ok(StoreChoice::Local(dirs.data_dir().to_path_buf()))
        }
        Some(("local", dir)) if !dir.is_empty() => Ok(StoreChoice::Local(dir.into())),
        _ => bail!("--store {text}: it is mem, local, local:DIR or scylla://host:9042"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(args: &[&str]) -> Result<Config, String> {
        let args = Args::try_parse_from([&["uo-server"], args].concat())
            .map_err(|error| error.to_string())?;
        Config::check(args).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn defaults_are_a_shard_on_loopback() {
        let config = config(&["--store", "mem"]).expect("the defaults are good");
        assert_eq!(config.listen.to_string(), "127.0.0.1:7777");
        assert_eq!(config.admin.to_string(), "127.0.0.1:7780");
        assert_eq!((config.world.seed(), config.world.size()), (7, 1024));
    }

    #[test]
    fn limits_of_clients_have_bounds() {
        let small = config(&["--store", "mem"]).expect("the defaults are good");
        assert_eq!((small.say_bytes, small.reliable_lane_max), (256, 1_024));
        let raised = ["--limit-say-bytes=4096", "--limit-reliable-lane=65536"];
        let raised = config(&[&["--store=mem"], &raised[..]].concat()).expect("it is good");
        assert_eq!(
            (raised.say_bytes, raised.reliable_lane_max),
            (4_096, 65_536)
        );
        for wrong in [
            "--limit-say-bytes=0",
            "--limit-say-bytes=4097",
            "--limit-reliable-lane=255",
            "--limit-reliable-lane=65537",
        ] {
            assert!(config(&["--store=mem", wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shard_of_its_own_makes_its_tables() {
        let config = config(&["--store", "scylla://h:9043,i/mine", "--scylla-rf", "3"]);
        let StoreChoice::Scylla { access, make } = config.expect("it is good").store else {
            panic!("another store")
        };
        assert_eq!(access.place.to_string(), "scylla://h:9043,i:9042/mine");
        assert_eq!(make, Some(3));
    }

    #[test]
    fn mistakes_get_a_sentence() {
        let cases: &[(&[&str], &str)] = &[
            (&["--role", "gateway"], "--role gateway: no other"),
            (&["--role", "sim", "--store", "mem"], "it takes a database"),
            (&["--node", ""], "letters, digits and dashes"),
            (&["--peer-listen", "127.0.0.1:0"], "takes a database"),
            (&["--listen", "0.0.0.0:7777"], "say --auth dev"),
            (&["--admin", "0.0.0.0:7780"], "stays on loopback"),
            (&["--map", "1000"], "--map 1000"),
            (&["--map", "16448"], "--map 16448"),
            (&["--store", "redis"], "mem, local, local:DIR or scylla"),
            (&["--store", "local:"], "mem, local, local:DIR or scylla"),
            (&["--store", "scylla://"], "is not a host"),
            (&["--store", "scylla://h/K"], "is not a keyspace"),
            (&["--store", "scylla://h", "--scylla-rf", "0"], "1..=9"),
            (&["schema"], "--store"),
            (&["--store-translate", "db-1=x"], "it is A=B"),
            (&["--limit-connections", "0"], "at least 1"),
            (&["--sed", "7"], "--seed"),
            (&["--fence-ms", "2450"], "may still act"),
            (&["--beat-ms", "0"], "at least 1"),
            (&["--gone-ms", "3600001"], "3600000"),
        ];
        for (args, expected) in cases {
            let error = config(args).expect_err("it is refused");
            assert!(error.contains(expected), "{args:?}: {error}");
        }
    }
}
