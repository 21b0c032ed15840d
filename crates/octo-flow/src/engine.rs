//! Workflow engine: starts, inspects and resumes runs. A run has its own task, and each of its calls goes
//! through the hub.

mod artifacts;
mod hub_tools;
mod journal;
mod run_executor;
mod stop_reason;

use crate::check::{CheckReport, check};
use crate::compiled_workflow::CompiledWorkflow;
use crate::diagnostic::{Diagnostic, DiagnosticView};
use artifacts::Artifacts;
pub use hub_tools::HubTools;
use journal::Journal;
use octo_admission::{FairSlot, FairSlots, SlotLimits};
use octo_grants::fs::{Fs, Write};
use octo_grants::{Capabilities, Clock, Grant};
use octo_model::{Caller, DEFAULT_RETRY_AFTER, Json, Kind, ToolError};
use octo_ports::{NewRun, RunLease, RunStatus, Runs, StoreError, StoredRun};
use octo_toolkit::CallContext;
use run_executor::RunExecutor;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long to wait for servers that are still starting; a workflow may call any of them.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for running steps on shutdown of the hub.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum depth of workflows that call workflows.
const MAX_WORKFLOW_DEPTH: u8 = 4;
/// Runs at the same time. They continue after the call that started them has ended, and with it its slot.
const MAX_LIVE_RUNS: usize = 1024;

/// The capability of tools that run workflows.
#[derive(Clone)]
pub struct WorkflowEngine(Arc<EngineInner>);

struct EngineInner {
    runs: Arc<dyn Runs>,
    clock: Clock,
    live_runs: Mutex<HashMap<String, Arc<LiveRun>>>,
    slots: Arc<FairSlots>,
}

/// A run and everything needed to execute it.
struct RunSetup {
    cx: CallContext,
    plan: CompiledWorkflow,
    params: Value,
    run: StoredRun,
    lease: Box<dyn RunLease>,
    fs: Fs<Write>,
    journal: Journal,
    slot: FairSlot,
}

/// A run that is executed by this process.
pub struct LiveRun {
    pub cancel: CancellationToken,
    /// Lets running steps finish, and starts no new ones.
    stop: CancellationToken,
    pub progress: watch::Sender<Progress>,
}

#[derive(Debug, Clone, Default)]
pub struct Progress {
    pub done: u64,
    pub total: u64,
    /// The step that finished last.
    pub last: String,
    pub ended: bool,
    pub warnings: Vec<String>,
}

/// Where a run is executed.
pub enum RunAttachment {
    /// Here, because of this call, whose cancellation also cancels the run.
    Owned(Arc<LiveRun>),
    /// Here, because of another call.
    Attached(Arc<LiveRun>),
    /// In another process, or not at all.
    Elsewhere,
}

/// How to resume a run.
#[derive(Debug, Clone, Default)]
pub struct ResumeOptions {
    pub redo: Vec<String>,
    pub skip: Vec<String>,
    /// Resume a cancelled run.
    pub resume: bool,
}

impl ResumeOptions {
    fn is_resume(&self) -> bool {
        self.resume || !self.redo.is_empty() || !self.skip.is_empty()
    }
}

impl Grant for WorkflowEngine {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

impl WorkflowEngine {
    pub fn new(runs: Arc<dyn Runs>, clock: Clock) -> Self {
        let slots = FairSlots::new("workflow_runs", SlotLimits::new(MAX_LIVE_RUNS));
        Self(Arc::new(EngineInner { runs, clock, live_runs: Mutex::default(), slots }))
    }

    pub fn runs(&self) -> &Arc<dyn Runs> {
        &self.0.runs
    }

    /// Checks a text for this caller, and returns the tools that it would call.
    pub async fn check(
        &self,
        cx: &CallContext,
        text: &str,
    ) -> Result<(Option<CompiledWorkflow>, CheckReport), ToolError> {
        cx.nested_calls()?.wait_until_listed(cx, STARTUP_TIMEOUT).await;
        Ok(match CompiledWorkflow::parse(text) {
            Err(errors) => (None, CheckReport { errors, ..CheckReport::default() }),
            Ok(plan) => {
                let found = check(&plan, &HubTools(cx));
                (Some(plan), found)
            }
        })
    }

    /// Starts a run of a text that was read from `path`; returns its id and its handle.
    pub async fn begin(
        &self,
        cx: &CallContext,
        path: &str,
        text: String,
        params: Map<String, Value>,
        fs: Fs<Write>,
    ) -> Result<(String, Arc<LiveRun>), ToolError> {
        let (plan, found) = self.check(cx, &text).await?;
        let plan = match plan {
            Some(plan) if found.errors.is_empty() => plan,
            _ => return Err(invalid_workflow(&found.errors)),
        };
        let params = with_defaults(&plan, params)?;
        let run = NewRun {
            path: path.to_owned(),
            name: plan.name.clone(),
            text,
            params: Json::from(params.clone()),
        };
        let slot = self.0.admit(&cx.caller)?;
        let lease = self.0.runs.begin(&cx.caller, run).await?;
        let run = self.0.runs.get(&cx.caller, lease.id()).await?;
        let journal = Journal::default();
        Ok(self.0.spawn_run(RunSetup { cx: cx.clone(), plan, params, run, lease, fs, journal, slot }))
    }

    /// Resumes a run that was interrupted or decided about; any other is only looked up.
    pub async fn resume(
        &self,
        cx: &CallContext,
        id: &str,
        further: &ResumeOptions,
        fs: Fs<Write>,
    ) -> Result<RunAttachment, ToolError> {
        let kept = self.0.runs.get(&cx.caller, id).await?;
        if let Some(live) = self.0.lock_live_runs().get(id).cloned() {
            return if further.is_resume() {
                Err(run_in_progress())
            } else {
                Ok(RunAttachment::Attached(live))
            };
        }
        let cut_off = kept.status == RunStatus::Running && !kept.is_leased;
        if !cut_off && !further.is_resume() {
            return Ok(RunAttachment::Elsewhere);
        }
        let slot = self.0.admit(&cx.caller)?;
        let (kept, lease) = match self.0.runs.lease(&cx.caller, id).await {
            // Another process resumed it first.
            Err(StoreError::Conflict(_)) if !further.is_resume() => {
                return Ok(RunAttachment::Elsewhere);
            }
            taken => taken?,
        };
        match kept.status {
            RunStatus::Done if further.is_resume() => {
                lease.release().await;
                return Err(run_already_done());
            }
            RunStatus::Running => {}
            _ if further.is_resume() => {}
            _ => {
                lease.release().await;
                return Ok(RunAttachment::Elsewhere);
            }
        }
        let plan = CompiledWorkflow::parse(&kept.text).map_err(|errors| invalid_workflow(&errors))?;
        let journal = Journal::load(&kept)?;
        let now = format!("{:.3}", self.0.clock.now());
        journal.apply_decisions(&plan, further, lease.as_ref(), &now).await?;
        lease.status(RunStatus::Running, None, None).await?;
        let params: Value = kept.params.to().map_err(ToolError::internal)?;
        let setup = RunSetup { cx: cx.clone(), plan, params, run: kept, lease, fs, journal, slot };
        let (_, live) = self.0.spawn_run(setup);
        Ok(RunAttachment::Owned(live))
    }

    pub async fn get_run(&self, caller: &Caller, id: &str) -> Result<StoredRun, ToolError> {
        Ok(self.0.runs.get(caller, id).await?)
    }

    /// Lets running steps finish, starts no new ones, and waits for that up to a timeout. The runs can be
    /// resumed later.
    pub async fn shutdown(&self) {
        let all: Vec<Arc<LiveRun>> = self.0.lock_live_runs().values().cloned().collect();
        for live in &all {
            live.stop.cancel();
        }
        let ended = async {
            for live in &all {
                let _ = live.progress.subscribe().wait_for(|progress| progress.ended).await;
            }
        };
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await.is_err() {
            tracing::warn!("a workflow step was interrupted; its run can be resumed");
        }
    }
}

impl EngineInner {
    fn lock_live_runs(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveRun>>> {
        self.live_runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, caller: &Caller) -> Result<FairSlot, ToolError> {
        let slot = self.slots.try_acquire(&caller.principal);
        slot.map_err(|_| {
            ToolError::rate_limited("Too many workflow runs are in progress.", DEFAULT_RETRY_AFTER)
                .hint("Wait until some of them have ended; workflow_runs lists them.")
        })
    }

    /// Executes a run in its own task.
    fn spawn_run(self: &Arc<Self>, work: RunSetup) -> (String, Arc<LiveRun>) {
        let RunSetup { cx, plan, params, run, lease, fs, journal, slot } = work;
        let done = journal.finished_calls(&plan);
        let progress = Progress { done, total: done.max(plan.call_count() as u64), ..Progress::default() };
        let live = Arc::new(LiveRun {
            cancel: CancellationToken::new(),
            stop: CancellationToken::new(),
            progress: watch::channel(progress).0,
        });
        self.lock_live_runs().insert(run.id.clone(), Arc::clone(&live));
        let session = RunExecutor {
            engine: Arc::clone(self),
            artifacts: Artifacts::new(fs, &run),
            plan,
            params: Arc::new(params),
            lease,
            journal,
            cx: cx.with_cancel(live.cancel.clone()),
            live: Arc::clone(&live),
        };
        let finished = session.run(run.id.clone());
        tokio::spawn(async move {
            let _slot = slot;
            finished.await;
        });
        (run.id, live)
    }
}

/// Fails for a call that cannot use workflows: one without a hub, or nested too deeply.
pub fn check_nesting(cx: &CallContext) -> Result<(), ToolError> {
    cx.nested_calls()?;
    if cx.depth < MAX_WORKFLOW_DEPTH {
        return Ok(());
    }
    Err(ToolError::invalid(format!("Workflows are nested more than {MAX_WORKFLOW_DEPTH} deep."))
        .hint("Put the steps into one workflow."))
}

/// The directory of a run's artifacts.
pub fn artifacts_dir(id: &str) -> String {
    format!("{}/{id}", artifacts::ARTIFACTS_DIR)
}

/// Validates the parameters and adds the defaults.
fn with_defaults(plan: &CompiledWorkflow, mut given: Map<String, Value>) -> Result<Value, ToolError> {
    for (name, param) in &plan.params {
        if let Some(default) = &param.default {
            given.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    let (schema, given) = (plan.params_schema(), Value::Object(given));
    let validator = jsonschema::options().build(&schema).map_err(ToolError::internal)?;
    let wrong: Vec<String> = validator
        .iter_errors(&given)
        .take(3)
        .map(|error| {
            let at = error.instance_path().to_string();
            let text: String = error.to_string().chars().take(200).collect();
            if at.is_empty() { text } else { format!("{}: {text}", at.trim_start_matches('/')) }
        })
        .collect();
    if wrong.is_empty() {
        return Ok(given);
    }
    let known: Vec<String> = plan
        .params
        .iter()
        .map(|(name, param)| {
            let need = if param.required && param.default.is_none() { ", required" } else { "" };
            format!("{name} ({}{need})", param.kind.as_str())
        })
        .collect();
    let known = if known.is_empty() {
        "It takes no parameters.".to_owned()
    } else {
        format!("Its parameters: {}.", known.join(", "))
    };
    Err(ToolError::invalid(format!("Invalid parameters: {}.", wrong.join("; "))).hint(known))
}

fn invalid_workflow(errors: &[Diagnostic]) -> ToolError {
    let told: Vec<String> =
        errors.iter().take(3).map(|problem| DiagnosticView::to_string(&problem.to_view())).collect();
    let more = if errors.len() > 3 { format!(" And {} more.", errors.len() - 3) } else { String::new() };
    ToolError::invalid(format!("The workflow cannot run. {}{more}", told.join(" ")))
        .hint("Fix the file; workflow_validate reports all problems.")
}

fn run_in_progress() -> ToolError {
    ToolError::new(Kind::Conflict, "The run is in progress.")
        .hint("Wait until it ends; call with run_id alone to see its state.")
}

fn run_already_done() -> ToolError {
    ToolError::new(Kind::Conflict, "The run is done; its steps cannot be redone or skipped.")
        .hint("Start a new one without run_id.")
}
