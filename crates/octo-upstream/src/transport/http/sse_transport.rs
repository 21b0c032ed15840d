//! HTTP+SSE, the transport of revision 2024-11-05: the server sends everything on one stream, whose first event names the
//! URL for messages to the server.

use super::endpoint::Endpoint;
use super::event_stream::{EventStream, ResumePoint};
use super::response_body::is_session_expired;
use crate::error::{UpstreamError, UpstreamResult};
use crate::session::dispatcher::{Dispatcher, MessageOrigin};
use crate::session::post_message::PostMessage;
use crate::transport::TransportRequest;
use crate::transport::abort_on_drop::AbortOnDrop;
use crate::transport::close_signal::CloseSignal;
use crate::transport::decode::decode_message;
use http::{StatusCode, Uri};
use octo_wire::{Id, Message};
use std::sync::Arc;
use url::Url;

/// Type of the first event.
const ENDPOINT_EVENT: &str = "endpoint";

/// Sends messages to the server.
#[derive(Clone)]
pub(crate) struct MessageUrl {
    endpoint: Arc<Endpoint>,
    uri: Uri,
}

impl PostMessage for MessageUrl {
    fn post(&self, message: Message) {
        self.endpoint.post_at(self.uri.clone(), message);
    }
}

/// A connection over HTTP+SSE.
#[derive(Clone)]
pub(crate) struct SseTransport {
    messages: MessageUrl,
    _reader: Arc<AbortOnDrop>,
}

impl SseTransport {
    /// Opens the stream and waits for its first event.
    pub(crate) async fn open(
        endpoint: Endpoint,
        inbox: &Arc<Dispatcher>,
        closed: &CloseSignal,
    ) -> UpstreamResult<Self> {
        let endpoint = Arc::new(endpoint);
        let mut events = endpoint.listen(&ResumePoint::default()).await?;
        let first = events.next().await?;
        let first = first.filter(|_| events.event_name.as_deref() == Some(ENDPOINT_EVENT));
        let first = first.ok_or_else(|| {
            UpstreamError::Protocol("the stream does not begin with a message URL".to_owned())
        })?;
        let uri = message_uri(endpoint.uri(), &String::from_utf8_lossy(&first))?;
        let messages = MessageUrl { endpoint, uri };
        let reader = tokio::spawn(read_events(events, inbox.clone(), messages.clone(), closed.clone()));
        Ok(Self { messages, _reader: Arc::new(reader.into()) })
    }

    pub(crate) async fn exchange(
        &self,
        inbox: &Arc<Dispatcher>,
        request: TransportRequest,
    ) -> UpstreamResult {
        let mut answer = inbox.pending.response_receiver(request.id);
        let id = Id::number(request.id);
        let message = Message::Request { id, method: request.method, params: request.params };
        let lost = |_| Err(UpstreamError::ConnectionLost("the stream ended without a response".to_owned()));
        // The response may come before that of the POST, or without it. On a closed connection nothing is sent.
        let sent = tokio::select! {
            biased;
            answer = &mut answer => return answer.unwrap_or_else(lost),
            sent = self.send(message) => sent,
        };
        match sent {
            Ok(()) => answer.await.unwrap_or_else(lost),
            Err(why) => answer.try_recv().unwrap_or(Err(why)),
        }
    }

    pub(crate) async fn send(&self, message: Message) -> UpstreamResult<()> {
        match self.messages.endpoint.send_at(&self.messages.uri, message).await {
            Err(UpstreamError::Status { code, text, .. }) if is_expired(code, &text) => {
                Err(UpstreamError::SessionExpired)
            }
            sent => sent,
        }
    }

    pub(crate) fn post(&self, message: Message) {
        self.messages.post(message);
    }
}

/// Whether a status says that the server no longer knows the session, which is part of the URL.
fn is_expired(code: u16, text: &str) -> bool {
    let status = StatusCode::from_u16(code).unwrap_or_default();
    status == StatusCode::GONE || is_session_expired(status, text.as_bytes())
}

async fn read_events(
    mut events: EventStream,
    inbox: Arc<Dispatcher>,
    messages: MessageUrl,
    closed: CloseSignal,
) {
    let why = loop {
        match events.next().await {
            Ok(Some(text)) => match decode_message(text).await {
                Ok(all) => {
                    all.into_iter().for_each(|one| inbox.dispatch(one, MessageOrigin::Shared, &messages));
                }
                Err(broken) => {
                    tracing::debug!(target: "upstream", server = %inbox.name, fault = %broken.fault, "invalid message in an event");
                    if let Some(id) = broken.id {
                        inbox.pending.complete(id, Err(UpstreamError::Protocol(broken.fault.to_string())));
                    }
                }
            },
            Ok(None) => break UpstreamError::ConnectionLost("the server closed the stream".to_owned()),
            // A single pending call is the one that was being answered.
            Err(UpstreamError::TooLarge(limit)) if inbox.pending.waiting_count() != 1 => {
                break UpstreamError::ConnectionLost(format!("event exceeds the limit of {limit} bytes"));
            }
            Err(why) => break why,
        }
    };
    inbox.pending.close(why.clone());
    closed.set(why);
}

/// The URL for messages. Credentials must not go to another origin than the configured one.
fn message_uri(stream: &Uri, named: &str) -> UpstreamResult<Uri> {
    let invalid = || {
        let named: String = named.chars().take(100).collect();
        UpstreamError::Protocol(format!("the stream does not begin with a message URL: {named:?}"))
    };
    let base = Url::parse(&stream.to_string()).map_err(|_| invalid())?;
    if named.trim().is_empty() || named.trim_start().starts_with(['{', '[']) {
        return Err(invalid());
    }
    let target = base.join(named.trim()).map_err(|_| invalid())?;
    if target.origin() != base.origin() {
        return Err(UpstreamError::Protocol("the message URL is on another host".to_owned()));
    }
    target.as_str().parse().map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_at_the_configured_origin() {
        let stream: Uri = "https://a.test:8443/api/sse?key=1".parse().unwrap();
        let uri = |named: &str| message_uri(&stream, named).map(|uri| uri.to_string()).ok();
        for (named, expected) in [
            ("/messages?session=1", Some("https://a.test:8443/messages?session=1")),
            ("messages/2", Some("https://a.test:8443/api/messages/2")),
            ("?session=3", Some("https://a.test:8443/api/sse?session=3")),
            ("https://a.test:8443/m", Some("https://a.test:8443/m")),
            (" /m\n", Some("https://a.test:8443/m")),
            ("https://evil.test:8443/m", None),
            ("http://a.test:8443/m", None),
            ("https://a.test/m", None),
            ("//evil.test/m", None),
            ("file:///etc/passwd", None),
            ("{\"jsonrpc\":\"2.0\"}", None),
            ("", None),
        ] {
            assert_eq!(uri(named).as_deref(), expected, "{named}");
        }
    }

    #[test]
    fn a_bad_request_expires_the_session_only_if_it_names_it() {
        for (code, text, expected) in [
            (400, "No transport found for sessionId", true),
            (400, "Invalid Session ID", true),
            (400, "Missing field `arguments`", false),
            (400, "", false),
            (404, "", true),
            (410, "", true),
            (403, "session", false),
            (500, "session", false),
        ] {
            assert_eq!(is_expired(code, text), expected, "{code} {text}");
        }
    }
}
