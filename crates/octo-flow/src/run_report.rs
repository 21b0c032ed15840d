//! Runs as shown to callers.

use octo_model::Json;
use octo_ports::{RunStatus, StoredRun, StoredStep};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Running,
    Done,
    Failed,
    Interrupted,
    Cancelled,
}

impl From<RunStatus> for Status {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Running => Self::Running,
            RunStatus::Done => Self::Done,
            RunStatus::Failed => Self::Failed,
            RunStatus::Interrupted => Self::Interrupted,
            RunStatus::Cancelled => Self::Cancelled,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct StepReport {
    /// The step's id, with its index in each surrounding loop: `fetch[3]`.
    id: String,
    /// started, retrying, done, failed, interrupted or skipped.
    status: String,
    /// Number of attempts.
    attempts: u64,
    /// Duration of all attempts, in milliseconds.
    took_ms: u64,
    /// The error, with its kind in front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Why a run stopped.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunError {
    /// The step that failed.
    step: String,
    /// The kind of error, such as timeout.
    kind: String,
    /// The error message.
    message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub fn step_reports(run: &StoredRun) -> Vec<StepReport> {
    run.steps.iter().map(step_report).collect()
}

fn step_report(step: &StoredStep) -> StepReport {
    let attempts: Vec<Value> = step.attempts.to().unwrap_or_default();
    let decided =
        |attempt: &Value| matches!(attempt.get("outcome").and_then(Value::as_str), Some("redo" | "skipped"));
    let tried = attempts.iter().filter(|attempt| !decided(attempt));
    let took = |attempt: &Value| attempt.get("took_ms").and_then(Value::as_u64);
    let error: Option<Value> = step.error.as_ref().and_then(|error| error.to().ok());
    let text =
        |error: &Value, name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    StepReport {
        id: step.key.clone(),
        status: step.status.clone(),
        attempts: tried.count() as u64,
        took_ms: attempts.iter().filter_map(took).sum(),
        error: error.map(|error| format!("{}: {}", text(&error, "kind"), text(&error, "message"))),
    }
}

pub fn run_outputs(run: &StoredRun) -> Map<String, Value> {
    run.outputs.as_ref().and_then(|outputs| outputs.to().ok()).unwrap_or_default()
}

pub fn run_error(run: &StoredRun) -> Option<RunError> {
    let error: Value = run.error.as_ref().map(Json::to)?.ok()?;
    let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(RunError {
        step: text("step").unwrap_or_default(),
        kind: text("kind").unwrap_or_default(),
        message: text("message").unwrap_or_default(),
        hint: text("hint"),
    })
}
