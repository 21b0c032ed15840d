//! Legacy era: a handshake, a session, client requests within a call.

use crate::client_context::required_capability;
use crate::client_peer::{LegacyPeer, Outbox};
use crate::incoming::Answer;
use crate::legacy_session::Session;
use crate::mcp::Mcp;
use crate::methods::operation_metrics::OperationTimer;
use crate::methods::{RoutedMethod, route_method, unknown_method};
use crate::rpc_errors::rpc_error;
use crate::shared_fronts::ParkedCall;
use octo_hub::MAX_SUBSCRIPTIONS;
use octo_model::{JsonObject, Method, RpcError, ToolError};
use octo_ports::sessions::SessionChange;
use octo_toolkit::{AskError, NoPeer, Peer};
use octo_wire::Level;
use octo_wire::{code, meta};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A modern upstream may ask again after each answer, up to this many times.
const MAX_INPUT_ROUNDS: usize = 16;
/// Maximum wait for an answer between two calls of an upstream; nothing runs meanwhile.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3_600);

impl Mcp {
    /// Handles one request of a legacy client after its handshake.
    pub(crate) async fn handle_legacy(
        self: &Arc<Self>,
        session: Arc<Session>,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let timer = OperationTimer::begin(&session.client, method);
        let outcome = self.route_legacy(session, method, params, out, cancel).await;
        timer.finish(&outcome);
        outcome
    }

    async fn route_legacy(
        self: &Arc<Self>,
        session: Arc<Session>,
        method: &str,
        params: JsonObject,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        match route_method(method) {
            Some(RoutedMethod::List(kind)) => self.handle_list(&session.client, kind, &params).await,
            Some(RoutedMethod::Operation(operation)) => {
                self.call_with_input(session, operation, params, out, cancel).await
            }
            None => match method {
                "ping" => Ok(JsonObject::new()),
                "logging/setLevel" => set_level(&session, &params).await,
                "resources/subscribe" => self.handle_subscribe(&session, params, cancel).await,
                "resources/unsubscribe" => self.handle_unsubscribe(&session, params, cancel).await,
                _ => Err(unknown_method(method)),
            },
        }
    }

    /// Calls; while the result is `input_required`, asks the client and calls again.
    async fn call_with_input(
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
        let peer = Arc::new(LegacyPeer { session, out });
        self.call_until_complete(&peer, method, params, None, cancel).await
    }

    /// Continues a call of another front with the answer that it waited for.
    pub(crate) async fn continue_parked(
        self: &Arc<Self>,
        session: Arc<Session>,
        mut parked: ParkedCall,
        answer: Answer,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let Some(RoutedMethod::Operation(method)) = route_method(parked.method()) else {
            return Err(unknown_method(parked.method()));
        };
        parked.answers.set(&parked.key, answer?);
        let peer = Arc::new(LegacyPeer { session, out });
        let params = parked.params.clone();
        self.call_until_complete(&peer, method, params, Some(parked), cancel).await
    }

    async fn call_until_complete(
        self: &Arc<Self>,
        peer: &Arc<LegacyPeer>,
        method: Method,
        mut params: JsonObject,
        mut parked: Option<ParkedCall>,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let client = &peer.session.client;
        for _ in 0..MAX_INPUT_ROUNDS {
            let (mut result, answers) = match parked.take() {
                Some(parked) => (parked.result, parked.answers),
                None => {
                    let call_peer = Arc::clone(peer) as Arc<dyn Peer>;
                    let request =
                        self.hub_request(client, method, params.clone(), call_peer, cancel.clone())?;
                    let result = self.rpc_result(method, self.hub.call(request).await, client)?;
                    (result, JsonObject::new())
                }
            };
            if result.text("resultType").as_deref() != Some("input_required") {
                result.remove("resultType");
                return Ok(result);
            }
            let answers = tokio::select! {
                answers = tokio::time::timeout(ANSWER_TIMEOUT, ask_all(peer, method, &params, &result, answers)) => {
                    answers.unwrap_or_else(|_| Err(unanswered()))?
                }
                () = cancel.cancelled() => return Err(rpc_error(code::INTERNAL, "The call was cancelled.")),
            };
            params.set("inputResponses", answers);
            params.remove("requestState");
            if let Some(state) = result.get("requestState") {
                params.set("requestState", state.clone());
            }
        }
        Err(rpc_error(
            code::INTERNAL,
            "The upstream server keeps asking for input. Provide all input at once.",
        ))
    }

    async fn handle_subscribe(
        &self,
        session: &Session,
        params: JsonObject,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let request =
            self.hub_request(&session.client, Method::Subscribe, params, Arc::new(NoPeer), cancel)?;
        let uri = request.op.name.clone();
        if session.is_subscribed(&uri) {
            return Ok(JsonObject::new());
        }
        if !session.may_subscribe() {
            let why = if session.is_transient() {
                "A subscription needs a session. Send initialize, and then Mcp-Session-Id with each request."
                    .to_owned()
            } else {
                format!(
                    "This session already has {MAX_SUBSCRIPTIONS} subscriptions. End one with resources/unsubscribe."
                )
            };
            return Err(rpc_error(code::INVALID_PARAMS, why));
        }
        let subscription = self.hub.subscribe(&request).await.map_err(to_rpc_error)?;
        session.subscribe(uri.clone(), subscription);
        share_change(session, SessionChange::Subscribe(uri)).await?;
        Ok(JsonObject::new())
    }

    /// Ends a subscription of this session only.
    async fn handle_unsubscribe(
        &self,
        session: &Session,
        params: JsonObject,
        cancel: CancellationToken,
    ) -> Result<JsonObject, RpcError> {
        let request =
            self.hub_request(&session.client, Method::Unsubscribe, params, Arc::new(NoPeer), cancel)?;
        if let Some(subscription) = session.unsubscribe(&request.op.name) {
            self.hub.unsubscribe(&request, subscription).await.map_err(to_rpc_error)?;
        }
        share_change(session, SessionChange::Unsubscribe(request.op.name)).await?;
        Ok(JsonObject::new())
    }
}

fn to_rpc_error(error: ToolError) -> RpcError {
    error.rpc.clone().map_or_else(|| rpc_error(code::INVALID_PARAMS, error.text()), |error| *error)
}

async fn set_level(session: &Session, params: &JsonObject) -> Result<JsonObject, RpcError> {
    let level = params.text("level").and_then(|text| Level::parse(&text));
    let level = level.ok_or_else(|| rpc_error(code::INVALID_PARAMS, "Unknown log level."))?;
    share_change(session, SessionChange::LogLevel(level.as_str().to_owned())).await?;
    session.set_level(level);
    Ok(JsonObject::new())
}

/// Stores what the client has set where other fronts can continue the session.
async fn share_change(session: &Session, change: SessionChange) -> Result<(), RpcError> {
    match session.sharing() {
        Some(sharing) => sharing.change(change).await.map_err(|error| to_rpc_error(error.into())),
        None => Ok(()),
    }
}

/// Asks a legacy client the questions of a modern upstream, one after the other.
async fn ask_all(
    peer: &LegacyPeer,
    call: Method,
    params: &JsonObject,
    result: &JsonObject,
    mut answers: JsonObject,
) -> Result<JsonObject, RpcError> {
    for (key, request) in result.object("inputRequests").iter() {
        if answers.get(key).is_some() {
            continue;
        }
        let request = request.members().unwrap_or_default();
        let method = request.text("method").unwrap_or_default();
        let parked = ParkedCall::new(call, params.clone(), result.clone(), answers.clone(), key);
        let answer = peer.ask_parked(&method, request.object("params"), Some(&parked)).await;
        answers.set(key, answer.map_err(|why| ask_error(&method, why))?);
    }
    Ok(answers)
}

fn unanswered() -> RpcError {
    rpc_error(code::INTERNAL, "The call's questions were not answered in time.")
}

fn ask_error(method: &str, why: AskError) -> RpcError {
    match why {
        AskError::Refused(error) => error,
        AskError::Gone => rpc_error(code::INTERNAL, "The client disconnected before it answered."),
        AskError::Unable => {
            let ability = required_capability(method).unwrap_or("this");
            rpc_error(code::INVALID_PARAMS, format!("This call needs a client that supports {ability}."))
        }
    }
}
