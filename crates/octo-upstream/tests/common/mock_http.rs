//! HTTP server whose behaviour is one function of the test.

use super::*;
use axum::http::Uri;
use tokio::sync::mpsc;

/// One request as the server saw it.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    pub method: Method,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl RecordedRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The JSON-RPC method, or the HTTP method if there is no message.
    pub fn rpc_method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(if self.body["id"].is_null() {
            self.method.as_str()
        } else {
            "answer"
        })
    }

    pub fn tool(&self) -> &str {
        self.body["params"]["name"].as_str().unwrap_or_default()
    }

    /// Response to this request as a message.
    pub fn result(&self, result: Value) -> Value {
        json!({"jsonrpc": "2.0", "id": self.body["id"], "result": result})
    }
}

pub type Handler = Arc<dyn Fn(RecordedRequest) -> BoxFuture<'static, Response> + Send + Sync>;

/// A running server and the requests it received.
pub struct MockServer {
    pub url: String,
    pub requests: Arc<Mutex<Vec<RecordedRequest>>>,
    task: tokio::task::JoinHandle<()>,
}

impl MockServer {
    pub async fn start<F, R>(handler: F) -> Self
    where
        F: Fn(RecordedRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Response> + Send + 'static,
    {
        Self::start_at("127.0.0.1:0", handler).await
    }

    pub async fn start_at<F, R>(address: &str, handler: F) -> Self
    where
        F: Fn(RecordedRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Response> + Send + 'static,
    {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        let handler = Arc::new(handler);
        let app =
            axum::Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
                let hit = RecordedRequest {
                    method,
                    path: uri.path().to_owned(),
                    headers,
                    body: serde_json::from_slice(&body).unwrap_or(Value::Null),
                };
                log.lock().unwrap().push(hit.clone());
                let handler = handler.clone();
                async move { handler(hit).await }
            });
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, requests: seen, task }
    }

    pub fn count(&self, what: &str) -> usize {
        self.requests.lock().unwrap().iter().filter(|hit| hit.rpc_method() == what).count()
    }

    pub fn requests_of(&self, what: &str) -> Vec<RecordedRequest> {
        self.requests.lock().unwrap().iter().filter(|hit| hit.rpc_method() == what).cloned().collect()
    }

    /// Waits until this many requests of a kind have arrived.
    pub async fn wait_for(&self, what: &str, count: usize) {
        for _ in 0..1000 {
            if self.count(what) >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{what} came only {} times", self.count(what));
    }
}

impl Drop for MockServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub fn status(code: u16) -> Response {
    StatusCode::from_u16(code).unwrap().into_response()
}

pub fn json_body(message: Value) -> Response {
    ([("content-type", "application/json")], message.to_string()).into_response()
}

/// Event stream that ends with its sender.
pub fn event_stream() -> (mpsc::UnboundedSender<String>, Response) {
    let (sender, receiver) = mpsc::unbounded_channel::<String>();
    let chunks = futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|chunk| (Ok::<_, std::convert::Infallible>(chunk), receiver))
    });
    let response = ([("content-type", "text/event-stream")], Body::from_stream(chunks)).into_response();
    (sender, response)
}

pub fn sse_event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

pub fn error(hit: &RecordedRequest, http: u16, code: i64, data: Value) -> Response {
    let message = json!({"jsonrpc": "2.0", "id": hit.body["id"], "error": {"code": code, "message": "no", "data": data}});
    (StatusCode::from_u16(http).unwrap(), json_body(message)).into_response()
}

/// Routine responses of a legacy server; `None` for other requests.
pub fn legacy_preamble(hit: &RecordedRequest, capabilities: Value) -> Option<Response> {
    Some(match hit.rpc_method() {
        "server/discover" => status(400),
        "initialize" => {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}});
            let mut response = json_body(hit.result(result));
            response.headers_mut().insert("mcp-session-id", "s1".parse().unwrap());
            response
        }
        "notifications/initialized" | "notifications/cancelled" | "answer" => status(202),
        "GET" => status(405),
        "DELETE" => status(200),
        _ => return None,
    })
}

/// Routine responses of a modern server.
pub fn modern_preamble(hit: &RecordedRequest, capabilities: Value) -> Option<Response> {
    (hit.rpc_method() == "server/discover").then(|| {
        let result = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"});
        json_body(hit.result(result))
    })
}

pub fn tools(hit: &RecordedRequest, names: &[&str]) -> Response {
    let tools: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
    json_body(hit.result(json!({"tools": tools})))
}
