//! A modern server whose slow tools declare that they are; the SDK's definitions have no field for that.

use anyhow::Result;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use bytes::Bytes;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longer than the hub waits before it turns a call into a task.
const LONG_CALL: Duration = Duration::from_millis(1_200);

/// A running server. It ends with the test.
pub struct TaskUpstream {
    pub url: String,
    cancelled: Arc<AtomicUsize>,
}

impl TaskUpstream {
    pub async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let cancelled = Arc::new(AtomicUsize::new(0));
        let routes =
            Router::new().route("/mcp", axum::routing::post(answer)).with_state(Arc::clone(&cancelled));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { url, cancelled })
    }

    /// Number of calls that were cancelled.
    pub fn cancelled(&self) -> usize {
        self.cancelled.load(Ordering::SeqCst)
    }
}

async fn answer(State(cancelled): State<Arc<AtomicUsize>>, Json(request): Json<Value>) -> Response {
    let whole = |mut answer: Value| {
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = request["id"].clone();
        Json(answer).into_response()
    };
    let cached = |mut result: Value| {
        for (key, value) in
            [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))]
        {
            result[key] = value;
        }
        json!({"result": result})
    };
    match request["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            whole(cached(json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})))
        }
        "tools/list" => whole(cached(json!({"tools": tools()}))),
        "tools/call" if request["params"]["name"] == "slow_compute" => slow(cancelled, request),
        "tools/call" => whole(call(&request["params"]).await),
        _ => whole(json!({"error": {"code": -32601, "message": "unknown"}})),
    }
}

fn tools() -> Value {
    let tool = |name: &str, support: Option<&str>| {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        if let Some(support) = support {
            tool["execution"] = json!({"taskSupport": support});
        }
        tool
    };
    json!([
        tool("greet", None),
        tool("slow_compute", Some("optional")),
        tool("failing_job", Some("required")),
        tool("protocol_error_job", Some("optional")),
        tool("confirm_delete", Some("optional")),
        tool("multi_input", Some("optional")),
        tool("test_tool_with_task", Some("required")),
    ])
}

async fn call(params: &Value) -> Value {
    let answers = params["inputResponses"].as_object();
    match (params["name"].as_str().unwrap_or_default(), answers) {
        ("greet", _) => {
            text_result(&format!("Hello, {}!", params["arguments"]["name"].as_str().unwrap_or_default()))
        }
        ("failing_job", _) => {
            tokio::time::sleep(LONG_CALL).await;
            let mut failed = text_result("It did not work.");
            failed["result"]["isError"] = json!(true);
            failed
        }
        ("protocol_error_job", _) => {
            tokio::time::sleep(LONG_CALL).await;
            json!({"error": {"code": -32603, "message": "It is broken."}})
        }
        ("confirm_delete", None) => input_required_later(&["confirm"]).await,
        ("multi_input", None) => input_required_later(&["first", "second"]).await,
        ("test_tool_with_task", None) => input_required(&["user_name"]),
        ("test_tool_with_task", Some(answers)) => {
            tokio::time::sleep(LONG_CALL).await;
            text_result(&format!(
                "Hello, {}!",
                answers["user_name"]["content"]["name"].as_str().unwrap_or_default()
            ))
        }
        (_, Some(answers)) => text_result(&format!("Answered: {}", json!(answers))),
        _ => json!({"error": {"code": -32602, "message": "unknown tool"}}),
    }
}

async fn input_required_later(keys: &[&str]) -> Value {
    tokio::time::sleep(LONG_CALL).await;
    input_required(keys)
}

fn input_required(keys: &[&str]) -> Value {
    let form =
        json!({"mode": "form", "message": "Well?", "requestedSchema": {"type": "object", "properties": {}}});
    let requests: serde_json::Map<String, Value> = keys
        .iter()
        .map(|key| ((*key).to_owned(), json!({"method": "elicitation/create", "params": form})))
        .collect();
    json!({"result": {"resultType": "input_required", "inputRequests": requests, "requestState": "here"}})
}

fn text_result(text: &str) -> Value {
    json!({"result": {"resultType": "complete", "content": [{"type": "text", "text": text}]}})
}

/// Counts a call whose stream is dropped before its end.
struct CountDropped {
    cancelled: Arc<AtomicUsize>,
    armed: bool,
}

impl Drop for CountDropped {
    fn drop(&mut self) {
        self.cancelled.fetch_add(usize::from(self.armed), Ordering::SeqCst);
    }
}

/// `slow_compute`: reports progress immediately, and replies after this many seconds.
fn slow(cancelled: Arc<AtomicUsize>, request: Value) -> Response {
    let (params, id) = (request["params"].clone(), request["id"].clone());
    let arguments = params["arguments"].clone();
    let label = arguments["label"].as_str().unwrap_or_default().to_owned();
    let progress = json!({"progressToken": params["_meta"]["progressToken"], "progress": 1, "message": format!("Computing {label}.")});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress});
    let first =
        if progress["progressToken"].is_null() { Bytes::from_static(b":\n\n") } else { event(&notice) };
    let counted = CountDropped { cancelled, armed: true };
    let rest = async move {
        let mut counted = counted;
        tokio::time::sleep(Duration::from_secs_f64(arguments["seconds"].as_f64().unwrap_or_default())).await;
        counted.armed = false;
        let mut answer = text_result(&format!("Computed {label}."));
        answer["jsonrpc"] = json!("2.0");
        answer["id"] = id;
        event(&answer)
    };
    use futures_util::StreamExt;
    let events = futures_util::stream::once(async { first }).chain(futures_util::stream::once(rest));
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    ([("content-type", "text/event-stream")], body).into_response()
}

fn event(message: &Value) -> Bytes {
    Bytes::from(format!("data: {message}\n\n"))
}
