//! Request bodies within bounds: so many bytes, and never a long silence.

use super::refusal::Refusal;
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

/// A body that is silent for this long is given up.
pub const SILENCE: Duration = Duration::from_secs(30);
/// What is still read of a refused body, so that its sender gets to see the answer.
const LINGER_BYTES: usize = 16 << 20;
const LINGER_TIME: Duration = Duration::from_secs(5);

const TOO_LARGE: u8 = 1;
const STALLED: u8 = 2;

/// How the reading of a body went, told to the edge whatever the handler makes of it.
#[derive(Clone, Default)]
pub struct Fate(Arc<AtomicU8>);

impl Fate {
    pub fn refusal(&self, limit: usize) -> Option<Refusal> {
        match self.0.load(Ordering::Relaxed) {
            TOO_LARGE => Some(Refusal::TooLarge { limit }),
            STALLED => Some(Refusal::Stalled),
            _ => None,
        }
    }
}

/// Why reading ended early.
#[derive(Debug)]
pub struct Broken(&'static str);

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Broken {}

/// A body that ends with an error past its bounds.
pub struct Bounded {
    inner: Body,
    left: usize,
    patience: Duration,
    silence: Option<Pin<Box<Sleep>>>,
    fate: Fate,
}

impl Bounded {
    pub fn new(inner: Body, limit: usize, patience: Duration) -> (Self, Fate) {
        let fate = Fate::default();
        (Self { inner, left: limit, patience, silence: None, fate: fate.clone() }, fate)
    }

    fn end(&mut self, fate: u8, why: &'static str) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.fate.0.store(fate, Ordering::Relaxed);
        linger(std::mem::replace(&mut self.inner, Body::empty()));
        Poll::Ready(Some(Err(axum::Error::new(Broken(why)))))
    }
}

impl http_body::Body for Bounded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        match Pin::new(&mut self.inner).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.silence = None;
                match self.left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
                    Some(left) => self.left = left,
                    None => return self.end(TOO_LARGE, "the body is too large"),
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => Poll::Ready(other),
            Poll::Pending => {
                let patience = self.patience;
                let silence = self.silence.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
                match silence.as_mut().poll(cx) {
                    Poll::Ready(()) => self.end(STALLED, "the body stalled"),
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

/// Reads on for a while and forgets what it reads. A connection that is closed with bytes unread is reset,
/// and the reset can overtake the answer.
pub fn linger(mut body: Body) {
    if http_body::Body::is_end_stream(&body) {
        return;
    }
    tokio::spawn(tokio::time::timeout(LINGER_TIME, async move {
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
    use crate::tests::bed::Pieces;

    #[tokio::test]
    async fn bodies_end_past_their_bounds() {
        for (size, silent, limit, wanted) in [
            (1_000, false, 1_000, None),
            (1_000, false, 999, Some(Refusal::TooLarge { limit: 999 })),
            (0, false, 0, None),
            (100, true, 1_000, Some(Refusal::Stalled)),
            (100, true, 99, Some(Refusal::TooLarge { limit: 99 })),
        ] {
            let pieces = Body::new(Pieces { left: vec![b'x'; size], silent });
            let (body, fate) = Bounded::new(pieces, limit, Duration::from_millis(20));
            let read = Body::new(body).collect().await;
            assert_eq!(read.is_ok(), wanted.is_none(), "{size} {silent} {limit}");
            assert_eq!(fate.refusal(limit), wanted, "{size} {silent} {limit}");
        }
    }
}
