//! Bodies and errors of HTTP responses.

use super::http_client::root_cause;
use crate::error::{UpstreamError, UpstreamResult};
use crate::transport::decode::decode;
use crate::transport::message_memory::ReceiveLimit;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use octo_grants::Clock;
use octo_grants::net::retry_after;
use octo_model::RpcError;
use octo_wire::{Message, code};

/// Maximum bytes read of an error page.
const MAX_ERROR_BODY_BYTES: usize = 1 << 20;
/// Maximum characters of an error page in a message.
const ERROR_EXCERPT_CHARS: usize = 200;

/// Whether the body is an event stream; anything else is treated as JSON.
pub(super) fn is_event_stream(response: &Response<Incoming>) -> bool {
    const STREAM: &str = "text/event-stream";
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.get(..STREAM.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(STREAM))
}

/// Reads the whole body. A single chunk is not copied.
pub(super) async fn read_body(mut body: Incoming, limit: &ReceiveLimit) -> UpstreamResult<Bytes> {
    let whole = body.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let mut memory = limit.next_message();
    let mut first: Option<Bytes> = None;
    let mut buffer = BytesMut::new();
    while let Some(frame) = memory.receive(body.frame()).await? {
        let frame = frame.map_err(|error| UpstreamError::ConnectionLost(root_cause(&error)))?;
        let Ok(chunk) = frame.into_data() else { continue };
        let seen = first.as_ref().map_or(0, Bytes::len) + buffer.len();
        memory.reserve(seen + chunk.len(), whole).await?;
        if seen == 0 {
            first = Some(chunk);
            continue;
        }
        if let Some(first) = first.take() {
            buffer.reserve(whole.unwrap_or(first.len() + chunk.len()));
            buffer.extend_from_slice(&first);
        }
        if let Some(capacity) = memory.capacity().filter(|_| whole.is_none()) {
            buffer.reserve(capacity - buffer.len());
        }
        buffer.extend_from_slice(&chunk);
    }
    Ok(memory.hold(first.unwrap_or_else(|| buffer.freeze())))
}

/// Reads a body that is small; a larger one fails.
pub(super) async fn read_beginning(mut body: Incoming, limit: usize) -> UpstreamResult<Bytes> {
    let mut buffer = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| UpstreamError::ConnectionLost(root_cause(&error)))?;
        let Ok(chunk) = frame.into_data() else { continue };
        if buffer.len() + chunk.len() > limit {
            return Err(UpstreamError::TooLarge(limit));
        }
        buffer.extend_from_slice(&chunk);
    }
    Ok(buffer.freeze())
}

/// Maps an error status. The body of a 400 or 404 may contain the JSON-RPC error.
pub(super) async fn response_error(response: Response<Incoming>, has_session: bool) -> UpstreamError {
    let (parts, body) = response.into_parts();
    if matches!(parts.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return UpstreamError::Unauthorized(parts.status.as_u16());
    }
    let text = read_beginning(body, MAX_ERROR_BODY_BYTES).await.unwrap_or_default();
    let error = rpc_error_in(&text);
    let unknown_method = error.as_ref().is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
    if has_session && !unknown_method && is_session_expired(parts.status, &text) {
        return UpstreamError::SessionExpired;
    }
    match error {
        Some(error) => UpstreamError::Rpc(error),
        None => {
            let text = String::from_utf8_lossy(&text).chars().take(ERROR_EXCERPT_CHARS).collect();
            let retry_after = retry_after(&parts.headers, Clock::system().now());
            UpstreamError::Status { code: parts.status.as_u16(), text, retry_after }
        }
    }
}

fn rpc_error_in(text: &Bytes) -> Option<RpcError> {
    decode(text.clone()).ok()?.into_iter().find_map(|message| match message {
        Message::Error { error, .. } => Some(error),
        _ => None,
    })
}

/// The specification requires 404; servers based on an SDK example return 400 and name the session.
pub(super) fn is_session_expired(status: StatusCode, text: &[u8]) -> bool {
    let names_it = || String::from_utf8_lossy(text).to_ascii_lowercase().contains("session");
    status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && names_it())
}
