//! What operators see, over HTTP.
//!
//! Reading order: this file has the routes; [`drain`] moving a region; [`crossings`] what became of players on their way;
//! [`metrics`] the Prometheus text; [`meters`] what is measured.

mod crossings;
mod drain;
pub mod meters;
pub mod metrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use crossbeam_channel::Sender;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex, Notify, oneshot};
use uo_proto::RegionId;

use crate::clock::Clock;
use crate::gateway::connection::Hub;
use crate::gateway::mailbox::GatewayMail;
use crate::identity::NodeName;
use crate::peer::local::LocalTransport;
use crate::peer::tcp::TcpTransport;
use crate::sim::mailbox::SimMail;
use crate::sim::member;
use crate::sim::state::Detail;
use crate::store::any::AnyStore;
use crate::store::row::Role;
use crate::store::{FaultRow, Reply, Request, Store, StoreError};
use meters::Meters;

/// How long a core may take to answer an observer.
const OBSERVE_WAIT: Duration = Duration::from_secs(2);
/// How often a row that changes meanwhile is looked at again.
const FORGET_TRIES_MAX: u32 = 5;
/// How long an answer of `/state` serves other callers.
const STATE_CACHE: Duration = Duration::from_secs(1);

/// What the routes look at.
pub struct Admin {
    /// The node.
    pub node: NodeName,
    /// What it does.
    pub role: Role,
    /// The thread with the cluster core: the tick thread, where there is a sim.
    pub sim: Sender<SimMail>,
    /// The gateway's thread, if there is one.
    pub gateway: Option<Sender<GatewayMail>>,
    /// The connections.
    pub hub: Arc<Hub>,
    /// The way between the cores.
    pub local: Arc<LocalTransport>,
    /// The links to other nodes, if there can be any.
    pub links: Option<Arc<TcpTransport>>,
    /// What is measured.
    pub meters: Arc<Meters>,
    /// The store.
    pub store: AnyStore,
    /// Rung to stop the node.
    pub stop: Arc<Notify>,
    /// Set once a stop has begun.
    pub stopping: Arc<AtomicBool>,
    /// The node's clock, which its cores' times are of.
    pub clock: Clock,
    /// The latest `/state`, and when it was made.
    pub cache: Mutex<Option<(Instant, Value)>>,
}

/// The routes.
pub fn router(admin: Arc<Admin>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/state", get(state))
        .route("/metrics", get(metrics_text))
        .route("/crossings", get(crossings::crossings))
        .route("/shutdown", post(shutdown))
        .route("/release", post(release))
        .route("/drain", post(drain::drain))
        .merge(planted())
        .fallback(async || (StatusCode::NOT_FOUND, Json(json!({"error": "no such page; there are /healthz, /readyz, /state, /metrics, /crossings, POST /drain, POST /release and POST /shutdown"}))))
        .with_state(admin)
}

/// What only a build with planted faults has: `POST /panic` ends the tick thread, `?region=N` by that region's tick.
#[cfg(feature = "planted-bugs")]
fn planted() -> Router<Arc<Admin>> {
    #[derive(Deserialize)]
    struct PanicQuery {
        region: Option<u32>,
    }
    let panic = async |State(admin): State<Arc<Admin>>, Query(query): Query<PanicQuery>| {
        let _ = admin
            .sim
            .try_send(SimMail::Panic(query.region.map(RegionId)));
        StatusCode::ACCEPTED
    };
    Router::new().route("/panic", post(panic))
}

#[cfg(not(feature = "planted-bugs"))]
fn planted() -> Router<Arc<Admin>> {
    Router::new()
}

/// Alive: always `ok`, because an overloaded server must not be restarted for it.
async fn healthz(State(admin): State<Arc<Admin>>) -> Json<Value> {
    let connections = admin.hub.open.load(Ordering::Relaxed);
    Json(json!({
        "status": "ok",
        "level": "normal",
        "connections": connections,
        "accepting": !admin.stopping.load(Ordering::Relaxed),
    }))
}

/// Ready to take players: every region is held, and no stop has begun.
async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    if admin.stopping.load(Ordering::Relaxed) {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({"ready": false, "why": "stopping"})),
        )
            .into_response();
    }
    let Some(member) = admin.observe_sim(Detail::Summary).await else {
        return unavailable();
    };
    if member["ready"] == json!(true) {
        return Json(json!({"ready": true})).into_response();
    }
    let why = match (&member["fenced"], &member["life"]) {
        _ if admin.role == Role::Gateway => "not every sim can be reached yet",
        (Value::Bool(true), Value::Number(life)) if life.as_u64() == Some(0) => {
            "this boot has not begun its life yet"
        }
        (Value::Bool(true), _) => "the store does not answer, and the world stands still",
        _ => "regions are still being taken",
    };
    let why = json!({"ready": false, "why": why});
    (StatusCode::SERVICE_UNAVAILABLE, Json(why)).into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateQuery {
    full: Option<String>,
    characters: Option<String>,
    fresh: Option<String>,
}

impl StateQuery {
    /// How much is asked for, and whether it has to be of this moment.
    fn read(&self) -> Result<(Detail, bool), String> {
        let full = is_said("full", self.full.as_deref())?;
        let characters = is_said("characters", self.characters.as_deref())?;
        let fresh = is_said("fresh", self.fresh.as_deref())?;
        let detail = match (full, characters) {
            (true, _) => Detail::Full,
            (false, true) => Detail::Characters,
            (false, false) => Detail::Summary,
        };
        Ok((detail, fresh))
    }
}

/// A parameter that is said by naming it.
fn is_said(name: &str, value: Option<&str>) -> Result<bool, String> {
    match value {
        None | Some("false") => Ok(false),
        Some("" | "true") => Ok(true),
        Some(other) => Err(format!("{name}={other:?}: it is `true`, `false` or absent")),
    }
}

async fn state(State(admin): State<Arc<Admin>>, Query(query): Query<StateQuery>) -> Response {
    let (detail, fresh) = match query.read() {
        Ok(read) => read,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
        }
    };
    if detail != Detail::Summary || fresh {
        return admin
            .state(detail)
            .await
            .map_or_else(unavailable, |state| Json(state).into_response());
    }
    let mut cache = admin.cache.lock().await;
    if let Some((at, state)) = &*cache
        && at.elapsed() < STATE_CACHE
    {
        return Json(state.clone()).into_response();
    }
    let Some(state) = admin.state(Detail::Summary).await else {
        return unavailable();
    };
    *cache = Some((Instant::now(), state.clone()));
    Json(state).into_response()
}

async fn metrics_text(State(admin): State<Arc<Admin>>) -> Response {
    let (member, gateway) = tokio::join!(
        admin.observe_sim(Detail::Summary),
        admin.observe_gateway(false)
    );
    let (Some(member), Some(gateway)) = (member, gateway) else {
        return unavailable();
    };
    let text = metrics::render(&admin, &member, &gateway);
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn shutdown(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Response {
    if let Some(refusal) = refuse_detours(&headers) {
        return refusal;
    }
    admin.stop.notify_one();
    (StatusCode::ACCEPTED, Json(json!({"stopping": true}))).into_response()
}

/// A browser that was lured here sends an Origin; an operator's tool does not.
fn refuse_detours(headers: &HeaderMap) -> Option<Response> {
    let is_detour = headers.contains_key(header::ORIGIN) || headers.contains_key("x-forwarded-for");
    let error = "this is asked for directly, not through a page or a proxy";
    is_detour.then(|| (StatusCode::FORBIDDEN, Json(json!({ "error": error }))).into_response())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionQuery {
    region: Option<String>,
}

/// Lets a region that stands still go on. The store forgets its panics first, so that it is not found again after a move.
async fn release(
    State(admin): State<Arc<Admin>>,
    Query(query): Query<RegionQuery>,
    headers: HeaderMap,
) -> Response {
    if let Some(refusal) = refuse_detours(&headers) {
        return refusal;
    }
    let Some(region) = query.region.as_deref().and_then(|id| id.parse().ok()) else {
        let error = "say which: /release?region=N, N as `quarantined` in /state names it";
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    };
    let Some(member) = admin.observe_sim(Detail::Summary).await else {
        return unavailable();
    };
    let stands_still = member["sim"]["quarantined"].as_array();
    if !stands_still.is_some_and(|regions| regions.contains(&json!(region))) {
        let error = format!("region {region} does not stand still on this node");
        return (StatusCode::CONFLICT, Json(json!({ "error": error }))).into_response();
    }
    let region = RegionId(region);
    if let Err(error) = forget_panics(&admin.store, region).await {
        let error = error.to_string();
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            Json(json!({ "error": error })),
        )
            .into_response();
    }
    let released = SimMail::Input(member::Input::Release { region });
    if admin.sim.try_send(released).is_err() {
        return unavailable();
    }
    (StatusCode::OK, Json(json!({"released": region}))).into_response()
}

/// Whoever else changes the row at the same moment has seen another panic: it is looked at again.
async fn forget_panics(store: &AnyStore, region: RegionId) -> Result<(), StoreError> {
    let mut seen = match store.call(Request::FaultRead { region }).await? {
        Reply::Fault(row) => row,
        _ => None,
    };
    for _ in 0..FORGET_TRIES_MAX {
        let to = FaultRow::default();
        match store.call(Request::FaultCas { region, seen, to }).await? {
            Reply::FaultCas {
                applied: false,
                row,
            } => seen = row,
            _ => return Ok(()),
        }
    }
    Err(StoreError::Refused(
        "the region's panics keep changing".into(),
    ))
}

fn unavailable() -> Response {
    let error = json!({"error": "a core of this node does not answer"});
    (StatusCode::SERVICE_UNAVAILABLE, Json(error)).into_response()
}

impl Admin {
    async fn observe_sim(&self, detail: Detail) -> Option<Value> {
        let (answer, state) = oneshot::channel();
        self.sim
            .try_send(SimMail::Observe { detail, answer })
            .ok()?;
        tokio::time::timeout(OBSERVE_WAIT, state).await.ok()?.ok()
    }

    /// Null, if there is no gateway here.
    async fn observe_gateway(&self, full: bool) -> Option<Value> {
        let Some(gateway) = &self.gateway else {
            return Some(Value::Null);
        };
        let (answer, state) = oneshot::channel();
        gateway
            .try_send(GatewayMail::Observe { full, answer })
            .ok()?;
        tokio::time::timeout(OBSERVE_WAIT, state).await.ok()?.ok()
    }

    async fn state(&self, detail: Detail) -> Option<Value> {
        let (member, gateway) = tokio::join!(
            self.observe_sim(detail),
            self.observe_gateway(detail == Detail::Full)
        );
        let (mut member, gateway) = (member?, gateway?);
        let tick = self.meters.tick.quantiles();
        Some(json!({
            "node": self.node,
            "boot": member["boot"],
            "life": member["life"],
            "fenced": member["fenced"],
            "ready": member["ready"],
            "role": self.role,
            "level": "normal",
            "stopping": self.stopping.load(Ordering::Relaxed),
            "tick_ms": {"p50": tick.p50 * 1e3, "p99": tick.p99 * 1e3, "max": tick.max * 1e3},
            "ticks": {
                "total": self.meters.ticks.load(Ordering::Relaxed),
                "late": self.meters.ticks_late.load(Ordering::Relaxed),
            },
            "peers": self.links.as_ref().map(|links| links.observe()),
            "cluster": member["cluster"].take(),
            "sim": member["sim"].take(),
            "gateway": gateway,
        }))
    }
}
