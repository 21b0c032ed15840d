//! One request and its response, as JSON or as an event stream.

use crate::error::{UpstreamError, UpstreamResult};
use crate::session::dispatcher::{Dispatcher, MessageOrigin};
use crate::transport::decode::decode_message;
use crate::transport::http::endpoint::Endpoint;
use crate::transport::http::event_stream::{EventStream, ResumePoint};
use crate::transport::http::request_headers::add_request_headers;
use crate::transport::http::response_body::{is_event_stream, read_body};
use crate::transport::{Transport, TransportRequest};
use bytes::Bytes;
use http::Method;
use octo_wire::{Era, Id, Message};
use std::sync::Arc;
use std::time::Duration;

/// Maximum consecutive resumptions of a broken stream without a new event.
const MAX_RESUMPTIONS: u32 = 5;
/// Delay before resuming if the server sent no `retry`.
const DEFAULT_RESUME_DELAY: Duration = Duration::from_millis(300);
const MIN_RESUME_DELAY: Duration = Duration::from_millis(10);

impl Endpoint {
    pub(crate) async fn exchange(
        self: &Arc<Self>,
        inbox: &Arc<Dispatcher>,
        request: TransportRequest,
    ) -> UpstreamResult {
        let mut headers = self.headers();
        add_request_headers(&request, &mut headers);
        let (id, era) = (request.id, request.era);
        let opens = request.method == "initialize";
        let message = Message::Request { id: Id::number(id), method: request.method, params: request.params };
        let response = self.request(Method::POST, headers, message.to_bytes()).await?;
        if !response.status().is_success() {
            return Err(self.error_from(response).await);
        }
        if opens {
            self.store_session(response.headers());
        }
        if is_event_stream(&response) {
            let events = EventStream::new(response.into_body(), &self.receive_limit, ResumePoint::default());
            return self.read_stream(inbox, id, era, events).await;
        }
        let text = read_body(response.into_body(), &self.receive_limit).await?;
        self.take_response(inbox, id, text)
            .await
            .unwrap_or_else(|| Err(UpstreamError::Protocol("no valid message in the response".to_owned())))
    }

    /// Reads the stream of one request until its response. A broken stream of a legacy server is resumed.
    async fn read_stream(
        self: &Arc<Self>,
        inbox: &Arc<Dispatcher>,
        id: u64,
        era: Era,
        mut events: EventStream,
    ) -> UpstreamResult {
        let mut tries = 0;
        let mut last = ResumePoint::default();
        loop {
            let why = match self.read_until_response(inbox, id, &mut events).await {
                Ok(Some(outcome)) => {
                    events.drain();
                    return outcome;
                }
                Ok(None) => UpstreamError::ConnectionLost("the stream ended without a response".to_owned()),
                Err(why @ UpstreamError::ConnectionLost(_)) => why,
                Err(other) => return Err(other),
            };
            tries = if events.resume_point.id == last.id { tries + 1 } else { 0 };
            last = events.resume_point.clone();
            if era == Era::Modern || last.id.is_none() || tries > MAX_RESUMPTIONS {
                return Err(why);
            }
            events = Box::pin(self.resume_stream(&last)).await.ok_or(why)?;
        }
    }

    async fn read_until_response(
        self: &Arc<Self>,
        inbox: &Arc<Dispatcher>,
        id: u64,
        events: &mut EventStream,
    ) -> UpstreamResult<Option<UpstreamResult>> {
        while let Some(text) = events.next().await? {
            if let Some(outcome) = self.take_response(inbox, id, text).await {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Finds the response among messages; the others go to the dispatcher.
    async fn take_response(
        self: &Arc<Self>,
        inbox: &Arc<Dispatcher>,
        id: u64,
        text: Bytes,
    ) -> Option<UpstreamResult> {
        let messages = match decode_message(text).await {
            Ok(messages) => messages,
            Err(broken) => {
                tracing::debug!(target: "upstream", server = %inbox.name, fault = %broken.fault, "invalid message");
                return (broken.id == Some(id))
                    .then(|| Err(UpstreamError::Protocol(broken.fault.to_string())));
            }
        };
        let mut answer = None;
        for message in messages {
            match message {
                Message::Response { id: of, result } if is_response_to(id, Some(&of)) => {
                    answer = Some(Ok(result))
                }
                Message::Error { id: of, error } if is_response_to(id, of.as_ref()) => {
                    answer = Some(Err(UpstreamError::Rpc(error)))
                }
                other => inbox.dispatch(other, MessageOrigin::Call(id), &Transport::Http(self.clone())),
            }
        }
        answer
    }

    /// Resumes a broken stream. Failed connections are retried a few times.
    async fn resume_stream(&self, mark: &ResumePoint) -> Option<EventStream> {
        for _ in 0..MAX_RESUMPTIONS {
            tokio::time::sleep(mark.retry.unwrap_or(DEFAULT_RESUME_DELAY).max(MIN_RESUME_DELAY)).await;
            match self.listen(mark).await {
                Ok(events) => return Some(events),
                Err(UpstreamError::NotSent(_) | UpstreamError::ConnectionReset(_)) => {}
                Err(_) => return None,
            }
        }
        None
    }
}

/// An error without an id on a request's own stream belongs to that request.
fn is_response_to(id: u64, of: Option<&Id>) -> bool {
    of.is_none_or(|of| of.to_number() == Some(id))
}
