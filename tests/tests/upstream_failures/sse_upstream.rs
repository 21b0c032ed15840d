//! A server over HTTP+SSE that forgets its session while a call is running.

use anyhow::Result;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// A running server. It ends with the test.
pub struct SseUpstream {
    pub url: String,
    state: Arc<ServerState>,
}

#[derive(Default)]
struct ServerState {
    /// Streams by session.
    streams: Mutex<Vec<mpsc::UnboundedSender<Bytes>>>,
    waiting_calls: AtomicUsize,
    has_forgotten: AtomicBool,
}

impl SseUpstream {
    pub async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/sse", listener.local_addr()?);
        let state = Arc::new(ServerState::default());
        let routes = Router::new()
            .route("/sse", axum::routing::get(open_stream))
            .route("/messages", axum::routing::post(receive))
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { url, state })
    }

    /// How often `wait` was called.
    pub fn waiting_calls(&self) -> usize {
        self.state.waiting_calls.load(Ordering::SeqCst)
    }
}

async fn open_stream(State(state): State<Arc<ServerState>>) -> Response {
    let (events, mut received) = mpsc::unbounded_channel();
    let mut streams = state.streams.lock().unwrap();
    let endpoint = format!("event: endpoint\ndata: /messages?session={}\n\n", streams.len());
    let _ = events.send(Bytes::from(endpoint));
    streams.push(events);
    let events = futures_util::stream::poll_fn(move |cx| received.poll_recv(cx));
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    ([("content-type", "text/event-stream")], body).into_response()
}

async fn receive(
    State(state): State<Arc<ServerState>>,
    Query(query): Query<HashMap<String, usize>>,
    Json(request): Json<Value>,
) -> (StatusCode, &'static str) {
    let method = request["method"].as_str().unwrap_or_default();
    let answer = match (method, request["params"]["name"].as_str()) {
        ("initialize", _) => json!({"result": {
            "protocolVersion": "2024-11-05",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "old", "version": "1"},
        }}),
        ("tools/list", _) => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            let tools = ["wait", "forget"].map(tool);
            json!({"result": {"tools": tools}})
        }
        ("tools/call", Some("wait")) => {
            if state.waiting_calls.fetch_add(1, Ordering::SeqCst) == 0 {
                return (StatusCode::ACCEPTED, "");
            }
            text_result("called again")
        }
        ("tools/call", Some("forget")) => {
            if !state.has_forgotten.swap(true, Ordering::SeqCst) {
                return (StatusCode::NOT_FOUND, "session not found");
            }
            text_result("forgotten")
        }
        ("ping", _) => json!({"result": {}}),
        _ => json!({"error": {"code": -32601, "message": "unknown"}}),
    };
    if !request["id"].is_null() {
        let mut answer = answer;
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        let streams = state.streams.lock().unwrap();
        if let Some(stream) = query.get("session").and_then(|session| streams.get(*session)) {
            let _ = stream.send(Bytes::from(format!("event: message\ndata: {answer}\n\n")));
        }
    }
    (StatusCode::ACCEPTED, "")
}

fn text_result(text: &str) -> Value {
    json!({"result": {"content": [{"type": "text", "text": text}]}})
}
