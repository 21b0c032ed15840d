//! Stream of server-sent events, with the position to resume from.

use super::http_client::root_cause;
use crate::error::{UpstreamError, UpstreamResult};
use crate::transport::message_memory::{ReceiveLimit, ReservedMemory};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use octo_wire::sse::Decoder;
use std::time::Duration;

/// Time for the server to end its stream after the response, so that the connection can be reused.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Position to resume a stream from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResumePoint {
    pub(super) id: Option<String>,
    pub(super) retry: Option<Duration>,
}

pub(super) struct EventStream {
    body: Incoming,
    decoder: Decoder,
    limit: ReceiveLimit,
    /// For the event that is being read.
    memory: ReservedMemory,
    pub(super) resume_point: ResumePoint,
    /// Type of the last event.
    pub(super) event_name: Option<String>,
}

impl EventStream {
    pub(super) fn new(body: Incoming, limit: &ReceiveLimit, mark: ResumePoint) -> Self {
        Self {
            body,
            decoder: Decoder::new(limit.max_bytes),
            limit: limit.clone(),
            memory: limit.next_message(),
            resume_point: mark,
            event_name: None,
        }
    }

    /// Data of the next non-empty event; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> UpstreamResult<Option<Bytes>> {
        loop {
            while let Some(event) = self.decoder.next_event() {
                if event.id.is_some() {
                    self.resume_point.id = event.id;
                }
                if let Some(retry) = event.retry_ms {
                    self.resume_point.retry = Some(Duration::from_millis(retry));
                }
                let memory = std::mem::replace(&mut self.memory, self.limit.next_message());
                if !event.data.is_empty() {
                    self.event_name = event.name;
                    return Ok(Some(memory.hold(event.data)));
                }
            }
            match self.memory.receive(self.body.frame()).await? {
                None => return Ok(None),
                Some(Err(error)) => return Err(UpstreamError::ConnectionLost(root_cause(&error))),
                Some(Ok(frame)) => {
                    if let Some(chunk) = frame.data_ref() {
                        self.memory.reserve(self.decoder.size() + chunk.len(), None).await?;
                        if let Some(capacity) = self.memory.capacity() {
                            self.decoder.reserve(capacity);
                        }
                        let too_large = |_| UpstreamError::TooLarge(self.limit.max_bytes);
                        self.decoder.push(chunk).map_err(too_large)?;
                    }
                }
            }
        }
    }

    /// Reads the last bytes if they arrive soon: dropping a stream early costs its connection.
    pub(super) fn drain(mut self) {
        if matches!(self.body.frame().now_or_never(), Some(None)) {
            return;
        }
        tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, async move {
            while let Some(Ok(_)) = self.body.frame().await {}
        }));
    }
}
