//! Ends a request and its response stream when the token is revoked.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

pub struct Revocation {
    token: CancellationToken,
    /// Created only if it has to wait.
    waiting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

impl Revocation {
    pub fn new(token: CancellationToken) -> Self {
        Self { token, waiting: None }
    }

    /// Ready once the token is revoked.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(self.token.clone().cancelled_owned()));
        waiting.as_mut().poll(cx)
    }

    /// Ends a streaming response when the token is revoked; a complete response is unchanged.
    pub fn wrap_response(self, response: Response) -> Response {
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|inner| Body::new(RevocableBody { inner, revocation: self }))
    }
}

struct RevocableBody {
    inner: Body,
    revocation: Revocation,
}

impl http_body::Body for RevocableBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.revocation.poll(cx).is_ready() {
            self.inner = Body::empty();
            return Poll::Ready(None);
        }
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
