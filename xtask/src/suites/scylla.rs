//! The store's contract on a real Apache Cassandra, which `deploy/cassandra/cassandra` fetches and runs.
//!
//! Every part has a ring of its own, in a folder and on ports of its own, so that neither an earlier run nor a
//! developer's own ring is in the way. A ring is wiped when its part is over, however it ends; should this program be
//! killed, the script itself wipes it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use crate::command::{ask, cargo, run};
use crate::report::Tally;
use crate::suite::Depth;
use crate::suites::cargo::counted;
use crate::workspace::Workspace;

const SCRIPT: &str = "deploy/cassandra/cassandra";
/// Of the whole workspace: a package that is named is built again, since its dependencies then have fewer features.
const TEST: [&str; 5] = [
    "test",
    "--locked",
    "--workspace",
    "--test",
    "scylla_contract",
];
/// What a scenario runs. Unoptimised on a shared machine, a failover may take longer than its bar.
const SCENARIO_BUILD: [&str; 7] = [
    "build",
    "--locked",
    "--workspace",
    "--bin",
    "uo-server",
    "--bin",
    "uo-loadtest",
];
const SCENARIO: [&str; 13] = [
    "scenario",
    "--sims",
    "3",
    "--gateways",
    "2",
    "--map",
    "256",
    "--bots",
    "60",
    "--ramp",
    "4s",
    "--held-within-ms",
    "10000",
];
/// The ports that are tried for clients, each with the next one for the nodes among themselves. They lie below the range
/// from which systems draw the ports of outgoing connections.
const PORTS: std::ops::Range<u16> = 19_042..19_142;

/// Half a minute is usual on two cores that do nothing else.
const START_S: &str = "400";

/// Variables for the tests, with their values.
type Environment = Vec<(&'static str, String)>;

/// One ring, on which the tests run once. Each begins with a new one: after a run that kills and pauses nodes, Cassandra
/// now and then no longer knows tables that it has just dropped, and then refuses to make others.
#[derive(Debug)]
struct Part {
    about: &'static str,
    version: &'static str,
    nodes: u16,
    /// The node that is stopped before the tests begin.
    stopped: Option<&'static str>,
    /// What is done to a whole cluster of ours that keeps its world there, before the tests; see
    /// `uo-loadtest scenario --help`.
    chaos: Option<&'static str>,
}

const PARTS: &[Part] = &[
    Part {
        about: "Cassandra 5.0, one node",
        version: "5.0",
        nodes: 1,
        stopped: None,
        chaos: Some("10:kill:sim-2,17:start:sim-2,26:cut:sim-1,32:heal:sim-1"),
    },
    Part {
        about: "Cassandra 5.0, three nodes",
        version: "5.0",
        nodes: 3,
        stopped: None,
        chaos: None,
    },
    Part {
        about: "Cassandra 5.0, three nodes, one of them stopped",
        version: "5.0",
        nodes: 3,
        stopped: Some("db-3"),
        chaos: None,
    },
    Part {
        about: "Cassandra 4.1, one node",
        version: "4.1",
        nodes: 1,
        stopped: None,
        chaos: None,
    },
];

/// Whether Maven runs, and so a Java too.
pub fn has_maven(_: &Workspace) -> bool {
    ask(Command::new("mvn").arg("-version")).is_ok()
}

/// Installs Maven and Java where that is a matter of one command.
pub fn get_maven(_: &Workspace) -> anyhow::Result<()> {
    let arguments = ["install", "--yes", "--no-install-recommends"];
    run(Command::new("apt-get")
        .args(arguments)
        .args(["maven", "openjdk-17-jre-headless"])
        .env("DEBIAN_FRONTEND", "noninteractive"))
    .context("install Maven and Java 17 with your system's packages")
}

/// Whether this version is in the cache.
pub fn has_cassandra(workspace: &Workspace, version: &str) -> bool {
    ask(script(workspace).args(["--version", version, "fetched"])).is_ok()
}

/// Fetches it.
pub fn get_cassandra(workspace: &Workspace, version: &str) -> anyhow::Result<()> {
    // What the script complained about is the reason in the summary.
    ask(script(workspace).args(["--version", version, "fetch"])).map(drop)
}

/// Runs the contract on every ring.
pub fn run_all(workspace: &Workspace, _: Depth) -> anyhow::Result<Tally> {
    // Before the first ring is up: it would only be in the compiler's way.
    run(cargo(workspace, TEST).arg("--no-run"))?;
    run(&mut cargo(workspace, SCENARIO_BUILD))?;
    let mut total = Tally::default();
    for part in PARTS {
        let tally = run_part(workspace, part).with_context(|| part.about)?;
        total.add(tally);
    }
    Ok(total)
}

fn run_part(workspace: &Workspace, part: &Part) -> anyhow::Result<Tally> {
    println!("\n-- {}", part.about);
    let ring = Ring::start(workspace, part)?;
    if let Some(node) = part.stopped {
        run(ring.script().args(["stop", node]))?;
    }
    let environment = ring.environment(part.nodes, part.stopped);
    let mut tally = Tally::default();
    if let Some(chaos) = part.chaos {
        run_scenario(workspace, &ring, chaos, &environment)?;
        tally.passed += 1;
    }
    let tests = run_tests(workspace, &environment)?;
    tally.add(tests);
    Ok(tally)
}

/// Bots on sims and gateways of ours that are disturbed meanwhile. What it found wrong is in its output.
fn run_scenario(
    workspace: &Workspace,
    ring: &Ring,
    chaos: &str,
    environment: &Environment,
) -> anyhow::Result<()> {
    let mut command = Command::new(workspace.join("target/debug/uo-loadtest"));
    command.args(SCENARIO);
    command.args(["--store", &format!("scylla://127.0.0.1:{}", ring.port)]);
    command.args(["--chaos", chaos, "--out"]);
    command.arg(workspace.join("target/scenario"));
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    run(&mut command).context("see target/scenario for its report and the logs of all nodes")
}

fn run_tests(workspace: &Workspace, environment: &Environment) -> anyhow::Result<Tally> {
    let begun = Instant::now();
    let mut command = cargo(workspace, TEST);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let tally = counted(&mut command)?;
    if tally == Tally::default() {
        bail!("no test was run: see above why");
    }
    println!("-- {:.0} s", begun.elapsed().as_secs_f64());
    Ok(tally)
}

fn script(workspace: &Workspace) -> Command {
    Command::new(workspace.join(SCRIPT))
}

/// A ring that runs, and is wiped when dropped.
struct Ring<'a> {
    workspace: &'a Workspace,
    folder: PathBuf,
    port: u16,
}

impl Ring<'_> {
    fn start<'a>(workspace: &'a Workspace, part: &Part) -> anyhow::Result<Ring<'a>> {
        let ring = Ring {
            workspace,
            folder: workspace.join("target/cassandra/tests"),
            port: free_port(part.nodes)?,
        };
        // What a run left that was killed together with its watcher.
        run(ring.script().arg("wipe"))?;
        let nodes = part.nodes.to_string();
        let port = ring.port.to_string();
        let owner = std::process::id().to_string();
        run(ring.script().args([
            "start",
            "--version",
            part.version,
            "--nodes",
            &nodes,
            "--port",
            &port,
            "--timeout",
            START_S,
            "--with",
            &owner,
        ]))?;
        Ok(ring)
    }

    fn script(&self) -> Command {
        let mut command = script(self.workspace);
        command.arg("--dir").arg(&self.folder);
        command
    }

    /// What the tests read: where the database is, how often it keeps a row, and how to disturb a node of it.
    fn environment(&self, nodes: u16, stopped: Option<&str>) -> Environment {
        let hosts = (1..=nodes)
            .filter(|number| stopped != Some(format!("db-{number}").as_str()))
            .map(|number| format!("127.0.0.{number}:{}", self.port))
            .collect::<Vec<_>>();
        let mut environment = vec![
            ("UO_SCYLLA", hosts.join(",")),
            ("UO_SCYLLA_RF", nodes.to_string()),
        ];
        // With one of three stopped already, one more would take the quorum away.
        if stopped.is_none() {
            let script = self.workspace.join(SCRIPT);
            let call = format!("{} --dir {}", script.display(), self.folder.display());
            environment.push(("UO_SCYLLA_NODES", call));
        }
        environment
    }
}

impl Drop for Ring<'_> {
    fn drop(&mut self) {
        let wiped = self.script().arg("wipe").stdin(Stdio::null()).status();
        if !wiped.is_ok_and(|status| status.success()) {
            eprintln!("could not wipe the ring in {}", self.folder.display());
        }
    }
}

/// A port that is free, with the next one, on the addresses of all nodes.
fn free_port(nodes: u16) -> anyhow::Result<u16> {
    let free = |port: u16| {
        (1..=nodes).all(|number| {
            let address = format!("127.0.0.{number}");
            TcpListener::bind((address.as_str(), port)).is_ok()
        })
    };
    PORTS
        .step_by(2)
        .find(|port| free(*port) && free(port + 1))
        .with_context(|| format!("no two ports in a row are free among {PORTS:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(workspace: &Workspace) -> std::mem::ManuallyDrop<Ring<'_>> {
        // Nothing was started, so there is nothing to wipe.
        std::mem::ManuallyDrop::new(Ring {
            workspace,
            folder: PathBuf::from("/ring"),
            port: 19_050,
        })
    }

    fn environment(nodes: u16, stopped: Option<&str>) -> Environment {
        ring(&Workspace::at("/felucca")).environment(nodes, stopped)
    }

    #[test]
    fn the_tests_are_told_of_every_node_and_how_to_disturb_one() {
        assert_eq!(
            environment(3, None),
            [
                (
                    "UO_SCYLLA",
                    "127.0.0.1:19050,127.0.0.2:19050,127.0.0.3:19050".to_owned()
                ),
                ("UO_SCYLLA_RF", "3".to_owned()),
                (
                    "UO_SCYLLA_NODES",
                    "/felucca/deploy/cassandra/cassandra --dir /ring".to_owned()
                ),
            ]
        );
    }

    #[test]
    fn a_stopped_node_is_not_named_and_no_other_may_be_disturbed() {
        assert_eq!(
            environment(3, Some("db-3")),
            [
                ("UO_SCYLLA", "127.0.0.1:19050,127.0.0.2:19050".to_owned()),
                ("UO_SCYLLA_RF", "3".to_owned()),
            ]
        );
    }

    #[test]
    fn a_port_that_somebody_listens_on_is_passed_over() {
        let first = free_port(3).unwrap();
        let _listener = TcpListener::bind(("127.0.0.2", first + 1)).unwrap();
        assert!(free_port(3).unwrap() > first);
    }

    #[test]
    fn the_script_tells_what_it_can_do_and_what_it_cannot() {
        let workspace = Workspace::find().unwrap();
        let help = ask(script(&workspace).arg("--help")).unwrap();
        for part in PARTS {
            assert!(help.contains(part.version), "{part:?}");
        }
        let refused = ask(script(&workspace).arg("absent")).unwrap_err();
        assert!(format!("{refused:#}").contains("there is no verb 'absent'"));
    }
}
