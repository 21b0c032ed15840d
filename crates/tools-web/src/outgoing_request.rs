//! Shared by the tools that send requests: argument checks, sending, cancellation.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use octo_toolkit::net::{NetRequest, NetResponse};
use octo_toolkit::{CallContext, Kind, Net, ToolError};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum timeout in seconds.
const MAX_TIMEOUT_SECS: u64 = 120;
/// Maximum bytes of a response body.
const MAX_RESPONSE_BYTES: u64 = 10 << 20;
/// Maximum bytes of a request body.
const MAX_REQUEST_BYTES: usize = 10 << 20;
const MAX_REDIRECTS: usize = 10;
const MAX_URL_LEN: usize = 8_192;

pub fn parse_method(name: &str) -> Result<Method, ToolError> {
    let method = Method::from_bytes(name.trim().to_ascii_uppercase().as_bytes());
    let refused = || {
        ToolError::invalid(format!("Unsupported HTTP method: `{name}`."))
            .hint("Use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS.")
    };
    let method = method.map_err(|_| refused())?;
    if matches!(method, Method::CONNECT | Method::TRACE) { Err(refused()) } else { Ok(method) }
}

pub fn check_timeout(seconds: u64, cx: &CallContext) -> Result<Duration, ToolError> {
    if seconds == 0 {
        return Err(ToolError::invalid("timeout_s is 0.").hint("Use 1 to 120 seconds, or omit it."));
    }
    Ok(Duration::from_secs(seconds.min(MAX_TIMEOUT_SECS)).min(cx.time_left()))
}

pub fn check_max_bytes(bytes: u64) -> Result<usize, ToolError> {
    if bytes == 0 {
        return Err(ToolError::invalid("max_bytes is 0.").hint("Use 1 or more, or omit it."));
    }
    usize::try_from(bytes.min(MAX_RESPONSE_BYTES)).map_err(ToolError::internal)
}

/// Notice that a body is truncated, and how to get more of it.
pub fn truncation_notice(answer: &NetResponse) -> Option<String> {
    if !answer.truncated {
        return None;
    }
    let encoded = answer.headers.contains_key(http::header::CONTENT_ENCODING);
    let length = answer.headers.get(http::header::CONTENT_LENGTH).filter(|_| !encoded);
    let total: Option<u64> = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let of_total = total.map(|whole| format!(" of {whole}")).unwrap_or_default();
    Some(format!(
        "The body is truncated after {}{of_total} bytes, also in the stored result; set max_bytes, up to {MAX_RESPONSE_BYTES}, for more.",
        answer.body.len()
    ))
}

/// Joins notices into one text.
pub fn join_notices(notices: [Option<String>; 2]) -> Option<String> {
    let notices: Vec<String> = notices.into_iter().flatten().collect();
    (!notices.is_empty()).then(|| notices.join(" "))
}

pub fn check_url(net: &Net, text: &str) -> Result<url::Url, ToolError> {
    if text.len() > MAX_URL_LEN {
        return Err(ToolError::invalid(format!("The URL has {} characters.", text.len()))
            .hint("The maximum is 8192; send long values in the body."));
    }
    net.url(text.trim())
}

pub fn redirect_limit(follow: bool) -> usize {
    if follow { MAX_REDIRECTS } else { 0 }
}

pub fn check_body(body: Vec<u8>) -> Result<Bytes, ToolError> {
    if body.len() > MAX_REQUEST_BYTES {
        return Err(ToolError::new(Kind::TooLarge, "The request body is larger than 10 MB.")
            .hint("Split it into several requests."));
    }
    Ok(body.into())
}

/// The caller's headers. Headers that a caller may not set are refused by the grant.
pub fn parse_headers(requested: Option<BTreeMap<String, String>>) -> Result<HeaderMap, ToolError> {
    let mut headers = HeaderMap::new();
    for (name, value) in requested.unwrap_or_default() {
        let header = HeaderName::try_from(name.trim()).ok().zip(HeaderValue::try_from(value.trim()).ok());
        let (header, value) = header.ok_or_else(|| {
            ToolError::invalid(format!("The header `{name}` cannot be sent."))
                .hint("Names are letters, digits and hyphens; values are one line.")
        })?;
        headers.append(header, value);
    }
    Ok(headers)
}

/// Sets a header that the caller has not set.
pub fn default_header(headers: &mut HeaderMap, name: HeaderName, value: &'static str) {
    headers.entry(name).or_insert(HeaderValue::from_static(value));
}

/// Sends a request; a cancelled call does not wait for the response.
pub async fn send(net: &Net, ask: NetRequest, cx: &CallContext) -> Result<NetResponse, ToolError> {
    cx.run(net.send(ask)).await?
}

/// Sends a request, and repeats a GET with a higher limit if the response is truncated and useless in part.
pub async fn send_whole(
    net: &Net,
    ask: NetRequest,
    max_bytes: usize,
    needs_whole: impl Fn(&NetResponse) -> bool,
    cx: &CallContext,
) -> Result<NetResponse, ToolError> {
    let started = Instant::now();
    let retry = (ask.method == Method::GET && ask.max_bytes < max_bytes).then(|| ask.clone());
    let answer = send(net, ask, cx).await?;
    match retry.filter(|_| answer.truncated && needs_whole(&answer)) {
        Some(more) => {
            let timeout = more.timeout.saturating_sub(started.elapsed());
            send(net, NetRequest { max_bytes, timeout, ..more }, cx).await
        }
        None => Ok(answer),
    }
}

/// Runs work on a blocking thread. A panic fails the call only; work that exceeds the deadline ends by its own limits.
pub async fn run_blocking<T: Send + 'static>(
    cx: &CallContext,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    let work = tokio::task::spawn_blocking(work);
    tokio::select! {
        done = work => done.map_err(ToolError::internal),
        () = cx.cancel.cancelled() => Err(ToolError::cancelled()),
        () = tokio::time::sleep(cx.time_left()) => {
            Err(ToolError::new(Kind::Timeout, "Timed out while reading the page.").hint("Use a smaller max_bytes."))
        }
    }
}

pub fn content_type(answer: &NetResponse) -> Option<&str> {
    answer.headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok())
}
