//! One call that goes on after its request was answered: what is known of it, and how it is told.

use crate::client::Client;
use crate::peer::Question;
use octo_model::{Caller, Json, JsonObject, Principal, RpcError};
use octo_toolkit::{AskError, Clock};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// The extension of the protocol that this is.
pub const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// How often a client should ask, from a young task to an old one.
const POLL: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(5));
const MAX_MESSAGE_CHARS: usize = 500;
/// Results are capped by the hub; the details of an error that is kept are capped here.
const MAX_DATA_BYTES: usize = 64 << 10;

/// How a task ended.
pub enum End {
    Completed(JsonObject),
    /// The error as it is told.
    Failed(JsonObject),
    Cancelled,
}

impl End {
    /// In buffers of its own, since the message that brought it may be far larger.
    pub fn completed(result: &JsonObject) -> Self {
        Self::Completed(result.detached())
    }

    pub fn failed(error: &RpcError) -> Self {
        Self::Failed(described(error).detached())
    }
}

pub struct Task {
    pub id: String,
    /// Ends the call.
    pub cancel: CancellationToken,
    /// Whose it is; nobody else learns that it exists.
    owner: Owner,
    /// With the rights that it began with.
    pub caller: Arc<Caller>,
    begun: Instant,
    created: String,
    /// How long it is kept after its end.
    keep: Duration,
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

#[derive(PartialEq, Eq)]
struct Owner {
    principal: Principal,
    profile: String,
}

impl Owner {
    fn of(client: &Client) -> Self {
        Self { principal: client.caller.principal.clone(), profile: client.profile.clone() }
    }
}

struct State {
    updated: String,
    message: Option<String>,
    open: Vec<(String, Question)>,
    /// How many questions there were; their keys are never used twice.
    asked: usize,
    end: Option<(Instant, End)>,
}

impl Task {
    pub fn new(client: &Client, cancel: CancellationToken, keep: Duration) -> Self {
        let created = now();
        let state = State { updated: created.clone(), message: None, open: Vec::new(), asked: 0, end: None };
        Self {
            // One of them has 122 random bits.
            id: format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple()),
            cancel,
            owner: Owner::of(client),
            caller: Arc::clone(&client.caller),
            begun: Instant::now(),
            created,
            keep,
            state: Mutex::new(state),
            changed: watch::Sender::new(()),
        }
    }

    /// Whether this client may know of it: the same caller at the same profile.
    pub fn is_of(&self, client: &Client) -> bool {
        self.owner == Owner::of(client)
    }

    pub fn is_of_caller(&self, client: &Client) -> bool {
        self.owner.principal == client.caller.principal
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        if state.end.is_none() {
            change(&mut state);
            state.updated = now();
            drop(state);
            self.changed.send_replace(());
        }
    }

    /// Says what the call is doing.
    pub fn tells(&self, message: &str) {
        self.change(|state| state.message = Some(short(message)));
    }

    /// Puts a question of the call to the client.
    pub fn asks(&self, question: Question) {
        self.change(|state| {
            state.asked += 1;
            state.open.push((format!("question_{}", state.asked), question));
        });
    }

    /// Puts all of them, and gives the answers under the same keys.
    pub async fn asks_all(&self, requests: &JsonObject) -> Result<JsonObject, AskError> {
        let mut waiting = Vec::new();
        for (key, request) in requests.iter() {
            let request = request.members().unwrap_or_default();
            let (answer, answered) = oneshot::channel();
            let method = request.text("method").unwrap_or_default();
            self.asks(Question { method, params: request.object("params"), answer });
            waiting.push((key, answered));
        }
        let mut answers = JsonObject::new();
        for (key, answered) in waiting {
            answers.set(key, answered.await.unwrap_or(Err(AskError::Gone))?);
        }
        Ok(answers)
    }

    /// Takes answers; those to questions that are not open are nobody's.
    pub fn answers(&self, answers: &JsonObject) {
        self.change(|state| {
            let (given, open): (Vec<_>, Vec<_>) = std::mem::take(&mut state.open)
                .into_iter()
                .partition(|(key, _)| answers.get(key).is_some_and(Json::is_object));
            state.open = open;
            for (key, question) in given {
                let _ = question.answer.send(Ok(answers.object(&key).detached()));
            }
        });
    }

    /// The first end counts.
    pub fn ends(&self, end: End) {
        self.change(|state| {
            state.open.clear();
            state.message = match &end {
                End::Completed(_) => None,
                End::Failed(error) => error.text("message").as_deref().map(short),
                End::Cancelled => Some("The call was cancelled.".to_owned()),
            };
            state.end = Some((Instant::now(), end));
        });
    }

    pub fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }

    /// Whether nobody is promised anything of it any more.
    pub fn is_over(&self) -> bool {
        self.state().end.as_ref().is_some_and(|(at, _)| at.elapsed() > self.keep)
    }

    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns when it has ended.
    pub async fn ended(&self) {
        let mut changes = self.changes();
        while !self.has_ended() && changes.changed().await.is_ok() {}
    }

    /// What every task says. As long as it runs, its life goes on from now; after that it has a fixed end.
    fn head(&self, state: &State) -> JsonObject {
        let open = state.open.iter().any(|(_, question)| !question.answer.is_closed());
        let status = match &state.end {
            None if open => "input_required",
            None => "working",
            Some((_, End::Completed(_))) => "completed",
            Some((_, End::Failed(_))) => "failed",
            Some((_, End::Cancelled)) => "cancelled",
        };
        let until = state.end.as_ref().map_or_else(Instant::now, |(at, _)| *at) + self.keep;
        let poll = (self.begun.elapsed() / 10).clamp(POLL.0, POLL.1);
        let mut task = JsonObject::new()
            .with("taskId", self.id.as_str())
            .with("status", status)
            .with("createdAt", self.created.as_str())
            .with("lastUpdatedAt", state.updated.as_str())
            .with("ttlMs", millis(until.duration_since(self.begun)))
            .with("pollIntervalMs", millis(poll));
        if let Some(message) = &state.message {
            task.set("statusMessage", message.as_str());
        }
        task
    }

    /// The answer to the call that became this task.
    pub fn seed(&self) -> JsonObject {
        self.head(&self.state()).with("resultType", "task")
    }

    /// The task with its questions, its result or its error.
    pub fn detailed(&self) -> JsonObject {
        let state = self.state();
        let mut task = self.head(&state);
        match &state.end {
            None => {
                let open = state.open.iter().filter(|(_, question)| !question.answer.is_closed());
                let requests: JsonObject =
                    open.map(|(key, question)| (key.clone(), question.to_json())).collect();
                if !requests.is_empty() {
                    task.set("inputRequests", requests);
                }
            }
            Some((_, End::Completed(result))) => {
                task.set("result", result.clone());
            }
            Some((_, End::Failed(error))) => {
                task.set("error", error.clone());
            }
            Some((_, End::Cancelled)) => {}
        }
        task
    }
}

fn described(error: &RpcError) -> JsonObject {
    let mut members =
        JsonObject::new().with("code", Json::of(&error.code)).with("message", error.message.as_str());
    if let Some(data) = error.data.as_ref().filter(|data| data.bytes().len() <= MAX_DATA_BYTES) {
        members.set("data", data.clone());
    }
    members
}

fn short(message: &str) -> String {
    message.chars().take(MAX_MESSAGE_CHARS).collect()
}

fn millis(time: Duration) -> Json {
    Json::of(&u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn now() -> String {
    Clock::system().now().to_string()
}
