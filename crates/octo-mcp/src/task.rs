//! A task: a call that outlives its request.

use crate::client_context::ClientContext;
use crate::client_peer::Question;
use octo_model::{Caller, Json, JsonObject, Principal, RpcError};
use octo_toolkit::{AskError, Clock};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// Suggested polling interval, from a young task to an old one.
const POLL_INTERVAL_RANGE: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
const MAX_MESSAGE_CHARS: usize = 500;
/// Results are limited by the hub; the data of a stored error is limited here.
const MAX_DATA_BYTES: usize = 64 << 10;

/// How a task ended.
pub enum TaskEnd {
    Completed(JsonObject),
    /// The error as reported.
    Failed(JsonObject),
    Cancelled,
}

impl TaskEnd {
    /// Copied, because the message it came in may be far larger.
    pub fn completed(result: &JsonObject) -> Self {
        Self::Completed(result.detached())
    }

    pub fn failed(error: &RpcError) -> Self {
        Self::Failed(error_object(error).detached())
    }
}

pub struct Task {
    pub id: String,
    /// Cancels the call.
    pub cancel: CancellationToken,
    /// Owner; the task is hidden from others.
    owner: TaskOwner,
    /// With the scopes at its start.
    pub caller: Arc<Caller>,
    started: Instant,
    created: String,
    /// How long it is kept after its end.
    retention: Duration,
    state: Mutex<TaskState>,
    changed: watch::Sender<()>,
}

#[derive(PartialEq, Eq)]
struct TaskOwner {
    principal: Principal,
    profile: String,
}

impl TaskOwner {
    fn from_client(client: &ClientContext) -> Self {
        Self { principal: client.caller.principal.clone(), profile: client.profile.clone() }
    }
}

struct TaskState {
    updated: String,
    message: Option<String>,
    questions: Vec<(String, Question)>,
    /// Number of questions so far; their keys are never reused.
    question_count: usize,
    end: Option<(Instant, TaskEnd)>,
}

impl Task {
    pub fn new(client: &ClientContext, cancel: CancellationToken, retention: Duration, id: String) -> Self {
        let created = now();
        let state = TaskState {
            updated: created.clone(),
            message: None,
            questions: Vec::new(),
            question_count: 0,
            end: None,
        };
        Self {
            id,
            cancel,
            owner: TaskOwner::from_client(client),
            caller: Arc::clone(&client.caller),
            started: Instant::now(),
            created,
            retention,
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        }
    }

    /// Whether this client may see the task: same caller, same profile.
    pub fn is_owned_by(&self, client: &ClientContext) -> bool {
        self.owner == TaskOwner::from_client(client)
    }

    pub fn is_owned_by_principal(&self, client: &ClientContext) -> bool {
        self.owner.principal == client.caller.principal
    }

    fn lock(&self) -> MutexGuard<'_, TaskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut TaskState)) {
        let mut state = self.lock();
        if state.end.is_none() {
            change(&mut state);
            state.updated = now();
            drop(state);
            self.changed.send_replace(());
        }
    }

    /// Sets the status message.
    pub fn set_message(&self, message: &str) {
        self.update(|state| state.message = Some(truncate(message)));
    }

    /// Adds a question to the client.
    pub fn add_question(&self, question: Question) {
        self.update(|state| {
            state.question_count += 1;
            state.questions.push((format!("question_{}", state.question_count), question));
        });
    }

    /// Asks all questions and returns the answers under the same keys.
    pub async fn ask_all(&self, requests: &JsonObject) -> Result<JsonObject, AskError> {
        let mut waiting = Vec::new();
        for (key, request) in requests.iter() {
            let request = request.members().unwrap_or_default();
            let (answer, answered) = oneshot::channel();
            let method = request.text("method").unwrap_or_default();
            self.add_question(Question { method, params: request.object("params"), answer });
            waiting.push((key, answered));
        }
        let mut answers = JsonObject::new();
        for (key, answered) in waiting {
            answers.set(key, answered.await.unwrap_or(Err(AskError::Gone))?);
        }
        Ok(answers)
    }

    /// Takes answers; those to questions that are not open are ignored.
    pub fn submit_answers(&self, answers: &JsonObject) {
        self.update(|state| {
            let (given, open): (Vec<_>, Vec<_>) = std::mem::take(&mut state.questions)
                .into_iter()
                .partition(|(key, _)| answers.get(key).is_some_and(Json::is_object));
            state.questions = open;
            for (key, question) in given {
                let _ = question.answer.send(Ok(answers.object(&key).detached()));
            }
        });
    }

    /// The first end counts.
    pub fn finish(&self, end: TaskEnd) {
        self.update(|state| {
            state.questions.clear();
            state.message = match &end {
                TaskEnd::Completed(_) => None,
                TaskEnd::Failed(error) => error.text("message").as_deref().map(truncate),
                TaskEnd::Cancelled => Some("The call was cancelled.".to_owned()),
            };
            state.end = Some((Instant::now(), end));
        });
    }

    pub fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Whether its retention is over.
    pub fn is_expired(&self) -> bool {
        self.lock().end.as_ref().is_some_and(|(at, _)| at.elapsed() > self.retention)
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Waits for its end.
    pub async fn wait_ended(&self) {
        let mut changes = self.changes();
        while !self.has_ended() && changes.changed().await.is_ok() {}
    }

    /// Common members of all task results. While it runs, its lifetime extends from now; afterwards it is fixed.
    fn summary(&self, state: &TaskState) -> JsonObject {
        let open = state.questions.iter().any(|(_, question)| !question.answer.is_closed());
        let status = match &state.end {
            None if open => "input_required",
            None => "working",
            Some((_, TaskEnd::Completed(_))) => "completed",
            Some((_, TaskEnd::Failed(_))) => "failed",
            Some((_, TaskEnd::Cancelled)) => "cancelled",
        };
        let until = state.end.as_ref().map_or_else(Instant::now, |(at, _)| *at) + self.retention;
        let poll = (self.started.elapsed() / 10).clamp(POLL_INTERVAL_RANGE.0, POLL_INTERVAL_RANGE.1);
        let mut task = JsonObject::new()
            .with("taskId", self.id.as_str())
            .with("status", status)
            .with("createdAt", self.created.as_str())
            .with("lastUpdatedAt", state.updated.as_str())
            .with("ttlMs", millis(until.duration_since(self.started)))
            .with("pollIntervalMs", millis(poll));
        if let Some(message) = &state.message {
            task.set("statusMessage", message.as_str());
        }
        task
    }

    /// Result of the call that became this task.
    pub fn created_result(&self) -> JsonObject {
        self.summary(&self.lock()).with("resultType", "task")
    }

    /// The task with its questions, its result or its error.
    pub fn details(&self) -> JsonObject {
        let state = self.lock();
        let mut task = self.summary(&state);
        match &state.end {
            None => {
                let open = state.questions.iter().filter(|(_, question)| !question.answer.is_closed());
                let requests: JsonObject =
                    open.map(|(key, question)| (key.clone(), question.to_json())).collect();
                if !requests.is_empty() {
                    task.set("inputRequests", requests);
                }
            }
            Some((_, TaskEnd::Completed(result))) => {
                task.set("result", result.clone());
            }
            Some((_, TaskEnd::Failed(error))) => {
                task.set("error", error.clone());
            }
            Some((_, TaskEnd::Cancelled)) => {}
        }
        task
    }
}

fn error_object(error: &RpcError) -> JsonObject {
    let mut members =
        JsonObject::new().with("code", Json::of(&error.code)).with("message", error.message.as_str());
    if let Some(data) = error.data.as_ref().filter(|data| data.bytes().len() <= MAX_DATA_BYTES) {
        members.set("data", data.clone());
    }
    members
}

fn truncate(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

fn millis(time: Duration) -> Json {
    Json::of(&u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn now() -> String {
    Clock::system().now().to_string()
}
