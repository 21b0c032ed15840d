//! A face on a workbench: a hub whose one source does as it is told, and clients of it.

use crate::client::{Client, fresh_key};
use crate::mcp::{Mcp, McpSettings};
use crate::task::EXTENSION;
use crate::tasks::TaskSettings;
use octo_hub::jq_eval::{Jq, JqRunner};
use octo_hub::{AuditLog, CallEnded, CallStarted, Hub, HubConfig, PolicySettings, ResultLimits, ResultStore};
use octo_model::{CallId, Caller, Effect, Frontend, Json, JsonObject, Operation, RpcError, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Definition, Listing, ListingState, Peer, Source, SourceState};
use octo_wire::Revision;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub struct Ports(pub Mutex<Vec<CallEnded>>);

impl AuditLog for Ports {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, closing: CallEnded) {
        self.0.lock().unwrap().push(closing);
    }
}

impl ResultStore for Ports {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Ok("r_1".to_owned()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, Result<Json, ToolError>> {
        Box::pin(async { Err(ToolError::not_found("There is no such result.")) })
    }
}

impl Jq for Ports {
    fn run<'a>(&'a self, _: &'a str, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(ToolError::invalid("No.")) })
    }
}

/// Its slow tools wait at the gate; `dropped` counts the calls that were ended there.
pub struct Scripted {
    listing: watch::Sender<ListingState>,
    pub gate: Semaphore,
    pub dropped: AtomicUsize,
}

struct Counted<'a>(&'a AtomicUsize, bool);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(self.1), Ordering::SeqCst);
    }
}

impl Scripted {
    fn new() -> Arc<Self> {
        let marked = |name: &str, support: Option<&str>| {
            let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
            if let Some(support) = support {
                tool["execution"] = json!({"taskSupport": support});
            }
            Definition {
                key: name.to_owned(),
                members: Json::from(tool).members().unwrap(),
                effect: Effect::unknown(),
                trusted_effect: false,
            }
        };
        let long =
            ["slow", "quick", "breaks", "fails", "asks", "rounds"].map(|name| marked(name, Some("optional")));
        let mut tools = long.to_vec();
        tools.extend([marked("unmarked", None), marked("only_as_task", Some("required"))]);
        let lists = Arc::new(Listing { tools, ..Listing::default() });
        let (listing, _) =
            watch::channel(ListingState { state: SourceState::Ready, listing: lists, version: 1 });
        Arc::new(Self { listing, gate: Semaphore::new(0), dropped: AtomicUsize::new(0) })
    }

    /// As before it had listed anything; gives what it lists when it is ready.
    pub fn starts(&self) -> ListingState {
        let ready = self.listing.borrow().clone();
        self.listing.send_replace(ListingState {
            state: SourceState::Starting,
            listing: Arc::default(),
            version: 2,
        });
        ListingState { version: 3, ..ready }
    }

    pub fn lists(&self, listing: ListingState) {
        self.listing.send_replace(listing);
    }

    async fn wait(&self) {
        let mut counted = Counted(&self.dropped, true);
        self.gate.acquire().await.unwrap().forget();
        counted.1 = false;
    }
}

pub fn form(question: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": question}})
}

impl Source for Scripted {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(
        &'a self,
        op: Operation,
        cx: &'a CallContext,
        peer: &'a Arc<dyn Peer>,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let said = match op.name.as_str() {
                "quick" => json!("at once"),
                "breaks" => {
                    self.wait().await;
                    let error = RpcError { code: -32603, message: "Broken.".to_owned(), data: None };
                    return Err(ToolError::internal("broken").rpc(error));
                }
                "fails" => {
                    self.wait().await;
                    return Err(ToolError::not_found("There is no such thing."));
                }
                "asks" => {
                    self.wait().await;
                    let ask = |question| {
                        peer.ask(
                            "elicitation/create",
                            Json::from(form(question)).members().unwrap().object("params"),
                        )
                    };
                    let (one, two) = tokio::join!(ask("one"), ask("two"));
                    json!([one.unwrap().text("said"), two.unwrap().text("said")])
                }
                "rounds" => {
                    self.wait().await;
                    match op.params.text("requestState").as_deref() {
                        None => return Ok(asking("first")),
                        Some("first") => return Ok(asking("second")),
                        _ => op.params.object("inputResponses").object("confirm").to_json().to().unwrap(),
                    }
                }
                _ => {
                    cx.progress(1, Some(3), "One of three.");
                    self.wait().await;
                    json!("after a while")
                }
            };
            let text = json!([{"type": "text", "text": said.to_string()}]);
            Ok(JsonObject::new().with("content", Json::from(text)).with("isError", false))
        })
    }
}

/// A question as a server of the modern era puts it, under the same key each time.
fn asking(state: &str) -> JsonObject {
    JsonObject::new()
        .with("resultType", "input_required")
        .with("inputRequests", Json::from(json!({"confirm": form(state)})))
        .with("requestState", state)
}

pub struct Bench {
    pub mcp: Arc<Mcp>,
    pub source: Arc<Scripted>,
    pub ports: Arc<Ports>,
}

impl Bench {
    pub fn new(change: impl FnOnce(&mut TaskSettings)) -> Self {
        let (source, ports) = (Scripted::new(), Arc::new(Ports(Mutex::default())));
        let hub = Hub::new(HubConfig {
            sources: vec![Arc::clone(&source) as Arc<dyn Source>],
            profiles: Vec::new(),
            policy: PolicySettings::default(),
            limits: Vec::new(),
            cache: Vec::new(),
            shape: ResultLimits::default(),
            timeout: Duration::from_secs(30),
            ledger: Arc::clone(&ports) as Arc<dyn AuditLog>,
            spills: Arc::clone(&ports) as Arc<dyn ResultStore>,
            jq: JqRunner::new(Arc::clone(&ports) as _),
            tracer: None,
        });
        let mut tasks = TaskSettings { soon: Duration::from_millis(150), ..TaskSettings::default() };
        change(&mut tasks);
        let mcp = Mcp::new(hub.unwrap(), McpSettings { tasks, ..McpSettings::default() }).unwrap();
        Self { mcp, source, ports }
    }

    pub async fn ask(&self, client: &Client, method: &str, params: Value) -> Result<Value, RpcError> {
        let (out, _inbox) = mpsc::channel(8);
        let params = Json::from(params).members().unwrap();
        let result = self.mcp.modern(client, method, params, out, CancellationToken::new()).await?;
        Ok(result.to_json().to().unwrap())
    }

    pub async fn call(&self, client: &Client, tool: &str) -> Result<Value, RpcError> {
        self.ask(client, "tools/call", json!({"name": tool, "arguments": {}})).await
    }

    /// Calls a tool that becomes a task, and gives the task's id.
    pub async fn task(&self, client: &Client, tool: &str) -> String {
        let task = self.call(client, tool).await.unwrap();
        assert_eq!(task["resultType"], "task", "{task}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    pub async fn of(&self, client: &Client, method: &str, id: &str) -> Result<Value, RpcError> {
        self.ask(client, method, json!({"taskId": id})).await
    }

    /// The task as soon as something is so of it.
    pub async fn when(&self, client: &Client, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let task = self.of(client, "tasks/get", id).await.unwrap();
            if is_so(&task) {
                return task;
            }
            assert!(Instant::now() < deadline, "it never came to be: {task}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn when_status(&self, client: &Client, id: &str, status: &str) -> Value {
        self.when(client, id, |task| task["status"] == status).await
    }
}

/// A modern client with these capabilities.
pub fn plain(subject: &str, capabilities: Value) -> Client {
    Client {
        caller: Arc::new(Caller::named(subject)),
        face: Frontend::Http,
        profile: String::new(),
        revision: Revision::MODERN,
        capabilities: Arc::new(Json::from(capabilities).members().unwrap()),
        level: None,
        key: fresh_key(),
    }
}

/// One that takes tasks and can be asked.
pub fn patient(subject: &str) -> Client {
    plain(subject, json!({"elicitation": {}, "extensions": {EXTENSION: {}}}))
}
