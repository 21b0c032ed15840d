//! How the hub is doing: for probes, people and Prometheus.

use super::Rest;
use crate::fault::json;
use crate::probe::{Check, CheckState};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use octo_model::{Caller, Json, JsonObject};
use octo_toolkit::{Listing, SourceState as Doing};
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The process is up: that is all a liveness probe may depend on.
pub async fn health() -> Response {
    json(JsonObject::new().with("status", "ok").with("version", VERSION).into())
}

/// Whether the hub is ready: 503 when no call can be made. Callers also see every source and what else was looked at; strangers
/// learn neither names nor versions.
pub async fn ready(State(rest): State<Arc<Rest>>, caller: Option<axum::Extension<Arc<Caller>>>) -> Response {
    let mut checks = rest.probe.own().await;
    let failed = checks.iter().any(|check| check.state == CheckState::Failed);
    let mut response = match caller {
        None => json(JsonObject::new().with("status", if failed { "not_ready" } else { "ready" }).into()),
        Some(caller) => {
            checks.extend(rest.probe.for_caller(&caller).await);
            let sources = rest.hub.sources();
            let status = overall(&checks, sources.iter().map(|(_, _, doing, _)| doing));
            let sources =
                sources.iter().map(|(name, native, doing, lists)| source(name, *native, doing, lists));
            let ready = JsonObject::new()
                .with("status", status)
                .with("version", VERSION)
                .with("checks", list(checks.iter().map(check)))
                .with("sources", list(sources));
            json(ready.into())
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

fn overall<'a>(checks: &[Check], sources: impl Iterator<Item = &'a Doing>) -> &'static str {
    let is = |state: CheckState| checks.iter().any(|check| check.state == state);
    let mut status = if is(CheckState::Degraded) { "degraded" } else { "ready" };
    for doing in sources {
        match doing {
            Doing::Starting if status == "ready" => status = "starting",
            Doing::Down(_) => status = "degraded",
            Doing::Starting | Doing::Ready | Doing::Off(_) => {}
        }
    }
    if is(CheckState::Failed) { "not_ready" } else { status }
}

fn check(check: &Check) -> JsonObject {
    let told = JsonObject::new().with("name", check.name.as_str()).with("state", check.state.as_str());
    match &check.why {
        Some(why) => told.with("why", why.as_str()),
        None => told,
    }
}

fn source(name: &str, native: bool, doing: &Doing, lists: &Listing) -> JsonObject {
    let (word, why) = match doing {
        Doing::Starting => ("starting", None),
        Doing::Ready => ("ready", None),
        Doing::Down(why) => ("down", Some(why)),
        Doing::Off(_) => ("off", None),
    };
    let told = JsonObject::new()
        .with("name", name)
        .with("native", native)
        .with("state", word)
        .with("tools", Json::of(&lists.tools.len()))
        .with("prompts", Json::of(&lists.prompts.len()));
    match why {
        Some(why) => told.with("why", why.as_str()),
        None => told,
    }
}

pub async fn metrics(State(rest): State<Arc<Rest>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], (rest.metrics)()).into_response()
}
