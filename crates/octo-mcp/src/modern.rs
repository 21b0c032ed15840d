//! The modern era: every request carries its own context, and a question ends it.

use crate::answer::{Asked, asked, outcome, unknown};
use crate::client::Client;
use crate::discover::completed;
use crate::mcp::Mcp;
use crate::parking::{Parked, Running};
use crate::peer::{ModernPeer, Outbox, Question};
use crate::reply::rpc;
use crate::seal::{Held, bound};
use octo_model::{Json, Members, Method, RpcError};
use octo_toolkit::{Alone, Peer};
use octo_wire::code;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Questions asked at the same moment are put to the client together.
const GATHER: Duration = Duration::from_millis(5);

impl Mcp {
    /// Answers one request of a modern client; `subscriptions/listen` is handled by the transports.
    pub(crate) async fn modern(
        self: &Arc<Self>,
        client: &Client,
        method: &str,
        params: Members,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<Members, RpcError> {
        match asked(method) {
            Some(Asked::List(kind)) => {
                self.list(client, kind, &params).await.map(|result| completed(result, true))
            }
            Some(Asked::Operation(operation)) => {
                let result = self.operate(client, operation, params, out, cancel).await?;
                Ok(completed(result, operation == Method::ReadResource))
            }
            None if method == "server/discover" => Ok(completed(self.discover(client).await, true)),
            None => Err(unknown(method)),
        }
    }

    async fn operate(
        self: &Arc<Self>,
        client: &Client,
        method: Method,
        mut params: Members,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<Members, RpcError> {
        let plain = params.get("requestState").is_none();
        if plain && !client.can_be_asked() {
            let peer: Arc<dyn Peer> = self.quiet_or_telling(client, &params, out);
            let request = self.request(client, method, params, peer, cancel)?;
            return outcome(method, self.hub.call(request).await, client);
        }
        let seal = bound(&client.caller, &client.profile, method.as_str(), &params);
        let running = match self.held(&params, &seal)? {
            Some(Held::Parked(ticket)) => {
                let parked = self.parking.take(ticket).ok_or_else(stale)?;
                return self.resume(parked, &params, out, method, client, seal).await;
            }
            Some(Held::Upstream(state)) => {
                params.remove("requestState");
                if let Some(state) = state {
                    params.set("requestState", state.as_str());
                }
                self.begin(client, method, params, out, cancel)?
            }
            None => self.begin(client, method, params, out, cancel)?,
        };
        self.drive(running, method, client, seal).await
    }

    /// Without abilities a client is only told things, and only when it asked for them.
    fn quiet_or_telling(&self, client: &Client, params: &Members, out: Outbox) -> Arc<dyn Peer> {
        let telling = client.level.is_some()
            || !client.capabilities.is_empty()
            || params.inner("_meta", "progressToken").is_some();
        if !telling {
            return Arc::new(Alone);
        }
        let (questions, _) = mpsc::unbounded_channel();
        Arc::new(ModernPeer { client: client.clone(), out: Mutex::new(out), questions })
    }

    fn held(&self, params: &Members, seal: &[u8]) -> Result<Option<Held>, RpcError> {
        match params.get("requestState") {
            None => Ok(None),
            Some(state) => {
                let state = state.to_text().ok_or_else(stale)?;
                self.seal.open(&state, seal).map(Some).ok_or_else(stale)
            }
        }
    }

    fn begin(
        self: &Arc<Self>,
        client: &Client,
        method: Method,
        params: Members,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<Running, RpcError> {
        let (ask, questions) = mpsc::unbounded_channel();
        let peer = Arc::new(ModernPeer { client: client.clone(), out: Mutex::new(out), questions: ask });
        let request = self.request(client, method, params, Arc::clone(&peer) as Arc<dyn Peer>, cancel)?;
        let hub = Arc::clone(&self.hub);
        Ok(Running { call: Box::pin(async move { hub.call(request).await }), peer, questions })
    }

    /// Gives the answers to a parked call and lets it go on.
    async fn resume(
        &self,
        parked: Parked,
        params: &Members,
        out: Outbox,
        method: Method,
        client: &Client,
        seal: Vec<u8>,
    ) -> Result<Members, RpcError> {
        let answers = params.object("inputResponses");
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
        self.drive(parked.running, method, client, seal).await
    }

    /// Runs until the call ends or asks something.
    async fn drive(
        &self,
        mut running: Running,
        method: Method,
        client: &Client,
        seal: Vec<u8>,
    ) -> Result<Members, RpcError> {
        let first = tokio::select! {
            biased;
            called = &mut running.call => return self.sealed(outcome(method, called, client)?, &seal),
            Some(question) = running.questions.recv() => question,
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
    ) -> Result<Members, RpcError> {
        let mut requests = Members::new();
        for (key, question) in &open {
            let request = Members::new()
                .with("method", question.method.as_str())
                .with("params", question.params.clone());
            requests.set(key, request);
        }
        let full = || rpc(code::INTERNAL, "Too many calls wait for an answer. Try again later.");
        let ticket = self.parking.park(Parked::new(running, open)).ok_or_else(full)?;
        let state = self.seal.close(Held::Parked(ticket), &seal).ok_or_else(full)?;
        Ok(Members::new()
            .with("resultType", "input_required")
            .with("inputRequests", requests)
            .with("requestState", state.as_str()))
    }

    /// An upstream's own question: its state is sealed before it leaves.
    fn sealed(&self, mut result: Members, seal: &[u8]) -> Result<Members, RpcError> {
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
