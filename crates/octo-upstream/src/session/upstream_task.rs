//! Tasks of a server: a call that the server answers with a task is followed to its end. The task's id stays here; a client
//! that supports tasks gets one of the hub, bound to its caller.

use crate::error::UpstreamError;
use crate::lifecycle::link::Link;
use crate::session::connection::{Connection, OutgoingRequest};
use futures_util::future::try_join_all;
use octo_model::{Json, JsonObject, RpcError};
use octo_toolkit::{AskError, CallContext};
use octo_wire::{Era, code};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Polling intervals that a server may ask for.
const POLL_INTERVALS: RangeInclusive<Duration> = Duration::from_millis(50)..=Duration::from_secs(60);
/// Polling interval of a server that asks for none.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Failed polls in a row after which the task is given up.
const MAX_FAILED_POLLS: usize = 5;
const MAX_TASK_ID_BYTES: usize = 4 << 10;
/// Metadata with which legacy servers refer to the task.
pub(super) const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How often a task may ask, and how much at a time.
const MAX_INPUT_ROUNDS: usize = 16;
const MAX_QUESTIONS: usize = 16;
const MAX_QUESTION_BYTES: usize = 1 << 20;
/// Maximum characters of a status or error text.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// A task that runs at the server. Dropping it cancels the task.
struct UpstreamTask<'a> {
    link: &'a Link,
    connection: Arc<Connection>,
    cx: &'a CallContext,
    id: String,
    has_ended: bool,
}

/// Whether a result is a task: its `resultType` is `task`, or, in the legacy era, it has a member `task` and no content.
pub(crate) fn is_task(result: &JsonObject, era: Era) -> bool {
    match era {
        Era::Modern => result.text("resultType").as_deref() == Some("task"),
        Era::Legacy => result.get("task").is_some() && result.get("content").is_none(),
    }
}

/// Follows the task that a call was answered with.
pub(crate) async fn follow_task(
    link: &Link,
    connection: &Arc<Connection>,
    result: JsonObject,
    cx: &CallContext,
    deadline: Instant,
) -> Result<JsonObject, UpstreamError> {
    let task = if connection.era() == Era::Modern { result } else { result.object("task") };
    let id = task.text("taskId").filter(|id| !id.is_empty() && id.len() <= MAX_TASK_ID_BYTES);
    let id = id.ok_or_else(|| UpstreamError::Protocol("a task without a valid id".to_owned()))?;
    cx.peer.task_started();
    let connection = Arc::clone(connection);
    let mut running = UpstreamTask { link, connection, cx, id, has_ended: false };
    let mut result = running.run(task, deadline).await?;
    if result.text("resultType").is_some_and(|kind| kind != "complete") {
        return Err(UpstreamError::Protocol("a task whose result is not complete".to_owned()));
    }
    // The id of the task is of no use to the client.
    let mut meta = result.object("_meta");
    if meta.remove(RELATED_TASK).is_some() {
        result.remove("_meta");
        if !meta.is_empty() {
            result.set("_meta", meta);
        }
    }
    Ok(result)
}

impl UpstreamTask<'_> {
    async fn run(&mut self, mut task: JsonObject, deadline: Instant) -> Result<JsonObject, UpstreamError> {
        let (mut message, mut answered) = (String::new(), HashSet::new());
        for step in 1.. {
            let now = truncated(task.text("statusMessage").unwrap_or_default());
            if !now.is_empty() && now != message {
                self.cx.report_waiting(step, &now);
                message = now;
            }
            match task.text("status").unwrap_or_default().as_str() {
                "working" | "submitted" => tokio::time::sleep(poll_interval(&task)).await,
                "input_required" if self.connection.era() == Era::Modern => {
                    self.answer(&task.object("inputRequests"), &mut answered).await?;
                    tokio::time::sleep(poll_interval(&task)).await;
                }
                // A legacy server asks on the stream of the result.
                "input_required" | "completed" | "failed" if self.connection.era() == Era::Legacy => {
                    return self.legacy_result().await;
                }
                "completed" => {
                    self.has_ended = true;
                    let result = task.get("result").and_then(|result| result.members().ok());
                    return result
                        .ok_or_else(|| UpstreamError::Protocol("a task without a result".to_owned()));
                }
                "failed" => {
                    self.has_ended = true;
                    return Err(UpstreamError::Rpc(task_error(&task)));
                }
                "cancelled" => {
                    self.has_ended = true;
                    let text = task
                        .text("statusMessage")
                        .unwrap_or_else(|| "The server cancelled the task.".to_owned());
                    return Err(UpstreamError::Rpc(rpc_error(&text)));
                }
                status => {
                    return Err(UpstreamError::Protocol(format!("a task with the status {:.40}", status)));
                }
            }
            task = self.poll(deadline).await?;
        }
        Err(UpstreamError::Protocol("a task without an end".to_owned()))
    }

    fn params(&self) -> JsonObject {
        JsonObject::new().with("taskId", self.id.as_str())
    }

    async fn request(&self, method: &str, params: JsonObject) -> Result<JsonObject, UpstreamError> {
        let ask = OutgoingRequest { method, params, peer: Some(&self.cx.peer), acknowledged: None };
        self.connection.request(ask).await
    }

    /// Asks for the state of the task. A new connection to a server over HTTP reaches the same task; a program that was
    /// started again has others.
    async fn poll(&mut self, deadline: Instant) -> Result<JsonObject, UpstreamError> {
        let mut failed = 0;
        loop {
            let why = match self.request("tasks/get", self.params()).await {
                Ok(task) => return Ok(task),
                Err(why) => why,
            };
            failed += 1;
            let is_temporary = match &why {
                UpstreamError::NotSent(_) | UpstreamError::ConnectionReset(_) => true,
                UpstreamError::Status { code, .. } => matches!(code, 429 | 502..=504),
                _ => false,
            };
            if !is_temporary || failed >= MAX_FAILED_POLLS || self.connection.http().is_none() {
                return Err(why);
            }
            tokio::time::sleep(DEFAULT_POLL_INTERVAL * u32::try_from(failed).unwrap_or(1)).await;
            if self.connection.closed.is_set() {
                let fresh = self.link.connection(deadline).await.map_err(|_| why.clone())?;
                if fresh.era() != Era::Modern || self.connection.era() != Era::Modern {
                    return Err(why);
                }
                self.connection = fresh;
            }
        }
    }

    /// Passes the questions of the task on to the client, and its answers back.
    async fn answer(
        &self,
        requests: &JsonObject,
        answered: &mut HashSet<String>,
    ) -> Result<(), UpstreamError> {
        // An answered question may still be listed until the server has read the answer.
        let open: Vec<(&str, &Json)> = requests.iter().filter(|(key, _)| !answered.contains(*key)).collect();
        if open.is_empty() {
            return Ok(());
        }
        if open.len() > MAX_QUESTIONS
            || requests.size() > MAX_QUESTION_BYTES
            || answered.len() >= MAX_INPUT_ROUNDS * MAX_QUESTIONS
        {
            return Err(UpstreamError::Protocol("a task that asks too much".to_owned()));
        }
        let ask = |(key, request): (&str, &Json)| {
            let request = request.members().unwrap_or_default();
            let (key, method) = (key.to_owned(), request.text("method").unwrap_or_default());
            async move {
                let answer = self.cx.peer.ask(&method, request.object("params")).await?;
                Ok::<_, AskError>((key, answer.to_json()))
            }
        };
        let answers = try_join_all(open.iter().copied().map(ask)).await;
        let answers: JsonObject = answers.map_err(|_| unanswered())?.into_iter().collect();
        answered.extend(open.iter().map(|(key, _)| (*key).to_owned()));
        self.request("tasks/update", self.params().with("inputResponses", answers)).await.map(drop)
    }

    /// The result of a legacy task, which the server returns when the task has ended.
    async fn legacy_result(&mut self) -> Result<JsonObject, UpstreamError> {
        let result = self.request("tasks/result", self.params()).await;
        self.has_ended = matches!(result, Ok(_) | Err(UpstreamError::Rpc(_)));
        result
    }
}

impl Drop for UpstreamTask<'_> {
    fn drop(&mut self) {
        if self.has_ended || self.connection.closed.is_set() {
            return;
        }
        let (connection, params) = (Arc::clone(&self.connection), self.params());
        tokio::spawn(async move {
            let _ = connection.request_within(CANCEL_TIMEOUT, "tasks/cancel", params).await;
        });
    }
}

fn poll_interval(task: &JsonObject) -> Duration {
    let wanted = ["pollIntervalMs", "pollInterval"].iter().find_map(|key| task.get(key)?.to::<u64>().ok());
    let wanted = wanted.map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis);
    wanted.clamp(*POLL_INTERVALS.start(), *POLL_INTERVALS.end())
}

fn task_error(task: &JsonObject) -> RpcError {
    let error = task.object("error");
    let message = error.text("message").or_else(|| task.text("statusMessage"));
    let mut reported = rpc_error(&message.unwrap_or_else(|| "The task failed.".to_owned()));
    if let Some(code) = error.get("code").and_then(|code| code.to().ok()) {
        reported.code = code;
    }
    reported.data = error.get("data").filter(|data| data.bytes().len() <= MAX_QUESTION_BYTES).cloned();
    reported
}

fn rpc_error(message: &str) -> RpcError {
    RpcError { code: code::INTERNAL, message: truncated(message.to_owned()), data: None }
}

fn truncated(text: String) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned(),
        None => text,
    }
}

fn unanswered() -> UpstreamError {
    UpstreamError::Rpc(rpc_error("The task needs input that this client did not give."))
}
