//! Runs cases one after the other and tells of each that it passed, failed, or was not run and why.

use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use uo_server::store::scylla::{Access, Place, ScyllaStore, create};

use crate::ring::Ring;

/// A case that hangs has failed. Whatever it calls gives up before, and says why.
const CASE_TIME: Duration = Duration::from_secs(600);

/// What a case cannot do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Any.
    Database,
    /// One node, so that everything goes through a proxy in front of it.
    OneNode,
    /// Nodes that may be disturbed.
    Ring,
    /// The same, and so many replicas that one may be missing.
    RingOfThree,
}

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A case by its name.
pub struct Case {
    name: String,
    needs: Needs,
    body: Box<dyn Fn(Arc<Bench>) -> Running>,
}

impl Case {
    /// A case of this name without its prefix.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        name: &str,
        needs: Needs,
        body: impl Fn(Arc<Bench>) -> F + 'static,
    ) -> Case {
        Case {
            name: format!("scylla_contract::{name}"),
            needs,
            body: Box::new(move |bench| Box::pin(body(bench))),
        }
    }
}

/// The database under test, in a keyspace of this run.
pub struct Bench {
    /// Where it is.
    pub access: Access,
    /// Replicas of each row.
    pub replicas: u8,
    /// How many nodes it has, up or not.
    pub nodes: usize,
    /// What may be done to them.
    pub ring: Option<Ring>,
    /// The store.
    pub store: Arc<ScyllaStore>,
    /// For what no store does.
    pub session: Session,
}

impl Bench {
    async fn set_up(hosts: &str) -> anyhow::Result<Bench> {
        let replicas = match std::env::var("UO_SCYLLA_RF") {
            Ok(text) => text.parse()?,
            Err(_) => 1,
        };
        let access = Access {
            place: Place::parse(&format!("{hosts}/{}", a_keyspace()))?,
            login: None,
            translate: Vec::new(),
        };
        let session = SessionBuilder::new()
            .known_nodes(&access.place.hosts)
            .build()
            .await?;
        let made = create(&access, replicas).await?;
        assert!(made.keyspace, "the keyspace is a new one");
        let store = Arc::new(ScyllaStore::open(access.clone()).await?);
        Ok(Bench {
            nodes: session.get_cluster_state().get_nodes_info().len(),
            access,
            replicas,
            ring: Ring::from_environment(),
            store,
            session,
        })
    }

    /// Drops what this run made.
    async fn tear_down(&self) {
        self.drop_keyspace(&self.access.place.keyspace).await;
    }

    /// Drops a keyspace of this run.
    pub async fn drop_keyspace(&self, keyspace: &str) {
        let text = format!("DROP KEYSPACE IF EXISTS {keyspace}");
        if let Err(error) = self.session.query_unpaged(text, ()).await {
            eprintln!("keyspace {keyspace} is left behind: {error}");
        }
    }

    /// Why a case cannot be run; none: it can.
    fn lacks(&self, needs: Needs) -> Option<&'static str> {
        let (ring, one_node) = (self.ring.is_some(), self.nodes == 1);
        match needs {
            Needs::OneNode if !one_node => Some("it needs a database of one node"),
            Needs::Ring | Needs::RingOfThree if !ring => {
                Some("UO_SCYLLA_NODES names no nodes that may be disturbed")
            }
            Needs::RingOfThree if self.replicas < 3 => Some("it needs UO_SCYLLA_RF of 3"),
            _ => None,
        }
    }
}

/// A name that no other run has.
pub fn a_keyspace() -> String {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("felucca_test_{hex}")
}

/// Runs those whose names contain one of the words given, or all.
pub fn run(cases: &[Case], arguments: &[String]) -> ExitCode {
    let list = arguments.iter().any(|argument| argument == "--list");
    let words: Vec<_> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let wanted = |case: &Case| {
        words.is_empty() || words.iter().any(|word| case.name.contains(word.as_str()))
    };
    let chosen: Vec<_> = cases.iter().filter(|case| wanted(case)).collect();
    if list {
        chosen
            .iter()
            .for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    let mut tally = Tally::default();
    println!("\nrunning {} tests", chosen.len());
    if !chosen.is_empty() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(run_all(&chosen, &mut tally));
    }
    let word = if tally.failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {} passed; {} failed; {} ignored; 0 measured; {} filtered out",
        tally.passed,
        tally.failed,
        tally.not_run,
        cases.len() - chosen.len()
    );
    match tally.failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What a case said when it panicked.
fn reason(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else {
        return "it was cancelled".to_owned();
    };
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked".to_owned())
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    not_run: usize,
}

async fn run_all(cases: &[&Case], tally: &mut Tally) {
    let Ok(hosts) = std::env::var("UO_SCYLLA") else {
        for case in cases {
            println!(
                "test {} ... ignored, NOT RUN: UO_SCYLLA names no database",
                case.name
            );
        }
        tally.not_run = cases.len();
        return;
    };
    let bench = match Bench::set_up(&hosts).await {
        Ok(bench) => Arc::new(bench),
        Err(error) => {
            println!("the database of UO_SCYLLA={hosts} cannot be used: {error:#}");
            tally.failed = cases.len();
            return;
        }
    };
    for case in cases {
        if let Some(why) = bench.lacks(case.needs) {
            println!("test {} ... ignored, NOT RUN: {why}", case.name);
            tally.not_run += 1;
            continue;
        }
        let begun = Instant::now();
        let outcome = tokio::spawn(tokio::time::timeout(CASE_TIME, (case.body)(bench.clone())));
        let why = match outcome.await {
            Ok(Ok(())) => None,
            Ok(Err(_)) => Some("it took too long".to_owned()),
            Err(error) => Some(reason(error)),
        };
        let took = begun.elapsed().as_secs_f64();
        match why {
            None => {
                println!("test {} ... ok ({took:.1} s)", case.name);
                tally.passed += 1;
            }
            Some(why) => {
                println!("test {} ... FAILED ({took:.1} s): {why}", case.name);
                tally.failed += 1;
            }
        }
    }
    bench.tear_down().await;
}
