//! Dispatch of incoming messages: responses, server requests and notifications, each to its recipient.

pub(crate) mod server_requests;

use crate::error::UpstreamError;
use crate::listing::list_changes::ListChanges;
use crate::listing::resource_subscriptions::ResourceSubscriptions;
use crate::session::pending_requests::{PendingRequests, RequestClient};
use crate::session::post_message::PostMessage;
use octo_model::{ItemKind, Json, JsonObject};
use octo_toolkit::Event;
use octo_wire::{Era, Id, Message, meta};
use std::sync::{Arc, OnceLock};
use tokio::sync::broadcast;

/// Maximum size of the params of a forwarded notification, in bytes.
const MAX_NOTIFICATION_BYTES: usize = 256 << 10;

/// Channel on which a message arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageOrigin {
    /// On the response stream of this request.
    Call(u64),
    /// On a channel shared by all requests.
    Shared,
}

/// Receiving side of one connection.
pub(crate) struct Dispatcher {
    pub(crate) name: Arc<str>,
    pub(crate) pending: Arc<PendingRequests>,
    pub(crate) era: OnceLock<Era>,
    events: broadcast::Sender<Event>,
    list_changes: Arc<ListChanges>,
    subscriptions: Arc<ResourceSubscriptions>,
}

impl Dispatcher {
    pub(crate) fn new(
        name: Arc<str>,
        events: broadcast::Sender<Event>,
        list_changes: Arc<ListChanges>,
        subscriptions: Arc<ResourceSubscriptions>,
    ) -> Self {
        Self { name, pending: Arc::default(), era: OnceLock::new(), events, list_changes, subscriptions }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era.get() == Some(&Era::Modern)
    }

    pub(crate) fn dispatch(
        self: &Arc<Self>,
        message: Message,
        origin: MessageOrigin,
        wire: &impl PostMessage,
    ) {
        match message {
            Message::Response { id, result } => self.complete(&id, Ok(result)),
            Message::Error { id: Some(id), error } => self.complete(&id, Err(UpstreamError::Rpc(error))),
            Message::Error { id: None, error } => {
                tracing::debug!(target: "upstream", server = %self.name, ?error, "error response without a request id");
            }
            Message::Request { id, method, params } => {
                server_requests::handle(self, id, method, params, origin, wire)
            }
            Message::Notification { method, params } => self.handle_notification(&method, params, origin),
        }
    }

    fn complete(&self, id: &Id, outcome: crate::error::UpstreamResult) {
        if !id.to_number().is_some_and(|id| self.pending.complete(id, outcome)) {
            tracing::debug!(target: "upstream", server = %self.name, ?id, "response to an unknown request");
        }
    }

    fn handle_notification(&self, method: &str, params: JsonObject, origin: MessageOrigin) {
        match method {
            "notifications/progress" => self.forward_progress(params),
            "notifications/tools/list_changed" => self.list_changes.mark(&[ItemKind::Tool]),
            "notifications/prompts/list_changed" => self.list_changes.mark(&[ItemKind::Prompt]),
            "notifications/resources/list_changed" => {
                self.list_changes.mark(&[ItemKind::Resource, ItemKind::Template, ItemKind::Skill])
            }
            "notifications/resources/updated" => {
                // Another server may have a resource with this URI.
                if let Some(uri) = params.text("uri").filter(|uri| self.subscriptions.is_desired(uri)) {
                    let _ = self.events.send(Event::ResourceUpdated { uri });
                }
            }
            "notifications/subscriptions/acknowledged" => {
                if let Some(id) = subscription_id(&params, origin) {
                    self.pending.acknowledge_subscription(id);
                }
            }
            "notifications/cancelled" => self.handle_cancelled(&params),
            // The hub polls tasks itself, and their ids are of no use to clients.
            "notifications/tasks/status" | "notifications/tasks" => {}
            _ => self.forward_notification(method, params, origin),
        }
    }

    /// Client of the request on whose stream the message arrived.
    fn client_of_stream(&self, origin: MessageOrigin) -> Option<RequestClient> {
        match origin {
            MessageOrigin::Call(id) => self.pending.client_of(id),
            MessageOrigin::Shared => None,
        }
    }

    /// Whether a notification exceeds the limit; it is then dropped.
    fn is_too_large(&self, method: &str, params: &JsonObject) -> bool {
        let (size, limit) = (params.size(), MAX_NOTIFICATION_BYTES);
        if size > limit {
            tracing::warn!(target: "upstream", server = %self.name, method, size, limit, "notification dropped: too large");
        }
        size > limit
    }

    /// Forwards progress to the client that requested it, with the client's own token.
    fn forward_progress(&self, mut params: JsonObject) {
        if self.is_too_large("notifications/progress", &params) {
            return;
        }
        let token = params.get(meta::PROGRESS_TOKEN).and_then(parse_id);
        let Some(behalf) = token.and_then(|token| self.pending.client_of(token)) else {
            return;
        };
        let Some(original) = behalf.progress_token else { return };
        params.set(meta::PROGRESS_TOKEN, original);
        behalf.peer.notify("notifications/progress", params);
    }

    /// A legacy server cancels its own request; a modern one ends a subscription of the hub.
    fn handle_cancelled(&self, params: &JsonObject) {
        let Some(id) = params.get("requestId") else { return };
        if self.is_modern() {
            if let Some(id) = parse_id(id) {
                self.pending.complete(
                    id,
                    Err(UpstreamError::ConnectionLost("the server ended the subscription".to_owned())),
                );
            }
        } else if let Some(id) = Id::from_json(id.clone()) {
            self.pending.cancel_server_request(&id);
        }
    }

    /// Forwards an unknown notification to the client of the call it arrived with.
    fn forward_notification(&self, method: &str, params: JsonObject, origin: MessageOrigin) {
        if self.is_too_large(method, &params) {
            return;
        }
        let behalf = match origin {
            MessageOrigin::Call(_) => self.client_of_stream(origin),
            MessageOrigin::Shared => self.pending.sole_client().map(|(_, behalf)| behalf),
        };
        match behalf {
            Some(behalf) => behalf.peer.notify(method, params),
            None => {
                tracing::debug!(target: "upstream", server = %self.name, method, "notification dropped: no recipient")
            }
        }
    }
}

fn parse_id(json: &Json) -> Option<u64> {
    json.as_str().parse().ok()
}

fn subscription_id(params: &JsonObject, origin: MessageOrigin) -> Option<u64> {
    match origin {
        MessageOrigin::Call(id) => Some(id),
        MessageOrigin::Shared => params.inner("_meta", meta::SUBSCRIPTION).as_ref().and_then(parse_id),
    }
}
