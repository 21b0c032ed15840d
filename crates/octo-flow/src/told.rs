//! A run as callers see it.

use octo_hub::{RunStatus, StoredRun, StoredStep};
use octo_model::Json;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How a run is doing.
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
pub struct StepTold {
    /// The step's id, with its place in each loop around it: `fetch[3]`.
    id: String,
    /// started, retrying, done, failed, interrupted or skipped.
    status: String,
    /// How often it was tried.
    attempts: u64,
    /// How long its tries took together, in milliseconds.
    took_ms: u64,
    /// What went wrong, with its kind in front.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Why a run did not go on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Failed {
    /// The step that failed.
    step: String,
    /// The kind of error, such as timeout.
    kind: String,
    /// What went wrong.
    message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

pub fn steps(run: &StoredRun) -> Vec<StepTold> {
    run.steps.iter().map(step).collect()
}

fn step(step: &StoredStep) -> StepTold {
    let attempts: Vec<Value> = step.attempts.to().unwrap_or_default();
    let decided =
        |attempt: &Value| matches!(attempt.get("outcome").and_then(Value::as_str), Some("redo" | "skipped"));
    let tried = attempts.iter().filter(|attempt| !decided(attempt));
    let took = |attempt: &Value| attempt.get("took_ms").and_then(Value::as_u64);
    let error: Option<Value> = step.error.as_ref().and_then(|error| error.to().ok());
    let text =
        |error: &Value, name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    StepTold {
        id: step.key.clone(),
        status: step.status.clone(),
        attempts: tried.count() as u64,
        took_ms: attempts.iter().filter_map(took).sum(),
        error: error.map(|error| format!("{}: {}", text(&error, "kind"), text(&error, "message"))),
    }
}

pub fn outputs(run: &StoredRun) -> Map<String, Value> {
    run.outputs.as_ref().and_then(|outputs| outputs.to().ok()).unwrap_or_default()
}

pub fn failed(run: &StoredRun) -> Option<Failed> {
    let error: Value = run.error.as_ref().map(Json::to)?.ok()?;
    let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Failed {
        step: text("step").unwrap_or_default(),
        kind: text("kind").unwrap_or_default(),
        message: text("message").unwrap_or_default(),
        hint: text("hint"),
    })
}
