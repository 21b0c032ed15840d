//! `workflow_runs`.

use crate::compiled_workflow::CompiledWorkflow;
use crate::engine::WorkflowEngine;
use crate::run_report::Status;
use octo_ports::{RunStatus, StoredRun};
use octo_toolkit::{CallContext, Caller, Effect, Example, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Maximum newest runs of a caller that are searched for those of one file.
const MAX_SEARCHED: usize = 500;
const MAX_LISTED: u64 = 100;

/// Lists your workflow runs, newest first, with the step that each stopped at: to find a run that was
/// interrupted and resume it. Prefer workflow_run with run_id for the steps and outputs of one run.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only runs of this workflow file.
    #[serde(default)]
    path: Option<WorkPath>,
    /// Only runs in this state.
    #[serde(default)]
    status: Option<Status>,
    /// Maximum number of runs; up to 100.
    #[serde(default = "default_limit")]
    limit: u64,
}

fn default_limit() -> u64 {
    20
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The runs, newest first.
    runs: Vec<RunSummary>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RunSummary {
    /// Id of the run; pass it to workflow_run as run_id.
    run_id: String,
    /// The file that it started with; workflow_run requires it, too.
    path: String,
    /// Its state. An interrupted run resumes with workflow_run.
    status: Status,
    /// When it started, UTC.
    started: String,
    /// The step that it stopped at, or the first one that was not started; absent when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_step: Option<String>,
}

pub struct ListRuns;

impl Tool for ListRuns {
    const NAME: &'static str = "workflow_runs";
    const TITLE: &'static str = "List workflow runs";
    const KEYWORDS: &'static str = "history automation jobs interrupted resume status";
    const REQUESTS: &'static [&'static str] = &[
        "which automations were interrupted",
        "did last night's flow succeed",
        "history of executions of report.yaml",
        "find the run id of the flow that stopped",
        "show failed executions, newest first",
        "at which step did each automation stop",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = WorkflowEngine;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The newest", json!({})),
            Example::new(
                "Interrupted runs of one file",
                json!({"path": "flows/report.yaml", "status": "interrupted"}),
            ),
        ]
    }

    async fn run(&self, input: Input, flows: WorkflowEngine, cx: &CallContext) -> Result<Output, ToolError> {
        let wanted = RunFilter { path: input.path.as_ref().map(WorkPath::as_str), status: input.status };
        let most = usize::try_from(input.limit.clamp(1, MAX_LISTED)).unwrap_or(1);
        Ok(Output { runs: list_runs(&flows, &cx.caller, &wanted, most).await? })
    }
}

/// Which runs to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct RunFilter<'a> {
    pub path: Option<&'a str>,
    pub status: Option<Status>,
}

/// The newest matching runs of a caller.
pub async fn list_runs(
    flows: &WorkflowEngine,
    caller: &Caller,
    wanted: &RunFilter<'_>,
    most: usize,
) -> Result<Vec<RunSummary>, ToolError> {
    let all = flows.runs().list(caller, MAX_SEARCHED).await?;
    let fits = |run: &StoredRun| {
        wanted.path.is_none_or(|path| run.path == path)
            && wanted.status.is_none_or(|status| status_of(run) == status)
    };
    let mut found = Vec::new();
    for run in all.into_iter().filter(fits).take(most) {
        match flows.get_run(caller, &run.id).await {
            Ok(run) => found.push(summary(&run)),
            // It was removed meanwhile.
            Err(error) if error.kind == octo_toolkit::Kind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// A run that no process works on was interrupted, whatever its last stored status.
fn status_of(run: &StoredRun) -> Status {
    match run.status {
        RunStatus::Running if !run.is_leased => Status::Interrupted,
        status => Status::from(status),
    }
}

fn summary(run: &StoredRun) -> RunSummary {
    let started = jiff::Timestamp::from_microsecond(run.begun).unwrap_or_default();
    RunSummary {
        run_id: run.id.clone(),
        path: run.path.clone(),
        status: status_of(run),
        started: format!("{started:.0}"),
        next_step: next_step(run),
    }
}

fn next_step(run: &StoredRun) -> Option<String> {
    if run.status == RunStatus::Done {
        return None;
    }
    // Among open steps the innermost started last.
    let open = run.steps.iter().rev().find(|step| !matches!(step.status.as_str(), "done" | "skipped"));
    if let Some(step) = open {
        return Some(step.key.clone());
    }
    let plan = CompiledWorkflow::parse(&run.text).ok()?;
    let begun = |id: &str| run.steps.iter().any(|step| step.key == id);
    plan.steps.iter().map(|step| &step.id).find(|id| !begun(id)).cloned()
}
