//! A hub for tests: a native toolbox, a scripted upstream, ports that record.

use octo_hub::jq_eval::{self, Jq, JqRunner};
use octo_hub::{CallOutcome, Hub, HubConfig, PolicySettings, Request, ResultLimits};
use octo_model::{
    CallId, Caller, Effect, EffectOrigin, Frontend, Json, JsonObject, Operation, Remedy, ToolError,
};
use octo_ports::{AuditLog, CallEnded, CallStarted, Port, ResultStore, StoreError, StoreResult};
use octo_toolkit::{BoxFuture, CallContext, Definition, Event, Listing, ListingState, Source, SourceState};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

#[derive(Default)]
pub struct RecordingStore {
    pub opened: Mutex<Vec<CallStarted>>,
    pub closed: Mutex<Vec<CallEnded>>,
    pub broken: AtomicBool,
    kept: Mutex<HashMap<String, (String, Json)>>,
}

impl AuditLog for RecordingStore {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async move {
            if self.broken.load(Ordering::Relaxed) {
                return Err(StoreError::unavailable(Port::Audit, "the audit cannot be written"));
            }
            self.opened.lock().unwrap().push(opening);
            Ok(())
        })
    }

    fn close(&self, closing: CallEnded) {
        self.closed.lock().unwrap().push(closing);
    }
}

impl ResultStore for RecordingStore {
    fn store<'a>(&'a self, caller: &'a Caller, _: CallId, whole: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async move {
            let mut kept = self.kept.lock().unwrap();
            let handle = format!("r_{}", kept.len());
            kept.insert(handle.clone(), (caller.principal.subject.clone(), whole));
            Ok(handle)
        })
    }

    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async move {
            let kept = self.kept.lock().unwrap();
            let found = kept.get(handle).filter(|(subject, _)| *subject == caller.principal.subject);
            found.map(|(_, whole)| whole.clone()).ok_or(StoreError::NotFound(Port::Results))
        })
    }
}

pub struct InProcessJq;

impl Jq for InProcessJq {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(
            async move { jq_eval::evaluate(program, input.bytes(), 100_000).map_err(ToolError::invalid) },
        )
    }
}

/// An upstream whose tools are given as data; `run` is a plain function.
pub struct ScriptedSource {
    name: &'static str,
    listing: watch::Sender<ListingState>,
    pub calls: AtomicUsize,
    pub events: broadcast::Sender<Event>,
}

impl ScriptedSource {
    pub fn new(name: &'static str, tools: Vec<Value>) -> Arc<Self> {
        let (listing, _) =
            watch::channel(ListingState { state: SourceState::Ready, listing: lists(tools), version: 1 });
        Arc::new(Self { name, listing, calls: AtomicUsize::new(0), events: broadcast::channel(4).0 })
    }

    /// An upstream with one resource, `big://file`, whose text has 8,000 bytes.
    pub fn with_resource(name: &'static str) -> Arc<Self> {
        let source = Self::new(name, Vec::new());
        let members = Json::from(json!({"uri": "big://file", "name": "file"})).members().unwrap();
        let definition = Definition {
            key: "big://file".to_owned(),
            members,
            effect: Effect::reads(),
            effect_origin: EffectOrigin::Assumed,
        };
        source.listing.send_modify(|listing| {
            listing.listing = Arc::new(Listing { resources: vec![definition], ..Listing::default() });
        });
        source
    }

    pub fn relist(&self, state: SourceState, tools: Vec<Value>) {
        self.listing.send_modify(|listing| {
            *listing = ListingState { state, listing: lists(tools), version: listing.version + 1 };
        });
    }
}

fn lists(tools: Vec<Value>) -> Arc<Listing> {
    let tools = tools.into_iter().map(|tool| Definition {
        key: tool["name"].as_str().unwrap().to_owned(),
        members: Json::from(tool).members().unwrap(),
        effect: Effect::unknown(),
        effect_origin: EffectOrigin::Assumed,
    });
    Arc::new(Listing { tools: tools.collect(), ..Listing::default() })
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}, "vendor": {"kept": 1.50}})
}

impl Source for ScriptedSource {
    fn name(&self) -> &str {
        self.name
    }

    fn is_native(&self) -> bool {
        false
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        Some(self.events.subscribe())
    }

    fn run<'a>(&'a self, op: Operation, _: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let count = self.calls.fetch_add(1, Ordering::Relaxed);
            let arguments: Value = op.params.get("arguments").map_or(json!({}), |json| json.to().unwrap());
            match op.name.as_str() {
                "sleeps" => tokio::time::sleep(Duration::from_secs(60)).await,
                "panics" => panic!("on purpose"),
                "needs_login" => {
                    return Err(ToolError::invalid("No login.")
                        .hint("Log in.")
                        .remedy(Remedy::Login { server: self.name.to_owned() }));
                }
                "fails" => {
                    return Ok(JsonObject::new().with("content", Json::array([])).with("isError", true));
                }
                _ => {}
            }
            let size = arguments["n"].as_u64().unwrap_or(0) as usize;
            Ok(match op.name.as_str() {
                "rows" => {
                    let rows: Vec<Value> = (0..size).map(|n| json!({"n": n, "text": "some text"})).collect();
                    JsonObject::new()
                        .with("content", Json::array([]))
                        .with("structuredContent", Json::from(json!({"rows": rows, "count": size})))
                }
                "big://file" => {
                    let part = json!({"uri": "big://file", "text": "x".repeat(8_000)});
                    JsonObject::new().with("contents", Json::array([&Json::from(part)]))
                }
                "long" => {
                    let text = (0..size).map(|n| format!("line {n}\n")).collect::<String>();
                    let block = json!({"type": "text", "text": text});
                    JsonObject::new().with("content", Json::array([&Json::from(block)]))
                }
                "mirror" => JsonObject::new().with("content", Json::array([])).with(
                    "structuredContent",
                    Json::from(json!({"got": arguments, "out": "text", "list": [1]})),
                ),
                _ => JsonObject::new()
                    .with("content", Json::array([]))
                    .with("count", Json::of(&count))
                    .with("vendor", Json::parse("1.50").unwrap()),
            })
        })
    }
}

pub struct HubFixture {
    pub hub: Arc<Hub>,
    pub store: Arc<RecordingStore>,
}

pub fn hub_config(sources: Vec<Arc<dyn Source>>, memory: &Arc<RecordingStore>) -> HubConfig {
    HubConfig {
        sources,
        profiles: Vec::new(),
        policy: PolicySettings::default(),
        limits: Vec::new(),
        rate_buckets: None,
        cache: Vec::new(),
        result_limits: ResultLimits {
            max_bytes: 4_000,
            max_resource_bytes: 6_000,
            ..ResultLimits::default()
        },
        timeout: Duration::from_secs(5),
        audit_log: Arc::clone(memory) as Arc<dyn AuditLog>,
        result_store: Arc::clone(memory) as Arc<dyn ResultStore>,
        jq: JqRunner::new(Arc::new(InProcessJq)),
        code_child: None,
        tracer: None,
        remedy_text: |remedy| format!("{remedy:?}"),
    }
}

impl HubFixture {
    pub fn new(sources: Vec<Arc<dyn Source>>, change: impl FnOnce(&mut HubConfig)) -> Self {
        let memory = Arc::new(RecordingStore::default());
        let mut parts = hub_config(sources, &memory);
        change(&mut parts);
        Self { hub: Hub::new(parts).unwrap(), store: memory }
    }

    pub fn request(name: &str, arguments: Value) -> Request {
        Request::new(Operation::tool(name, Json::from(arguments)), Arc::new(Caller::local()), Frontend::Cli)
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Result<JsonObject, ToolError> {
        self.call_request(Self::request(name, arguments)).await.outcome
    }

    pub async fn call_request(&self, request: Request) -> CallOutcome {
        self.hub.call(request).await
    }
}
