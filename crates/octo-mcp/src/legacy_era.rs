//! Legacy era: a handshake, a session, client requests within a call.

use crate::client_context::required_capability;
use crate::client_peer::{LegacyPeer, Outbox};
use crate::legacy_session::Session;
use crate::mcp::Mcp;
use crate::methods::operation_metrics::OperationTimer;
use crate::methods::{RoutedMethod, into_rpc_result, route_method, unknown_method};
use crate::rpc_errors::rpc_error;
use octo_hub::MAX_SUBSCRIPTIONS;
use octo_model::{JsonObject, Method, RpcError, ToolError};
use octo_toolkit::{AskError, NoPeer, Peer};
use octo_wire::Level;
use octo_wire::{code, meta};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A modern upstream may ask again after each answer, up to this many times.
const MAX_INPUT_ROUNDS: usize = 16;

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
                "logging/setLevel" => set_level(&session, &params),
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
        let peer: Arc<dyn Peer> = Arc::new(LegacyPeer { session: Arc::clone(&session), out });
        for _ in 0..MAX_INPUT_ROUNDS {
            let request =
                self.hub_request(&session.client, method, params.clone(), Arc::clone(&peer), cancel.clone())?;
            let mut result = into_rpc_result(method, self.hub.call(request).await, &session.client)?;
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
        session.subscribe(uri, subscription);
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
        Ok(JsonObject::new())
    }
}

fn to_rpc_error(error: ToolError) -> RpcError {
    error.rpc.clone().map_or_else(|| rpc_error(code::INVALID_PARAMS, error.text()), |error| *error)
}

fn set_level(session: &Session, params: &JsonObject) -> Result<JsonObject, RpcError> {
    let level = params.text("level").and_then(|text| Level::parse(&text));
    session.set_level(level.ok_or_else(|| rpc_error(code::INVALID_PARAMS, "Unknown log level."))?);
    Ok(JsonObject::new())
}

/// Asks a legacy client the questions of a modern upstream, one after the other.
async fn ask_all(peer: &Arc<dyn Peer>, requests: &JsonObject) -> Result<JsonObject, RpcError> {
    let mut answers = JsonObject::new();
    for (key, request) in requests.iter() {
        let request = request.members().unwrap_or_default();
        let method = request.text("method").unwrap_or_default();
        let answer =
            peer.ask(&method, request.object("params")).await.map_err(|why| ask_error(&method, why))?;
        answers.set(key, answer);
    }
    Ok(answers)
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
