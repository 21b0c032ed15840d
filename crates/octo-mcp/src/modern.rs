//! The modern era: every request carries its own context, and a question ends it.

use crate::answer::{Asked, asked, outcome, unknown};
use crate::background::{Again, Support};
use crate::client::Client;
use crate::discover::completed;
use crate::mcp::Mcp;
use crate::parking::{Parked, Running};
use crate::peer::{ModernPeer, Outbox, Question};
use crate::reply::rpc;
use crate::seal::{Held, bound};
use crate::tasks::needs_tasks;
use octo_model::{Json, JsonObject, Method, RpcError};
use octo_toolkit::{NoPeer, Peer};
use octo_wire::{code, meta};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Questions asked at the same moment are put to the client together.
const GATHER: Duration = Duration::from_millis(5);

impl Mcp {
    /// Answers one request of a modern client; `subscriptions/listen` is handled by the transports.
    pub(crate) async fn modern(
        self: &Arc<Self>,
        client: &Client,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        match asked(method) {
            Some(Asked::List(kind)) => {
                self.list(client, kind, &params).await.map(|result| completed(result, true))
            }
            Some(Asked::Operation(operation)) => {
                let result = self.operate(client, operation, params, out, cancel).await?;
                Ok(completed(result, operation == Method::ReadResource))
            }
            None => match method {
                "server/discover" => Ok(completed(self.discover(client).await, true)),
                "tasks/get" | "tasks/update" | "tasks/cancel" => {
                    self.task(client, method, &params).map(|result| completed(result, false))
                }
                _ => Err(unknown(method)),
            },
        }
    }

    async fn operate(
        self: &Arc<Self>,
        client: &Client,
        method: Method,
        mut params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let may_last = method == Method::CallTool && client.takes_tasks();
        if method == Method::CallTool && !may_last && self.support(client, &params) == Support::Required {
            return Err(needs_tasks());
        }
        let plain = params.get("requestState").is_none();
        if plain && !client.can_be_asked() && !may_last {
            let peer: Arc<dyn Peer> = self.quiet_or_telling(client, &params, out);
            let request = self.request(client, method, params, peer, cancel)?;
            return outcome(method, self.hub.call(request).await, client);
        }
        let seal = bound(&client.caller, &client.profile, method.as_str(), &params);
        match self.held(&params, &seal)? {
            Some(Held::Parked(ticket)) => {
                let parked = self.parking.take(ticket).ok_or_else(stale)?;
                let again = Again { client: client.clone(), params };
                return self.resume(parked, out, method, again, seal).await;
            }
            Some(Held::Upstream(state)) => {
                params.remove("requestState");
                if let Some(state) = state {
                    params.set("requestState", state.as_str());
                }
            }
            None => {}
        }
        let running = self.begin(client, method, params.clone(), out, cancel)?;
        self.drive(running, method, Again { client: client.clone(), params }, seal).await
    }

    /// Without abilities a client is only told things, and only when it asked for them.
    fn quiet_or_telling(&self, client: &Client, params: &JsonObject, out: Outbox) -> Arc<dyn Peer> {
        let telling = client.level.is_some()
            || !client.capabilities.is_empty()
            || params.inner("_meta", meta::PROGRESS_TOKEN).is_some();
        if !telling {
            return Arc::new(NoPeer);
        }
        Arc::new(ModernPeer::new(client, params, out).0)
    }

    fn held(&self, params: &JsonObject, seal: &[u8]) -> Result<Option<Held>, RpcError> {
        match params.get("requestState") {
            None => Ok(None),
            Some(state) => {
                let state = state.to_text().ok_or_else(stale)?;
                self.seal.open(&state, seal).map(Some).ok_or_else(stale)
            }
        }
    }

    /// Starts a call that may ask something, or become a task; then it is asked how far it is.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: &Client,
        method: Method,
        mut params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<Running, RpcError> {
        let (peer, questions) = ModernPeer::new(client, &params, out);
        let peer = Arc::new(peer);
        if method == Method::CallTool && client.takes_tasks() && !peer.progress {
            let about = params.object("_meta").with(meta::PROGRESS_TOKEN, "task");
            params.set("_meta", about);
        }
        let cancel = cancel.child_token();
        let way_back = Arc::clone(&peer) as Arc<dyn Peer>;
        let request = self.request(client, method, params, way_back, cancel.clone())?;
        let hub = Arc::clone(&self.hub);
        Ok(Running { call: Box::pin(async move { hub.call(request).await }), peer, questions, cancel })
    }

    /// Gives the answers to a parked call and lets it go on.
    async fn resume(
        self: &Arc<Self>,
        parked: Parked,
        out: Outbox,
        method: Method,
        again: Again,
        seal: Vec<u8>,
    ) -> Result<JsonObject, RpcError> {
        let answers = again.params.object("inputResponses");
        let (given, missing): (Vec<_>, Vec<_>) =
            parked.open.into_iter().partition(|(key, _)| answers.get(key).is_some_and(Json::is_object));
        if !missing.is_empty() {
            let all = given.into_iter().chain(missing).collect();
            return self.park(parked.running, all, seal);
        }
        for (key, question) in given {
            let _ = question.answer.send(Ok(answers.object(&key)));
        }
        parked.running.peer.redirect(out);
        self.drive(parked.running, method, again, seal).await
    }

    /// Runs until the call ends or asks something, or has taken so long that it becomes a task.
    async fn drive(
        self: &Arc<Self>,
        mut running: Running,
        method: Method,
        mut again: Again,
        seal: Vec<u8>,
    ) -> Result<JsonObject, RpcError> {
        let begun = Instant::now();
        let mut may_last = method == Method::CallTool && again.client.takes_tasks();
        let first = loop {
            tokio::select! {
                biased;
                called = &mut running.call => {
                    return self.sealed(outcome(method, called, &again.client)?, &seal);
                }
                Some(question) = running.questions.recv() => break question,
                () = tokio::time::sleep(self.settings.tasks.soon), if may_last => {
                    if !self.is_due(&again, begun.elapsed()) {
                        continue;
                    }
                    (running, again) = match self.hand_over(running, again) {
                        Ok(task) => return Ok(task),
                        Err(back) => back,
                    };
                    may_last = false;
                }
            }
        };
        let mut open = vec![(key(0), first)];
        while let Ok(Some(question)) = tokio::time::timeout(GATHER, running.questions.recv()).await {
            open.push((key(open.len()), question));
        }
        self.park(running, open, seal)
    }

    fn park(
        &self,
        running: Running,
        open: Vec<(String, Question)>,
        seal: Vec<u8>,
    ) -> Result<JsonObject, RpcError> {
        let mut requests = JsonObject::new();
        for (key, question) in &open {
            requests.set(key, question.to_json());
        }
        let full = || rpc(code::INTERNAL, "Too many calls wait for an answer. Try again later.");
        let ticket = self.parking.park(Parked::new(running, open)).ok_or_else(full)?;
        let state = self.seal.close(Held::Parked(ticket), &seal).ok_or_else(full)?;
        Ok(JsonObject::new()
            .with("resultType", "input_required")
            .with("inputRequests", requests)
            .with("requestState", state.as_str()))
    }

    /// An upstream's own question: its state is sealed before it leaves.
    fn sealed(&self, mut result: JsonObject, seal: &[u8]) -> Result<JsonObject, RpcError> {
        if result.text("resultType").as_deref() != Some("input_required") {
            return Ok(result);
        }
        if let Some(state) = result.text("requestState") {
            let state = self.seal.close(Held::Upstream(Some(state)), seal).ok_or_else(stale)?;
            result.set("requestState", state.as_str());
        }
        Ok(result)
    }
}

fn key(at: usize) -> String {
    format!("question_{}", at + 1)
}

fn stale() -> RpcError {
    rpc(
        code::INVALID_PARAMS,
        "The requestState is not valid here any more. Send the request again without it.",
    )
}
