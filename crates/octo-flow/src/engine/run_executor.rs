//! Execution of one run in this process, from its current state to where it stops.

pub(crate) mod call_step;
pub(crate) mod frame;
pub(crate) mod interpreter;

use super::artifacts::Artifacts;
use super::journal::{Journal, StepRecord};
use super::stop_reason::{StepFailure, StopReason};
use super::{EngineInner, LiveRun};
use crate::compiled_workflow::CompiledWorkflow;
use crate::engine::run_executor::frame::{Frame, RunScope};
use octo_model::{Json, Kind, ToolError};
use octo_ports::{RunLease, RunStatus};
use octo_toolkit::CallContext;
use serde_json::{Map, Value};
use std::sync::Arc;

pub struct RunExecutor {
    pub(super) engine: Arc<EngineInner>,
    pub(super) plan: CompiledWorkflow,
    pub(super) params: Arc<Value>,
    pub(super) lease: Box<dyn RunLease>,
    pub(super) journal: Journal,
    /// The call that started the run, cancelled with the run.
    pub(super) cx: CallContext,
    pub(super) artifacts: Artifacts,
    pub(super) live: Arc<LiveRun>,
}

/// Notifies waiting callers that the run has ended, even if its task panics.
struct EndGuard {
    engine: Arc<EngineInner>,
    live: Arc<LiveRun>,
    id: String,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.engine.lock_live_runs().remove(&self.id);
        self.live.progress.send_modify(|progress| progress.ended = true);
    }
}

impl RunExecutor {
    /// Runs until it is done or cannot continue. Releases the lease before notifying callers.
    pub(super) async fn run(self, id: String) {
        let _ended = EndGuard { engine: Arc::clone(&self.engine), live: Arc::clone(&self.live), id };
        self.execute().await;
        self.lease.release().await;
    }

    async fn execute(&self) {
        // From the start, so that an interrupted run can be found. A failure is reported by the last write.
        if let Err(error) = self.write_artifacts(RunStatus::Running, None, None).await {
            tracing::debug!(run = self.lease.id(), %error, "cannot write the artifacts of a run");
        }
        let result = self.run_steps(&self.plan.steps, Frame::default(), &self.live.stop).await;
        let (status, outputs, error) = match result {
            Ok(()) => match self.eval_outputs() {
                Ok(outputs) => (RunStatus::Done, Some(outputs), None),
                Err(failure) => (RunStatus::Failed, None, Some(failure)),
            },
            Err(StopReason::Failed(failure)) => (RunStatus::Failed, None, Some(failure)),
            Err(StopReason::Interrupted(failure)) => (RunStatus::Interrupted, None, Some(failure)),
            Err(StopReason::Cancelled) => (RunStatus::Cancelled, None, None),
            // The hub is shutting down: the run can be resumed.
            Err(StopReason::Halted) => (RunStatus::Running, None, None),
            Err(StopReason::StoreFailed(error)) => {
                tracing::error!(run = self.lease.id(), detail = error.detail, "cannot store a run");
                return self.warn(error.text());
            }
        };
        let error = error.map(|failure| failure.to_value());
        // Before the status, so that a finished run has its artifacts, however often it was killed.
        if let Err(error) = self.write_artifacts(status, outputs.as_ref(), error.as_ref()).await {
            self.warn(format!("The artifacts could not be written: {}", error.text()));
        }
        let (outputs, error) = (outputs.map(Json::from), error.map(Json::from));
        if let Err(error) = self.lease.status(status, outputs, error).await.map_err(ToolError::from) {
            tracing::error!(run = self.lease.id(), detail = error.detail, "the end of a run was not stored");
            self.warn(error.text());
        }
    }

    async fn write_artifacts(
        &self,
        status: RunStatus,
        outputs: Option<&Value>,
        error: Option<&Value>,
    ) -> Result<(), octo_model::ToolError> {
        let records = self.journal.records();
        self.artifacts.write(&self.now(), status, &records, outputs, error).await
    }

    fn eval_outputs(&self) -> Result<Value, StepFailure> {
        let frame = Frame::default();
        let sight = RunScope { session: self, frame: &frame };
        let mut outputs = Map::new();
        for (name, template) in &self.plan.outputs {
            let value = template.eval(&sight).map_err(|fault| {
                StepFailure::new("outputs", Kind::Invalid.as_str(), format!("outputs.{name}: {fault}"))
            })?;
            outputs.insert(name.clone(), value);
        }
        Ok(Value::Object(outputs))
    }

    pub(super) fn now(&self) -> String {
        format!("{:.3}", self.engine.clock.now())
    }

    pub(super) async fn record_step(
        &self,
        key: &str,
        change: impl FnOnce(&mut StepRecord),
    ) -> Result<(), StopReason> {
        self.journal.record_step(key, self.lease.as_ref(), change).await
    }

    /// Counts a finished step.
    pub(super) fn count_finished(&self, key: &str) {
        self.live.progress.send_modify(|progress| {
            progress.done += 1;
            progress.total = progress.total.max(progress.done);
            key.clone_into(&mut progress.last);
        });
    }

    /// Adds the calls of a loop, of which one was counted already.
    pub(super) fn add_expected_calls(&self, calls: usize) {
        let more = calls.saturating_sub(1) as u64;
        self.live.progress.send_modify(|progress| progress.total += more);
    }

    fn warn(&self, text: String) {
        self.live.progress.send_modify(|progress| progress.warnings.push(text));
    }
}
