//! `workflow_run`.

use crate::engine::{LiveRun, Progress, ResumeOptions, RunAttachment, WorkflowEngine, check_nesting};
use crate::run_report::{self, RunError, Status, StepReport};
use crate::workflow_runs::{self, RunFilter, RunSummary};
use crate::workflow_validate::read_workflow;
use octo_ports::StoredRun;
use octo_ports::leases::LEASE_CHECK_INTERVAL;
use octo_toolkit::fs::Write;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum time before the call's deadline at which a running run is reported.
const REPLY_MARGIN: Duration = Duration::from_secs(2);
/// Maximum interrupted runs listed in a reply.
const MAX_INTERRUPTED_LISTED: usize = 5;

/// Runs a workflow file: each step is a tool call of your own, stored as it finishes. Returns when it has
/// ended, or with status running before time is up; then call again with run_id. Prefer workflow_validate to
/// only check it, and workflow_runs to find a run that was interrupted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The workflow, a YAML or JSON file of the workspace. With run_id the file that the run started with.
    path: WorkPath,
    /// The workflow's parameters by name.
    #[serde(default)]
    params: Map<String, Value>,
    /// An existing run: to see its state, or to resume it where its hub was interrupted.
    #[serde(default)]
    run_id: Option<String>,
    /// With run_id: steps that failed or were interrupted, to run again.
    #[serde(default)]
    redo: Vec<String>,
    /// With run_id: steps that failed or were interrupted and count as done, since they took effect.
    #[serde(default)]
    skip: Vec<String>,
    /// With run_id: resume a run that was cancelled.
    #[serde(default)]
    resume: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Id of this run; pass it as run_id to ask for it again.
    run_id: String,
    /// Its state. After interrupted, see error; then pass redo or skip.
    status: Status,
    /// The steps so far, in the order in which they started.
    steps: Vec<StepReport>,
    /// The outputs of the workflow, once it is done.
    outputs: Map<String, Value>,
    /// Why it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RunError>,
    /// The directory with its trace and the outputs of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifacts: Option<String>,
    /// Earlier runs of the same file that were interrupted; pass the run_id of one to resume it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interrupted_runs: Vec<RunSummary>,
    /// Problems outside the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

pub struct RunWorkflow;

impl Tool for RunWorkflow {
    const NAME: &'static str = "workflow_run";
    const TITLE: &'static str = "Run a workflow";
    const KEYWORDS: &'static str = "automation pipeline execute steps job playbook";
    const REQUESTS: &'static [&'static str] = &[
        "run the nightly report flow",
        "start flows/report.yaml with the day as parameter",
        "resume the automation where it was interrupted",
        "carry out the saved sequence of steps",
        "retry the failed step of a flow",
        "skip the step that already took effect and go on",
        "execute a multi-step recipe from a yaml file",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    const LONG_RUNNING: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = (WorkflowEngine, Fs<Write>);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Start", json!({"path": "flows/report.yaml", "params": {"day": "2026-11-14"}})),
            Example::new(
                "Resume after a step was interrupted but took effect",
                json!({"path": "flows/report.yaml", "run_id": "w_abcdefghijklmnopqrstuvwxyz", "skip": ["post"]}),
            ),
        ]
    }

    async fn run(
        &self,
        input: Input,
        (flows, fs): Self::Grants,
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        check_nesting(cx)?;
        let further = ResumeOptions { redo: input.redo, skip: input.skip, resume: input.resume };
        let path = input.path.as_str().to_owned();
        let wanted = RunFilter { path: Some(path.as_str()), status: Some(Status::Interrupted) };
        let interrupted = match input.run_id {
            None => workflow_runs::list_runs(&flows, &cx.caller, &wanted, MAX_INTERRUPTED_LISTED).await?,
            Some(_) => Vec::new(),
        };
        let (id, going) = match input.run_id {
            None => {
                reject_resume_options(&further)?;
                let text = read_workflow(&fs, input.path).await?;
                let (id, live) = flows.begin(cx, &path, text, input.params, fs).await?;
                (id, RunAttachment::Owned(live))
            }
            Some(id) => {
                require_same_file(&flows.get_run(&cx.caller, &id).await?, &path)?;
                let going = flows.resume(cx, &id, &further, fs).await?;
                (id, going)
            }
        };
        let warnings = match going {
            RunAttachment::Owned(live) => {
                let mut cancel_guard = CancelOnDrop { live: &live, deadline: cx.deadline, completed: false };
                let waited = wait_for_run(&live, cx).await;
                cancel_guard.completed = waited.is_ok();
                waited?
            }
            RunAttachment::Attached(live) => wait_for_run(&live, cx).await?,
            RunAttachment::Elsewhere => wait_for_foreign_run(&flows, &id, cx).await?,
        };
        let run = flows.get_run(&cx.caller, &id).await.map_err(|error| unreadable_run(&id, error))?;
        Ok(to_output(run, interrupted, warnings))
    }
}

/// The state of a run whose steps may have taken effect cannot be read.
fn unreadable_run(id: &str, error: ToolError) -> ToolError {
    let hint =
        "Call again with this run_id when the store is available. Without it, the steps would run once more.";
    let message = format!("The run `{id}` was started, but its state cannot be read: {}", error.message);
    ToolError { message: message.into(), ..error }.hint(hint).with_unknown_outcome()
}

/// Resume options make no sense for a new run.
fn reject_resume_options(further: &ResumeOptions) -> Result<(), ToolError> {
    if further.resume || !further.redo.is_empty() || !further.skip.is_empty() {
        return Err(ToolError::invalid("`redo`, `skip` and `resume` require an existing run.")
            .hint("Pass its run_id, too."));
    }
    Ok(())
}

/// A run resumes with the text it started with; another file name would be misleading.
fn require_same_file(run: &StoredRun, path: &str) -> Result<(), ToolError> {
    if run.path == path {
        return Ok(());
    }
    Err(ToolError::invalid(format!("This run belongs to `{}`.", run.path))
        .hint(format!("Pass path \"{}\" with this run_id.", run.path)))
}

/// Cancels the run with the call that started it, unless the call was answered or timed out.
struct CancelOnDrop<'a> {
    live: &'a LiveRun,
    deadline: Instant,
    completed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.completed && Instant::now() < self.deadline {
            self.live.cancel.cancel();
        }
    }
}

/// Waits for the end of the run or of the call; returns the warnings of the run.
async fn wait_for_run(live: &Arc<LiveRun>, cx: &CallContext) -> Result<Vec<String>, ToolError> {
    let mut progress = live.progress.subscribe();
    let until = reply_deadline(cx);
    loop {
        let Progress { done, total, last, ended, warnings } = progress.borrow_and_update().clone();
        if !last.is_empty() {
            cx.progress(done, Some(total), &format!("{done} of {total}: {last}"));
        }
        if ended {
            return Ok(warnings);
        }
        tokio::select! {
            changed = progress.changed() => if changed.is_err() {
                return Ok(Vec::new());
            },
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
            () = tokio::time::sleep_until(until.into()) => return Ok(Vec::new()),
        }
    }
}

/// Early enough for the reply to be in time.
fn reply_deadline(cx: &CallContext) -> Instant {
    let left = cx.time_left();
    Instant::now() + left.saturating_sub(REPLY_MARGIN.min(left / 5))
}

/// Waits for a run that another process works on.
async fn wait_for_foreign_run(
    flows: &WorkflowEngine,
    id: &str,
    cx: &CallContext,
) -> Result<Vec<String>, ToolError> {
    let until = reply_deadline(cx);
    let mut changes = flows.runs().changes();
    while flows.get_run(&cx.caller, id).await?.is_leased {
        tokio::select! {
            () = changes.changed() => {}
            () = tokio::time::sleep(LEASE_CHECK_INTERVAL) => {}
            () = cx.cancel.cancelled() => return Err(ToolError::cancelled()),
            () = tokio::time::sleep_until(until.into()) => break,
        }
    }
    Ok(Vec::new())
}

fn to_output(run: StoredRun, interrupted_runs: Vec<RunSummary>, warnings: Vec<String>) -> Output {
    let over = !run.is_leased || run.status != octo_ports::RunStatus::Running;
    let artifacts = (over && warnings.is_empty()).then(|| crate::engine::artifacts_dir(&run.id));
    Output {
        status: Status::from(run.status),
        steps: run_report::step_reports(&run),
        outputs: run_report::run_outputs(&run),
        error: run_report::run_error(&run),
        run_id: run.id,
        artifacts,
        interrupted_runs,
        warnings,
    }
}
