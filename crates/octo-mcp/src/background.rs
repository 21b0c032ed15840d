//! Calls that go on without a request: they become tasks, and are followed to their end.

use crate::answer::outcome;
use crate::client::Client;
use crate::discover::completed;
use crate::mcp::Mcp;
use crate::parking::Running;
use crate::reply::rpc;
use crate::task::{End, Task};
use octo_hub::{CallOutcome, ListKind};
use octo_model::{JsonObject, Kind, Method};
use octo_wire::code;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A server behind the hub may ask again after each answer, but not for ever.
const MAX_ROUNDS: usize = 16;
/// Between two rounds nothing runs; an answer is waited for this long.
const MAX_WAIT: Duration = Duration::from_secs(600);

/// What a tool's definition says of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// It says nothing, and is expected to be quick.
    Unsaid,
    /// It may take long.
    Optional,
    /// It takes so long that it may only be called as a task.
    Required,
}

/// A call of a tool, as it can be made again.
pub struct Again {
    pub client: Client,
    pub params: JsonObject,
}

impl Mcp {
    /// Revisions before 2026-07-28 have a place for this in the definition of a tool.
    pub(crate) fn support(&self, client: &Client, params: &JsonObject) -> Support {
        let Ok(view) = self.hub.view(&client.profile) else { return Support::Unsaid };
        let entry = view.by_name(ListKind::Tools, &params.text("name").unwrap_or_default());
        match entry.and_then(|entry| entry.item.members.inner_text("execution", "taskSupport")).as_deref() {
            Some("optional") => Support::Optional,
            Some("required") => Support::Required,
            _ => Support::Unsaid,
        }
    }

    /// Whether a call that has taken so long becomes a task. What its tool says is looked up late, since a server behind the
    /// hub may list it only after the call has begun.
    pub(crate) fn is_due(&self, again: &Again, waited: Duration) -> bool {
        waited >= self.settings.tasks.late || self.support(&again.client, &again.params) != Support::Unsaid
    }

    /// Makes a running call a task. When there is no room for one more it is given back, and waited for as ever.
    pub(crate) fn hand_over(
        self: &Arc<Self>,
        running: Running,
        again: Again,
    ) -> Result<JsonObject, (Running, Again)> {
        let begun = self.tasks.begin(&again.client, running.cancel.clone(), &self.settings.tasks);
        let Some(task) = begun else { return Err((running, again)) };
        running.peer.redirect(nowhere());
        let told = running.peer.told.borrow().clone();
        if !told.is_empty() {
            task.tells(&told);
        }
        let seed = task.seed();
        let mcp = Arc::clone(self);
        tokio::spawn(async move {
            let end = mcp.to_the_end(&task, running, again).await;
            task.ends(end);
        });
        Ok(seed)
    }

    /// One call of the hub, and one more for each time the server behind it ended the call with a question.
    async fn to_the_end(self: &Arc<Self>, task: &Task, mut running: Running, again: Again) -> End {
        let Again { client, mut params } = again;
        for _ in 0..MAX_ROUNDS {
            let called = self.follow(task, &mut running).await;
            let cancelled = called.outcome.as_ref().is_err_and(|error| error.kind == Kind::Cancelled);
            if cancelled && task.cancel.is_cancelled() {
                return End::Cancelled;
            }
            let result = match outcome(Method::CallTool, called, &client) {
                Ok(result) => result,
                Err(error) => return End::failed(&error),
            };
            if result.text("resultType").as_deref() != Some("input_required") {
                return End::completed(&completed(result, false));
            }
            let requests = result.object("inputRequests");
            let answers = tokio::select! {
                answers = tokio::time::timeout(MAX_WAIT, task.asks_all(&requests)) => answers,
                () = task.cancel.cancelled() => return End::Cancelled,
                () = self.closing.cancelled() => return End::Cancelled,
            };
            let Ok(Ok(answers)) = answers else {
                return End::failed(&rpc(code::INTERNAL, "No answer came to what the call needs to know."));
            };
            params.set("inputResponses", answers);
            params.remove("requestState");
            if let Some(state) = result.get("requestState") {
                params.set("requestState", state.clone());
            }
            let begun = self.begin(&client, Method::CallTool, params.clone(), nowhere(), task.cancel.clone());
            running = match begun {
                Ok(running) => running,
                Err(error) => return End::failed(&error),
            };
        }
        End::failed(&rpc(
            code::INTERNAL,
            "The server behind the hub keeps asking. Give it all it needs at once.",
        ))
    }

    /// Waits for the end of one call of the hub and notes what is heard of it.
    async fn follow(&self, task: &Task, running: &mut Running) -> CallOutcome {
        let mut told = running.peer.told.subscribe();
        loop {
            tokio::select! {
                biased;
                called = &mut running.call => return called,
                () = self.closing.cancelled(), if !task.cancel.is_cancelled() => task.cancel.cancel(),
                Some(question) = running.questions.recv() => task.asks(question),
                Ok(()) = told.changed() => task.tells(&told.borrow_and_update()),
            }
        }
    }
}

/// A task's notices have no stream to go to.
fn nowhere() -> mpsc::Sender<octo_wire::Message> {
    mpsc::channel(1).0
}

#[cfg(test)]
pub(crate) mod bench;
#[cfg(test)]
mod tests;
