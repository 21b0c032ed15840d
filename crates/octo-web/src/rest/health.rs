//! Health, readiness and metrics.

use super::RestState;
use crate::error_response::json_response;
use crate::readiness::{Check, CheckState};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use octo_model::{Caller, Json, JsonObject};
use octo_toolkit::{Listing, SourceState};
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Liveness: the process is up; nothing else may affect it.
pub async fn health() -> Response {
    json_response(JsonObject::new().with("status", "ok").with("version", VERSION).into())
}

/// Readiness: 503 if no call can be made. Callers also see the checks and the sources that they may list, administrators all
/// with their reasons; unauthenticated clients see neither names nor versions.
pub async fn ready(
    State(rest): State<Arc<RestState>>,
    caller: Option<axum::Extension<Arc<Caller>>>,
) -> Response {
    let mut checks = rest.probe.hub_checks().await;
    let failed = checks.iter().any(|check| check.state == CheckState::Failed);
    let mut response = match caller {
        None => {
            json_response(JsonObject::new().with("status", if failed { "not_ready" } else { "ready" }).into())
        }
        Some(caller) => {
            let is_admin = caller.is_admin();
            if !is_admin {
                checks.iter_mut().for_each(|check| check.reason = None);
            }
            checks.extend(rest.probe.caller_checks(&caller).await);
            let sources = rest.hub.sources_of(&caller).unwrap_or_default();
            let status = overall_status(&checks, sources.iter().map(|(_, _, doing, _)| doing));
            let sources = sources.iter().map(|(name, native, doing, lists)| {
                let mut source = source_object(name, *native, doing, lists);
                if !is_admin {
                    source.remove("reason");
                }
                source
            });
            let ready = JsonObject::new()
                .with("status", status)
                .with("version", VERSION)
                .with("checks", list(checks.iter().map(check_object)))
                .with("sources", list(sources));
            json_response(ready.into())
        }
    };
    if failed {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    response
}

fn list(items: impl Iterator<Item = JsonObject>) -> Json {
    Json::array(&items.map(Json::from).collect::<Vec<_>>())
}

fn overall_status<'a>(checks: &[Check], sources: impl Iterator<Item = &'a SourceState>) -> &'static str {
    let is = |state: CheckState| checks.iter().any(|check| check.state == state);
    let mut status = if is(CheckState::Degraded) { "degraded" } else { "ready" };
    for doing in sources {
        match doing {
            SourceState::Starting if status == "ready" => status = "starting",
            SourceState::Down(_) => status = "degraded",
            SourceState::Starting | SourceState::Ready | SourceState::Off(_) => {}
        }
    }
    if is(CheckState::Failed) { "not_ready" } else { status }
}

fn check_object(check: &Check) -> JsonObject {
    let told = JsonObject::new().with("name", check.name.as_str()).with("state", check.state.as_str());
    let told = match &check.reason {
        Some(why) => told.with("reason", why.as_str()),
        None => told,
    };
    if check.affects.is_empty() { told } else { told.with("affects", Json::of(&check.affects)) }
}

fn source_object(name: &str, native: bool, doing: &SourceState, lists: &Listing) -> JsonObject {
    let (word, why) = match doing {
        SourceState::Starting => ("starting", None),
        SourceState::Ready => ("ready", None),
        SourceState::Down(why) => ("down", Some(why)),
        SourceState::Off(_) => ("off", None),
    };
    let told = JsonObject::new()
        .with("name", name)
        .with("native", native)
        .with("state", word)
        .with("tools", Json::of(&lists.tools.len()))
        .with("prompts", Json::of(&lists.prompts.len()));
    match why {
        Some(why) => told.with("reason", why.as_str()),
        None => told,
    }
}

pub async fn metrics(State(rest): State<Arc<RestState>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (rest.metrics)()).into_response()
}
