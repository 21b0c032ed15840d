//! Calls that go on without a request: they become tasks, and are followed to their end.

use crate::client_context::ClientContext;
use crate::discover::complete_result;
use crate::mcp::Mcp;
use crate::methods::into_rpc_result;
use crate::rpc_errors::rpc_error;
use crate::suspended_calls::RunningCall;
use crate::task::{Task, TaskEnd};
use octo_hub::{CallOutcome, ListKind};
use octo_model::{JsonObject, Kind, Method};
use octo_wire::code;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A server behind the hub may ask again after each answer, but not for ever.
const MAX_INPUT_ROUNDS: usize = 16;
/// Between two rounds nothing runs; an answer is waited for this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// What a tool's definition says of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    /// It says nothing, and is expected to be quick.
    Unspecified,
    /// It may take long.
    Optional,
    /// It takes so long that it may only be called as a task.
    Required,
}

/// A call of a tool, as it can be made again.
pub struct CallReplay {
    pub client: ClientContext,
    pub params: JsonObject,
}

impl Mcp {
    /// Revisions before 2026-07-28 have a place for this in the definition of a tool.
    pub(crate) fn task_support(&self, client: &ClientContext, params: &JsonObject) -> TaskSupport {
        let Ok(view) = self.hub.view(&client.profile) else { return TaskSupport::Unspecified };
        let entry = view.by_name(ListKind::Tools, &params.text("name").unwrap_or_default());
        match entry.and_then(|entry| entry.item.members.inner_text("execution", "taskSupport")).as_deref() {
            Some("optional") => TaskSupport::Optional,
            Some("required") => TaskSupport::Required,
            _ => TaskSupport::Unspecified,
        }
    }

    /// Whether a call that has taken so long becomes a task. What its tool says is looked up late, since a server behind the
    /// hub may list it only after the call has begun.
    pub(crate) fn should_become_task(&self, again: &CallReplay, waited: Duration) -> bool {
        waited >= self.settings.tasks.default_wait
            || self.task_support(&again.client, &again.params) != TaskSupport::Unspecified
    }

    /// Makes a running call a task. When there is no room for one more it is given back, and waited for as ever.
    pub(crate) fn into_task(
        self: &Arc<Self>,
        running: RunningCall,
        again: CallReplay,
    ) -> Result<JsonObject, (RunningCall, CallReplay)> {
        let begun = self.tasks.begin(&again.client, running.cancel.clone(), &self.settings.tasks);
        let Some(task) = begun else { return Err((running, again)) };
        running.peer.redirect(null_outbox());
        let progress = running.peer.progress_text.borrow().clone();
        if !progress.is_empty() {
            task.set_message(&progress);
        }
        let task_result = task.created_result();
        let mcp = Arc::clone(self);
        tokio::spawn(async move {
            let end = mcp.run_to_completion(&task, running, again).await;
            task.finish(end);
        });
        Ok(task_result)
    }

    /// One call of the hub, and one more for each time the server behind it ended the call with a question.
    async fn run_to_completion(
        self: &Arc<Self>,
        task: &Task,
        mut running: RunningCall,
        again: CallReplay,
    ) -> TaskEnd {
        let CallReplay { client, mut params } = again;
        for _ in 0..MAX_INPUT_ROUNDS {
            let called = self.await_call(task, &mut running).await;
            let cancelled = called.outcome.as_ref().is_err_and(|error| error.kind == Kind::Cancelled);
            if cancelled && task.cancel.is_cancelled() {
                return TaskEnd::Cancelled;
            }
            let result = match into_rpc_result(Method::CallTool, called, &client) {
                Ok(result) => result,
                Err(error) => return TaskEnd::failed(&error),
            };
            if result.text("resultType").as_deref() != Some("input_required") {
                return TaskEnd::completed(&complete_result(result, false));
            }
            let requests = result.object("inputRequests");
            let answers = tokio::select! {
                answers = tokio::time::timeout(ANSWER_TIMEOUT, task.ask_all(&requests)) => answers,
                () = task.cancel.cancelled() => return TaskEnd::Cancelled,
                () = self.closing.cancelled() => return TaskEnd::Cancelled,
            };
            let Ok(Ok(answers)) = answers else {
                return TaskEnd::failed(&rpc_error(
                    code::INTERNAL,
                    "No answer came to what the call needs to know.",
                ));
            };
            params.set("inputResponses", answers);
            params.remove("requestState");
            if let Some(state) = result.get("requestState") {
                params.set("requestState", state.clone());
            }
            let begun = self.start_call(
                &client,
                Method::CallTool,
                params.clone(),
                null_outbox(),
                task.cancel.clone(),
            );
            running = match begun {
                Ok(running) => running,
                Err(error) => return TaskEnd::failed(&error),
            };
        }
        TaskEnd::failed(&rpc_error(
            code::INTERNAL,
            "The server behind the hub keeps asking. Give it all it needs at once.",
        ))
    }

    /// Waits for the end of one call of the hub and notes what is heard of it.
    async fn await_call(&self, task: &Task, running: &mut RunningCall) -> CallOutcome {
        let mut progress_changes = running.peer.progress_text.subscribe();
        loop {
            tokio::select! {
                biased;
                called = &mut running.call => return called,
                () = self.closing.cancelled(), if !task.cancel.is_cancelled() => task.cancel.cancel(),
                Some(question) = running.questions.recv() => task.add_question(question),
                Ok(()) = progress_changes.changed() => task.set_message(&progress_changes.borrow_and_update()),
            }
        }
    }
}

/// A task's notices have no stream to go to.
fn null_outbox() -> mpsc::Sender<octo_wire::Message> {
    mpsc::channel(1).0
}

#[cfg(test)]
pub(crate) mod mcp_fixture;
#[cfg(test)]
mod tests;
