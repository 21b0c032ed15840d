//! Tasks of all callers, limited per caller, in total and in time.

use crate::client_context::ClientContext;
use crate::client_peer::Outbox;
use crate::mcp::Mcp;
use crate::rpc_errors::rpc_error;
use crate::task::Task;
use octo_model::extension;
use octo_model::{Caller, JsonObject, RpcError};
use octo_wire::code;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Maximum wait for calls at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// When a call becomes a task, and how many there may be.
#[derive(Debug, Clone)]
pub struct TaskSettings {
    /// Wait for a tool that declares task support.
    pub long_tool_wait: Duration,
    /// Wait for any other tool.
    pub default_wait: Duration,
    /// How long a task is kept after its end.
    pub retention: Duration,
    pub max_per_caller: usize,
    pub max_tasks: usize,
}

impl Default for TaskSettings {
    fn default() -> Self {
        Self {
            long_tool_wait: Duration::from_millis(500),
            default_wait: Duration::from_secs(20),
            retention: Duration::from_secs(900),
            max_per_caller: 64,
            max_tasks: 1_000,
        }
    }
}

#[derive(Default)]
pub struct TaskRegistry(Mutex<HashMap<String, Arc<Task>>>);

impl TaskRegistry {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Task>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a task; `None` if the caller or the hub has too many.
    pub fn begin(
        &self,
        client: &ClientContext,
        cancel: CancellationToken,
        settings: &TaskSettings,
        id: String,
    ) -> Option<Arc<Task>> {
        self.sweep();
        let mut all = self.lock();
        let of_caller = all.values().filter(|task| task.is_owned_by_principal(client)).count();
        if of_caller >= settings.max_per_caller || all.len() >= settings.max_tasks {
            return None;
        }
        let task = Arc::new(Task::new(client, cancel, settings.retention, id));
        all.insert(task.id.clone(), Arc::clone(&task));
        Some(task)
    }

    /// Finds a task. Another caller's task looks like one that does not exist.
    pub fn find(&self, client: &ClientContext, id: &str) -> Option<Arc<Task>> {
        self.lock().get(id).filter(|task| task.is_owned_by(client) && !task.is_expired()).cloned()
    }

    /// Whether no task runs, and no result is kept for a client.
    pub fn is_empty(&self) -> bool {
        self.sweep();
        self.lock().is_empty()
    }

    pub fn all_ended(&self) -> bool {
        self.lock().values().all(|task| task.has_ended())
    }

    pub fn sweep(&self) {
        self.lock().retain(|_, task| !task.is_expired());
    }

    /// Cancels the tasks of matching callers.
    pub fn cancel_where(&self, is_over: impl Fn(&Caller) -> bool) {
        self.lock().values().filter(|task| is_over(&task.caller)).for_each(|task| task.cancel.cancel());
    }

    /// Cancels all tasks and waits until their records are closed.
    pub async fn shutdown(&self) {
        let begun: Vec<Arc<Task>> = self.lock().values().cloned().collect();
        begun.iter().for_each(|task| task.cancel.cancel());
        let ended = futures_util::future::join_all(begun.iter().map(|task| task.wait_ended()));
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, ended).await;
    }
}

pub(crate) fn is_task_method(method: &str) -> bool {
    matches!(method, "tasks/get" | "tasks/update" | "tasks/cancel")
}

/// What the node in the id of a task is sealed for.
const TASK_NODE: &str = "node of a task";

impl Mcp {
    /// Each UUID has 122 random bits. Where there are several fronts, the one that has the task is sealed into its id.
    pub(crate) fn new_task_id(&self) -> String {
        let id = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        match self.has_other_fronts().then(|| self.state_sealer.seal_text(self.node(), TASK_NODE)).flatten() {
            Some(node) => format!("{id}-{node}"),
            None => id,
        }
    }

    /// The front that has a task, if it is another one.
    pub(crate) fn other_front_of_task(&self, id: &str) -> Option<String> {
        let (_, sealed) = id.split_once('-').filter(|_| self.has_other_fronts())?;
        let node = self.state_sealer.open_text(sealed, TASK_NODE)?.expose().to_owned();
        (node != self.node()).then_some(node)
    }

    /// Handles `tasks/get`, `tasks/update` and `tasks/cancel`.
    pub(crate) async fn handle_task_method(
        &self,
        client: &ClientContext,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        if !client.supports_tasks() {
            return Err(missing_tasks_capability());
        }
        let invalid = |message: &str| rpc_error(code::INVALID_PARAMS, message);
        let id = params.text("taskId").ok_or_else(|| invalid("This method needs a taskId."))?;
        if let Some(node) = self.other_front_of_task(&id) {
            return self.relay(&node, client, method, params, out, cancel).await;
        }
        let task = self.tasks.find(client, &id).ok_or_else(|| {
            invalid(
                "Task not found. Tasks are kept for a limited time after their end. The call may have taken effect: check before you repeat it.",
            )
        })?;
        match method {
            "tasks/get" => return Ok(task.details()),
            "tasks/update" => {
                let answers = params.get("inputResponses").and_then(|answers| answers.members().ok());
                task.submit_answers(
                    &answers.ok_or_else(|| invalid("tasks/update needs an object `inputResponses`."))?,
                );
            }
            _ => task.cancel.cancel(),
        }
        Ok(JsonObject::new())
    }
}

/// Error for a client that has not declared the extension.
pub fn missing_tasks_capability() -> RpcError {
    let extensions = JsonObject::new().with(extension::TASKS, JsonObject::new());
    let required = JsonObject::new().with("extensions", extensions);
    let mut error = rpc_error(
        code::MISSING_CAPABILITY,
        format!("This needs a client that declares `{}`.", extension::TASKS),
    );
    error.data = Some(JsonObject::new().with("requiredCapabilities", required).to_json());
    error
}
