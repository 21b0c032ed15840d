//! Execution of a step that calls a tool: recorded before and after, retried where that is safe.

use crate::check::ToolLookup;
use crate::compiled_workflow::{Action, Step};
use crate::engine::hub_tools::{HubTools, LLM_TOOL};
use crate::engine::journal::{Attempt, StepStatus};
use crate::engine::run_executor::RunExecutor;
use crate::engine::run_executor::frame::{Frame, RunScope};
use crate::engine::stop_reason::{StepFailure, StopReason};
use crate::expr::EvalError;
use crate::workflow_manifest::Repeat;
use octo_hub::{ResultFailure, block_text};
use octo_model::{Json, JsonObject, Kind, Operation, ToolError};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum output of one step.
const MAX_STEP_OUTPUT_BYTES: usize = 4 << 20;
const MAX_RETRY_DELAY: Duration = Duration::from_secs(3_600);

/// What a step calls.
enum Invocation {
    Tool { name: String, arguments: Map<String, Value> },
    Llm { prompt: String, system: String, schema: Option<Value>, max_tokens: u64 },
}

/// Result of one attempt.
pub(crate) struct AttemptResult {
    call_id: Option<String>,
    duration: Duration,
    outcome: Result<Value, StepFailure>,
}

impl RunExecutor {
    pub(crate) async fn call_step(&self, step: &Step, frame: &Frame) -> Result<(), StopReason> {
        let key = frame.key(&step.id);
        match self.journal.status(&key) {
            Some(StepStatus::Done) => return Ok(()),
            Some(StepStatus::Failed) => return Err(StopReason::Failed(self.journal.failure(&key))),
            Some(StepStatus::Interrupted) => return Err(StopReason::Interrupted(self.journal.failure(&key))),
            Some(StepStatus::Started) if !self.is_repeatable(step) => {
                return self.record_interrupted(&key).await;
            }
            Some(StepStatus::Started | StepStatus::Retrying | StepStatus::Skipped) | None => {}
        }
        loop {
            let asked = match self.build_invocation(step, frame) {
                Ok(asked) => asked,
                Err(fault) => return Err(self.record_eval_error(&key, &fault).await),
            };
            self.record_started(&key, &asked).await?;
            let tried = self.attempt(step, &key, asked).await;
            let failure = match tried.outcome {
                Ok(ref output) => return self.record_done(&key, &tried, output.clone()).await,
                // It is as unknown as after a crash whether it had its effect, and is reported as such.
                Err(_) if self.live.cancel.is_cancelled() => return Err(StopReason::Cancelled),
                Err(ref failure) => failure.clone(),
            };
            let Some(wait) = self.retry_delay(step, &key, &failure) else {
                self.record_failed(&key, Some(&tried), &failure).await?;
                return Err(StopReason::Failed(failure));
            };
            self.record_retrying(&key, &tried, &failure).await?;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.live.cancel.cancelled() => return Err(StopReason::Cancelled),
                () = self.live.stop.cancelled() => return Err(StopReason::Halted),
            }
        }
    }

    /// Returns whether a step may run if it may have run before.
    fn is_repeatable(&self, step: &Step) -> bool {
        let safe = match &step.action {
            Action::Tool { name, .. } => HubTools(&self.cx).tool(name).is_ok_and(|tool| tool.is_repeatable()),
            _ => true,
        };
        step.repeat == Repeat::Allowed || safe
    }

    fn build_invocation(&self, step: &Step, frame: &Frame) -> Result<Invocation, EvalError> {
        let sight = RunScope { session: self, frame };
        let text = |template: &crate::expr::Template| {
            Ok(match template.eval(&sight)? {
                Value::String(text) => text,
                other => other.to_string(),
            })
        };
        match &step.action {
            Action::Tool { name, with } => {
                let arguments = with.iter().map(|(name, value)| Ok((name.clone(), value.eval(&sight)?)));
                Ok(Invocation::Tool {
                    name: name.clone(),
                    arguments: arguments.collect::<Result<_, EvalError>>()?,
                })
            }
            Action::Llm { prompt, system, schema, max_tokens } => Ok(Invocation::Llm {
                prompt: text(prompt)?,
                system: text(system)?,
                schema: schema.clone(),
                max_tokens: *max_tokens,
            }),
            _ => Err(EvalError::TypeMismatch("This step does not call a tool.".to_owned())),
        }
    }

    async fn attempt(&self, step: &Step, key: &str, asked: Invocation) -> AttemptResult {
        let begun = Instant::now();
        let timeout = step.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let (call_id, outcome) = match asked {
            Invocation::Tool { name, arguments } => self.call_tool(name, arguments, timeout).await,
            Invocation::Llm { prompt, system, schema, max_tokens } => {
                self.call_llm(&prompt, &system, schema.as_ref(), max_tokens, timeout).await
            }
        };
        let outcome = outcome.map_err(|failure| StepFailure { key: key.to_owned(), ..failure });
        AttemptResult {
            call_id,
            duration: begun.elapsed(),
            outcome: outcome.and_then(|output| self.check_output_size(key, output)),
        }
    }

    async fn call_tool(
        &self,
        name: String,
        arguments: Map<String, Value>,
        timeout: Option<Duration>,
    ) -> (Option<String>, Result<Value, StepFailure>) {
        let op = Operation::tool(name, Json::from(Value::Object(arguments)));
        let (call, outcome) = match self.cx.call(op, timeout).await {
            Ok(called) => (Some(called.id.to_string()), called.outcome),
            Err(error) => (None, Err(error)),
        };
        match outcome {
            Ok(result) => (call, tool_output(&result)),
            Err(error) => (call, Err(StepFailure::from_error("", &error))),
        }
    }

    /// Calls the model through its tool, and validates its answer against the schema.
    async fn call_llm(
        &self,
        prompt: &str,
        system: &str,
        schema: Option<&Value>,
        max_tokens: u64,
        timeout: Option<Duration>,
    ) -> (Option<String>, Result<Value, StepFailure>) {
        let system = match schema {
            Some(schema) => format!(
                "{system}\nAnswer with JSON alone, without a word around it. It must fit this JSON Schema: {schema}"
            ),
            None => system.to_owned(),
        };
        let arguments = [
            ("prompt".to_owned(), json!(prompt)),
            ("system".to_owned(), json!(system.trim())),
            ("max_tokens".to_owned(), json!(max_tokens)),
        ];
        let (call, answer) =
            self.call_tool(LLM_TOOL.to_owned(), arguments.into_iter().collect(), timeout).await;
        let fitting = answer.and_then(|answer| match schema {
            Some(schema) => {
                parse_llm_json(&answer, schema).map_err(|error| StepFailure::from_error("", &error))
            }
            None => Ok(answer),
        });
        (call, fitting)
    }

    /// Returns the output if it is within the limits.
    pub(crate) fn check_output_size(&self, key: &str, output: Value) -> Result<Value, StepFailure> {
        let bytes = output.to_string().len();
        let told = if bytes > MAX_STEP_OUTPUT_BYTES {
            format!("The step's output has {bytes} bytes; the limit is {MAX_STEP_OUTPUT_BYTES}.")
        } else if !self.journal.has_capacity(bytes) {
            "The outputs of the run exceed the size limit.".to_owned()
        } else {
            return Ok(output);
        };
        let hint = Some("Request less from the tool.".to_owned());
        Err(StepFailure { hint, ..StepFailure::new(key, Kind::TooLarge.as_str(), told) })
    }

    /// Delay before the next attempt; `None` if there is none.
    fn retry_delay(&self, step: &Step, key: &str, failure: &StepFailure) -> Option<Duration> {
        let retry = step.retry.as_ref()?;
        let tries = self.journal.failures(key);
        let wanted = tries < retry.times && retry.on.contains(&failure.kind);
        let safe = !failure.is_outcome_unknown || self.is_repeatable(step);
        if !wanted || !safe {
            return None;
        }
        let seconds = retry.delay_seconds * retry.backoff.powi(tries.cast_signed());
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(MAX_RETRY_DELAY);
        Some(wait.max(failure.retry_after.unwrap_or_default()).min(MAX_RETRY_DELAY))
    }

    async fn record_started(&self, key: &str, asked: &Invocation) -> Result<(), StopReason> {
        let arguments = match asked {
            Invocation::Tool { arguments, .. } => arguments.keys().cloned().collect(),
            Invocation::Llm { .. } => Vec::new(),
        };
        let attempt = Attempt { started: self.now(), arguments, ..Attempt::default() };
        self.record_step(key, |record| {
            record.close_attempt("interrupted", None);
            record.status = StepStatus::Started;
            record.error = None;
            record.attempts.push(attempt);
        })
        .await
    }

    async fn record_done(&self, key: &str, tried: &AttemptResult, output: Value) -> Result<(), StopReason> {
        let ended = self.now();
        self.record_step(key, |record| {
            record.close_attempt("done", Some(&|last| tried.fill_attempt(last, &ended)));
            record.status = StepStatus::Done;
            record.error = None;
            record.output = Some(Arc::new(output));
        })
        .await?;
        self.count_finished(key);
        Ok(())
    }

    async fn record_retrying(
        &self,
        key: &str,
        tried: &AttemptResult,
        failure: &StepFailure,
    ) -> Result<(), StopReason> {
        self.record_failure(key, StepStatus::Retrying, Some(tried), failure).await
    }

    pub(crate) async fn record_failed(
        &self,
        key: &str,
        tried: Option<&AttemptResult>,
        failure: &StepFailure,
    ) -> Result<(), StopReason> {
        self.record_failure(key, StepStatus::Failed, tried, failure).await?;
        self.count_finished(key);
        Ok(())
    }

    async fn record_failure(
        &self,
        key: &str,
        status: StepStatus,
        tried: Option<&AttemptResult>,
        failure: &StepFailure,
    ) -> Result<(), StopReason> {
        let now = self.now();
        self.record_step(key, |record| {
            record.close_attempt(
                "failed",
                Some(&|last| {
                    if let Some(tried) = tried {
                        tried.fill_attempt(last, &now);
                    }
                    last.error = Some(format!("{}: {}", failure.kind, failure.message));
                }),
            );
            record.status = status;
            record.error = Some(failure.to_value());
        })
        .await
    }

    /// A step that was started by a process that died, and that may not run twice.
    async fn record_interrupted(&self, key: &str) -> Result<(), StopReason> {
        let hint = format!(
            "Check whether it took effect. Then resume the run: with skip [\"{key}\"] if it did, with redo [\"{key}\"] if not."
        );
        let message = format!("The step `{key}` was interrupted; it is unknown whether it took effect.");
        let failure =
            StepFailure { hint: Some(hint), ..StepFailure::new(key, Kind::Conflict.as_str(), message) };
        self.record_step(key, |record| {
            record.close_attempt("interrupted", None);
            record.status = StepStatus::Interrupted;
            record.error = Some(failure.to_value());
        })
        .await?;
        Err(StopReason::Interrupted(failure))
    }

    /// An expression without a value.
    pub(crate) async fn record_eval_error(&self, key: &str, fault: &EvalError) -> StopReason {
        let hint = match fault {
            EvalError::Absent(path) => Some(format!("Write default({path}, …) if it may be absent.")),
            EvalError::TypeMismatch(_) => None,
        };
        let failure =
            StepFailure { hint, ..StepFailure::new(key, Kind::Invalid.as_str(), fault.to_string()) };
        match self.record_failed(key, None, &failure).await {
            Ok(()) => StopReason::Failed(failure),
            Err(stop) => stop,
        }
    }
}

impl AttemptResult {
    fn fill_attempt(&self, attempt: &mut Attempt, now: &str) {
        attempt.ended = Some(now.to_owned());
        attempt.took_ms = Some(u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX));
        attempt.call.clone_from(&self.call_id);
    }
}

/// Parses the JSON in a model's answer.
fn parse_llm_json(answer: &Value, schema: &Value) -> Result<Value, ToolError> {
    let text = answer.get("text").and_then(Value::as_str).unwrap_or_default();
    let bare = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    let misfit = |why: String| {
        ToolError::unavailable(format!("The model's answer does not match the schema: {why}."))
            .hint("Simplify the prompt, or add a `retry` to the step.")
    };
    let answer: Value = serde_json::from_str(bare).map_err(|error| misfit(error.to_string()))?;
    let validator = jsonschema::options().build(schema).map_err(ToolError::internal)?;
    let wrong = validator.iter_errors(&answer).next().map(|error| error.to_string());
    wrong.map_or(Ok(answer), |why| Err(misfit(why.chars().take(200).collect())))
}

/// The output of a tool: its structured content, or its text as `text`.
fn tool_output(result: &JsonObject) -> Result<Value, StepFailure> {
    if let Some(failure) = ResultFailure::of(result) {
        return Err(StepFailure::new("", "failed", failure.message));
    }
    match result.get("structuredContent") {
        Some(structure) => {
            structure.to().map_err(|error| StepFailure::from_error("", &ToolError::internal(error)))
        }
        None => {
            let texts: Vec<String> = result.list("content").iter().filter_map(block_text).collect();
            Ok(json!({"text": texts.join("\n")}))
        }
    }
}
