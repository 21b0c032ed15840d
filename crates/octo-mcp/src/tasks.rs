//! The tasks of all callers: so many each, so many in all, and none for ever.

use crate::client::Client;
use crate::mcp::Mcp;
use crate::reply::rpc;
use crate::task::{EXTENSION, Task};
use octo_model::{Caller, JsonObject, RpcError};
use octo_wire::code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// At the end, calls that do not end at once are waited for this long.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// When a call becomes a task, and how many there may be.
#[derive(Debug, Clone)]
pub struct TaskSettings {
    /// A tool that says that it may take long is waited for this long.
    pub soon: Duration,
    /// Any other tool is waited for this long.
    pub late: Duration,
    /// How long a task is kept after its end.
    pub keep: Duration,
    pub per_caller: usize,
    pub in_all: usize,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            soon: Duration::from_millis(500),
            late: Duration::from_secs(20),
            keep: Duration::from_secs(900),
            per_caller: 64,
            in_all: 1_000,
        }
    }
}

#[derive(Default)]
pub struct Tasks(Mutex<HashMap<String, Arc<Task>>>);

impl Tasks {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Task>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new task, or nothing when the caller or the hub has too many.
    pub fn begin(
        &self,
        client: &Client,
        cancel: CancellationToken,
        settings: &TaskSettings,
    ) -> Option<Arc<Task>> {
        self.sweep();
        let mut all = self.all();
        let of_caller = all.values().filter(|task| task.is_of_caller(client)).count();
        if of_caller >= settings.per_caller || all.len() >= settings.in_all {
            return None;
        }
        let task = Arc::new(Task::new(client, cancel, settings.keep));
        all.insert(task.id.clone(), Arc::clone(&task));
        Some(task)
    }

    /// Somebody else's task is answered like one that does not exist.
    pub fn find(&self, client: &Client, id: &str) -> Option<Arc<Task>> {
        self.all().get(id).filter(|task| task.is_of(client) && !task.is_over()).cloned()
    }

    pub fn sweep(&self) {
        self.all().retain(|_, task| !task.is_over());
    }

    /// Ends the calls of callers that this is true of.
    pub fn cancel_where(&self, is_over: impl Fn(&Caller) -> bool) {
        self.all().values().filter(|task| is_over(&task.caller)).for_each(|task| task.cancel.cancel());
    }

    /// Ends them all, and waits until their records are closed.
    pub async fn end(&self) {
        let begun: Vec<Arc<Task>> = self.all().values().cloned().collect();
        begun.iter().for_each(|task| task.cancel.cancel());
        let ended = futures_util::future::join_all(begun.iter().map(|task| task.ended()));
        let _ = tokio::time::timeout(LAST_MOMENT, ended).await;
    }
}

impl Mcp {
    /// `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(crate) fn task(
        &self,
        client: &Client,
        method: &str,
        params: &JsonObject,
    ) -> Result<JsonObject, RpcError> {
        if !client.takes_tasks() {
            return Err(needs_tasks());
        }
        let invalid = |message: &str| rpc(code::INVALID_PARAMS, message);
        let id = params.text("taskId").ok_or_else(|| invalid("This method needs a taskId."))?;
        let task = self.tasks.find(client, &id).ok_or_else(|| {
            invalid("There is no such task. Tasks are kept for a while after their end; call the tool again.")
        })?;
        match method {
            "tasks/get" => return Ok(task.detailed()),
            "tasks/update" => {
                let answers = params.get("inputResponses").and_then(|answers| answers.members().ok());
                task.answers(
                    &answers.ok_or_else(|| invalid("tasks/update needs an object `inputResponses`."))?,
                );
            }
            _ => task.cancel.cancel(),
        }
        Ok(JsonObject::new())
    }
}

/// What a client is told that has not declared the extension.
pub fn needs_tasks() -> RpcError {
    let extensions = JsonObject::new().with(EXTENSION, JsonObject::new());
    let required = JsonObject::new().with("extensions", extensions);
    let mut error =
        rpc(code::MISSING_CAPABILITY, format!("This needs a client that declares `{EXTENSION}`."));
    error.data = Some(JsonObject::new().with("requiredCapabilities", required).to_json());
    error
}
