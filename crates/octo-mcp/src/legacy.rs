//! The legacy era: a handshake, a session, questions in the middle of a call.

use crate::answer::{Asked, asked, outcome, unknown};
use crate::client::ability_for;
use crate::mcp::Mcp;
use crate::peer::{LegacyPeer, Outbox};
use crate::reply::rpc;
use crate::session::Session;
use octo_hub::MAX_SUBSCRIPTIONS;
use octo_model::{JsonObject, Method, RpcError, ToolError};
use octo_toolkit::{AskError, NoPeer, Peer};
use octo_wire::Level;
use octo_wire::{code, meta};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A modern upstream may ask again after each answer, but not for ever.
const MAX_ROUNDS: usize = 16;

impl Mcp {
    /// Answers one request of a legacy client after its handshake.
    pub(crate) async fn legacy(
        self: &Arc<Self>,
        session: Arc<Session>,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        match asked(method) {
            Some(Asked::List(kind)) => self.list(&session.client, kind, &params).await,
            Some(Asked::Operation(operation)) => self.rounds(session, operation, params, out, cancel).await,
            None => match method {
                "ping" => Ok(JsonObject::new()),
                "logging/setLevel" => set_level(&session, &params),
                "resources/subscribe" => self.subscribe(&session, params, cancel).await,
                "resources/unsubscribe" => self.unsubscribe(&session, params, cancel).await,
                _ => Err(unknown(method)),
            },
        }
    }

    /// Calls, and as long as the answer is a question, asks the client and calls again.
    async fn rounds(
        self: &Arc<Self>,
        session: Arc<Session>,
        method: Method,
        mut params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        if let Some(level) = session.level() {
            let about = params.object("_meta").with(meta::LOG_LEVEL, level.as_str());
            params.set("_meta", about);
        }
        let peer: Arc<dyn Peer> = Arc::new(LegacyPeer { session: Arc::clone(&session), out });
        for _ in 0..MAX_ROUNDS {
            let request =
                self.request(&session.client, method, params.clone(), Arc::clone(&peer), cancel.clone())?;
            let mut result = outcome(method, self.hub.call(request).await, &session.client)?;
            if result.text("resultType").as_deref() != Some("input_required") {
                result.remove("resultType");
                return Ok(result);
            }
            params.set("inputResponses", ask_all(&peer, &result.object("inputRequests")).await?);
            params.remove("requestState");
            if let Some(state) = result.get("requestState") {
                params.set("requestState", state.clone());
            }
        }
        Err(rpc(code::INTERNAL, "The server behind the hub keeps asking. Give it all it needs at once."))
    }

    async fn subscribe(
        &self,
        session: &Session,
        params: JsonObject,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let request = self.request(&session.client, Method::Subscribe, params, Arc::new(NoPeer), cancel)?;
        let uri = request.op.name.clone();
        if session.subscribes(&uri) {
            return Ok(JsonObject::new());
        }
        if !session.may_subscribe() {
            let why = if session.is_transient() {
                "A subscription needs a session. Send initialize, and then Mcp-Session-Id with each request."
                    .to_owned()
            } else {
                format!(
                    "This session has {MAX_SUBSCRIPTIONS} subscriptions already. End one with resources/unsubscribe."
                )
            };
            return Err(rpc(code::INVALID_PARAMS, why));
        }
        let subscription = self.hub.subscribe(&request).await.map_err(refusal)?;
        session.subscribe(uri, subscription);
        Ok(JsonObject::new())
    }

    /// What this session has not subscribed to is nobody else's to end.
    async fn unsubscribe(
        &self,
        session: &Session,
        params: JsonObject,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let request = self.request(&session.client, Method::Unsubscribe, params, Arc::new(NoPeer), cancel)?;
        if let Some(subscription) = session.unsubscribe(&request.op.name) {
            self.hub.unsubscribe(&request, subscription).await.map_err(refusal)?;
        }
        Ok(JsonObject::new())
    }
}

fn refusal(error: ToolError) -> RpcError {
    error.rpc.clone().map_or_else(|| rpc(code::INVALID_PARAMS, error.text()), |error| *error)
}

fn set_level(session: &Session, params: &JsonObject) -> Result<JsonObject, RpcError> {
    let level = params.text("level").and_then(|text| Level::parse(&text));
    session.set_level(level.ok_or_else(|| rpc(code::INVALID_PARAMS, "There is no such log level."))?);
    Ok(JsonObject::new())
}

/// Puts the questions of a modern upstream to a legacy client, one after the other.
async fn ask_all(peer: &Arc<dyn Peer>, requests: &JsonObject) -> Result<JsonObject, RpcError> {
    let mut answers = JsonObject::new();
    for (key, request) in requests.iter() {
        let request = request.members().unwrap_or_default();
        let method = request.text("method").unwrap_or_default();
        let answer =
            peer.ask(&method, request.object("params")).await.map_err(|why| unanswered(&method, why))?;
        answers.set(key, answer);
    }
    Ok(answers)
}

fn unanswered(method: &str, why: AskError) -> RpcError {
    match why {
        AskError::Refused(error) => error,
        AskError::Gone => rpc(code::INTERNAL, "The client went away before it answered."),
        AskError::Unable => {
            let ability = ability_for(method).unwrap_or("this");
            rpc(code::INVALID_PARAMS, format!("This call needs a client that supports {ability}."))
        }
    }
}
