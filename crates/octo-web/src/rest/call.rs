//! `POST /tools/{name}` and `POST /prompts/{name}`: one call through the hub.

use super::Rest;
use super::ask::Ask;
use super::metadata::Target;
use super::reply::reply;
use axum::extract::State;
use axum::response::Response;
use octo_hub::Request;
use octo_model::{Frontend, JsonObject, Method, Operation};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub async fn tool(State(rest): State<Arc<Rest>>, ask: Ask) -> Response {
    run(&rest, ask, Method::CallTool).await
}

pub async fn prompt(State(rest): State<Arc<Rest>>, ask: Ask) -> Response {
    run(&rest, ask, Method::GetPrompt).await
}

/// A client that goes away drops this future, and with it the call.
async fn run(rest: &Rest, ask: Ask, method: Method) -> Response {
    let cancel = CancellationToken::new();
    let _gone = cancel.clone().drop_guard();
    let request = Request {
        op: Operation {
            method,
            name: ask.name.clone(),
            params: JsonObject::new().with("arguments", ask.arguments),
        },
        caller: ask.look.caller,
        frontend: Frontend::Rest,
        profile: ask.look.profile,
        peer: Arc::clone(&rest.nobody),
        cancel,
        timeout: ask.timeout,
        trace: ask.trace,
    };
    let called = rest.hub.call(request).await;
    let entry = called.entry.as_ref();
    let target = Target {
        member: if method == Method::CallTool { "tool" } else { "prompt" },
        name: entry.map_or(ask.name.as_str(), |entry| &*entry.listed_name),
        server: entry.map(octo_hub::Entry::source_name),
        typed: entry.is_some_and(|entry| entry.item.vouched),
    };
    reply(&called, target)
}
