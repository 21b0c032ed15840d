//! `POST /tools/{name}` and `POST /prompts/{name}`: one call through the hub.

use super::RestState;
use super::reply_metadata::CallTarget;
use super::request_extractors::CallRequest;
use super::rest_reply::call_reply;
use axum::extract::State;
use axum::response::Response;
use octo_hub::Request;
use octo_model::{Frontend, JsonObject, Method, Operation};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

pub async fn tool(State(rest): State<Arc<RestState>>, ask: CallRequest) -> Response {
    run_call(&rest, ask, Method::CallTool).await
}

pub async fn prompt(State(rest): State<Arc<RestState>>, ask: CallRequest) -> Response {
    run_call(&rest, ask, Method::GetPrompt).await
}

/// Runs a call. A client that disconnects drops this future, and with it the call.
async fn run_call(rest: &RestState, ask: CallRequest, method: Method) -> Response {
    let cancel = CancellationToken::new();
    let _gone = cancel.clone().drop_guard();
    let request = Request {
        op: Operation {
            method,
            name: ask.name.clone(),
            params: JsonObject::new().with("arguments", ask.arguments),
        },
        caller: ask.view.caller,
        frontend: Frontend::Rest,
        profile: ask.view.profile,
        peer: Arc::clone(&rest.no_peer),
        cancel,
        timeout: ask.timeout,
        trace: ask.trace,
        depth: 0,
        from_app: false,
    };
    let called = rest.hub.call(request).await;
    let member = if method == Method::CallTool { "tool" } else { "prompt" };
    call_reply(&called, CallTarget::of(&called, member, &ask.name))
}
