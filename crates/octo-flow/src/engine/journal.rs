//! Journal of a run: the state of every step. Writes are durable before they return.

use super::ResumeOptions;
use super::stop_reason::{StepFailure, StopReason};
use crate::compiled_workflow::CompiledWorkflow;
use octo_model::{Json, Kind, ToolError};
use octo_ports::{RunLease, StoredRun, StoredStep};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum size of all outputs of a run.
const MAX_RUN_OUTPUT_BYTES: usize = 64 << 20;
/// Maximum steps of a run, counting each item of a loop.
const MAX_RUN_STEPS: usize = 10_000;

/// Outcomes of decisions, among the attempts.
const OUTCOME_SKIPPED: &str = "skipped";
const OUTCOME_REDO: &str = "redo";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    Started,
    /// It failed and will be retried.
    Retrying,
    Done,
    Failed,
    /// It was started, and its outcome is unknown.
    Interrupted,
    Skipped,
}

impl StepStatus {
    const ALL: [Self; 6] =
        [Self::Started, Self::Retrying, Self::Done, Self::Failed, Self::Interrupted, Self::Skipped];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Retrying => "retrying",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Skipped => "skipped",
        }
    }
}

/// One attempt. Of the arguments only the names are recorded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Attempt {
    pub started: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// `done`, `failed` or `interrupted`, absent while it runs; or `skipped` or `redo` for a decision of a
    /// person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The id of the call in the audit log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct StepRecord {
    pub status: StepStatus,
    pub output: Option<Arc<Value>>,
    pub error: Option<Value>,
    pub attempts: Vec<Attempt>,
    /// Size of its output.
    output_bytes: usize,
}

#[derive(Default)]
pub struct Journal(Mutex<JournalState>);

#[derive(Default)]
struct JournalState {
    records: HashMap<String, StepRecord>,
    /// Keys in order of appearance.
    order: Vec<String>,
    bytes: usize,
}

impl Journal {
    /// Loads the journal of an existing run.
    pub fn load(run: &StoredRun) -> Result<Self, ToolError> {
        let mut pages = JournalState::default();
        for step in &run.steps {
            let unreadable = |error: serde_json::Error| ToolError::internal(error);
            let status = StepStatus::ALL.into_iter().find(|known| known.as_str() == step.status);
            let output: Option<Value> = step.output.as_ref().map(Json::to).transpose().map_err(unreadable)?;
            let output_bytes = step.output.as_ref().map_or(0, |output| output.bytes().len());
            pages.bytes += output_bytes;
            let record = StepRecord {
                status: status.ok_or_else(|| ToolError::internal("a step of an unknown status"))?,
                output: output.map(Arc::new),
                error: step.error.as_ref().map(Json::to).transpose().map_err(unreadable)?,
                attempts: step.attempts.to().map_err(unreadable)?,
                output_bytes,
            };
            pages.order.push(step.key.clone());
            pages.records.insert(step.key.clone(), record);
        }
        Ok(Self(Mutex::new(pages)))
    }

    fn lock_state(&self) -> MutexGuard<'_, JournalState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn status(&self, key: &str) -> Option<StepStatus> {
        self.lock_state().records.get(key).map(|record| record.status)
    }

    pub fn output(&self, key: &str) -> Option<Arc<Value>> {
        self.lock_state().records.get(key).and_then(|record| record.output.clone())
    }

    pub fn error(&self, key: &str) -> Option<Value> {
        self.lock_state().records.get(key).and_then(|record| record.error.clone())
    }

    pub fn failure(&self, key: &str) -> StepFailure {
        StepFailure::from_value(key, &self.error(key).unwrap_or_default())
    }

    /// Number of failures since the last decision.
    pub fn failures(&self, key: &str) -> u32 {
        let pages = self.lock_state();
        let attempts = pages.records.get(key).map(|record| record.attempts.as_slice()).unwrap_or_default();
        let failed = |attempt: &&Attempt| attempt.outcome.as_deref() == Some("failed");
        // The one that has just ended is not closed yet.
        let open = |attempt: &&Attempt| attempt.outcome.is_none();
        attempts.iter().rev().skip_while(open).take_while(failed).count() as u32
    }

    /// All records, in order of appearance.
    pub fn records(&self) -> Vec<(String, StepRecord)> {
        let pages = self.lock_state();
        let of = |key: &String| pages.records.get(key).map(|record| (key.clone(), record.clone()));
        pages.order.iter().filter_map(of).collect()
    }

    /// Number of finished calls.
    pub fn finished_calls(&self, plan: &CompiledWorkflow) -> u64 {
        let over = |record: &StepRecord| {
            matches!(record.status, StepStatus::Done | StepStatus::Failed | StepStatus::Skipped)
        };
        let pages = self.lock_state();
        pages.records.iter().filter(|(key, record)| over(record) && plan.is_call(key)).count() as u64
    }

    /// Returns whether an output of this size still fits.
    pub fn has_capacity(&self, bytes: usize) -> bool {
        self.lock_state().bytes.saturating_add(bytes) <= MAX_RUN_OUTPUT_BYTES
    }

    /// Changes a step's record and stores it; returns when that is durable.
    pub async fn record_step(
        &self,
        key: &str,
        lease: &dyn RunLease,
        change: impl FnOnce(&mut StepRecord),
    ) -> Result<(), StopReason> {
        let kept = {
            let mut pages = self.lock_state();
            if !pages.records.contains_key(key) {
                if pages.order.len() >= MAX_RUN_STEPS {
                    let message =
                        format!("A run has at most {MAX_RUN_STEPS} steps, counting each item of a loop.");
                    return Err(StopReason::Failed(StepFailure::new(key, Kind::TooLarge.as_str(), message)));
                }
                pages.order.push(key.to_owned());
            }
            let record = pages.records.entry(key.to_owned()).or_insert(StepRecord {
                status: StepStatus::Started,
                output: None,
                error: None,
                attempts: Vec::new(),
                output_bytes: 0,
            });
            change(record);
            let kept = record.to_stored(key);
            let before = record.output_bytes;
            record.output_bytes = kept.output.as_ref().map_or(0, |output| output.bytes().len());
            let after = record.output_bytes;
            pages.bytes = pages.bytes.saturating_sub(before) + after;
            kept
        };
        lease.step(kept).await.map_err(|error| StopReason::StoreFailed(error.into()))
    }

    /// Applies a person's decisions about failed or interrupted steps.
    pub async fn apply_decisions(
        &self,
        plan: &CompiledWorkflow,
        further: &ResumeOptions,
        lease: &dyn RunLease,
        now: &str,
    ) -> Result<(), ToolError> {
        let redo = further.redo.iter().map(|key| (key, StepStatus::Retrying));
        let all: Vec<(&String, StepStatus)> =
            redo.chain(further.skip.iter().map(|key| (key, StepStatus::Done))).collect();
        if let Some(both) = further.redo.iter().find(|key| further.skip.contains(key)) {
            return Err(ToolError::invalid(format!("`{both}` is in both redo and skip."))
                .hint("Put it in only one of them."));
        }
        // Either all of them can be decided, or none is.
        for (key, _) in &all {
            self.require_decidable(plan, key)?;
        }
        for (key, status) in all {
            let word = if status == StepStatus::Done { OUTCOME_SKIPPED } else { OUTCOME_REDO };
            let noted = self.record_step(key, lease, |record| {
                record.close_attempt("interrupted", None);
                record.attempts.push(Attempt {
                    started: now.to_owned(),
                    outcome: Some(word.to_owned()),
                    ..Attempt::default()
                });
                record.status = status;
                record.error = None;
            });
            if let Err(StopReason::StoreFailed(error)) = noted.await {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Fails unless the step failed or was interrupted.
    fn require_decidable(&self, plan: &CompiledWorkflow, key: &str) -> Result<(), ToolError> {
        if !plan.is_call(key) {
            return Err(ToolError::invalid(format!("Step `{key}` does not call a tool."))
                .hint("Name the step inside it, with its index in each loop: `fetch[3]`."));
        }
        let known = self.status(key);
        if matches!(known, Some(StepStatus::Started | StepStatus::Failed | StepStatus::Interrupted)) {
            return Ok(());
        }
        let said = known.map_or("has not started".to_owned(), |status| format!("is {}", status.as_str()));
        Err(ToolError::new(Kind::Conflict, format!("The step `{key}` {said}."))
            .hint("Only a step that failed or was interrupted can be redone or skipped."))
    }
}

impl StepRecord {
    /// Closes an attempt that is still open.
    pub fn close_attempt(&mut self, outcome: &str, change: Option<&dyn Fn(&mut Attempt)>) {
        if let Some(last) = self.attempts.last_mut().filter(|last| last.outcome.is_none()) {
            last.outcome = Some(outcome.to_owned());
            if let Some(change) = change {
                change(last);
            }
        }
    }

    fn to_stored(&self, key: &str) -> StoredStep {
        StoredStep {
            key: key.to_owned(),
            status: self.status.as_str().to_owned(),
            output: self.output.as_deref().map(Json::of),
            error: self.error.as_ref().map(Json::of),
            attempts: Json::of(&self.attempts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::StoreResult;
    use octo_toolkit::BoxFuture;

    struct NullLease;

    impl RunLease for NullLease {
        fn id(&self) -> &str {
            "w_"
        }

        fn step(&self, _: StoredStep) -> BoxFuture<'_, StoreResult<()>> {
            Box::pin(async { Ok(()) })
        }

        fn status(
            &self,
            _: octo_ports::RunStatus,
            _: Option<Json>,
            _: Option<Json>,
        ) -> BoxFuture<'_, StoreResult<()>> {
            Box::pin(async { Ok(()) })
        }
    }

    #[tokio::test]
    async fn all_outputs_together_have_a_bound_and_a_new_one_takes_the_place_of_the_old() {
        let journal = Journal::default();
        let put = async |key: &str, bytes: usize| {
            let output = Arc::new(Value::String("x".repeat(bytes)));
            journal.record_step(key, &NullLease, |record| record.output = Some(output)).await.unwrap();
        };
        put("a", 30 << 20).await;
        put("a", 30 << 20).await;
        assert!(journal.has_capacity(30 << 20));
        put("b", 30 << 20).await;
        assert!(journal.has_capacity(3 << 20) && !journal.has_capacity(5 << 20));
        put("a", 0).await;
        assert!(journal.has_capacity(30 << 20));
    }

    #[tokio::test]
    async fn a_run_has_so_many_steps_and_no_more() {
        let journal = Journal::default();
        for at in 0..MAX_RUN_STEPS {
            journal.record_step(&at.to_string(), &NullLease, |_| ()).await.unwrap();
        }
        let refused = journal.record_step("more", &NullLease, |_| ()).await;
        assert!(matches!(refused, Err(StopReason::Failed(failure)) if failure.kind == "too_large"));
        assert!(journal.record_step("7", &NullLease, |_| ()).await.is_ok());
    }
}
