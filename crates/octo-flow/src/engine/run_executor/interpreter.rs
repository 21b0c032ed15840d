//! Interpreter of steps: conditions, loops, branches and error handling.

use crate::compiled_workflow::{Action, ErrorHandler, ForEach, LoopItems, Step};
use crate::engine::journal::StepStatus;
use crate::engine::run_executor::RunExecutor;
use crate::engine::run_executor::frame::{Frame, RunScope};
use crate::engine::stop_reason::{StepFailure, StopReason};
use crate::expr::EvalError;
use futures_util::StreamExt;
use futures_util::future::join_all;
use octo_model::Kind;
use octo_toolkit::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Maximum items per loop.
const MAX_LOOP_ITEMS: usize = 1_000;

impl RunExecutor {
    /// Runs steps in order. `halt` means that a parallel branch has stopped: running calls finish and no new
    /// ones start, so that no call is interrupted by the failure of another.
    pub(crate) fn run_steps<'a>(
        &'a self,
        steps: &'a [Step],
        frame: Frame,
        halt: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), StopReason>> {
        Box::pin(async move {
            for step in steps {
                self.run_step(step, &frame, halt).await?;
            }
            Ok(())
        })
    }

    async fn run_step(&self, step: &Step, frame: &Frame, halt: &CancellationToken) -> Result<(), StopReason> {
        self.check_stopped(halt)?;
        let key = frame.key(&step.id);
        if let Some(condition) = &step.condition {
            match condition.eval_bool(&RunScope { session: self, frame }) {
                Ok(true) => {}
                Ok(false) => return self.record_skipped(&key).await,
                Err(fault) => {
                    let stop = self.record_eval_error(&key, &fault).await;
                    return self.apply_on_error(step, frame, halt, Err(stop)).await;
                }
            }
        }
        match &step.for_each {
            None => {
                let done = self.run_action(step, frame, halt).await;
                self.apply_on_error(step, frame, halt, done).await
            }
            Some(each) => self.run_loop(step, each, frame, halt).await,
        }
    }

    fn check_stopped(&self, halt: &CancellationToken) -> Result<(), StopReason> {
        if self.live.cancel.is_cancelled() {
            return Err(StopReason::Cancelled);
        }
        if halt.is_cancelled() { Err(StopReason::Halted) } else { Ok(()) }
    }

    async fn record_skipped(&self, key: &str) -> Result<(), StopReason> {
        if matches!(self.journal.status(key), Some(StepStatus::Skipped | StepStatus::Done)) {
            return Ok(());
        }
        self.record_step(key, |record| record.status = StepStatus::Skipped).await?;
        self.count_finished(key);
        Ok(())
    }

    /// Runs the action of a step, once.
    async fn run_action(
        &self,
        step: &Step,
        frame: &Frame,
        halt: &CancellationToken,
    ) -> Result<(), StopReason> {
        let done = match &step.action {
            Action::Tool { .. } | Action::Llm { .. } => return self.call_step(step, frame).await,
            Action::Fail(message) => return Err(self.run_fail(step, message, frame).await),
            Action::Group(steps) => self.run_steps(steps, frame.clone(), halt).await,
            Action::Parallel(branches) => {
                let beside = halt.child_token();
                let mut all: Vec<BoxFuture<'_, _>> = Vec::new();
                for steps in branches {
                    all.push(Box::pin(self.run_branch(steps, frame, &beside)));
                }
                StopReason::worst(join_all(all).await)
            }
        };
        self.record_group_end(&frame.key(&step.id), done).await
    }

    async fn run_branch(
        &self,
        steps: &[Step],
        frame: &Frame,
        beside: &CancellationToken,
    ) -> Result<(), StopReason> {
        let done = self.run_steps(steps, frame.clone(), beside).await;
        if done.is_err() {
            beside.cancel();
        }
        done
    }

    /// Records the end of a group for the trace; its steps are recorded already.
    async fn record_group_end(&self, key: &str, done: Result<(), StopReason>) -> Result<(), StopReason> {
        let (status, error) = match &done {
            Ok(()) => (StepStatus::Done, None),
            Err(StopReason::Failed(failure)) => (StepStatus::Failed, Some(failure.to_value())),
            Err(StopReason::Interrupted(failure)) => (StepStatus::Interrupted, Some(failure.to_value())),
            Err(_) => return done,
        };
        self.record_step(key, |record| {
            record.status = status;
            record.error = error;
        })
        .await?;
        done
    }

    async fn run_fail(&self, step: &Step, message: &crate::expr::Template, frame: &Frame) -> StopReason {
        let key = frame.key(&step.id);
        match message.eval(&RunScope { session: self, frame }) {
            Err(fault) => self.record_eval_error(&key, &fault).await,
            Ok(message) => {
                let text = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
                let failure = StepFailure::new(&key, "failed", text);
                match self.record_failed(&key, None, &failure).await {
                    Ok(()) => StopReason::Failed(failure),
                    Err(stop) => stop,
                }
            }
        }
    }

    /// Applies the error handler of a step.
    async fn apply_on_error(
        &self,
        step: &Step,
        frame: &Frame,
        halt: &CancellationToken,
        done: Result<(), StopReason>,
    ) -> Result<(), StopReason> {
        match (done, &step.on_error) {
            (Err(StopReason::Failed(_) | StopReason::Interrupted(_)), ErrorHandler::Continue) => Ok(()),
            (Err(StopReason::Failed(_) | StopReason::Interrupted(_)), ErrorHandler::Steps(steps)) => {
                self.run_steps(steps, frame.clone(), halt).await
            }
            (done, _) => done,
        }
    }

    async fn run_loop(
        &self,
        step: &Step,
        each: &ForEach,
        frame: &Frame,
        halt: &CancellationToken,
    ) -> Result<(), StopReason> {
        let key = frame.key(&step.id);
        let items = match self.loop_items(each, frame) {
            Ok(items) => items,
            // The error handler of a loop applies to its items, and there are none.
            Err(fault) => return Err(self.record_eval_error(&key, &fault).await),
        };
        self.add_expected_calls(items.len() * usize::from(step.action.is_call()));
        let frames: Vec<Frame> = items
            .into_iter()
            .enumerate()
            .map(|(at, item)| frame.enter_item(&step.id, &each.name, at, item))
            .collect();
        let beside = halt.child_token();
        let mut all: Vec<BoxFuture<'_, _>> = Vec::new();
        for frame in &frames {
            all.push(Box::pin(self.run_item(step, frame, &beside)));
        }
        let all = futures_util::stream::iter(all).buffer_unordered(each.concurrency);
        let done = StopReason::worst(all.collect::<Vec<_>>().await);
        if done.is_err() {
            return self.record_group_end(&key, done).await;
        }
        let outputs: Value = frames.iter().map(|frame| self.item_output(step, frame)).collect();
        let outputs = match self.check_output_size(&key, outputs) {
            Ok(outputs) => outputs,
            Err(failure) => {
                self.record_failed(&key, None, &failure).await?;
                return Err(StopReason::Failed(failure));
            }
        };
        self.record_step(&key, |record| {
            record.status = StepStatus::Done;
            record.error = None;
            record.output = Some(Arc::new(outputs));
        })
        .await
    }

    async fn run_item(
        &self,
        step: &Step,
        frame: &Frame,
        beside: &CancellationToken,
    ) -> Result<(), StopReason> {
        self.check_stopped(beside)?;
        let done = self.run_action(step, frame, beside).await;
        let done = self.apply_on_error(step, frame, beside, done).await;
        if done.is_err() {
            beside.cancel();
        }
        done
    }

    fn loop_items(&self, each: &ForEach, frame: &Frame) -> Result<Vec<Value>, EvalError> {
        let sight = RunScope { session: self, frame };
        let value = match &each.items {
            LoopItems::Expr(expr) => expr.eval(&sight)?,
            LoopItems::List(template) => template.eval(&sight)?,
        };
        match value {
            Value::Array(items) if items.len() <= MAX_LOOP_ITEMS => Ok(items),
            Value::Array(items) => Err(EvalError::TypeMismatch(format!(
                "The list has {} items; the limit for a loop is {MAX_LOOP_ITEMS} ({}).",
                items.len(),
                Kind::TooLarge.as_str(),
            ))),
            _ => Err(EvalError::TypeMismatch("`for_each` requires a list.".to_owned())),
        }
    }
}
