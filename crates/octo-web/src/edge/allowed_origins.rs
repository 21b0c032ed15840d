//! `Origin` check of web pages, and CORS responses to allowed ones.

use super::allowed_hosts::{AllowedHosts, Authority};
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE, OPTIONS");
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "mcp-session-id, mcp-protocol-version, x-request-id, retry-after, www-authenticate",
);
const PREFLIGHT_MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Origins besides the hub's own that the operator trusts.
pub struct AllowedOrigins(Vec<Box<str>>);

/// The origin is not allowed.
pub struct OriginNotAllowed;

impl AllowedOrigins {
    pub fn new(allowed: &[String]) -> Self {
        Self(allowed.iter().map(|origin| origin.trim_end_matches('/').into()).collect())
    }

    /// Returns the origin of a request, if a page sent it: the hub's own (an allowed name, and the port that the
    /// request itself was sent to) or a configured one.
    pub fn check_request(
        &self,
        headers: &HeaderMap,
        host: Authority<'_>,
        hosts: &AllowedHosts,
    ) -> Result<Option<HeaderValue>, OriginNotAllowed> {
        let mut all = headers.get_all(header::ORIGIN).iter();
        let Some(origin) = all.next() else { return Ok(None) };
        let text = origin.to_str().map_err(|_| OriginNotAllowed)?;
        let known = is_own_origin(text, host, hosts)
            || self.0.iter().any(|allowed| allowed.eq_ignore_ascii_case(text));
        if known && all.next().is_none() { Ok(Some(origin.clone())) } else { Err(OriginNotAllowed) }
    }
}

fn is_own_origin(origin: &str, host: Authority<'_>, hosts: &AllowedHosts) -> bool {
    let (rest, usual) = match (origin.strip_prefix("http://"), origin.strip_prefix("https://")) {
        (Some(rest), _) => (rest, 80),
        (None, Some(rest)) => (rest, 443),
        (None, None) => return false,
    };
    Authority::parse(rest).is_some_and(|page| {
        page.port.unwrap_or(usual) == host.port.unwrap_or(usual)
            && hosts.allows(Authority { name: page.name, port: host.port })
    })
}

/// Whether the request is a CORS preflight.
pub fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Preflight response: for this origin only, without cookies.
pub fn preflight(origin: &HeaderValue, asked: &HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    add_cors_headers(&mut response, origin);
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    response
}

/// Lets a page of an allowed origin read the response.
pub fn add_cors_headers(response: &mut Response, origin: &HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hubs_own_pages_and_listed_ones_may_speak() {
        let hosts =
            AllowedHosts::new(&["localhost".to_owned(), "127.0.0.1".to_owned(), "hub.example".to_owned()]);
        let origins = AllowedOrigins::new(&["https://console.example/".to_owned()]);
        for (host, origin, allowed) in [
            ("127.0.0.1:7000", "http://127.0.0.1:7000", true),
            ("127.0.0.1:7000", "http://localhost:7000", true),
            ("127.0.0.1:7000", "https://localhost:7000", true),
            ("127.0.0.1:7000", "http://localhost:3000", false),
            ("127.0.0.1:7000", "http://localhost", false),
            ("hub.example", "https://hub.example", true),
            ("hub.example:443", "https://hub.example", true),
            ("hub.example", "https://hub.example:8443", false),
            ("hub.example", "https://console.example", true),
            ("hub.example", "https://sub.console.example", false),
            ("hub.example", "http://console.example", false),
            ("hub.example", "https://sub.hub.example", false),
            ("hub.example", "https://hub.example.evil.com", false),
            ("hub.example", "https://hub.example/", false),
            ("hub.example", "https://x@hub.example", false),
            ("hub.example", "null", false),
            ("hub.example", "", false),
            ("hub.example", "ftp://hub.example", false),
            ("hub.example", "chrome-extension://hub.example", false),
        ] {
            let headers = HeaderMap::from_iter([(header::ORIGIN, HeaderValue::from_static(origin))]);
            let host = Authority::parse(host).unwrap();
            assert_eq!(origins.check_request(&headers, host, &hosts).is_ok(), allowed, "{host:?} {origin}");
        }
    }
}
