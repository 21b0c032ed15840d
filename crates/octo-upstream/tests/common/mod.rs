//! Shared test helpers: a client that answers requests, and servers.
#![allow(dead_code, reason = "each test file uses its part")]

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use octo_grants::Command;
use octo_model::{Caller, Json, JsonObject, Operation, ToolError};
use octo_toolkit::{AskError, CallContext, ListingState, Peer, Source, SourceState};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub mod mock_http;
pub mod process_helpers;

/// Client that records notifications and answers requests.
pub struct RecordingPeer {
    key: u64,
    capabilities: JsonObject,
    pub notifications: Mutex<Vec<(String, Value)>>,
    pub requests: Mutex<Vec<(String, Value)>>,
    answer: Option<Value>,
}

impl RecordingPeer {
    pub fn new(key: u64, answer: Option<Value>) -> Arc<Self> {
        let capabilities = json!({"elicitation": {"form": {}}, "tools": {}, "vendor": {}});
        let capabilities = Json::from(capabilities).members().unwrap();
        Arc::new(Self {
            key,
            capabilities,
            notifications: Mutex::default(),
            requests: Mutex::default(),
            answer,
        })
    }

    pub fn peer(self: &Arc<Self>) -> Arc<dyn Peer> {
        self.clone()
    }
}

impl Peer for RecordingPeer {
    fn capabilities(&self) -> &JsonObject {
        &self.capabilities
    }

    fn notify(&self, method: &str, params: JsonObject) {
        self.notifications.lock().unwrap().push((method.to_owned(), params.to_json().to().unwrap()));
    }

    fn ask<'a>(
        &'a self,
        method: &'a str,
        params: JsonObject,
    ) -> octo_toolkit::BoxFuture<'a, Result<JsonObject, AskError>> {
        self.requests.lock().unwrap().push((method.to_owned(), params.to_json().to().unwrap()));
        Box::pin(async move {
            match &self.answer {
                Some(Value::Null) => std::future::pending().await,
                Some(answer) => Ok(Json::from(answer.clone()).members().unwrap()),
                None => Err(AskError::Unable),
            }
        })
    }

    fn key(&self) -> u64 {
        self.key
    }
}

pub fn call_context(seconds: u64) -> CallContext {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    CallContext::new(Arc::new(Caller::local()), deadline, CancellationToken::new())
}

/// The stub program in one of its modes.
pub fn stub(mode: &str) -> Command {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/stub.py").to_owned();
    Command {
        program: "python3".to_owned(),
        args: vec![script, mode.to_owned()],
        env: BTreeMap::new(),
        cwd: None,
    }
}

pub fn start_stub(mode: &str) -> Arc<Upstream> {
    Upstream::start(UpstreamSpec::stdio("stub", stub(mode)))
}

/// Waits for a listing that satisfies the predicate.
pub async fn wait_listing(upstream: &Upstream, what: impl FnMut(&ListingState) -> bool) -> ListingState {
    let mut listing = upstream.listing();
    let found = tokio::time::timeout(Duration::from_secs(20), listing.wait_for(what)).await;
    match found {
        Ok(found) => found.unwrap().clone(),
        Err(_) => panic!("still {:?}", upstream.listing().borrow().state),
    }
}

pub async fn wait_ready(upstream: &Upstream) -> ListingState {
    wait_listing(upstream, |now| now.state == SourceState::Ready).await
}

pub fn tool_names(listing: &ListingState) -> Vec<String> {
    listing.listing.tools.iter().map(|tool| tool.key.clone()).collect()
}

pub async fn call(
    upstream: &Upstream,
    peer: &Arc<dyn Peer>,
    tool: &str,
    arguments: Value,
) -> Result<Value, ToolError> {
    let cx = call_context(20).with_peer(Arc::clone(peer));
    let result = upstream.run(Operation::tool(tool, arguments.into()), &cx).await?;
    Ok(result.to_json().to().unwrap())
}

/// JSON in the first text block of a tool's reply.
pub fn first_text_json(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}
