//! Calls that become tasks, and their execution to the end.

use crate::client_context::ClientContext;
use crate::discover::complete_result;
use crate::mcp::Mcp;
use crate::rpc_errors::rpc_error;
use crate::suspended_calls::RunningCall;
use crate::task::{Task, TaskEnd};
use octo_hub::CallOutcome;
use octo_model::{ItemKind, JsonObject, Kind, Method};
use octo_wire::code;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;

/// An upstream server may ask again after each answer, up to this many times.
const MAX_INPUT_ROUNDS: usize = 16;
/// Maximum wait for an answer; nothing runs meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// Task support of a tool's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskSupport {
    /// Not declared; expected to be quick.
    Unspecified,
    /// May take long.
    Optional,
    /// Takes so long that it may only be called as a task.
    Required,
}

/// A tool call that can be repeated.
pub struct CallReplay {
    pub client: ClientContext,
    pub params: JsonObject,
}

impl Mcp {
    /// Task support of the called tool. Revisions before 2026-07-28 declare it in the definition.
    pub(crate) fn task_support(&self, client: &ClientContext, params: &JsonObject) -> TaskSupport {
        let Ok(view) = self.hub.view(&client.profile) else { return TaskSupport::Unspecified };
        let entry = view.by_name(ItemKind::Tool, &params.text("name").unwrap_or_default());
        match entry.and_then(|entry| entry.item.members.inner_text("execution", "taskSupport")).as_deref() {
            Some("optional") => TaskSupport::Optional,
            Some("required") => TaskSupport::Required,
            _ => TaskSupport::Unspecified,
        }
    }

    /// Whether a call that has taken this long becomes a task. The tool's support is looked up late, because an
    /// upstream may list it only after the call started.
    pub(crate) fn should_become_task(
        &self,
        running: &RunningCall,
        again: &CallReplay,
        waited: Duration,
    ) -> bool {
        waited >= self.settings.tasks.default_wait
            || running.peer.is_upstream_task.load(Ordering::Relaxed)
            || self.task_support(&again.client, &again.params) != TaskSupport::Unspecified
    }

    /// Turns a running call into a task. Returns it unchanged if there is no room for another task.
    pub(crate) fn into_task(
        self: &Arc<Self>,
        running: RunningCall,
        again: CallReplay,
    ) -> Result<JsonObject, Box<(RunningCall, CallReplay)>> {
        if self.is_draining() {
            return Err(Box::new((running, again)));
        }
        let begun =
            self.tasks.begin(&again.client, running.cancel.clone(), &self.settings.tasks, self.new_task_id());
        let Some(task) = begun else { return Err(Box::new((running, again))) };
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

    /// One call of the hub, and another each time the upstream ends the call with a question.
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
            let result = match self.rpc_result(Method::CallTool, called, &client) {
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
                    "The call's questions were not answered in time.",
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
            "The upstream server keeps asking for input. Provide all input at once.",
        ))
    }

    /// Waits for the end of one call of the hub; records its questions and progress.
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

/// Outbox without a receiver: notifications of a task have no stream.
fn null_outbox() -> mpsc::Sender<octo_wire::Message> {
    mpsc::channel(1).0
}

#[cfg(test)]
pub(crate) mod mcp_fixture;
#[cfg(test)]
mod tests;
