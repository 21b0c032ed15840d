//! Hub with all toolboxes enabled and its audit log in memory.

use super::example_workspace::ExampleWorkspace;
use octo_hub::jq_eval::Jq;
use octo_hub::{CallOutcome, ChildCommand, Hub, HubConfig, PolicySettings, Request, ResultLimits};
use octo_model::{CallId, Caller, Effect, Frontend, ItemKind, Json, Operation, ToolError};
use octo_ports::{AuditLog, CallEnded, CallStarted, Port, ResultStore, StoreError, StoreResult};
use octo_toolkit::BoxFuture;
use octoprox::toolboxes;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Native tool, as the hub lists it.
pub struct ListedTool {
    pub name: String,
    pub definition: Value,
    pub effect: Effect,
}

#[derive(Default)]
pub struct MemoryStores(Mutex<HashMap<String, Json>>);

impl AuditLog for MemoryStores {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: CallEnded) {}
}

impl ResultStore for MemoryStores {
    fn store<'a>(&'a self, _: &'a Caller, call: CallId, whole: Json) -> BoxFuture<'a, StoreResult<String>> {
        self.0.lock().unwrap().insert(call.to_string(), whole);
        Box::pin(async move { Ok(call.to_string()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        let found = self.0.lock().unwrap().get(handle).cloned();
        Box::pin(async move { found.ok_or(StoreError::NotFound(Port::Results)) })
    }
}

impl Jq for MemoryStores {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            octo_hub::jq_eval::evaluate(program, input.bytes(), 1 << 20).map_err(ToolError::invalid)
        })
    }
}

pub fn hub(ground: &ExampleWorkspace, max_bytes: usize) -> Arc<Hub> {
    let memory = Arc::new(MemoryStores::default());
    let doors = ground.capabilities(&memory);
    let toolboxes = toolboxes(&ground.settings).into_iter();
    Hub::new(HubConfig {
        sources: toolboxes
            .map(|toolbox| toolbox.into_source(doors.clone(), octo_toolkit::SourceState::Ready))
            .collect(),
        profiles: Vec::new(),
        policy: PolicySettings::default(),
        limits: Vec::new(),
        rate_buckets: None,
        cache: Vec::new(),
        result_limits: ResultLimits { max_bytes, ..ResultLimits::default() },
        timeout: Duration::from_secs(30),
        audit_log: Arc::clone(&memory) as _,
        result_store: Arc::clone(&memory) as _,
        jq: doors.open().unwrap(),
        code_child: Some(ChildCommand {
            program: env!("CARGO_BIN_EXE_octoprox").into(),
            args: vec!["code-child".to_owned()],
        }),
        tracer: None,
        remedy_text: |_| String::new(),
    })
    .unwrap()
}

/// All tools of the hub, including its own.
pub async fn listed_tools() -> Vec<ListedTool> {
    let hub = hub(&ExampleWorkspace::new(), 100_000);
    let view = hub.view("").unwrap();
    let subject = |entry: &octo_hub::Entry| ListedTool {
        name: entry.listed_name.to_string(),
        definition: entry.definition().to_json().to().unwrap(),
        effect: entry.effect(),
    };
    view.list(ItemKind::Tool).iter().map(subject).collect()
}

pub async fn tools_json(hub: &Hub) -> Json {
    hub.list("", ItemKind::Tool, &Caller::local(), None).await.unwrap().items
}

pub async fn call(hub: &Hub, name: &str, arguments: Value, cancel: CancellationToken) -> CallOutcome {
    hub.call(Request {
        cancel,
        ..Request::new(Operation::tool(name, arguments.into()), Arc::new(Caller::local()), Frontend::Cli)
    })
    .await
}
