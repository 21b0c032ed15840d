//! Message exchange with a server, independent of the transport.

pub(crate) mod abort_on_drop;
pub(crate) mod close_signal;
mod decode;
pub(crate) mod header_params;
pub(crate) mod http;
pub(crate) mod message_memory;
pub(crate) mod stdio;

use crate::error::UpstreamResult;
use crate::session::dispatcher::Dispatcher;
use crate::session::post_message::PostMessage;
use crate::transport::http::endpoint::Endpoint;
use crate::transport::http::sse_transport::SseTransport;
use crate::transport::stdio::stdin_writer::StdinSender;
use ::http::{HeaderName, HeaderValue};
use octo_model::{Json, JsonObject};
use octo_wire::{Era, Id, Message};
use std::sync::Arc;

/// An encoded request.
pub(crate) struct TransportRequest {
    pub(crate) id: u64,
    pub(crate) method: String,
    pub(crate) params: JsonObject,
    pub(crate) era: Era,
    /// HTTP headers that mirror tool arguments.
    pub(crate) param_headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Clone)]
pub(crate) enum Transport {
    Stdio(StdinSender),
    Http(Arc<Endpoint>),
    Sse(SseTransport),
}

impl Transport {
    /// Sends a request and waits for its response. The request must be in the table of pending requests.
    pub(crate) async fn exchange(
        &self,
        inbox: &Arc<Dispatcher>,
        request: TransportRequest,
    ) -> UpstreamResult {
        match self {
            Self::Stdio(queue) => queue.exchange(inbox, request).await,
            Self::Http(endpoint) => endpoint.exchange(inbox, request).await,
            Self::Sse(channel) => channel.exchange(inbox, request).await,
        }
    }

    /// Sends a message that has no response, and waits until it is written.
    pub(crate) async fn send(&self, message: Message) -> UpstreamResult<()> {
        match self {
            Self::Stdio(queue) => queue.send(message).await,
            Self::Http(endpoint) => endpoint.send(message).await,
            Self::Sse(channel) => channel.send(message).await,
        }
    }

    /// Cancels a request at the server.
    pub(crate) fn cancel(&self, id: u64, era: Era) {
        // In modern HTTP closing the stream cancels, and a notification is not allowed.
        if era == Era::Modern && matches!(self, Self::Http(_)) {
            return;
        }
        let params = JsonObject::new()
            .with("requestId", Id::number(id).json().clone())
            .with("reason", Json::text("The caller no longer waits for the answer."));
        self.post(Message::Notification { method: "notifications/cancelled".to_owned(), params });
    }
}

impl PostMessage for Transport {
    fn post(&self, message: Message) {
        match self {
            Self::Stdio(queue) => queue.post(message),
            Self::Http(endpoint) => endpoint.post(message),
            Self::Sse(channel) => channel.post(message),
        }
    }
}
