//! `outage`: the whole database stands still under a world in which people fight, and comes back.
//!
//! Reading order:
//! - this file: the arguments, and what comes of a run;
//! - [`course`]: the run itself.

mod course;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use serde::Serialize;

use crate::crowd::Crowd;
use crate::database::Database;
use crate::fleet::Fleet;
use crate::interrupt;
use crate::node::ports::free_address;
use crate::node::{Node, Plan, server_program};
use crate::system;
use course::Course;

/// How long the node may take to start, and every bot to come in.
const START_WITHIN: Duration = Duration::from_secs(90);

/// Pauses the whole database under a world in which people fight, and checks that nothing is lost by it.
#[derive(Args, Clone, Debug)]
pub struct Arguments {
    /// The store, as the server's flag.
    #[arg(long, value_name = "STORE")]
    store: String,
    /// The command that pauses every node of the database.
    #[arg(long, value_name = "CMD")]
    pause: String,
    /// The command that resumes them.
    #[arg(long, value_name = "CMD")]
    resume: String,
    /// How long the database stands still.
    #[arg(long, default_value_t = 30, value_name = "S")]
    seconds: u64,
    /// How long they fight before that, and after.
    #[arg(long, default_value_t = 15, value_name = "S")]
    play_seconds: u64,
    /// How many bots fight.
    #[arg(long, default_value_t = 50, value_name = "N")]
    bots: usize,
    /// Side of the map in tiles.
    #[arg(long, default_value_t = 1024, value_name = "N")]
    map: u16,
    /// Of the bots' play.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// Further flags for the server.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    server_flag: Vec<String>,
    /// Where the log and `outage.json` go.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// What came of it.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
struct Report {
    store: String,
    bots: usize,
    /// How long the database stood still.
    paused_ms: u64,
    /// From its pause until the world stood still.
    frozen_after_ms: Option<u64>,
    /// From its return until the world went on.
    thawed_after_ms: Option<u64>,
    /// Bots that were told that the world is frozen, and that it goes on.
    told_frozen: usize,
    told_ok: usize,
    /// The longest time that a bot saw nothing.
    player_gap_ms: u64,
    /// Characters that were compared.
    characters: usize,
    /// Pages of the frozen world that were compared.
    pages: usize,
    promises: u64,
    violations: Vec<String>,
}

/// Runs the command; true when nothing was lost.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    ensure!(arguments.bots > 0, "--bots must be at least 1");
    system::raise_open_files();
    interrupt::run(outage(arguments))
}

async fn outage(arguments: Arguments) -> anyhow::Result<bool> {
    let (node, listen) = node(&arguments)?;
    let mut fleet = Fleet::new(vec![node])?;
    fleet.nodes[0].start()?;
    fleet.nodes[0].wait_ready(START_WITHIN).await?;
    let gateway = format!("ws://{listen}");
    let crowd = Crowd::enter(&gateway, "outage", arguments.bots, arguments.seed);
    crowd.all_in(START_WITHIN).await?;
    println!("{} bots are in", crowd.len());
    let course = Course {
        database: Database::new(arguments.pause.clone(), arguments.resume.clone()),
        fleet,
        crowd,
        report: Report {
            store: arguments.store.clone(),
            bots: arguments.bots,
            ..Report::default()
        },
        pause: Duration::from_secs(arguments.seconds),
        play: Duration::from_secs(arguments.play_seconds),
    };
    let report = course.run().await?;
    report.print();
    report.write(&arguments)?;
    Ok(report.violations.is_empty())
}

fn node(arguments: &Arguments) -> anyhow::Result<(Node, String)> {
    let listen = free_address()?;
    let map = arguments.map.to_string();
    let flags = [
        "--role",
        "all",
        "--listen",
        &listen,
        "--store",
        &arguments.store,
        "--map",
        &map,
    ];
    let given = arguments.server_flag.iter().map(String::as_str);
    let node = Node::new(Plan {
        program: server_program(arguments.server.as_deref())?,
        name: "all-1".into(),
        arguments: flags.into_iter().chain(given).map(Into::into).collect(),
        out: arguments.out.clone(),
    })?;
    Ok((node, listen))
}

impl Report {
    fn print(&self) {
        let ms = |time: Option<u64>| time.map_or("never".into(), |ms| format!("after {ms} ms"));
        println!(
            "the database stood still for {} ms: the world froze {} and went on {} of its return",
            self.paused_ms,
            ms(self.frozen_after_ms),
            ms(self.thawed_after_ms)
        );
        println!(
            "{} characters equal over {} pages; {} and {} of {} bots were told; they saw nothing for {} ms at most; {} promises",
            self.characters,
            self.pages,
            self.told_frozen,
            self.told_ok,
            self.bots,
            self.player_gap_ms,
            self.promises
        );
        match self.violations.len() {
            0 => println!("nothing was lost"),
            count => println!("{count} things are WRONG:"),
        }
        self.violations
            .iter()
            .for_each(|what| println!("    {what}"));
    }

    fn write(&self, arguments: &Arguments) -> anyhow::Result<()> {
        let path = arguments.out.join("outage.json");
        let text = serde_json::to_vec_pretty(self)?;
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
