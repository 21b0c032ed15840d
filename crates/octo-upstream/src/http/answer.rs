//! The answer to a POST, before it is known to be one.

use super::client::deepest;
use super::pause::retry_after;
use crate::fail::{Fail, Outcome};
use crate::read::read;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use octo_grants::Clock;
use octo_model::RpcError;
use octo_wire::{Message, code};

/// So much of an error page is read.
const ERROR_PAGE: usize = 1 << 20;
/// So much of it is told.
const EXCERPT: usize = 200;

/// Whether the body is a stream of events; anything else is taken for JSON.
pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    const STREAM: &str = "text/event-stream";
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.get(..STREAM.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(STREAM))
}

/// The whole body. One that came in one piece is not copied.
pub(super) async fn whole(mut body: Incoming, limit: usize) -> Outcome<Bytes> {
    let mut first: Option<Bytes> = None;
    let mut buffer = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Fail::Lost(deepest(&error)))?;
        let Ok(chunk) = frame.into_data() else { continue };
        let seen = first.as_ref().map_or(0, Bytes::len) + buffer.len();
        if seen + chunk.len() > limit {
            return Err(Fail::TooLarge(limit));
        }
        if seen == 0 {
            first = Some(chunk);
            continue;
        }
        if let Some(first) = first.take() {
            let rest = usize::try_from(body.size_hint().lower()).unwrap_or(limit).min(limit);
            buffer.reserve(first.len() + chunk.len() + rest);
            buffer.extend_from_slice(&first);
        }
        buffer.extend_from_slice(&chunk);
    }
    Ok(first.unwrap_or_else(|| buffer.freeze()))
}

/// What a status other than success means. The body of a 400 or 404 may hold the real error.
pub(super) async fn refusal(response: Response<Incoming>, has_session: bool) -> Fail {
    let (parts, body) = response.into_parts();
    if matches!(parts.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Fail::Login(parts.status.as_u16());
    }
    let text = whole(body, ERROR_PAGE).await.unwrap_or_default();
    let error = error_in(&text);
    let unknown_method = error.as_ref().is_some_and(|error| error.code == code::METHOD_NOT_FOUND);
    if has_session && !unknown_method && session_is_gone(parts.status, &text) {
        return Fail::Expired;
    }
    match error {
        Some(error) => Fail::Rpc(error),
        None => {
            let text = String::from_utf8_lossy(&text).chars().take(EXCERPT).collect();
            let retry_after = retry_after(&parts.headers, Clock::system().now());
            Fail::Status { code: parts.status.as_u16(), text, retry_after }
        }
    }
}

fn error_in(text: &Bytes) -> Option<RpcError> {
    read(text.clone()).ok()?.into_iter().find_map(|message| match message {
        Message::Error { error, .. } => Some(error),
        _ => None,
    })
}

/// The specification says 404; servers after an SDK's example say 400 and name the session.
fn session_is_gone(status: StatusCode, text: &[u8]) -> bool {
    let names_it = || String::from_utf8_lossy(text).to_ascii_lowercase().contains("session");
    status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && names_it())
}
