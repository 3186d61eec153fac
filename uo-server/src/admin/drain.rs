//! `POST /drain`: a region is moved to another node because an operator wants it there; answered when that is done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uo_proto::RegionId;

use super::{Admin, OBSERVE_WAIT, refuse_detours, unavailable};
use crate::cluster::core::DrainRefusal;
use crate::crossing::{self, GapCause};
use crate::identity::{Holder, NodeName};
use crate::limits::{CROSSINGS_KEPT_MAX, DRAIN_TIMEOUT_MS};
use crate::sim::mailbox::SimMail;
use crate::sim::state::Detail;

/// How often it is looked whether the region has moved.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// For how long at most: as long as a drain waits, and time to take the region back.
const LOOK_MAX: Duration = Duration::from_millis(DRAIN_TIMEOUT_MS + 4_000);

/// What is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    region: Option<String>,
    to: Option<String>,
}

pub(super) async fn drain(
    State(admin): State<Arc<Admin>>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    if let Some(refusal) = refuse_detours(&headers) {
        return refusal;
    }
    let Some(region) = asked.region.as_deref().and_then(|id| id.parse().ok()) else {
        let error =
            "say which: /drain?region=N&to=NODE; without `to` it goes to the best of the others";
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
    };
    let region = RegionId(region);
    let begun = Instant::now();
    match admin.wish(region, asked.to.as_deref()).await {
        None => unavailable(),
        Some(Err(refusal)) => refuse(&refusal),
        Some(Ok(to)) => admin.follow(region, &to, begun).await,
    }
}

fn refuse(refusal: &DrainRefusal) -> Response {
    let status = match refusal {
        DrainRefusal::NoSuchRegion(_) | DrainRefusal::NoSuchNode(_) => StatusCode::NOT_FOUND,
        _ => StatusCode::CONFLICT,
    };
    let mut error = json!({ "error": refusal.to_string() });
    if let DrainRefusal::HeldBy(node) = refusal {
        error["holder"] = json!(node);
    }
    (status, Json(error)).into_response()
}

/// Whether the state of a sim says that it holds a region, or has characters of it on their way.
fn is_here(member: &Value, region: RegionId) -> (bool, bool) {
    let holds = |regions: &Vec<Value>| regions.iter().any(|it| it["id"] == json!(region));
    let draining = member["sim"]["draining"].as_array();
    let is_draining = draining.is_some_and(|regions| regions.contains(&json!(region)));
    let moves = is_draining || member["sim"]["gauges"]["characters_outgoing"] != json!(0);
    let holds = member["sim"]["regions"].as_array().is_some_and(holds);
    (holds, moves)
}

impl Admin {
    /// None: the sim does not answer.
    async fn wish(
        &self,
        region: RegionId,
        to: Option<&str>,
    ) -> Option<Result<Holder, DrainRefusal>> {
        let (answer, wished) = oneshot::channel();
        let to = to.map(NodeName::from);
        let mail = SimMail::Drain { region, to, answer };
        self.sim.try_send(mail).ok()?;
        tokio::time::timeout(OBSERVE_WAIT, wished).await.ok()?.ok()
    }

    /// Waits until the region has moved, and its players with it, or stays.
    async fn follow(&self, region: RegionId, to: &Holder, begun: Instant) -> Response {
        let mut moved_after = None;
        while begun.elapsed() < LOOK_MAX {
            let Some(member) = self.observe_sim(Detail::Summary).await else {
                return unavailable();
            };
            let (holds, moves) = is_here(&member, region);
            if holds && !moves {
                let error = format!("{} did not take the region, and it stays here", to.node);
                return (StatusCode::CONFLICT, Json(json!({ "error": error }))).into_response();
            }
            if !holds {
                moved_after.get_or_insert(begun.elapsed());
            }
            if !holds && !moves {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let Some(moved_after) = moved_after else {
            let error = format!("{} has not answered yet; see /state", to.node);
            return (StatusCode::GATEWAY_TIMEOUT, Json(json!({ "error": error }))).into_response();
        };
        let gap_ms = self.longest_gap_ms(region, begun.elapsed()).await;
        let moved = json!({
            "region": region,
            "to": to.node,
            "took_ms": moved_after.as_millis() as u64,
            "with_players_ms": begun.elapsed().as_millis() as u64,
            "player_gap_ms_max": gap_ms,
        });
        (StatusCode::OK, Json(moved)).into_response()
    }

    /// The longest time for which one of its players was out of every battle, as this node saw it; null: nobody was there.
    async fn longest_gap_ms(&self, region: RegionId, within: Duration) -> Option<u64> {
        let query = crossing::Query {
            most: CROSSINGS_KEPT_MAX,
            cause: Some(GapCause::Drain),
            char_id: None,
        };
        let now = self.clock.now();
        let since = now.saturating_sub(within.as_millis() as u64);
        let crossings = self.of_sim(&query).await?;
        let of_it = crossings
            .iter()
            .filter(|it| it.from == Some(region) && it.at >= since);
        of_it.filter_map(out_ms).max()
    }
}

/// How long a character was in no battle.
fn out_ms(crossing: &crossing::Crossing) -> Option<u64> {
    Some(crossing.leave_ms? + crossing.accept_ms?)
}
