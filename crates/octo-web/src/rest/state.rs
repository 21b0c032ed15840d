//! How the hub is doing: for probes, people and Prometheus.

use super::Rest;
use crate::fault::json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;
use octo_model::{Caller, Json, Members};
use octo_toolkit::{Lists, State as Doing};
use std::sync::Arc;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The process is up: that is all a liveness probe may depend on.
pub async fn health() -> Response {
    json(Members::new().with("status", "ok").with("version", VERSION).into())
}

/// Whether the hub is ready. Callers also see every source and how it is doing; strangers learn no names.
pub async fn ready(State(rest): State<Arc<Rest>>, caller: Option<axum::Extension<Arc<Caller>>>) -> Response {
    let sources = rest.hub.sources();
    let status = overall(sources.iter().map(|(_, _, doing, _)| doing));
    let mut ready = Members::new().with("status", status).with("version", VERSION);
    if caller.is_some() {
        let each: Vec<Json> = sources
            .iter()
            .map(|(name, native, doing, lists)| source(name, *native, doing, lists).into())
            .collect();
        ready.set("sources", Json::array(&each));
    }
    json(ready.into())
}

fn overall<'a>(sources: impl Iterator<Item = &'a Doing>) -> &'static str {
    let mut status = "ready";
    for doing in sources {
        match doing {
            Doing::Starting => return "starting",
            Doing::Down(_) => status = "degraded",
            Doing::Ready | Doing::Off(_) => {}
        }
    }
    status
}

fn source(name: &str, native: bool, doing: &Doing, lists: &Lists) -> Members {
    let (word, why) = match doing {
        Doing::Starting => ("starting", None),
        Doing::Ready => ("ready", None),
        Doing::Down(why) => ("down", Some(why)),
        Doing::Off(_) => ("off", None),
    };
    let told = Members::new()
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
