//! The way from this front to the others.

use crate::fleet::{FRONT_SOURCE, front_address};
use octo_fabric::{FrontMessages, Node, RemoteSource};
use octo_mcp::{FrontLink, FrontMessage, FrontMessageBody, Outbox, RelayedRequest};
use octo_model::{BoxFuture, Json, JsonObject, Kind, Method, Operation, RpcError, ToolError};
use octo_ports::ResultStore;
use octo_toolkit::{AskError, CallContext, CallHeader, Peer, Source};
use octo_wire::{Message, code};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a front may take to say that a message was for it.
const TAKE_TIMEOUT: Duration = Duration::from_millis(500);
/// How long messages wait for the connection to the other fronts. A hub listens before it has one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time of a request that another front answers.
const RELAY_TIMEOUT: Duration = Duration::from_secs(600);
/// Fronts that this one is connected to. Clients name them, so there may be no limit to the names.
const MAX_FRONTS: usize = 64;

pub struct FleetFrontLink {
    node: Arc<Node>,
    messages: Arc<FrontMessages>,
    results: Arc<dyn ResultStore>,
    fronts: Mutex<HashMap<String, Arc<RemoteSource>>>,
}

impl FleetFrontLink {
    pub fn new(node: &Arc<Node>, messages: &Arc<FrontMessages>, results: &Arc<dyn ResultStore>) -> Self {
        Self {
            node: Arc::clone(node),
            messages: Arc::clone(messages),
            results: Arc::clone(results),
            fronts: Mutex::default(),
        }
    }

    fn front(&self, node: &str) -> Result<Arc<RemoteSource>, ToolError> {
        let mut fronts = self.fronts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(front) = fronts.get(node) {
            return Ok(Arc::clone(front));
        }
        let address = front_address(node)?;
        if fronts.len() >= MAX_FRONTS {
            fronts.clear();
        }
        let front = RemoteSource::new(&self.node, address, FRONT_SOURCE, Arc::clone(&self.results));
        let front = Arc::new(front);
        fronts.insert(node.to_owned(), Arc::clone(&front));
        Ok(front)
    }

    async fn call(
        &self,
        node: &str,
        request: RelayedRequest,
        out: Outbox,
        cancel: CancellationToken,
    ) -> Result<JsonObject, ToolError> {
        let front = self.front(node)?;
        let caller = Arc::new(request.caller.clone());
        let params =
            Json::try_of(&request).and_then(|json| json.to::<JsonObject>()).map_err(ToolError::internal)?;
        let op = Operation { method: Method::CallTool, name: request.method, params };
        let header = CallHeader::new(caller, Instant::now() + RELAY_TIMEOUT);
        let cx =
            CallContext::from_header(header, cancel, Arc::new(OutboxPeer { out, none: JsonObject::new() }));
        front.run(op, &cx).await
    }
}

impl FrontLink for FleetFrontLink {
    fn node(&self) -> &str {
        self.node.name()
    }

    fn send(&self, message: FrontMessage) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Ok(json) = Json::try_of(&message) else { return false };
            let sent = match message.body {
                FrontMessageBody::Changed => self.messages.send(json).await.map(|()| false),
                FrontMessageBody::Client(_) => {
                    self.node.connects_within(CONNECT_TIMEOUT).await;
                    self.messages.offer(json, TAKE_TIMEOUT).await
                }
            };
            sent.unwrap_or_else(|error| {
                tracing::warn!(target: "fleet", %error, "a message was not sent to the other fronts");
                false
            })
        })
    }

    fn relay<'a>(
        &'a self,
        node: &'a str,
        request: RelayedRequest,
        out: Outbox,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<JsonObject, RpcError>> {
        Box::pin(async move {
            if !self.node.connects_within(CONNECT_TIMEOUT).await {
                return Err(disconnected());
            }
            let answer = self.call(node, request, out, cancel).await.map_err(|error| {
                tracing::warn!(target: "fleet", node, %error, "another front did not answer a request");
                if error.kind == Kind::RateLimited { overloaded_front() } else { lost_front() }
            })?;
            match answer.get("error").map(Json::to::<RpcError>) {
                Some(Ok(error)) => Err(error),
                Some(Err(_)) => Err(lost_front()),
                None => Ok(answer.object("result")),
            }
        })
    }
}

fn lost_front() -> RpcError {
    let message = "The hub that has this call cannot be reached. \
                   The call may have taken effect: check before you repeat it.";
    RpcError { code: code::INTERNAL, message: message.to_owned(), data: None }
}

/// The call still waits there.
fn overloaded_front() -> RpcError {
    let message = "The hub that has this call is overloaded. Send the same request again in a moment.";
    RpcError { code: code::INTERNAL, message: message.to_owned(), data: None }
}

fn disconnected() -> RpcError {
    let message =
        "This hub is not connected to the one that has this call. Send the same request again in a moment.";
    RpcError { code: code::INTERNAL, message: message.to_owned(), data: None }
}

/// Passes notifications of the other front on as they are.
struct OutboxPeer {
    out: Outbox,
    none: JsonObject,
}

impl Peer for OutboxPeer {
    fn capabilities(&self) -> &JsonObject {
        &self.none
    }

    fn notify(&self, method: &str, params: JsonObject) {
        let _ = self.out.try_send(Message::Notification { method: method.to_owned(), params });
    }

    fn ask<'a>(&'a self, _: &'a str, _: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async { Err(AskError::Unable) })
    }
}
