//! A modern server that answers calls with tasks of its own.

use anyhow::Result;
use axum::extract::State;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

const TOOLS: [&str; 11] = [
    "steps",
    "fails",
    "endless",
    "asks",
    "odd_status",
    "no_id",
    "flaky",
    "asks_forever",
    "asks_much",
    "loud",
    "not_done",
];

/// A running server. It ends with the test.
pub struct TaskServer {
    pub url: String,
    log: Arc<Mutex<ServerLog>>,
}

#[derive(Default)]
struct ServerLog {
    /// Polls of each task.
    polls: HashMap<String, usize>,
    cancelled: Vec<String>,
    answers: HashMap<String, Value>,
    /// Calls without the client's declaration of the extension.
    undeclared: usize,
}

impl TaskServer {
    pub async fn start() -> Result<Self> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let log = Arc::new(Mutex::new(ServerLog::default()));
        let routes = Router::new().route("/mcp", axum::routing::post(answer)).with_state(Arc::clone(&log));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Ok(Self { url, log })
    }

    pub fn cancelled(&self) -> Vec<String> {
        self.log.lock().unwrap().cancelled.clone()
    }

    pub fn polls(&self, task: &str) -> usize {
        self.log.lock().unwrap().polls.get(task).copied().unwrap_or_default()
    }

    pub fn undeclared(&self) -> usize {
        self.log.lock().unwrap().undeclared
    }
}

async fn answer(State(log): State<Arc<Mutex<ServerLog>>>, Json(request): Json<Value>) -> Json<Value> {
    let mut log = log.lock().unwrap();
    let params = &request["params"];
    let result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}})
        }
        "tools/list" => {
            let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
            let tools = TOOLS.map(tool);
            json!({"tools": tools, "ttlMs": 0, "cacheScope": "private"})
        }
        "tools/call" => {
            let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
            log.undeclared += usize::from(declared.get(TASKS_EXTENSION).is_none());
            let name = params["name"].as_str().unwrap_or_default();
            let id = if name == "no_id" { "" } else { name };
            with_status(id, if name == "odd_status" { "sleeping" } else { "working" }, "Created")
        }
        method => {
            let id = params["taskId"].as_str().unwrap_or_default().to_owned();
            match log.answer_task(method, &id, params) {
                Ok(result) => result,
                Err(error) => return Json(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})),
            }
        }
    };
    let mut result = result;
    if result["resultType"].is_null() {
        result["resultType"] = json!("complete");
    }
    Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
}

fn with_status(id: &str, status: &str, message: &str) -> Value {
    json!({"resultType": "task", "taskId": id, "status": status, "statusMessage": message, "pollIntervalMs": 60,
        "createdAt": "2026-11-15T12:00:00Z", "lastUpdatedAt": "2026-11-15T12:00:00Z", "ttlMs": 60000})
}

impl ServerLog {
    fn answer_task(&mut self, method: &str, id: &str, params: &Value) -> Result<Value, Value> {
        match method {
            "tasks/cancel" => self.cancelled.push(id.to_owned()),
            "tasks/update" => drop(self.answers.insert(id.to_owned(), params["inputResponses"].clone())),
            _ => return self.state_of(id),
        }
        Ok(json!({}))
    }

    fn state_of(&mut self, id: &str) -> Result<Value, Value> {
        let polls = self.polls.entry(id.to_owned()).or_default();
        *polls += 1;
        let done = |text: &str| {
            let mut task = with_status(id, "completed", "");
            task["result"] = json!({"resultType": "complete", "content": [{"type": "text", "text": text}]});
            task
        };
        let mut task = match (id, *polls, self.answers.get(id)) {
            ("steps", count @ 1..=20, _) => with_status(id, "working", &format!("Step {count} of 20")),
            ("steps", ..) => done("All steps are done."),
            ("fails", 1..=2, _) => with_status(id, "working", ""),
            ("fails", ..) => {
                let mut task = with_status(id, "failed", "Out of tea");
                task["error"] = json!({"code": -32050, "message": "Out of tea."});
                task
            }
            ("asks", _, Some(answers)) => done(&format!("You said {}.", answers["name"]["content"]["name"])),
            ("asks", 1..=15, _) => with_status(id, "working", "Thinks"),
            ("asks", ..) => asking(id, &["name".to_owned()]),
            ("asks_forever", count, _) => asking(id, &[count.to_string()]),
            ("asks_much", ..) => asking(id, &(0..17).map(|key| key.to_string()).collect::<Vec<_>>()),
            ("loud", 1..=5, _) => with_status(id, "working", &"a".repeat(1 << 20)),
            ("loud", ..) => done("Quiet now."),
            ("not_done", ..) => {
                let mut task = with_status(id, "completed", "");
                task["result"] = json!({"resultType": "task", "taskId": "another"});
                task
            }
            ("flaky", 1..=2, _) => return Err(json!({"code": -32603, "message": "not now"})),
            ("endless", ..) => with_status(id, "working", "Still at it"),
            _ => return Err(json!({"code": -32602, "message": "unknown task"})),
        };
        task["resultType"] = json!("complete");
        Ok(task)
    }
}

/// A task that asks for a name under each of these keys.
fn asking(id: &str, keys: &[String]) -> Value {
    let form = json!({"mode": "form", "message": "Your name?", "requestedSchema":
        {"type": "object", "properties": {"name": {"type": "string"}}}});
    let question = json!({"method": "elicitation/create", "params": form});
    let mut task = with_status(id, "input_required", "Waits for a name");
    task["inputRequests"] = keys.iter().map(|key| (key.clone(), question.clone())).collect();
    task
}
