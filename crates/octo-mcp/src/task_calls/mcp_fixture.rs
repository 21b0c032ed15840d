//! Test fixture: a hub with one scripted source, and clients of it.

use crate::client_context::{ClientContext, next_client_key};
use crate::mcp::{Mcp, McpSettings};
use crate::task_registry::TaskSettings;
use octo_hub::jq_eval::{Jq, JqRunner};
use octo_hub::{Hub, HubConfig, PolicySettings, ResultLimits};
use octo_model::extension;
use octo_model::{
    CallId, Caller, Effect, EffectOrigin, Frontend, Json, JsonObject, Operation, RpcError, ToolError,
};
use octo_ports::{AuditLog, CallEnded, CallStarted, Port, ResultStore, StoreError, StoreResult};
use octo_toolkit::{BoxFuture, CallContext, Definition, Listing, ListingState, Source, SourceState};
use octo_wire::Revision;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

pub struct MemoryStores(pub Mutex<Vec<CallEnded>>);

impl AuditLog for MemoryStores {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, closing: CallEnded) {
        self.0.lock().unwrap().push(closing);
    }
}

impl ResultStore for MemoryStores {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async { Ok("r_1".to_owned()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async { Err(StoreError::NotFound(Port::Results)) })
    }
}

impl Jq for MemoryStores {
    fn run<'a>(&'a self, _: &'a str, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(ToolError::invalid("No.")) })
    }
}

/// Its slow tools wait at the gate; `dropped` counts the calls that ended there.
pub struct ScriptedSource {
    listing: watch::Sender<ListingState>,
    pub gate: Semaphore,
    pub dropped: AtomicUsize,
}

struct CountDropped<'a>(&'a AtomicUsize, bool);

impl Drop for CountDropped<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(usize::from(self.1), Ordering::SeqCst);
    }
}

impl ScriptedSource {
    fn new() -> Arc<Self> {
        let tool_with_support = |name: &str, support: Option<&str>| {
            let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
            if let Some(support) = support {
                tool["execution"] = json!({"taskSupport": support});
            }
            Definition {
                key: name.to_owned(),
                members: Json::from(tool).members().unwrap(),
                effect: Effect::unknown(),
                effect_origin: EffectOrigin::Assumed,
            }
        };
        let long = ["slow", "quick", "breaks", "fails", "asks", "rounds"]
            .map(|name| tool_with_support(name, Some("optional")));
        let mut tools = long.to_vec();
        tools.extend([
            tool_with_support("unmarked", None),
            tool_with_support("only_as_task", Some("required")),
        ]);
        let lists = Arc::new(Listing { tools, ..Listing::default() });
        let (listing, _) =
            watch::channel(ListingState { state: SourceState::Ready, listing: lists, version: 1 });
        Arc::new(Self { listing, gate: Semaphore::new(0), dropped: AtomicUsize::new(0) })
    }

    /// The source before its first listing; returns its listing for later.
    pub fn reset_to_starting(&self) -> ListingState {
        let ready = self.listing.borrow().clone();
        self.listing.send_replace(ListingState {
            state: SourceState::Starting,
            listing: Arc::default(),
            version: 2,
        });
        ListingState { version: 3, ..ready }
    }

    pub fn publish(&self, listing: ListingState) {
        self.listing.send_replace(listing);
    }

    async fn wait_at_gate(&self) {
        let mut counted = CountDropped(&self.dropped, true);
        self.gate.acquire().await.unwrap().forget();
        counted.1 = false;
    }
}

pub fn elicitation(question: &str) -> Value {
    json!({"method": "elicitation/create", "params": {"message": question}})
}

impl Source for ScriptedSource {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let said = match op.name.as_str() {
                "quick" => json!("at once"),
                "breaks" => {
                    self.wait_at_gate().await;
                    let error = RpcError { code: -32603, message: "Broken.".to_owned(), data: None };
                    return Err(ToolError::internal("broken").rpc(error));
                }
                "fails" => {
                    self.wait_at_gate().await;
                    return Err(ToolError::not_found("There is no such thing."));
                }
                "asks" => {
                    self.wait_at_gate().await;
                    let ask = |question| {
                        cx.peer.ask(
                            "elicitation/create",
                            Json::from(elicitation(question)).members().unwrap().object("params"),
                        )
                    };
                    let (one, two) = tokio::join!(ask("one"), ask("two"));
                    json!([one.unwrap().text("said"), two.unwrap().text("said")])
                }
                "rounds" => {
                    self.wait_at_gate().await;
                    match op.params.text("requestState").as_deref() {
                        None => return Ok(input_required("first")),
                        Some("first") => return Ok(input_required("second")),
                        _ => op.params.object("inputResponses").object("confirm").to_json().to().unwrap(),
                    }
                }
                _ => {
                    cx.progress(1, Some(3), "One of three.");
                    self.wait_at_gate().await;
                    json!("after a while")
                }
            };
            let text = json!([{"type": "text", "text": said.to_string()}]);
            Ok(JsonObject::new().with("content", Json::from(text)).with("isError", false))
        })
    }
}

/// A question of a modern server, with the same key each time.
fn input_required(state: &str) -> JsonObject {
    JsonObject::new()
        .with("resultType", "input_required")
        .with("inputRequests", Json::from(json!({"confirm": elicitation(state)})))
        .with("requestState", state)
}

pub struct McpFixture {
    pub mcp: Arc<Mcp>,
    pub source: Arc<ScriptedSource>,
    pub stores: Arc<MemoryStores>,
}

impl McpFixture {
    pub fn new(change: impl FnOnce(&mut TaskSettings)) -> Self {
        let (source, stores) = (ScriptedSource::new(), Arc::new(MemoryStores(Mutex::default())));
        let hub = Hub::new(HubConfig {
            sources: vec![Arc::clone(&source) as Arc<dyn Source>],
            profiles: Vec::new(),
            policy: PolicySettings::default(),
            limits: Vec::new(),
            rate_buckets: None,
            cache: Vec::new(),
            result_limits: ResultLimits::default(),
            timeout: Duration::from_secs(30),
            audit_log: Arc::clone(&stores) as Arc<dyn AuditLog>,
            result_store: Arc::clone(&stores) as Arc<dyn ResultStore>,
            jq: JqRunner::new(Arc::clone(&stores) as _),
            code_child: None,
            tracer: None,
            remedy_text: |_| String::new(),
        });
        let mut tasks =
            TaskSettings { long_tool_wait: Duration::from_millis(150), ..TaskSettings::default() };
        change(&mut tasks);
        let mcp = Mcp::new(hub.unwrap(), McpSettings { tasks, ..McpSettings::default() }).unwrap();
        Self { mcp, source, stores }
    }

    pub async fn request(
        &self,
        client: &ClientContext,
        method: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        let (out, _inbox) = mpsc::channel(8);
        let params = Json::from(params).members().unwrap();
        let result = self.mcp.handle_modern(client, method, params, out, CancellationToken::new()).await?;
        Ok(result.to_json().to().unwrap())
    }

    pub async fn call(&self, client: &ClientContext, tool: &str) -> Result<Value, RpcError> {
        self.request(client, "tools/call", json!({"name": tool, "arguments": {}})).await
    }

    /// Calls a tool that becomes a task; returns the task's id.
    pub async fn task(&self, client: &ClientContext, tool: &str) -> String {
        let task = self.call(client, tool).await.unwrap();
        assert_eq!(task["resultType"], "task", "{task}");
        task["taskId"].as_str().unwrap().to_owned()
    }

    pub async fn task_request(
        &self,
        client: &ClientContext,
        method: &str,
        id: &str,
    ) -> Result<Value, RpcError> {
        self.request(client, method, json!({"taskId": id})).await
    }

    /// Waits until the task satisfies a condition.
    pub async fn wait_for_task(
        &self,
        client: &ClientContext,
        id: &str,
        is_so: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let task = self.task_request(client, "tasks/get", id).await.unwrap();
            if is_so(&task) {
                return task;
            }
            assert!(Instant::now() < deadline, "it never came to be: {task}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    pub async fn wait_for_status(&self, client: &ClientContext, id: &str, status: &str) -> Value {
        self.wait_for_task(client, id, |task| task["status"] == status).await
    }
}

/// A modern client with these capabilities.
pub fn modern_client(subject: &str, capabilities: Value) -> ClientContext {
    ClientContext {
        caller: Arc::new(Caller::named(subject)),
        frontend: Frontend::Http,
        profile: String::new(),
        options: octo_hub::ListOptions::default(),
        revision: Revision::MODERN,
        capabilities: Arc::new(Json::from(capabilities).members().unwrap()),
        level: None,
        key: next_client_key(),
        epoch: octo_hub::ClientEpoch::default(),
    }
}

/// A modern client that supports tasks and questions.
pub fn task_client(subject: &str) -> ClientContext {
    modern_client(subject, json!({"elicitation": {}, "extensions": {(extension::TASKS): {}}}))
}
