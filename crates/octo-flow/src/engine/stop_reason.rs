//! Reasons why steps stop.

use octo_model::{Kind, ToolError};
use serde_json::{Value, json};
use std::time::Duration;

/// The failure of a step, as later steps can read it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StepFailure {
    /// The step that failed.
    pub key: String,
    pub kind: String,
    pub message: String,
    pub hint: Option<String>,
    pub retry_after: Option<Duration>,
    /// The effect may have happened.
    pub is_outcome_unknown: bool,
}

impl StepFailure {
    pub fn new(key: &str, kind: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), kind: kind.to_owned(), message: message.into(), ..Self::default() }
    }

    pub fn from_error(key: &str, error: &ToolError) -> Self {
        // A workflow waits and retries, so an exceeded rate limit is just unavailable to it.
        let kind = if error.kind == Kind::RateLimited { Kind::Unavailable } else { error.kind };
        Self {
            hint: error.hint.as_ref().map(|hint| hint.to_string()),
            retry_after: error.retry_after,
            is_outcome_unknown: error.is_outcome_unknown || error.kind == Kind::Timeout,
            ..Self::new(key, kind.as_str(), error.message.to_string())
        }
    }

    pub fn to_value(&self) -> Value {
        let mut value = json!({"kind": self.kind, "message": self.message, "step": self.key});
        if let (Value::Object(members), Some(hint)) = (&mut value, &self.hint) {
            members.insert("hint".to_owned(), hint.as_str().into());
        }
        value
    }

    pub fn from_value(key: &str, value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            key: text("step").unwrap_or_else(|| key.to_owned()),
            kind: text("kind").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            hint: text("hint"),
            ..Self::default()
        }
    }
}

#[derive(Debug)]
pub enum StopReason {
    Failed(StepFailure),
    /// It is unknown whether the step took effect.
    Interrupted(StepFailure),
    Cancelled,
    /// A parallel branch has stopped, or the hub is shutting down.
    Halted,
    /// The state of the run can no longer be stored.
    StoreFailed(ToolError),
}

impl StopReason {
    const fn severity(&self) -> u8 {
        match self {
            Self::StoreFailed(_) => 4,
            Self::Cancelled => 3,
            Self::Interrupted(_) => 2,
            Self::Failed(_) => 1,
            Self::Halted => 0,
        }
    }

    /// The most severe of several parallel results.
    pub fn worst(results: impl IntoIterator<Item = Result<(), StopReason>>) -> Result<(), StopReason> {
        let worst = results.into_iter().filter_map(Result::err).max_by_key(StopReason::severity);
        worst.map_or(Ok(()), Err)
    }
}
