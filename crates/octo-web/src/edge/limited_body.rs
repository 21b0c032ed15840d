//! Request bodies with a size limit and an idle timeout.

use super::edge_rejection::EdgeRejection;
use axum::body::Body;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// Idle timeout of a body.
pub const BODY_IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum bytes read of a refused body, so that its sender can read the response.
const LINGER_BYTES: usize = 16 << 20;
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

const TOO_LARGE: u8 = 1;
const STALLED: u8 = 2;

/// How reading the body ended, for the edge, independent of the handler.
#[derive(Clone, Default)]
pub struct BodyOutcome(Arc<AtomicU8>);

impl BodyOutcome {
    pub fn refusal(&self, limit: usize) -> Option<EdgeRejection> {
        match self.0.load(Ordering::Relaxed) {
            TOO_LARGE => Some(EdgeRejection::TooLarge { limit }),
            STALLED => Some(EdgeRejection::Stalled),
            _ => None,
        }
    }
}

/// Why reading ended early.
#[derive(Debug)]
pub struct BodyError(&'static str);

impl std::fmt::Display for BodyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for BodyError {}

/// A body that ends with an error beyond its limits.
pub struct LimitedBody {
    inner: Body,
    bytes_left: usize,
    idle_timeout: Duration,
    idle_timer: Option<Pin<Box<Sleep>>>,
    outcome: BodyOutcome,
}

impl LimitedBody {
    pub fn new(inner: Body, limit: usize, idle_timeout: Duration) -> (Self, BodyOutcome) {
        let fate = BodyOutcome::default();
        (Self { inner, bytes_left: limit, idle_timeout, idle_timer: None, outcome: fate.clone() }, fate)
    }

    fn fail(&mut self, fate: u8, why: &'static str) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.outcome.0.store(fate, Ordering::Relaxed);
        drain_body(std::mem::replace(&mut self.inner, Body::empty()));
        Poll::Ready(Some(Err(axum::Error::new(BodyError(why)))))
    }
}

impl http_body::Body for LimitedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle_timer = None;
                match self.bytes_left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(left) => self.bytes_left = left,
                    None => return self.fail(TOO_LARGE, "the body is too large"),
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => {
                let patience = self.idle_timeout;
                let silence = self.idle_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                match silence.as_mut().poll(cx) {
                    Poll::Ready(()) => self.fail(STALLED, "the body stalled"),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Reads and discards the rest of a body for a while. A connection closed with unread bytes is reset, and the reset can
/// overtake the response.
pub fn drain_body(mut body: Body) {
    if http_body::Body::is_end_stream(&body) {
        return;
    }
    tokio::spawn(tokio::time::timeout(LINGER_TIMEOUT, async move {
        let mut read = 0;
        while let Some(Ok(frame)) = body.frame().await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > LINGER_BYTES {
                return;
            }
        }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::web_fixture::ChunkedBody;

    #[tokio::test]
    async fn bodies_end_past_their_bounds() {
        for (size, silent, limit, wanted) in [
            (1_000, false, 1_000, None),
            (1_000, false, 999, Some(EdgeRejection::TooLarge { limit: 999 })),
            (0, false, 0, None),
            (100, true, 1_000, Some(EdgeRejection::Stalled)),
            (100, true, 99, Some(EdgeRejection::TooLarge { limit: 99 })),
        ] {
            let pieces = Body::new(ChunkedBody { remaining: vec![b'x'; size], stalls: silent });
            let (body, fate) = LimitedBody::new(pieces, limit, Duration::from_millis(20));
            let read = Body::new(body).collect().await;
            assert_eq!(read.is_ok(), wanted.is_none(), "{size} {silent} {limit}");
            assert_eq!(fate.refusal(limit), wanted, "{size} {silent} {limit}");
        }
    }
}
