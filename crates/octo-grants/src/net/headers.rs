//! Request headers: which may be sent, and which may be forwarded to another origin.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use octo_model::ToolError;

/// More than any client needs, and less than servers refuse.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 << 10;

/// Headers set by the client: message framing and target.
const RESERVED_HEADERS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// All headers that follow a redirect to another origin. An allow list, because any other header may be a credential.
const CROSS_ORIGIN_HEADERS: [HeaderName; 10] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::PRAGMA,
    header::RANGE,
    header::USER_AGENT,
];

const ACCEPTED_ENCODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate, br, zstd");

/// Merges the caller's headers with ours, or returns why they cannot be sent.
pub(super) fn complete_headers(
    mut headers: HeaderMap,
    user_agent: &HeaderValue,
) -> Result<HeaderMap, ToolError> {
    if headers.len() > MAX_HEADERS || header_bytes(&headers) > MAX_HEADER_BYTES {
        return Err(ToolError::invalid("Too many headers, or headers too long.")
            .hint(format!("Send at most {MAX_HEADERS} headers with {MAX_HEADER_BYTES} bytes in total.")));
    }
    if let Some(name) = headers.keys().map(HeaderName::as_str).find(|name| is_reserved(name)) {
        return Err(ToolError::invalid(format!("The header `{name}` cannot be set."))
            .hint("Omit it: the client sets it from the URL and the body, or it is reserved for proxies."));
    }
    // Only encodings that can be decoded may be requested.
    headers.insert(header::ACCEPT_ENCODING, ACCEPTED_ENCODINGS);
    headers.entry(header::USER_AGENT).or_insert_with(|| user_agent.clone());
    headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
    Ok(headers)
}

pub(super) fn drop_credentials(headers: &mut HeaderMap) {
    retain_headers(headers, |name| CROSS_ORIGIN_HEADERS.contains(name));
}

pub(super) fn drop_body_headers(headers: &mut HeaderMap) {
    retain_headers(headers, |name| !name.as_str().starts_with("content-"));
}

fn retain_headers(headers: &mut HeaderMap, keep: impl Fn(&HeaderName) -> bool) {
    let gone: Vec<HeaderName> = headers.keys().filter(|name| !keep(name)).cloned().collect();
    for name in gone {
        headers.remove(name);
    }
}

fn is_reserved(name: &str) -> bool {
    RESERVED_HEADERS.contains(&name) || name.starts_with("proxy-")
}

fn header_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(names: &[&str]) -> HeaderMap {
        let named = names.iter().map(|name| (name.parse().unwrap(), HeaderValue::from_static("x")));
        named.collect::<HeaderMap>()
    }

    fn agent() -> HeaderValue {
        HeaderValue::from_static("us")
    }

    #[test]
    fn headers_that_frame_the_message_are_refused() {
        for name in [
            "Host",
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Proxy-Authorization",
            "Proxy-Connection",
            "Proxy-Foo",
            "Expect",
            "HTTP2-Settings",
        ] {
            let error = complete_headers(given(&["accept", name]), &agent()).expect_err(name);
            assert!(error.hint.is_some() && error.message.contains(&name.to_lowercase()), "{error}");
        }
        let many = (0..70).map(|n| (format!("x-{n}").parse().unwrap(), HeaderValue::from_static("x")));
        assert!(complete_headers(many.collect(), &agent()).is_err());
    }

    #[test]
    fn encodings_are_ours_and_the_rest_is_the_callers() {
        let sent =
            complete_headers(given(&["accept-encoding", "user-agent", "x-api-key"]), &agent()).unwrap();
        assert_eq!(sent["accept-encoding"], ACCEPTED_ENCODINGS);
        assert_eq!(
            (&sent["user-agent"], &sent["x-api-key"], &sent["accept"]),
            (&"x".parse().unwrap(), &"x".parse().unwrap(), &"*/*".parse().unwrap())
        );
        assert_eq!(complete_headers(HeaderMap::new(), &agent()).unwrap()["user-agent"], "us");
    }

    #[test]
    fn only_harmless_headers_go_to_another_origin() {
        let mut headers = given(&[
            "authorization",
            "cookie",
            "x-api-key",
            "private-token",
            "x-unheard-of",
            "referer",
            "origin",
            "accept",
            "content-type",
            "if-none-match",
        ]);
        drop_credentials(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["accept", "content-type"]);
        drop_body_headers(&mut headers);
        assert_eq!(headers.len(), 1);
    }
}
