//! `/crossings`: what the cores of this node remember of players on their way, joined.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query as Parameters, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use uo_proto::CharId;

use super::{Admin, OBSERVE_WAIT, unavailable};
use crate::Millis;
use crate::crossing::{Crossing, GapCause, Query, merge};
use crate::gateway::mailbox::GatewayMail;
use crate::limits::CROSSINGS_KEPT_MAX;
use crate::sim::mailbox::SimMail;

/// How many are shown if nobody says.
const SHOWN: usize = 100;
/// Parts of one crossing that one node can have: source, destination, gateway.
const PARTS: usize = 3;

/// What may be asked for.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    n: Option<String>,
    cause: Option<String>,
    player: Option<String>,
}

impl Asked {
    /// The question, or a sentence about what is wrong with it.
    fn query(&self) -> Result<Query, String> {
        let most = match &self.n {
            None => SHOWN,
            Some(text) => {
                let most = text.parse().ok();
                let most = most.filter(|most| (1..=CROSSINGS_KEPT_MAX).contains(most));
                most.ok_or_else(|| format!("n={text:?}: a number from 1 to {CROSSINGS_KEPT_MAX}"))?
            }
        };
        let cause = self.cause.as_deref().map(|text| {
            let known = GapCause::ALL.into_iter().find(|it| it.name() == text);
            let names = GapCause::ALL.map(GapCause::name).join(", ");
            known.ok_or_else(|| format!("cause={text:?}: one of {names}"))
        });
        // An id, or a name: names are accounts.
        let char_id = self.player.as_deref().map(|text| {
            let id = text.parse().map(CharId);
            id.unwrap_or_else(|_| CharId::of_name(text))
        });
        Ok(Query {
            most,
            cause: cause.transpose()?,
            char_id,
        })
    }
}

pub(super) async fn crossings(
    State(admin): State<Arc<Admin>>,
    Parameters(asked): Parameters<Asked>,
) -> Response {
    let query = match asked.query() {
        Ok(query) => query,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response();
        }
    };
    // What is joined must not be cut apart first.
    let parts = Query {
        most: query.most.saturating_mul(PARTS).min(CROSSINGS_KEPT_MAX),
        ..query.clone()
    };
    let (sim, gateway) = tokio::join!(admin.of_sim(&parts), admin.of_gateway(&parts));
    let (Some(mut parts), Some(gateway)) = (sim, gateway) else {
        return unavailable();
    };
    parts.extend(gateway);
    let now = admin.clock.now();
    let shown: Vec<Value> = merge(parts)
        .iter()
        .take(query.most)
        .map(|crossing| shown(crossing, now))
        .collect();
    Json(json!({"node": admin.node, "crossings": shown})).into_response()
}

/// A crossing with its age instead of a time that means nothing elsewhere.
fn shown(crossing: &Crossing, now: Millis) -> Value {
    let mut shown = json!(crossing);
    shown["ago_ms"] = now.saturating_sub(crossing.at).into();
    shown
}

impl Admin {
    pub(super) async fn of_sim(&self, query: &Query) -> Option<Vec<Crossing>> {
        let (answer, crossings) = oneshot::channel();
        let query = query.clone();
        let mail = SimMail::Crossings { query, answer };
        self.sim.try_send(mail).ok()?;
        tokio::time::timeout(OBSERVE_WAIT, crossings)
            .await
            .ok()?
            .ok()
    }

    /// None of them, if there is no gateway here.
    async fn of_gateway(&self, query: &Query) -> Option<Vec<Crossing>> {
        let Some(gateway) = &self.gateway else {
            return Some(Vec::new());
        };
        let (answer, crossings) = oneshot::channel();
        let query = query.clone();
        let mail = GatewayMail::Crossings { query, answer };
        gateway.try_send(mail).ok()?;
        tokio::time::timeout(OBSERVE_WAIT, crossings)
            .await
            .ok()?
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(n: &str, cause: &str, player: &str) -> Asked {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Asked {
            n: given(n),
            cause: given(cause),
            player: given(player),
        }
    }

    #[test]
    fn a_question_is_understood_or_answered_with_what_is_expected() {
        let query = asked("", "", "").query().unwrap();
        assert_eq!(
            (query.most, query.cause, query.char_id),
            (SHOWN, None, None)
        );
        let query = asked("7", "drain", "5").query().unwrap();
        assert_eq!((query.most, query.cause), (7, Some(GapCause::Drain)));
        assert_eq!(query.char_id, Some(CharId(5)));
        let query = asked("", "", "anna").query().unwrap();
        assert_eq!(query.char_id, Some(CharId::of_name("anna")));
        for (n, cause) in [("0", ""), ("10001", ""), ("x", ""), ("", "bordr")] {
            assert!(asked(n, cause, "").query().is_err());
        }
    }

    #[test]
    fn a_crossing_is_shown_with_its_age_and_all_its_names() {
        let crossing = Crossing::new(40, CharId(1), 2, GapCause::Border);
        let shown = shown(&crossing, 100);
        assert_eq!(shown["ago_ms"], 60);
        assert_eq!(shown["cause"], "border");
        assert_eq!(shown["outcome"], "arrived");
        for name in ["leave", "claim", "seal", "accept", "first_frame", "gap"] {
            assert!(
                shown.get(format!("{name}_ms")).is_some_and(Value::is_null),
                "{name}"
            );
        }
    }
}
