//! A hub with the workflow tools, a few scripted tools, and an in-memory store.

use crate::WorkflowEngine;
use octo_grants::fs::{RootSpec, Workspace, WorkspaceSpec};
use octo_grants::{Capabilities, Clock};
use octo_hub::jq_eval::{Jq, JqRunner};
use octo_hub::{
    ChildCommand, Hub, HubConfig, PolicySettings, Profile, ProfileSettings, Request, ResultLimits,
    RuleSettings,
};
use octo_model::{
    CallId, Caller, Effect, EffectOrigin, Frontend, Json, JsonObject, Kind, Operation, ToolError,
};
use octo_ports::{
    AuditLog, CallEnded, CallStarted, ChangeNotifier, Changes, LeasedRun, NewRun, Port, ResultStore,
    RunLease, RunStatus, Runs, StoreError, StoreResult, StoredRun, StoredStep,
};
use octo_toolkit::{BoxFuture, CallContext, Definition, Listing, ListingState, Source, SourceState};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// What the scripted tools have done.
#[derive(Default)]
pub struct ToolLog {
    pub lines: Mutex<Vec<String>>,
    pub calls: Mutex<HashMap<String, u32>>,
    pub max_concurrent: AtomicUsize,
    running: AtomicUsize,
}

struct ScriptedSource {
    log: Arc<ToolLog>,
    listing: watch::Sender<ListingState>,
}

fn scripted_source(log: Arc<ToolLog>) -> Arc<dyn Source> {
    let text = json!({"type": "string", "description": "t"});
    let number = json!({"type": "integer", "description": "n"});
    let properties = json!({"line": text, "fails": number, "kind": text, "ms": number, "bytes": number});
    let input = json!({"type": "object", "properties": properties, "additionalProperties": false});
    let output = json!({"type": "object", "properties": {"line": text, "count": number, "truncated": {"type": "boolean"}, "result_handle": text}});
    let tool = |(name, effect): (&str, Effect)| Definition {
        key: name.to_owned(),
        members: JsonObject::new()
            .with("name", name)
            .with("description", "Does as it is told.")
            .with("inputSchema", Json::from(input.clone()))
            .with("outputSchema", Json::from(output.clone())),
        effect,
        effect_origin: EffectOrigin::Native,
    };
    let tools =
        [("append", Effect::writes()), ("look", Effect::reads()), ("put", Effect::writes().idempotent())];
    let lists = Arc::new(Listing { tools: tools.map(tool).into(), ..Listing::default() });
    let (listing, _) = watch::channel(ListingState { state: SourceState::Ready, listing: lists, version: 1 });
    Arc::new(ScriptedSource { log, listing })
}

impl Source for ScriptedSource {
    fn name(&self) -> &str {
        "scripted"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    /// Appends the line, unless it should fail first.
    fn run<'a>(
        &'a self,
        op: Operation,
        _cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let given: Value = op.params.get("arguments").map(|json| json.to().unwrap()).unwrap_or_default();
            let line = given["line"].as_str().unwrap_or_default().to_owned();
            let now = self.log.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.log.max_concurrent.fetch_max(now, Ordering::SeqCst);
            let count = {
                let mut calls = self.log.calls.lock().unwrap();
                let count = calls.entry(line.clone()).or_default();
                *count += 1;
                *count
            };
            tokio::time::sleep(Duration::from_millis(given["ms"].as_u64().unwrap_or(0))).await;
            self.log.running.fetch_sub(1, Ordering::SeqCst);
            if u64::from(count) <= given["fails"].as_u64().unwrap_or(0) {
                let error = |kind| ToolError::new(kind, format!("Attempt {count} fails.")).hint("Wait.");
                let kind = given["kind"].as_str().unwrap_or("unavailable");
                return Err(match Kind::ALL.into_iter().find(|known| known.as_str() == kind) {
                    Some(kind) => error(kind),
                    None => error(Kind::Unavailable).with_unknown_outcome(),
                });
            }
            if op.name != "look" {
                self.log.lines.lock().unwrap().push(line.clone());
            }
            let filler = "x".repeat(given["bytes"].as_u64().unwrap_or(0) as usize);
            let answer = json!({"line": format!("{line}{filler}"), "count": count});
            Ok(JsonObject::new()
                .with("content", Json::array([]))
                .with("structuredContent", Json::from(answer)))
        })
    }
}

/// In-memory runs. With `writes_left` it fails from that write on, as if the process had died there.
pub struct RunTable {
    runs: Mutex<HashMap<String, (String, StoredRun)>>,
    leased: Mutex<HashSet<String>>,
    notifier: ChangeNotifier,
    pub writes_left: AtomicI64,
}

impl Default for RunTable {
    fn default() -> Self {
        Self {
            runs: Mutex::default(),
            leased: Mutex::default(),
            notifier: ChangeNotifier::default(),
            writes_left: AtomicI64::new(i64::MAX),
        }
    }
}

#[derive(Clone)]
pub struct MemoryRuns(pub Arc<RunTable>);

struct MemoryLease(Arc<RunTable>, String);

impl Drop for MemoryLease {
    fn drop(&mut self) {
        self.0.leased.lock().unwrap().remove(&self.1);
        self.0.notifier.notify();
    }
}

impl MemoryLease {
    fn change(&self, change: impl FnOnce(&mut StoredRun)) -> StoreResult<()> {
        if self.0.writes_left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(StoreError::unavailable(Port::Runs, "the process is gone"));
        }
        change(&mut self.0.runs.lock().unwrap().get_mut(&self.1).unwrap().1);
        self.0.notifier.notify();
        Ok(())
    }
}

impl RunLease for MemoryLease {
    fn id(&self) -> &str {
        &self.1
    }

    fn step(&self, step: StoredStep) -> BoxFuture<'_, StoreResult<()>> {
        let noted = self.change(|run| match run.steps.iter_mut().find(|known| known.key == step.key) {
            Some(known) => *known = step,
            None => run.steps.push(step),
        });
        Box::pin(async { noted })
    }

    fn status(
        &self,
        status: RunStatus,
        outputs: Option<Json>,
        error: Option<Json>,
    ) -> BoxFuture<'_, StoreResult<()>> {
        let noted = self.change(|run| (run.status, run.outputs, run.error) = (status, outputs, error));
        Box::pin(async { noted })
    }
}

impl MemoryRuns {
    fn find(&self, caller: &Caller, id: &str) -> StoreResult<StoredRun> {
        let runs = self.0.runs.lock().unwrap();
        self.find_in(&runs, caller, id).ok_or(StoreError::NotFound(Port::Runs))
    }

    fn find_in(
        &self,
        runs: &HashMap<String, (String, StoredRun)>,
        caller: &Caller,
        id: &str,
    ) -> Option<StoredRun> {
        let (_, run) = runs.get(id).filter(|(subject, _)| *subject == caller.principal.subject)?;
        Some(StoredRun { is_leased: self.0.leased.lock().unwrap().contains(id), ..run.clone() })
    }
}

impl Runs for MemoryRuns {
    fn changes(&self) -> Changes {
        self.0.notifier.subscribe()
    }

    fn begin<'a>(&'a self, caller: &'a Caller, run: NewRun) -> BoxFuture<'a, StoreResult<Box<dyn RunLease>>> {
        Box::pin(async move {
            let mut runs = self.0.runs.lock().unwrap();
            let id = format!("w_{}", runs.len());
            let kept = StoredRun {
                id: id.clone(),
                path: run.path,
                name: run.name,
                text: run.text,
                hash: String::new(),
                params: run.params,
                status: RunStatus::Running,
                outputs: None,
                error: None,
                begun: 0,
                changed: 0,
                is_leased: false,
                steps: Vec::new(),
            };
            runs.insert(id.clone(), (caller.principal.subject.clone(), kept));
            self.0.leased.lock().unwrap().insert(id.clone());
            Ok(Box::new(MemoryLease(Arc::clone(&self.0), id)) as Box<dyn RunLease>)
        })
    }

    fn lease<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<LeasedRun>> {
        Box::pin(async move {
            let run = self.find(caller, id)?;
            if !self.0.leased.lock().unwrap().insert(id.to_owned()) {
                return Err(StoreError::Conflict(Port::Runs));
            }
            Ok((run, Box::new(MemoryLease(Arc::clone(&self.0), id.to_owned())) as Box<dyn RunLease>))
        })
    }

    fn get<'a>(&'a self, caller: &'a Caller, id: &'a str) -> BoxFuture<'a, StoreResult<StoredRun>> {
        let found = self.find(caller, id);
        Box::pin(async { found })
    }

    fn list<'a>(&'a self, caller: &'a Caller, most: usize) -> BoxFuture<'a, StoreResult<Vec<StoredRun>>> {
        let runs = self.0.runs.lock().unwrap();
        let mut ids: Vec<&String> = runs.keys().collect();
        ids.sort_by_key(|id| std::cmp::Reverse(id[2..].parse::<usize>().unwrap()));
        let all = ids.into_iter().filter_map(|id| self.find_in(&runs, caller, id));
        let brief = all.map(|run| StoredRun { text: String::new(), steps: Vec::new(), ..run });
        let brief: Vec<StoredRun> = brief.take(most).collect();
        Box::pin(async { Ok(brief) })
    }
}

#[derive(Default)]
pub struct MemoryStores {
    pub opened: Mutex<Vec<CallStarted>>,
    pub closed: Mutex<Vec<CallEnded>>,
    results: Mutex<HashMap<String, Json>>,
}

impl AuditLog for MemoryStores {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        self.opened.lock().unwrap().push(opening);
        Box::pin(async { Ok(()) })
    }

    fn close(&self, closing: CallEnded) {
        self.closed.lock().unwrap().push(closing);
    }
}

impl ResultStore for MemoryStores {
    fn store<'a>(&'a self, _: &'a Caller, call: CallId, whole: Json) -> BoxFuture<'a, StoreResult<String>> {
        self.results.lock().unwrap().insert(call.to_string(), whole);
        Box::pin(async move { Ok(call.to_string()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, handle: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        let found = self.results.lock().unwrap().get(handle).cloned();
        Box::pin(async move { found.ok_or(StoreError::NotFound(Port::Results)) })
    }
}

impl Jq for MemoryStores {
    fn run<'a>(&'a self, _: &'a str, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(ToolError::invalid("There is no jq here.")) })
    }
}

/// The process of a program, built beside the tests.
fn code_child() -> ChildCommand {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(|deps| deps.parent()).unwrap().join("code_child");
    assert!(program.exists(), "{} is missing: run `cargo build --workspace` first", program.display());
    ChildCommand { program, args: Vec::new() }
}

/// One process: its own engine and hub, on a store and records that outlive it.
pub struct WorkflowHub {
    pub hub: Arc<Hub>,
    pub flows: WorkflowEngine,
    pub stores: Arc<MemoryStores>,
    pub tool_log: Arc<ToolLog>,
    pub runs: MemoryRuns,
    pub dir: Arc<tempfile::TempDir>,
    pub timeout: Option<Duration>,
}

impl WorkflowHub {
    pub fn new(workflow: &str) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let bench = Self::with_stores(MemoryRuns(Arc::default()), Arc::default(), folder, true);
        bench.write("flow.yaml", &format!("version: 1\nname: test\n{workflow}"));
        bench
    }

    /// A hub with these profiles, too.
    pub fn with_profiles(profiles: Vec<Profile>) -> Self {
        let bench = Self::new("steps: []\n");
        let rules = RuleSettings {
            policy: PolicySettings::default(),
            limits: Vec::new(),
            cache: Vec::new(),
            timeout: Duration::from_secs(20),
        };
        bench.hub.apply(rules, profiles).unwrap();
        bench
    }

    /// Another process, after this one has ended.
    pub fn restarted(&self) -> Self {
        self.runs.0.writes_left.store(i64::MAX, Ordering::SeqCst);
        Self::with_stores(self.runs.clone(), Arc::clone(&self.tool_log), Arc::clone(&self.dir), true)
    }

    pub fn read_only(&self) -> Self {
        Self::with_stores(self.runs.clone(), Arc::clone(&self.tool_log), Arc::clone(&self.dir), false)
    }

    fn with_stores(
        runs: MemoryRuns,
        tool_log: Arc<ToolLog>,
        dir: Arc<tempfile::TempDir>,
        writable: bool,
    ) -> Self {
        let root =
            RootSpec { name: "workspace".into(), path: dir.path().join("work"), alias_path: None, writable };
        let workspace =
            Workspace::open(WorkspaceSpec { roots: vec![root], ..WorkspaceSpec::default() }).unwrap();
        let flows = WorkflowEngine::new(Arc::new(runs.clone()), Clock::system());
        let doors = Capabilities::default().with(workspace).with(flows.clone());
        let stores = Arc::new(MemoryStores::default());
        let few =
            ProfileSettings { tools: vec!["workflow_*".into(), "look".into()], ..ProfileSettings::default() };
        let hub = Hub::new(HubConfig {
            sources: vec![
                scripted_source(Arc::clone(&tool_log)),
                crate::toolbox().into_source(doors, SourceState::Ready),
            ],
            profiles: vec![Profile::new("few", &few).unwrap()],
            policy: PolicySettings::default(),
            limits: Vec::new(),
            rate_buckets: None,
            cache: Vec::new(),
            result_limits: ResultLimits { max_bytes: 20_000, ..ResultLimits::default() },
            timeout: Duration::from_secs(20),
            audit_log: Arc::clone(&stores) as _,
            result_store: Arc::clone(&stores) as _,
            jq: JqRunner::new(Arc::clone(&stores) as _),
            code_child: Some(code_child()),
            tracer: None,
            remedy_text: |_| String::new(),
        })
        .unwrap();
        Self { hub, flows, stores, tool_log, runs, dir, timeout: None }
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join("work").join(name), text).unwrap();
    }

    pub async fn call_tool(
        &self,
        caller: &str,
        profile: &str,
        tool: &str,
        arguments: Value,
        cancel: CancellationToken,
    ) -> Result<Value, ToolError> {
        let called = self
            .hub
            .call(Request {
                profile: profile.to_owned(),
                cancel,
                timeout: self.timeout,
                ..Request::new(
                    Operation::tool(tool, Json::from(arguments)),
                    Arc::new(Caller::named(caller)),
                    Frontend::Rest,
                )
            })
            .await;
        let whole = self.hub.untruncated(&Caller::named(caller), called.outcome?).await?;
        Ok(whole.get("structuredContent").unwrap().to().unwrap())
    }

    pub async fn run(&self, mut arguments: Value) -> Result<Value, ToolError> {
        arguments["path"] = json!("flow.yaml");
        self.call_tool("ada", "", "workflow_run", arguments, CancellationToken::new()).await
    }

    pub async fn begin(&self) -> Value {
        self.run(json!({})).await.unwrap()
    }

    pub fn lines(&self) -> Vec<String> {
        self.tool_log.lines.lock().unwrap().clone()
    }

    pub fn file(&self, name: &str) -> Value {
        let path = self.dir.path().join("work").join(name);
        serde_json::from_slice(&std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}")))
            .unwrap()
    }
}

/// The steps of a reply, as `id status`.
pub fn steps(reply: &Value) -> Vec<String> {
    let steps = reply["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| format!("{} {}", step["id"].as_str().unwrap(), step["status"].as_str().unwrap()))
        .collect()
}
