//! The server that is measured: our own, or the floor.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use super::Arguments;
use super::cost::Cost;
use crate::node::{Node, Plan, ports, server_program};

/// How long a server may take to listen.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// Between two looks whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Open connections that our server is told to allow: more than a process of bots can have.
const CONNECTIONS_MAX: &str = "60000";

/// A server process. Dropped, it is killed.
pub struct Subject {
    /// What it is called in what is printed.
    pub name: &'static str,
    /// Where clients connect, as `ws://host:port`.
    pub gateway: String,
    process: Process,
}

enum Process {
    Ours(Node),
    Floor(Floor),
}

struct Floor(Child);

impl Drop for Floor {
    fn drop(&mut self) {
        // It is ours and has nothing to save.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Subject {
    /// Starts our server: all roles in one process, its world in memory.
    pub async fn ours(arguments: &Arguments) -> anyhow::Result<Subject> {
        let listen = ports::free_address()?;
        let map = arguments.map.to_string();
        let flags = [
            ["--role", "all"],
            ["--store", "mem"],
            ["--map", &map],
            ["--listen", &listen],
            ["--limit-connections", CONNECTIONS_MAX],
        ];
        let given = arguments.server_flag.iter().cloned();
        let mut node = Node::new(Plan {
            program: server_program(arguments.server.as_deref())?,
            name: "capacity".into(),
            arguments: flags
                .concat()
                .into_iter()
                .map(str::to_owned)
                .chain(given)
                .collect(),
            out: arguments.out.clone(),
        })?;
        node.start()?;
        node.wait_ready(READY_WITHIN).await?;
        Ok(Subject {
            name: "felucca",
            gateway: format!("ws://{listen}"),
            process: Process::Ours(node),
        })
    }

    /// Starts the floor.
    pub async fn floor(arguments: &Arguments) -> anyhow::Result<Subject> {
        let program = floor_program(arguments.floor_program.as_deref())?;
        let listen = ports::free_address()?;
        let process = Command::new(&program)
            .args([&listen, &arguments.map.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let floor = Subject {
            name: "floor",
            gateway: format!("ws://{listen}"),
            process: Process::Floor(Floor(process)),
        };
        let deadline = Instant::now() + READY_WITHIN;
        while TcpStream::connect(&listen).await.is_err() {
            ensure!(Instant::now() < deadline, "the floor does not listen");
            sleep(LOOK_EVERY).await;
        }
        Ok(floor)
    }

    /// Its admin addresses; the floor has none.
    pub fn admin(&self) -> Vec<String> {
        match &self.process {
            Process::Ours(node) => vec![node.admin().to_owned()],
            Process::Floor(_) => Vec::new(),
        }
    }

    /// What it has cost so far.
    pub fn cost(&self) -> anyhow::Result<Cost> {
        let pid = match &self.process {
            Process::Ours(node) => node.pid(),
            Process::Floor(floor) => Some(floor.0.id()),
        };
        Cost::of(pid.with_context(|| format!("{} does not run", self.name))?)
    }
}

/// The floor's program: the one that was named, or the example that was built beside this program.
fn floor_program(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let program = match named {
        Some(program) => program.to_owned(),
        None => std::env::current_exe()?
            .with_file_name("examples")
            .join("floor"),
    };
    ensure!(
        program.exists(),
        "{} is not there; build it with `cargo build --release -p uo-loadtest --example floor`, or name it with --floor-program",
        program.display()
    );
    Ok(program)
}
