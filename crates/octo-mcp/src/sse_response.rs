//! HTTP responses and event streams.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{StatusCode, header};
use octo_wire::{Message, sse};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// One message as the whole response.
pub fn json_response(status: StatusCode, message: &Message) -> Response {
    let mut response = Response::new(Body::from(message.to_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// A response without a body.
pub fn empty_response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// An event stream that proxies do not buffer.
pub fn sse_response(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    use futures_util::StreamExt;
    let mut response = Response::new(Body::from_stream(chunks.map(Ok::<_, Infallible>)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", header::HeaderValue::from_static("no"));
    response
}

/// A stream of chunks from `next`, with keep-alive comments while it is quiet.
pub fn with_keep_alive<S: Send + 'static, F>(
    state: S,
    pause: Duration,
    next: impl Fn(S) -> F + Send + Clone + 'static,
) -> impl Stream<Item = Bytes> + Send + 'static
where
    F: Future<Output = Option<(Bytes, S)>> + Send + 'static,
{
    let begin: (Option<Pin<Box<F>>>, Option<S>) = (None, Some(state));
    stream::unfold(begin, move |(waiting, state)| {
        let next = next.clone();
        async move {
            let mut waiting = match (waiting, state) {
                (Some(waiting), _) => waiting,
                (None, Some(state)) => Box::pin(next(state)),
                (None, None) => return None,
            };
            match tokio::time::timeout(pause, &mut waiting).await {
                Ok(Some((chunk, state))) => Some((chunk, (None, Some(state)))),
                Ok(None) => None,
                Err(_) => Some((Bytes::from_static(sse::KEEP_ALIVE), (Some(waiting), None))),
            }
        }
    })
}

/// A future that continues as its own task when it is dropped: a legacy client's disconnect does not cancel.
pub struct DetachOnDrop<F: Future<Output: Send> + Send + 'static>(Option<Pin<Box<F>>>);

impl<F: Future<Output: Send> + Send + 'static> DetachOnDrop<F> {
    pub fn new(future: F) -> Self {
        Self(Some(Box::pin(future)))
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for DetachOnDrop<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Some(inner) = &mut self.0 else {
            return Poll::Pending;
        };
        let ready = inner.as_mut().poll(cx);
        if ready.is_ready() {
            self.0 = None;
        }
        ready
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for DetachOnDrop<F> {
    fn drop(&mut self) {
        if let Some(rest) = self.0.take() {
            tokio::spawn(rest);
        }
    }
}
