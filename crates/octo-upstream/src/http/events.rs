//! A stream of server-sent events, and the place from which it can be resumed.

use super::client::deepest;
use crate::fail::{Fail, Outcome};
use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use octo_wire::sse::Decoder;
use std::time::Duration;

/// After an answer the server has this long to end its stream, so that the connection can be used again.
const FAREWELL: Duration = Duration::from_secs(1);

/// Where a stream was left off.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) id: Option<String>,
    pub(super) retry: Option<Duration>,
}

pub(super) struct Events {
    body: Incoming,
    decoder: Decoder,
    limit: usize,
    pub(super) mark: Mark,
}

impl Events {
    pub(super) fn new(body: Incoming, limit: usize, mark: Mark) -> Self {
        Self { body, decoder: Decoder::new(limit), limit, mark }
    }

    /// The data of the next event that has any; nothing at the end of the stream.
    pub(super) async fn next(&mut self) -> Outcome<Option<Bytes>> {
        loop {
            while let Some(event) = self.decoder.next_event() {
                if event.id.is_some() {
                    self.mark.id = event.id;
                }
                if let Some(retry) = event.retry_ms {
                    self.mark.retry = Some(Duration::from_millis(retry));
                }
                if !event.data.is_empty() {
                    return Ok(Some(event.data));
                }
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Err(error)) => return Err(Fail::Lost(deepest(&error))),
                Some(Ok(frame)) => {
                    if let Some(chunk) = frame.data_ref() {
                        self.decoder.push(chunk).map_err(|_| Fail::TooLarge(self.limit))?;
                    }
                }
            }
        }
    }

    /// Reads the last bytes, if they come soon: a stream that is dropped early costs its connection.
    pub(super) fn finish(mut self) {
        if matches!(self.body.frame().now_or_never(), Some(None)) {
            return;
        }
        tokio::spawn(tokio::time::timeout(FAREWELL, async move {
            while let Some(Ok(_)) = self.body.frame().await {}
        }));
    }
}
