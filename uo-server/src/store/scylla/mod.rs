//! A store for clusters: ScyllaDB, or Apache Cassandra 4.1 and 5.0, over the `scylla` driver.
//!
//! Reading order:
//! - [`place`]: where it is; [`schema`]: its tables; [`statements`]: all that is ever sent;
//! - [`registers`], [`stamped`], [`expiring`]: what each request sends, by the kind of its table;
//! - [`columns`]: answers, by the names of their columns; [`failure`]: what an error says about the request;
//! - [`session`]: what the driver may do; [`routing`]: where compare-and-sets go; [`lane`]: how many, and how long;
//! - [`probe`]: what is tried before a node starts.

mod columns;
mod expiring;
mod failure;
mod lane;
mod place;
mod probe;
mod registers;
mod routing;
mod schema;
mod session;
mod stamped;
mod statements;

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;

use self::columns::{Columns, rows};
use self::failure::Sent;
use self::lane::{Lane, Link};
use self::session::Profiles;
use self::statements::Statements;
use super::{Reply, Request, Store, StoreError};
use crate::limits::{
    BEAT_TIMEOUT_MS, STORE_BULK_IN_FLIGHT_MAX, STORE_CAS_IN_FLIGHT_MAX, STORE_CAS_TIMEOUT_MS,
    STORE_PLAIN_TIMEOUT_MS, STORE_PULSE_IN_FLIGHT_MAX, STORE_RECONNECT_MS, STORE_SCAN_TIMEOUT_MS,
    STORE_START_MS,
};

pub use place::{Place, PlaceError};
pub use schema::Made;

const BEAT_TIMEOUT: Duration = Duration::from_millis(BEAT_TIMEOUT_MS);
const PLAIN_TIMEOUT: Duration = Duration::from_millis(STORE_PLAIN_TIMEOUT_MS);
const SCAN_TIMEOUT: Duration = Duration::from_millis(STORE_SCAN_TIMEOUT_MS);
const CAS_TIMEOUT: Duration = Duration::from_millis(STORE_CAS_TIMEOUT_MS);
const START: Duration = Duration::from_millis(STORE_START_MS);

/// For so long a database that is slow to begin with is asked again.
const PATIENCE: Duration = Duration::from_millis(STORE_START_MS / 2);
const PAUSE: Duration = Duration::from_millis(STORE_RECONNECT_MS);

type Answer = Result<Reply, StoreError>;

/// The database, and how to log in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// Where it is.
    pub place: Place,
    /// For a database that asks who is there.
    pub login: Option<Login>,
    /// Where nodes of the database are reached, by the address that they tell of themselves. Empty: right there. With one,
    /// only nodes that are named are reached at all.
    pub translate: Vec<(SocketAddr, SocketAddr)>,
}

/// A user of the database.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its password, which is never shown.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({})", self.user)
    }
}

/// Why the database is of no use, in one line that says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum OpenError {
    #[error("no database answers at {0}: {1}")]
    Unreachable(Place, String),
    #[error("{0} has no keyspace `{ks}`; make it with `uo-server schema --store {0}`", ks = .0.keyspace)]
    NoKeyspace(Place),
    #[error("{0} lacks the tables {1}; make them with `uo-server schema --store {0}`")]
    NoTables(Place, String),
    #[error("the tables in {0} are of another program or version: {1}")]
    OtherTables(Place, String),
    #[error("the database did not say or change its tables: {0}")]
    Schema(String),
    #[error(
        "keyspace `{keyspace}` keeps {replicas} replicas and needs {needed} of them, but the database has {nodes} node(s) \
         up; start more, or make another keyspace with fewer (UO_SCYLLA_RF)"
    )]
    TooFewNodes {
        keyspace: String,
        replicas: usize,
        needed: usize,
        nodes: usize,
    },
    #[error("{0} takes requests and does not answer them: {1}")]
    NoAnswer(Place, String),
    #[error("the database does not carry out compare-and-sets: {0}")]
    NoCas(String),
    #[error("the database does not keep to the timestamps of writes: {0}")]
    NoStamps(String),
    #[error(
        "a row with a time to live of {ttl_s} s cannot be read back: the clocks of the database nodes are wrong ({why})"
    )]
    NoTtl { ttl_s: u32, why: String },
    #[error(
        "the clocks of the database nodes {one} and {other} differ by {apart_ms} ms, so rows with a time to live vanish too \
         early; set them by NTP"
    )]
    Clocks {
        one: String,
        other: String,
        apart_ms: u64,
    },
    #[error("{0} did not answer a first round of requests in {1} s")]
    Slow(Place, u64),
}

/// See the module. Clones would share nothing: it is kept in an `Arc`.
pub struct ScyllaStore {
    /// Beats, what they show, and lives: over connections of their own, so that nothing else delays them.
    pulse: Lane,
    /// Compare-and-sets and serial reads of claims.
    claims: Lane,
    /// Everything else.
    bulk: Lane,
    statements: Statements,
    access: Access,
}

/// Makes the keyspace, with so many replicas, and those tables that are missing.
pub async fn create(access: &Access, replicas: u8) -> Result<Made, OpenError> {
    let link = link(access, &Profiles::new(), NonZeroUsize::MIN).await?;
    schema::create(&link.session(), &access.place, replicas).await
}

async fn link(
    access: &Access,
    profiles: &Profiles,
    connections: NonZeroUsize,
) -> Result<Arc<Link>, OpenError> {
    let slow = || OpenError::Unreachable(access.place.clone(), "no answer in time".into());
    let opening = Link::open(access, profiles, connections);
    match tokio::time::timeout(START, opening).await {
        Ok(Ok(link)) => Ok(link),
        Ok(Err(error)) => {
            let place = access.place.clone();
            Err(OpenError::Unreachable(place, failure::no_session(&error)))
        }
        Err(_) => Err(slow()),
    }
}

impl ScyllaStore {
    /// Connects, verifies the tables, prepares every statement and tries what a node relies on, all in bounded time.
    pub async fn open(access: Access) -> Result<ScyllaStore, OpenError> {
        let profiles = Profiles::new();
        let few = NonZeroUsize::MIN;
        let bulk = link(&access, &profiles, few.saturating_add(1)).await?;
        let pulse = link(&access, &profiles, few).await?;
        let session = bulk.session();
        let begun = Instant::now();
        let first = async {
            schema::verify(&session, &access.place).await?;
            let statements = Statements::prepare(&session, &profiles, &access.place).await?;
            let store = ScyllaStore {
                pulse: Lane::new(pulse, STORE_PULSE_IN_FLIGHT_MAX),
                claims: Lane::new(bulk.clone(), STORE_CAS_IN_FLIGHT_MAX),
                bulk: Lane::new(bulk, STORE_BULK_IN_FLIGHT_MAX),
                statements,
                access: access.clone(),
            };
            while let Err(error) = probe::probe(&store, &session).await {
                match error {
                    OpenError::NoAnswer(..) if begun.elapsed() < PATIENCE => {
                        tokio::time::sleep(PAUSE).await;
                    }
                    wrong => return Err(wrong),
                }
            }
            Ok(store)
        };
        match tokio::time::timeout(START, first).await {
            Ok(opened) => opened,
            Err(_) => Err(OpenError::Slow(access.place.clone(), START.as_secs())),
        }
    }
}

impl Store for ScyllaStore {
    async fn call(&self, request: Request) -> Result<Reply, StoreError> {
        match request {
            Request::LifeRead { boot } => self.life(boot).await.map(Reply::Life),
            Request::LifeBegin { node, boot } => self.life_begin(&node, boot).await,
            Request::LifeCas { boot, from, to } => self.life_cas(boot, from, to).await,
            Request::ClaimRead { right, serial } => self.claim(right, serial).await,
            Request::LeasesRead => self.leases().await,
            Request::ClaimCas { right, seen, to } => self.claim_cas(right, seen, to).await,
            Request::WorldPin { row } => self.world_pin(row).await,
            Request::FaultRead { region } => self.fault(region).await.map(Reply::Fault),
            Request::FaultCas { region, seen, to } => self.fault_cas(region, seen, to).await,
            Request::CharacterRead { char_id } => self.character(char_id).await,
            Request::CharacterWrite {
                char_id,
                stamp,
                row,
            } => self.character_write(char_id, stamp, row).await,
            Request::CharacterSeal {
                char_id,
                number,
                row,
            } => self.character_seal(char_id, number, row).await,
            Request::ObjectsRead { region } => self.objects(region).await,
            Request::ObjectsWrite {
                region,
                stamp,
                rows,
            } => self.objects_write(region, stamp, rows).await,
            Request::ObjectsSeal {
                region,
                number,
                rows,
            } => self.objects_seal(region, number, rows).await,
            Request::SessionPut { token, row, ttl_s } => self.session_put(token, row, ttl_s).await,
            Request::SessionRead { token } => self.session(token).await,
            Request::SessionDelete { token } => self.session_delete(token).await,
            Request::NodeBeat {
                node,
                boot,
                beat,
                row,
                ttl_s,
            } => self.node_beat(node, boot, beat, row, ttl_s).await,
            Request::NodesRead => self.nodes().await,
            Request::DemandPut { regions, ttl_s } => self.demand_put(regions, ttl_s).await,
            Request::DemandRead => self.demand().await,
        }
    }
}

/// Every row of a read, however many pages they fill: each page within the time of a read, all of them within that of a
/// scan.
async fn pages(
    lane: &Lane,
    statement: &PreparedStatement,
    key: impl SerializeRow,
) -> Result<Vec<Columns>, StoreError> {
    let all = async {
        let mut found = Vec::new();
        let mut state = PagingState::start();
        loop {
            let work =
                async |session: &Session| session.execute_single_page(statement, &key, state).await;
            let (page, next) = lane.run(PLAIN_TIMEOUT, Sent::Repeatedly, work).await?;
            found.extend(rows(page)?);
            match next.into_paging_control_flow() {
                ControlFlow::Break(()) => return Ok(found),
                ControlFlow::Continue(next) => state = next,
            }
        }
    };
    let late = |_| StoreError::Unknown("a scan took too long".into());
    tokio::time::timeout(SCAN_TIMEOUT, all)
        .await
        .map_err(late)?
}
