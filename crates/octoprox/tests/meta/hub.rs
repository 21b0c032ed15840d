//! A hub with every toolbox on, which keeps its records in memory.

use super::ground::Ground;
use octo_hub::jq_eval::Jq;
use octo_hub::{
    AuditLog, CallEnded, CallOutcome, CallStarted, Hub, HubConfig, ListKind, PolicySettings, Request,
    ResultLimits, ResultStore,
};
use octo_model::{CallId, Caller, Effect, Frontend, Json, Operation, ToolError};
use octo_toolkit::{BoxFuture, NoPeer};
use octoprox::toolboxes;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A native tool, as the hub lists it.
pub struct Subject {
    pub name: String,
    pub definition: Value,
    pub effect: Effect,
}

#[derive(Default)]
pub struct Memory(Mutex<HashMap<String, Json>>);

impl AuditLog for Memory {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: CallEnded) {}
}

impl ResultStore for Memory {
    fn store<'a>(
        &'a self,
        _: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, Result<String, ToolError>> {
        self.0.lock().unwrap().insert(call.to_string(), whole);
        Box::pin(async move { Ok(call.to_string()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, handle: &'a str) -> BoxFuture<'a, Result<Json, ToolError>> {
        let found = self.0.lock().unwrap().get(handle).cloned();
        Box::pin(async move { found.ok_or_else(|| ToolError::not_found("There is no such result.")) })
    }
}

impl Jq for Memory {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            octo_hub::jq_eval::evaluate(program, input.bytes(), 1 << 20).map_err(ToolError::invalid)
        })
    }
}

pub fn hub(ground: &Ground, max_bytes: usize) -> Arc<Hub> {
    let memory = Arc::new(Memory::default());
    let doors = ground.doors(&memory);
    let toolboxes = toolboxes(&ground.settings).into_iter();
    let flows = doors.open::<octo_flow::Flows>().unwrap();
    let hub = Hub::new(HubConfig {
        sources: toolboxes
            .map(|toolbox| toolbox.into_source(doors.clone(), octo_toolkit::SourceState::Ready))
            .collect(),
        profiles: Vec::new(),
        policy: PolicySettings::default(),
        limits: Vec::new(),
        cache: Vec::new(),
        shape: ResultLimits { max_bytes, ..ResultLimits::default() },
        timeout: Duration::from_secs(30),
        ledger: Arc::clone(&memory) as _,
        spills: Arc::clone(&memory) as _,
        jq: doors.open().unwrap(),
        tracer: None,
    })
    .unwrap();
    flows.attach(&hub);
    hub
}

/// All tools of the hub, its own included.
pub async fn subjects() -> Vec<Subject> {
    let hub = hub(&Ground::new(), 100_000);
    let view = hub.view("").unwrap();
    let subject = |entry: &octo_hub::Entry| Subject {
        name: entry.listed_name.to_string(),
        definition: entry.definition().to_json().to().unwrap(),
        effect: entry.effect(),
    };
    view.list(ListKind::Tools).iter().map(subject).collect()
}

pub async fn listed(hub: &Hub) -> Json {
    hub.list("", ListKind::Tools, &Caller::local(), None).await.unwrap().items
}

pub async fn call(hub: &Hub, name: &str, arguments: Value, cancel: CancellationToken) -> CallOutcome {
    hub.call(Request {
        op: Operation::tool(name, arguments.into()),
        caller: Arc::new(Caller::local()),
        frontend: Frontend::Cli,
        profile: String::new(),
        peer: Arc::new(NoPeer),
        cancel,
        timeout: None,
        trace: None,
    })
    .await
}
