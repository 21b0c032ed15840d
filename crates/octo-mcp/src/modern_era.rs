//! Modern era: every request carries its own context, and a question ends it.

use crate::client_context::ClientContext;
use crate::client_peer::{ModernPeer, Outbox, Question};
use crate::discover::complete_result;
use crate::mcp::Mcp;
use crate::methods::operation_metrics::OperationTimer;
use crate::methods::{RoutedMethod, route_method, unknown_method};
use crate::request_state::{RequestState, binding_digest};
use crate::rpc_errors::rpc_error;
use crate::suspended_calls::{RunningCall, SuspendedCall};
use crate::task_calls::{CallReplay, TaskSupport};
use crate::task_registry::{is_task_method, missing_tasks_capability};
use octo_model::{Frontend, Json, JsonObject, Method, RpcError};
use octo_toolkit::{AskError, Peer, SilentPeer};
use octo_wire::{code, meta};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Questions within this time are sent to the client together.
const QUESTION_BATCH_WINDOW: Duration = Duration::from_millis(5);

impl Mcp {
    /// Handles one request of a modern client; `subscriptions/listen` is handled by the transports.
    pub(crate) async fn handle_modern(
        self: &Arc<Self>,
        client: &ClientContext,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let timer = OperationTimer::begin(client, method);
        let outcome = self.route_modern(client, method, params, out, cancel).await;
        timer.finish(&outcome);
        outcome
    }

    async fn route_modern(
        self: &Arc<Self>,
        client: &ClientContext,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        match route_method(method) {
            Some(RoutedMethod::List(kind)) => {
                self.handle_list(client, kind, &params).await.map(|result| complete_result(result, true))
            }
            Some(RoutedMethod::Operation(operation)) => {
                let result = self.handle_operation(client, operation, params, out, cancel).await?;
                Ok(complete_result(result, matches!(operation, Method::ReadResource | Method::GetSkill)))
            }
            None => match method {
                "server/discover" => Ok(complete_result(self.discover_result(client).await, true)),
                _ if is_task_method(method) => self
                    .handle_task_method(client, method, params, out, cancel)
                    .await
                    .map(|result| complete_result(result, false)),
                _ => Err(unknown_method(method)),
            },
        }
    }

    async fn handle_operation(
        self: &Arc<Self>,
        client: &ClientContext,
        method: Method,
        mut params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let may_last = method == Method::CallTool && client.supports_tasks();
        if method == Method::CallTool
            && !may_last
            && self.task_support(client, &params) == TaskSupport::Required
        {
            return Err(missing_tasks_capability());
        }
        let plain = params.get("requestState").is_none();
        if plain && !client.accepts_requests() && !may_last {
            let peer: Arc<dyn Peer> = self.notification_peer(client, &params, out);
            let request = self.hub_request(client, method, params, peer, cancel)?;
            return self.rpc_result(method, self.hub.call(request).await, client);
        }
        let seal = binding_digest(&client.caller, &client.profile, method.as_str(), &params);
        match self.open_request_state(&params, &seal)? {
            Some(RequestState::Suspended { node, .. }) if node != self.node() => {
                return self.relay(&node, client, method.as_str(), params, out, cancel).await;
            }
            Some(RequestState::Suspended { ticket, .. }) => {
                let parked = self.suspended.take(ticket).ok_or_else(invalid_request_state)?;
                let again = CallReplay { client: client.clone(), params };
                return self.resume_call(parked, out, method, again, seal).await;
            }
            Some(RequestState::Upstream(state)) => {
                params.remove("requestState");
                if let Some(state) = state {
                    params.set("requestState", state.as_str());
                }
            }
            None => {}
        }
        let running = self.start_call(client, method, params.clone(), out, cancel)?;
        self.run_until_blocked(running, method, CallReplay { client: client.clone(), params }, seal).await
    }

    /// A client without capabilities is only notified, and only if it asked for notifications.
    fn notification_peer(&self, client: &ClientContext, params: &JsonObject, out: Outbox) -> Arc<dyn Peer> {
        let wants_notifications = client.level.is_some()
            || !client.capabilities.is_empty()
            || params.inner("_meta", meta::PROGRESS_TOKEN).is_some();
        if !wants_notifications {
            // Over HTTP, each request would otherwise be a client of its own.
            let key = if client.frontend == Frontend::Stdio { client.key } else { 0 };
            return Arc::new(SilentPeer { key });
        }
        Arc::new(ModernPeer::new(client, params, out).0)
    }

    pub(crate) fn open_request_state(
        &self,
        params: &JsonObject,
        seal: &[u8],
    ) -> Result<Option<RequestState>, RpcError> {
        match params.get("requestState") {
            None => Ok(None),
            Some(state) => {
                let state = state.to_text().ok_or_else(invalid_request_state)?;
                self.state_sealer.open(&state, seal).map(Some).ok_or_else(invalid_request_state)
            }
        }
    }

    /// Starts a call that may ask questions or become a task; the caller polls it.
    pub(crate) fn start_call(
        self: &Arc<Self>,
        client: &ClientContext,
        method: Method,
        mut params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<RunningCall, RpcError> {
        let (peer, questions) = ModernPeer::new(client, &params, out);
        let peer = Arc::new(peer);
        if method == Method::CallTool && client.supports_tasks() && !peer.wants_progress {
            let about = params.object("_meta").with(meta::PROGRESS_TOKEN, "task");
            params.set("_meta", about);
        }
        let cancel = cancel.child_token();
        let call_peer = Arc::clone(&peer) as Arc<dyn Peer>;
        let request = self.hub_request(client, method, params, call_peer, cancel.clone())?;
        let (hub, who) = (Arc::clone(&self.hub), client.caller.principal.clone());
        let call = Box::pin(async move { hub.call(request).await });
        Ok(RunningCall::new(who, call, peer, questions, cancel))
    }

    /// Passes the answers to a suspended call and resumes it.
    async fn resume_call(
        self: &Arc<Self>,
        parked: SuspendedCall,
        out: Outbox,
        method: Method,
        again: CallReplay,
        seal: Vec<u8>,
    ) -> Result<JsonObject, RpcError> {
        let answers = again.params.object("inputResponses");
        let (given, missing): (Vec<_>, Vec<_>) =
            parked.questions.into_iter().partition(|(key, _)| answers.get(key).is_some_and(Json::is_object));
        if !missing.is_empty() {
            let all = given.into_iter().chain(missing).collect();
            return self.suspend_call(parked.running, all, seal);
        }
        for (key, question) in given {
            let _ = question.answer.send(Ok(answers.object(&key)));
        }
        parked.running.peer.redirect(out);
        self.run_until_blocked(parked.running, method, again, seal).await
    }

    /// Runs until the call ends, asks a question, or takes long enough to become a task.
    async fn run_until_blocked(
        self: &Arc<Self>,
        mut running: RunningCall,
        method: Method,
        mut again: CallReplay,
        seal: Vec<u8>,
    ) -> Result<JsonObject, RpcError> {
        let begun = Instant::now();
        let mut may_last = method == Method::CallTool && again.client.supports_tasks();
        loop {
            let first = tokio::select! {
                biased;
                called = &mut running.call => {
                    return self.seal_upstream_state(self.rpc_result(method, called, &again.client)?, &seal);
                }
                Some(question) = running.questions.recv() => question,
                () = tokio::time::sleep(self.settings.tasks.long_tool_wait), if may_last => {
                    if !self.should_become_task(&running, &again, begun.elapsed()) {
                        continue;
                    }
                    (running, again) = match self.into_task(running, again) {
                        Ok(task) => return Ok(task),
                        Err(back) => *back,
                    };
                    may_last = false;
                    continue;
                }
            };
            if self.suspended.admit(&mut running).is_err() {
                // The call is in progress, so it decides what to do without an answer.
                let _ = first.answer.send(Err(AskError::Refused(too_many_questions())));
                continue;
            }
            let mut open = vec![(question_key(0), first)];
            while let Ok(Some(question)) =
                tokio::time::timeout(QUESTION_BATCH_WINDOW, running.questions.recv()).await
            {
                open.push((question_key(open.len()), question));
            }
            return self.suspend_call(running, open, seal);
        }
    }

    /// Suspends a call that was admitted to that.
    fn suspend_call(
        &self,
        running: RunningCall,
        open: Vec<(String, Question)>,
        seal: Vec<u8>,
    ) -> Result<JsonObject, RpcError> {
        let mut requests = JsonObject::new();
        for (key, question) in &open {
            requests.set(key, question.to_json());
        }
        let ticket = self.suspended.insert(running, open);
        let state = RequestState::Suspended { ticket, node: self.node().to_owned() };
        let state = self.state_sealer.seal(state, &seal);
        let state =
            state.ok_or_else(|| rpc_error(code::INTERNAL, "The state of the call was not sealed."))?;
        Ok(JsonObject::new()
            .with("resultType", "input_required")
            .with("inputRequests", requests)
            .with("requestState", state.as_str()))
    }

    /// Seals the state of an upstream's own question before it is sent to the client.
    fn seal_upstream_state(&self, mut result: JsonObject, seal: &[u8]) -> Result<JsonObject, RpcError> {
        if result.text("resultType").as_deref() != Some("input_required") {
            return Ok(result);
        }
        if let Some(state) = result.text("requestState") {
            let state = self
                .state_sealer
                .seal(RequestState::Upstream(Some(state)), seal)
                .ok_or_else(invalid_request_state)?;
            result.set("requestState", state.as_str());
        }
        Ok(result)
    }
}

fn question_key(at: usize) -> String {
    format!("question_{}", at + 1)
}

fn too_many_questions() -> RpcError {
    rpc_error(code::INTERNAL, "Too many calls of this client wait for an answer.")
}

fn invalid_request_state() -> RpcError {
    rpc_error(
        code::INVALID_PARAMS,
        "The requestState is no longer valid. The call may have taken effect: check before you send it again without it.",
    )
}
