//! One step that calls: noted before, noted after, tried again where that is safe.

use super::book::{Attempt, Status};
use super::frame::{Frame, Sight};
use super::session::Session;
use super::stop::{Failure, Stop};
use super::world::{MODEL, facts};
use crate::expr::Fault;
use crate::plan::{Act, Step};
use crate::written::Repeat;
use octo_hub::Request;
use octo_model::{Json, JsonObject, Kind, Operation, ToolError};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What one step may answer with.
const MOST_BYTES: usize = 4 << 20;
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// What a step is called with.
enum Asked {
    Tool { name: String, arguments: Map<String, Value> },
    Llm { prompt: String, system: String, schema: Option<Value>, max_tokens: u64 },
}

/// What became of one try.
pub(super) struct Tried {
    call: Option<String>,
    took: Duration,
    outcome: Result<Value, Failure>,
}

impl Session {
    pub(super) async fn call(&self, step: &Step, frame: &Frame) -> Result<(), Stop> {
        let key = frame.key(&step.id);
        match self.book.status(&key) {
            Some(Status::Done) => return Ok(()),
            Some(Status::Failed) => return Err(Stop::Failed(self.book.failure(&key))),
            Some(Status::Interrupted) => return Err(Stop::Interrupted(self.book.failure(&key))),
            Some(Status::Started) if !self.is_repeatable(step) => return self.interrupted(&key).await,
            Some(Status::Started | Status::Retrying | Status::Skipped) | None => {}
        }
        loop {
            let asked = match self.asked(step, frame) {
                Ok(asked) => asked,
                Err(fault) => return Err(self.fault(&key, &fault).await),
            };
            self.started(&key, &asked).await?;
            let tried = self.attempt(step, &key, asked).await;
            let failure = match tried.outcome {
                Ok(ref output) => return self.done(&key, &tried, output.clone()).await,
                // Whether it had its effect is as unknown as after a crash, and told as such.
                Err(_) if self.live.cancel.is_cancelled() => return Err(Stop::Cancelled),
                Err(ref failure) => failure.clone(),
            };
            let Some(wait) = self.again(step, &key, &failure) else {
                self.failed(&key, Some(&tried), &failure).await?;
                return Err(Stop::Failed(failure));
            };
            self.retrying(&key, &tried, &failure).await?;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.live.cancel.cancelled() => return Err(Stop::Cancelled),
                () = self.live.halt.cancelled() => return Err(Stop::Halted),
            }
        }
    }

    /// Whether a step may run when it may have run before.
    fn is_repeatable(&self, step: &Step) -> bool {
        let safe = match &step.act {
            Act::Tool { name, .. } => self.engine.hub().and_then(|hub| {
                let entry = hub.tool(&self.asker.origin.profile, &self.asker.caller, name)?;
                Ok(facts(&entry).is_repeatable())
            }),
            _ => Ok(true),
        };
        step.repeat == Repeat::Allowed || safe.unwrap_or(false)
    }

    fn asked(&self, step: &Step, frame: &Frame) -> Result<Asked, Fault> {
        let sight = Sight { session: self, frame };
        let text = |template: &crate::expr::Template| {
            Ok(match template.value(&sight)? {
                Value::String(text) => text,
                other => other.to_string(),
            })
        };
        match &step.act {
            Act::Tool { name, with } => {
                let arguments = with.iter().map(|(name, value)| Ok((name.clone(), value.value(&sight)?)));
                Ok(Asked::Tool { name: name.clone(), arguments: arguments.collect::<Result<_, Fault>>()? })
            }
            Act::Llm { prompt, system, schema, max_tokens } => Ok(Asked::Llm {
                prompt: text(prompt)?,
                system: text(system)?,
                schema: schema.clone(),
                max_tokens: *max_tokens,
            }),
            _ => Err(Fault::Misfit("This step calls nothing.".to_owned())),
        }
    }

    async fn attempt(&self, step: &Step, key: &str, asked: Asked) -> Tried {
        let begun = Instant::now();
        let timeout = step.timeout_seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let (call, outcome) = match asked {
            Asked::Tool { name, arguments } => self.call_tool(name, arguments, timeout).await,
            Asked::Llm { prompt, system, schema, max_tokens } => {
                self.think(&prompt, &system, schema.as_ref(), max_tokens, timeout).await
            }
        };
        let outcome = outcome.map_err(|failure| Failure { key: key.to_owned(), ..failure });
        Tried { call, took: begun.elapsed(), outcome: outcome.and_then(|output| self.within(key, output)) }
    }

    async fn call_tool(
        &self,
        name: String,
        arguments: Map<String, Value>,
        timeout: Option<Duration>,
    ) -> (Option<String>, Result<Value, Failure>) {
        let failed = |error: &ToolError| Failure::of("", error);
        let hub = match self.engine.hub() {
            Ok(hub) => hub,
            Err(error) => return (None, Err(failed(&error))),
        };
        let origin = &self.asker.origin;
        let request = Request {
            op: Operation::tool(name, Json::from(Value::Object(arguments))),
            caller: Arc::clone(&self.asker.caller),
            frontend: origin.frontend,
            profile: origin.profile.clone(),
            peer: Arc::clone(&origin.peer),
            cancel: self.live.cancel.child_token(),
            timeout,
            trace: Some(origin.trace.clone()),
        };
        let called = self.asker.depth.within(hub.call(request)).await;
        let call = Some(called.id.to_string());
        let whole = match called.outcome {
            Ok(result) => hub.untruncated(&self.asker.caller, result).await,
            Err(error) => Err(error),
        };
        match whole {
            Ok(result) => (call, output(&result)),
            Err(error) => (call, Err(failed(&error))),
        }
    }

    /// Asks the model through its tool, and holds its answer against the schema.
    async fn think(
        &self,
        prompt: &str,
        system: &str,
        schema: Option<&Value>,
        max_tokens: u64,
        timeout: Option<Duration>,
    ) -> (Option<String>, Result<Value, Failure>) {
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
        let (call, answer) = self.call_tool(MODEL.to_owned(), arguments.into_iter().collect(), timeout).await;
        let fitting = answer.and_then(|answer| match schema {
            Some(schema) => fitting(&answer, schema).map_err(|error| Failure::of("", &error)),
            None => Ok(answer),
        });
        (call, fitting)
    }

    /// The output, when there is room for it.
    pub(super) fn within(&self, key: &str, output: Value) -> Result<Value, Failure> {
        let bytes = output.to_string().len();
        let told = if bytes > MOST_BYTES {
            format!("The step answered with {bytes} bytes; {MOST_BYTES} are kept.")
        } else if !self.book.has_room(bytes) {
            "All outputs of the run together are too large to be kept.".to_owned()
        } else {
            return Ok(output);
        };
        let hint = Some("Ask the tool for less.".to_owned());
        Err(Failure { hint, ..Failure::new(key, Kind::TooLarge.as_str(), told) })
    }

    /// How long to wait before the next try; nothing when there is none.
    fn again(&self, step: &Step, key: &str, failure: &Failure) -> Option<Duration> {
        let retry = step.retry.as_ref()?;
        let tries = self.book.failures(key);
        let wanted = tries < retry.times && retry.on.contains(&failure.kind);
        // After a timeout the effect may be there.
        let safe = failure.kind != Kind::Timeout.as_str() || self.is_repeatable(step);
        if !wanted || !safe {
            return None;
        }
        let seconds = retry.delay_seconds * retry.backoff.powi(tries.cast_signed());
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_WAIT);
        Some(wait.max(failure.wait.unwrap_or_default()).min(LONGEST_WAIT))
    }

    async fn started(&self, key: &str, asked: &Asked) -> Result<(), Stop> {
        let arguments = match asked {
            Asked::Tool { arguments, .. } => arguments.keys().cloned().collect(),
            Asked::Llm { .. } => Vec::new(),
        };
        let attempt = Attempt { started: self.now(), arguments, ..Attempt::default() };
        self.note(key, |record| {
            record.close("interrupted", None);
            record.status = Status::Started;
            record.error = None;
            record.attempts.push(attempt);
        })
        .await
    }

    async fn done(&self, key: &str, tried: &Tried, output: Value) -> Result<(), Stop> {
        let ended = self.now();
        self.note(key, |record| {
            record.close("done", Some(&|last| tried.tell(last, &ended)));
            record.status = Status::Done;
            record.error = None;
            record.output = Some(Arc::new(output));
        })
        .await?;
        self.advance(key);
        Ok(())
    }

    async fn retrying(&self, key: &str, tried: &Tried, failure: &Failure) -> Result<(), Stop> {
        self.ended(key, Status::Retrying, Some(tried), failure).await
    }

    pub(super) async fn failed(
        &self,
        key: &str,
        tried: Option<&Tried>,
        failure: &Failure,
    ) -> Result<(), Stop> {
        self.ended(key, Status::Failed, tried, failure).await?;
        self.advance(key);
        Ok(())
    }

    async fn ended(
        &self,
        key: &str,
        status: Status,
        tried: Option<&Tried>,
        failure: &Failure,
    ) -> Result<(), Stop> {
        let now = self.now();
        self.note(key, |record| {
            record.close(
                "failed",
                Some(&|last| {
                    if let Some(tried) = tried {
                        tried.tell(last, &now);
                    }
                    last.error = Some(format!("{}: {}", failure.kind, failure.message));
                }),
            );
            record.status = status;
            record.error = Some(failure.to_value());
        })
        .await
    }

    /// A step that was started by a process that is gone, and may not run twice.
    async fn interrupted(&self, key: &str) -> Result<(), Stop> {
        let hint = format!(
            "Look whether its effect is there. Then go on with the run: with skip [\"{key}\"] if it is, with redo [\"{key}\"] if not."
        );
        let message = format!("The step `{key}` was cut off; nobody knows whether it has had its effect.");
        let failure = Failure { hint: Some(hint), ..Failure::new(key, Kind::Conflict.as_str(), message) };
        self.note(key, |record| {
            record.close("interrupted", None);
            record.status = Status::Interrupted;
            record.error = Some(failure.to_value());
        })
        .await?;
        Err(Stop::Interrupted(failure))
    }

    /// An expression without a value.
    pub(super) async fn fault(&self, key: &str, fault: &Fault) -> Stop {
        let hint = match fault {
            Fault::Absent(path) => Some(format!("Write default({path}, …) where it may be missing.")),
            Fault::Misfit(_) => None,
        };
        let failure = Failure { hint, ..Failure::new(key, Kind::Invalid.as_str(), fault.to_string()) };
        match self.failed(key, None, &failure).await {
            Ok(()) => Stop::Failed(failure),
            Err(stop) => stop,
        }
    }
}

impl Tried {
    fn tell(&self, attempt: &mut Attempt, now: &str) {
        attempt.ended = Some(now.to_owned());
        attempt.took_ms = Some(u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX));
        attempt.call.clone_from(&self.call);
    }
}

/// The JSON in a model's answer.
fn fitting(answer: &Value, schema: &Value) -> Result<Value, ToolError> {
    let text = answer.get("text").and_then(Value::as_str).unwrap_or_default();
    let bare = text.trim().trim_start_matches("```json").trim_matches('`').trim();
    let misfit = |why: String| {
        ToolError::unavailable(format!("The model's answer does not fit the schema: {why}."))
            .hint("Ask more plainly, or give the step a `retry`.")
    };
    let answer: Value = serde_json::from_str(bare).map_err(|error| misfit(error.to_string()))?;
    let validator = jsonschema::options().build(schema).map_err(ToolError::internal)?;
    let wrong = validator.iter_errors(&answer).next().map(|error| error.to_string());
    wrong.map_or(Ok(answer), |why| Err(misfit(why.chars().take(200).collect())))
}

/// What a tool has answered: its structure, or its text as `text`.
fn output(result: &JsonObject) -> Result<Value, Failure> {
    let texts = result.list("content");
    let texts = texts.iter().filter_map(|block| block.members().ok()?.text("text"));
    let said = texts.collect::<Vec<_>>().join("\n");
    if result.text("resultType").as_deref() == Some("input_required") {
        let message = "The tool asks for more input, which a workflow cannot give.";
        return Err(Failure::new("", "failed", message));
    }
    if result.is_true("isError") {
        let said = if said.is_empty() { "The tool failed and does not say why.".to_owned() } else { said };
        return Err(Failure::new("", "failed", said));
    }
    match result.get("structuredContent") {
        Some(structure) => structure.to().map_err(|error| Failure::of("", &ToolError::internal(error))),
        None => Ok(json!({"text": said})),
    }
}
