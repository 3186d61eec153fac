//! `crash`: kills a server again and again under load, and holds every restart against what was promised.
//!
//! One server on one `local:` folder, one swarm of fighting bots that lives through all of it: `kill -9` at a random
//! moment, start, resume, compare; as often as asked. The promises are those of [`crate::proof`].

use std::collections::BTreeSet;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use uo_proto::{EntityId, ObjectKey, Order};
use uo_sdk::bot::{Bot, Cause, Hands, Observer, Runner};
use uo_sdk::bots::BotKind;
use uo_sdk::{Event, LocalWorld, Options};

use crate::admin;
use crate::proof::{Proof, doubled};

/// How old a place may be after a crash: one interval of checkpoints, and the time to write one.
const PLACE_KEPT_MS: u64 = 17_000;
/// How long a start and the return of every bot may take.
const RETURN_MAX: Duration = Duration::from_secs(60);
/// How often the server is asked whether it is ready.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Kills a server under load, again and again, and checks what it had promised.
#[derive(Args)]
pub struct Arguments {
    /// How often it is killed.
    #[arg(long, default_value_t = 50, value_name = "N")]
    times: u32,
    /// How many bots fight meanwhile.
    #[arg(long, default_value_t = 100, value_name = "N")]
    bots: usize,
    /// Shortest and longest time between a start and a kill, in milliseconds.
    #[arg(long, default_value = "1500-6000", value_name = "MIN-MAX", value_parser = range)]
    alive_ms: (u64, u64),
    /// The server's program; the default is the one beside this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// The folder of the world and of the server's log. It should be empty or absent.
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Of the bots' play and of the moments.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

fn range(text: &str) -> Result<(u64, u64), String> {
    let parts = text
        .split_once('-')
        .and_then(|(min, max)| Some((min.parse().ok()?, max.parse().ok()?)));
    match parts {
        Some((min, max)) if min <= max => Ok((min, max)),
        _ => Err("it is two numbers of milliseconds, like 1500-6000".into()),
    }
}

/// Runs the command; true when every promise was kept.
pub fn run(arguments: Arguments) -> anyhow::Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(crashes(arguments))
}

async fn crashes(arguments: Arguments) -> anyhow::Result<bool> {
    std::fs::create_dir_all(&arguments.dir).context("cannot make the folder")?;
    let mut server = Server::new(&arguments)?;
    server.start().await?;
    let crowd = Crowd::enter(&server, arguments.bots, arguments.seed);
    let mut dice = arguments.seed;
    for time in 1..=arguments.times {
        crowd
            .all_in(time)
            .await
            .context(format!("after {} kills", time - 1))?;
        let (min, max) = arguments.alive_ms;
        sleep(Duration::from_millis(
            min + next(&mut dice) % (max - min + 1),
        ))
        .await;
        crowd.expect_everybody();
        server.kill()?;
        let promised = crowd.broken();
        server
            .start()
            .await
            .with_context(|| format!("after kill {time}"))?;
        let intact = server.intact_of(&promised).await?;
        let failures = crowd.failures(&intact);
        println!(
            "kill {time:>3}: up again in {:>4} ms, {} promises so far, {} broken things kept, {} failures",
            server.last_start.as_millis(),
            crowd.promises(),
            promised.len() - intact.len(),
            failures.len()
        );
        for failure in &failures {
            println!("  {failure}");
        }
        if !failures.is_empty() {
            return Ok(false);
        }
    }
    crowd.all_in(arguments.times + 1).await?;
    let failures = crowd.failures(&BTreeSet::new());
    failures.iter().for_each(|failure| println!("  {failure}"));
    ensure!(
        crowd.promises() > 0,
        "nothing was promised, so nothing was proved"
    );
    println!(
        "{} kills, {} promises, every one kept: {}",
        arguments.times,
        crowd.promises(),
        failures.is_empty()
    );
    Ok(failures.is_empty())
}

/// A small generator (splitmix64, Steele, Lea and Flood 2014): the moments of the kills.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The server under test.
struct Server {
    program: PathBuf,
    dir: PathBuf,
    listen: String,
    admin: String,
    process: Option<Child>,
    last_start: Duration,
}

impl Server {
    fn new(arguments: &Arguments) -> anyhow::Result<Server> {
        let program = match &arguments.server {
            Some(program) => program.clone(),
            None => std::env::current_exe()?.with_file_name("uo-server"),
        };
        ensure!(
            program.exists(),
            "{} is not there; build it, or name it with --server",
            program.display()
        );
        Ok(Server {
            program,
            dir: arguments.dir.clone(),
            listen: free_address()?,
            admin: free_address()?,
            process: None,
            last_start: Duration::ZERO,
        })
    }

    async fn start(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.dir.join("server.log"))?;
        let store = format!("local:{}", Path::new(&self.dir).join("world").display());
        let process = Command::new(&self.program)
            .args([
                "--listen",
                &self.listen,
                "--admin",
                &self.admin,
                "--store",
                &store,
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start the server")?;
        self.process = Some(process);
        while admin::get(&self.base(), "/readyz").await.is_err() {
            ensure!(
                begun.elapsed() < RETURN_MAX,
                "the server did not become ready; see server.log"
            );
            if let Some(status) = self.process.as_mut().expect("it was started").try_wait()? {
                bail!("the server ended at its start ({status}); see server.log");
            }
            sleep(ASK_EVERY).await;
        }
        self.last_start = begun.elapsed();
        Ok(())
    }

    fn base(&self) -> String {
        format!("http://{}", self.admin)
    }

    /// SIGKILL: it gets to do nothing more.
    fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// Those of `keys` that the server shows as if nothing had ever happened to them.
    async fn intact_of(&self, keys: &BTreeSet<ObjectKey>) -> anyhow::Result<BTreeSet<ObjectKey>> {
        let state: Value = serde_json::from_str(&admin::get(&self.base(), "/state?full").await?)?;
        let regions = state["sim"]["regions"]
            .as_array()
            .context("/state?full has no regions")?;
        let changed: BTreeSet<ObjectKey> = regions
            .iter()
            .flat_map(|region| region["objects"].as_array().into_iter().flatten())
            .filter_map(|object| object["key"].as_str()?.parse().ok())
            .collect();
        Ok(keys.difference(&changed).copied().collect())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The command is over, whatever came of it: the process it started is as well.
        let _ = self.kill();
    }
}

fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

/// All bots, and what each was promised.
struct Crowd {
    proofs: Vec<Arc<Mutex<Proof>>>,
    returned: Arc<AtomicUsize>,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Crowd {
    fn enter(server: &Server, bots: usize, seed: u64) -> Crowd {
        let crowd = Crowd {
            proofs: Vec::new(),
            returned: Arc::default(),
            ended: Arc::default(),
        };
        (0..bots).fold(crowd, |mut crowd, index| {
            let name = format!("crash-{seed}-{index}");
            let proof = Arc::new(Mutex::new(Proof::new(&name)));
            let watch = Watch {
                proof: proof.clone(),
                returned: crowd.returned.clone(),
                began: Instant::now(),
            };
            let bot = Asking(BotKind::Combat.make(seed.wrapping_add(index as u64)));
            let runner = Runner::new(
                Options::new(format!("ws://{}", server.listen), name.clone()),
                bot,
            )
            .observed(watch);
            let ended = crowd.ended.clone();
            tokio::spawn(async move {
                let why = match runner.run().await {
                    Ok(reason) => format!("{name}: {reason}"),
                    Err(error) => format!("{name}: {error}"),
                };
                ended
                    .lock()
                    .expect("nothing panics while it is held")
                    .push(why);
            });
            crowd.proofs.push(proof);
            crowd
        })
    }

    /// Waits until every bot is in, for the `time`-th time.
    async fn all_in(&self, time: u32) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            if let Some(why) = self
                .ended
                .lock()
                .expect("nothing panics while it is held")
                .first()
            {
                bail!("a bot's session ended: {why}");
            }
            let returned = self.returned.load(Ordering::Relaxed);
            if returned >= self.proofs.len() {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < RETURN_MAX,
                "only {returned} of {} bots are in (start {time})",
                self.proofs.len()
            );
            sleep(ASK_EVERY).await;
        }
    }

    fn expect_everybody(&self) {
        self.returned.store(0, Ordering::Relaxed);
    }

    fn broken(&self) -> BTreeSet<ObjectKey> {
        self.proofs
            .iter()
            .flat_map(|proof| lock(proof).broken.clone())
            .collect()
    }

    fn promises(&self) -> u64 {
        self.proofs.iter().map(|proof| lock(proof).promises).sum()
    }

    fn failures(&self, intact: &BTreeSet<ObjectKey>) -> Vec<String> {
        let guards: Vec<_> = self.proofs.iter().map(lock).collect();
        let mut failures: Vec<String> = guards
            .iter()
            .flat_map(|proof| proof.failures.iter().map(|failure| failure.0.clone()))
            .collect();
        let each = guards
            .iter()
            .enumerate()
            .map(|(index, proof)| (EntityId(index as u64), &**proof));
        failures.extend(doubled(each).into_iter().map(|failure| failure.0));
        failures.extend(
            intact
                .iter()
                .map(|key| format!("object {key} was broken, saved, and is whole again")),
        );
        failures
    }
}

fn lock(proof: &Arc<Mutex<Proof>>) -> std::sync::MutexGuard<'_, Proof> {
    proof.lock().expect("nothing panics while it is held")
}

/// Tells a proof what its character lives through.
struct Watch {
    proof: Arc<Mutex<Proof>>,
    returned: Arc<AtomicUsize>,
    began: Instant,
}

impl Observer for Watch {
    fn sent(&mut self, seq: u64, _order: &Order) {
        lock(&self.proof).sent(seq);
    }

    fn event(&mut self, event: &Event, world: &LocalWorld) {
        let now_ms = self.began.elapsed().as_millis() as u64;
        lock(&self.proof).event(now_ms, event, world, PLACE_KEPT_MS);
        if matches!(event, Event::Welcomed { .. }) {
            self.returned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Plays like the bot inside, and asks for the inventory whenever it is let in.
struct Asking<B>(B);

impl<B: Bot> Bot for Asking<B> {
    fn act(&mut self, now_ms: u64, world: &LocalWorld, cause: Cause<'_>, hands: &mut Hands) {
        if let Cause::Event(Event::Welcomed { .. }) = cause {
            hands.order(Order::Inventory);
        }
        self.0.act(now_ms, world, cause, hands);
    }
}
