//! What a server says without being asked, or while it is being asked: whom it concerns and what follows.

use crate::calls::{Behalf, Calls};
use crate::fail::Fail;
use crate::kind::{Changes, Kind};
use crate::question;
use crate::wire::Wire;
use octo_model::{Json, JsonObject};
use octo_toolkit::Event;
use octo_wire::{Era, Id, Message, meta};
use std::sync::{Arc, OnceLock};
use tokio::sync::broadcast;

/// Bytes of the params of a notice that is passed on to a client.
const MAX_NOTICE_BYTES: usize = 256 << 10;

/// Where a message was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On the response stream of this request.
    Call(u64),
    /// On a channel that all requests share.
    Shared,
}

/// The receiving side of one connection.
pub(crate) struct Inbox {
    pub(crate) name: Arc<str>,
    pub(crate) calls: Calls,
    pub(crate) era: OnceLock<Era>,
    events: broadcast::Sender<Event>,
    changes: Arc<Changes>,
}

impl Inbox {
    pub(crate) fn new(name: Arc<str>, events: broadcast::Sender<Event>, changes: Arc<Changes>) -> Self {
        Self { name, calls: Calls::default(), era: OnceLock::new(), events, changes }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era.get() == Some(&Era::Modern)
    }

    pub(crate) fn take(self: &Arc<Self>, message: Message, origin: Origin, wire: &Wire) {
        match message {
            Message::Response { id, result } => self.settle(&id, Ok(result)),
            Message::Error { id: Some(id), error } => self.settle(&id, Err(Fail::Rpc(error))),
            Message::Error { id: None, error } => {
                tracing::debug!(target: "upstream", server = %self.name, ?error, "an error that belongs to no request");
            }
            Message::Request { id, method, params } => question::take(self, id, method, params, origin, wire),
            Message::Notification { method, params } => self.notice(&method, params, origin),
        }
    }

    fn settle(&self, id: &Id, outcome: crate::fail::Outcome) {
        if !id.to_number().is_some_and(|id| self.calls.settle(id, outcome)) {
            tracing::debug!(target: "upstream", server = %self.name, ?id, "an answer that nobody waits for");
        }
    }

    fn notice(&self, method: &str, params: JsonObject, origin: Origin) {
        match method {
            "notifications/progress" => self.progress(params),
            "notifications/tools/list_changed" => self.changes.ring(&[Kind::Tools]),
            "notifications/prompts/list_changed" => self.changes.ring(&[Kind::Prompts]),
            "notifications/resources/list_changed" => self.changes.ring(&[Kind::Resources, Kind::Templates]),
            "notifications/resources/updated" => {
                if let Some(uri) = params.text("uri") {
                    let _ = self.events.send(Event::ResourceUpdated { uri });
                }
            }
            "notifications/subscriptions/acknowledged" => {
                if let Some(id) = subscription(&params, origin) {
                    self.calls.opened(id);
                }
            }
            "notifications/cancelled" => self.cancelled(&params),
            _ => self.pass_on(method, params, origin),
        }
    }

    /// The client on whose own stream something came.
    fn own_client(&self, origin: Origin) -> Option<Behalf> {
        match origin {
            Origin::Call(id) => self.calls.behalf(id),
            Origin::Shared => None,
        }
    }

    /// Whether a notice is larger than any client is told. It is dropped.
    fn is_oversized(&self, method: &str, params: &JsonObject) -> bool {
        let (size, limit) = (params.size(), MAX_NOTICE_BYTES);
        if size > limit {
            tracing::warn!(target: "upstream", server = %self.name, method, size, limit, "a notice is too large and was dropped");
        }
        size > limit
    }

    /// Gives progress to the client that asked for it, under the client's own token.
    fn progress(&self, mut params: JsonObject) {
        if self.is_oversized("notifications/progress", &params) {
            return;
        }
        let token = params.get(meta::PROGRESS_TOKEN).and_then(number);
        let Some(behalf) = token.and_then(|token| self.calls.behalf(token)) else {
            return;
        };
        let Some(original) = behalf.token else { return };
        params.set(meta::PROGRESS_TOKEN, original);
        behalf.peer.notify("notifications/progress", params);
    }

    /// A legacy server takes back its own question; a modern one ends a subscription of ours.
    fn cancelled(&self, params: &JsonObject) {
        let Some(id) = params.get("requestId") else { return };
        if self.is_modern() {
            if let Some(id) = number(id) {
                self.calls.settle(id, Err(Fail::Lost("the server ended the subscription".to_owned())));
            }
        } else if let Some(id) = Id::from_json(id.clone()) {
            self.calls.withdraw(&id);
        }
    }

    /// What we do not know belongs to the client whose call it came with.
    fn pass_on(&self, method: &str, params: JsonObject, origin: Origin) {
        if self.is_oversized(method, &params) {
            return;
        }
        let behalf = match origin {
            Origin::Call(_) => self.own_client(origin),
            Origin::Shared => self.calls.only_client().map(|(_, behalf)| behalf),
        };
        match behalf {
            Some(behalf) => behalf.peer.notify(method, params),
            None => {
                tracing::debug!(target: "upstream", server = %self.name, method, "a notice that concerns nobody")
            }
        }
    }
}

fn number(json: &Json) -> Option<u64> {
    json.as_str().parse().ok()
}

fn subscription(params: &JsonObject, origin: Origin) -> Option<u64> {
    match origin {
        Origin::Call(id) => Some(id),
        Origin::Shared => params.inner("_meta", meta::SUBSCRIPTION).as_ref().and_then(number),
    }
}
