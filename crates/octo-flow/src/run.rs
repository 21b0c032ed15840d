//! `workflow_run`.

use crate::engine::{Asker, Flows, Further, Going, Live, Progress};
use crate::runs::{self, RunSummary, Wanted};
use crate::told::{self, Failed, Status, StepTold};
use crate::validate::read;
use octo_hub::StoredRun;
use octo_toolkit::fs::Write;
use octo_toolkit::{CallContext, Effect, Example, Fs, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long before the call's end a run that is still under way is answered for, at most.
const MARGIN: Duration = Duration::from_secs(2);
/// Interrupted runs that a reply names, at most.
const MAX_NAMED: usize = 5;
/// How often a run of another process is looked at.
const PAUSE: Duration = Duration::from_millis(500);

/// Runs a workflow file: each step is a tool call of your own, kept as it finishes. Answers when it has ended, or with
/// status running before time is up; then ask again with run_id. Prefer workflow_validate to only check it, and workflow_runs to find a run that was interrupted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The workflow, a YAML or JSON file of the workspace. With run_id the file that the run began with.
    path: WorkPath,
    /// The workflow's parameters by name.
    #[serde(default)]
    params: Map<String, Value>,
    /// A run that was begun before: to see how it is doing, or to go on with it where its hub was cut off.
    #[serde(default)]
    run_id: Option<String>,
    /// With run_id: steps that failed or were cut off and shall be done again.
    #[serde(default)]
    redo: Vec<String>,
    /// With run_id: steps that failed or were cut off and count as done, since their effect is there.
    #[serde(default)]
    skip: Vec<String>,
    /// With run_id: go on with a run that was cancelled.
    #[serde(default)]
    resume: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Names this run; give it as run_id to ask for it again.
    run_id: String,
    /// How it is doing. After interrupted, see error; then give redo or skip.
    status: Status,
    /// The steps so far, in the order in which they began.
    steps: Vec<StepTold>,
    /// What the workflow gives, once it is done.
    outputs: Map<String, Value>,
    /// Why it did not go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Failed>,
    /// The folder with its trace and the outputs of its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifacts: Option<String>,
    /// Earlier runs of the same file that were interrupted; give the run_id of one to resume it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    interrupted_runs: Vec<RunSummary>,
    /// What was left undone beside the steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

pub struct Run;

impl Tool for Run {
    const NAME: &'static str = "workflow_run";
    const TITLE: &'static str = "Run a workflow";
    const EFFECT: Effect = Effect::destroys().open_world();
    const LONG_RUNNING: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = (Flows, Fs<Write>);

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Begin", json!({"path": "flows/report.yaml", "params": {"day": "2026-11-14"}})),
            Example::new(
                "Go on after a step was cut off, and its effect is there",
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
        let asker = Asker::of(cx)?;
        let further = Further { redo: input.redo, skip: input.skip, resume: input.resume };
        let path = input.path.as_str().to_owned();
        let wanted = Wanted { path: Some(path.as_str()), status: Some(Status::Interrupted) };
        let interrupted = match input.run_id {
            None => runs::list(&flows, &cx.caller, &wanted, MAX_NAMED).await?,
            Some(_) => Vec::new(),
        };
        let (id, going) = match input.run_id {
            None => {
                alone(&further)?;
                let text = read(&fs, input.path).await?;
                let (id, live) = flows.begin(&asker, &path, text, input.params, fs).await?;
                (id, Going::Own(live))
            }
            Some(id) => {
                same_file(&flows.look(&cx.caller, &id).await?, &path)?;
                let going = flows.further(&asker, &id, &further, fs).await?;
                (id, going)
            }
        };
        let warnings = match going {
            Going::Own(live) => {
                let mut together = Together { live: &live, deadline: cx.deadline, answered: false };
                let waited = wait(&live, cx).await;
                together.answered = waited.is_ok();
                waited?
            }
            Going::Here(live) => wait(&live, cx).await?,
            Going::Elsewhere => wait_elsewhere(&flows, &id, cx).await?,
        };
        Ok(told(flows.look(&cx.caller, &id).await?, interrupted, warnings))
    }
}

/// What belongs to a run that was begun before means nothing for a new one.
fn alone(further: &Further) -> Result<(), ToolError> {
    if further.resume || !further.redo.is_empty() || !further.skip.is_empty() {
        return Err(ToolError::invalid("`redo`, `skip` and `resume` belong to a run that was begun before.")
            .hint("Give its run_id, too."));
    }
    Ok(())
}

/// A run goes on with the text it began with; another name would promise something else.
fn same_file(run: &StoredRun, path: &str) -> Result<(), ToolError> {
    if run.path == path {
        return Ok(());
    }
    Err(ToolError::invalid(format!("This run is one of `{}`.", run.path))
        .hint(format!("Give path \"{}\" with this run_id.", run.path)))
}

/// Cancels the run with the call that set it going, unless the call was answered or ran out of time.
struct Together<'a> {
    live: &'a Live,
    deadline: Instant,
    answered: bool,
}

impl Drop for Together<'_> {
    fn drop(&mut self) {
        if !self.answered && Instant::now() < self.deadline {
            self.live.cancel.cancel();
        }
    }
}

/// Waits for the run's end, or for the call's; gives what the run has to say beside its steps.
async fn wait(live: &Arc<Live>, cx: &CallContext) -> Result<Vec<String>, ToolError> {
    let mut progress = live.progress.subscribe();
    let until = answer_by(cx);
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

/// Early enough for the answer to be in time.
fn answer_by(cx: &CallContext) -> Instant {
    let left = cx.time_left();
    Instant::now() + left.saturating_sub(MARGIN.min(left / 5))
}

/// Waits for a run that another process works on.
async fn wait_elsewhere(flows: &Flows, id: &str, cx: &CallContext) -> Result<Vec<String>, ToolError> {
    let until = answer_by(cx);
    while flows.look(&cx.caller, id).await?.is_leased && Instant::now() + PAUSE < until {
        cx.check()?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Vec::new())
}

fn told(run: StoredRun, interrupted_runs: Vec<RunSummary>, warnings: Vec<String>) -> Output {
    let over = !run.is_leased || run.status != octo_hub::RunStatus::Running;
    let artifacts = (over && warnings.is_empty()).then(|| crate::engine::folder(&run.id));
    Output {
        status: Status::from(run.status),
        steps: told::steps(&run),
        outputs: told::outputs(&run),
        error: told::failed(&run),
        run_id: run.id,
        artifacts,
        interrupted_runs,
        warnings,
    }
}
