//! HTTP client for authorization servers: subject to the egress policy, with limits of time and size; secrets are never
//! sent on to a redirect.

use crate::login_spec::{Auth, LoginSpec};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use octo_grants::Net;
use octo_grants::net::NetRequest;
use octo_model::{Json, ToolError};
use serde::de::DeserializeOwned;
use std::time::Duration;
use url::{Host, Url};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_BODY_BYTES: usize = 256 << 10;
/// Metadata may have moved on the same server.
const MAX_REDIRECTS: usize = 3;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

pub(crate) struct AuthHttp<'a> {
    net: &'a Net,
    /// Servers named by the operator; these may be private.
    configured_urls: Vec<Url>,
    /// Authorization server named in the settings.
    issuer: Option<&'a str>,
}

impl<'a> AuthHttp<'a> {
    pub(crate) fn new(spec: &'a LoginSpec) -> Self {
        let issuer = match &spec.auth {
            Auth::OAuth(oauth) => oauth.issuer.as_deref(),
            Auth::Key(_) => None,
        };
        let named = spec.url.as_deref().into_iter().chain(issuer);
        let named = named.filter_map(|url| Url::parse(url).ok()).collect();
        Self { net: &spec.net, configured_urls: named, issuer }
    }

    /// Checks a URL that secrets may be sent to: https, loopback, or a server that was configured with http.
    pub(crate) fn checked_url(&self, text: &str) -> Result<Url, ToolError> {
        let url = self.net.url(text).map_err(|error| invalid_url(text).detail(error))?;
        if url.scheme() == "https" || is_loopback(&url) || self.is_configured(&url) {
            return Ok(url);
        }
        Err(ToolError::denied(format!(
            "The login leads to {}, which is not encrypted (https).",
            display_url(text)
        ))
        .hint("The server's operator must publish https URLs."))
    }

    /// Checks a URL that a person opens.
    pub(crate) fn checked_page(&self, text: &str) -> Result<Url, ToolError> {
        let url = self.checked_url(text)?;
        if url.fragment().is_some() {
            return Err(invalid_url(text));
        }
        Ok(url)
    }

    /// Whether the settings name this authorization server, compared exactly.
    pub(crate) fn is_configured_issuer(&self, issuer: &str) -> bool {
        self.issuer == Some(issuer)
    }

    fn is_configured(&self, url: &Url) -> bool {
        self.configured_urls.iter().any(|named| named.origin() == url.origin())
    }

    /// Configured servers may be private; all others must be public.
    fn net_for(&self, url: &Url) -> Result<Net, ToolError> {
        if self.is_configured(url) {
            self.net.for_configured_host(url.as_str())
        } else {
            Ok(self.net.clone())
        }
    }

    async fn send(&self, ask: NetRequest) -> Result<(StatusCode, Bytes), ToolError> {
        let origin = ask.url.origin();
        let asked = display_url(ask.url.as_str());
        let answer = self.net_for(&ask.url)?.send(ask).await?;
        if answer.truncated {
            return Err(ToolError::unavailable(format!("The response of {asked} is too large for a login."))
                .detail(MAX_BODY_BYTES));
        }
        if answer.url.origin() != origin {
            return Err(ToolError::denied(format!("{asked} redirects to another server.")));
        }
        Ok((answer.status, answer.body))
    }

    /// Fetches a JSON document; `None` if there is none.
    pub(crate) async fn get_json<T: DeserializeOwned>(&self, url: &Url) -> Result<Option<T>, ToolError> {
        let ask = NetRequest {
            headers: [(ACCEPT, JSON)].into_iter().collect(),
            timeout: REQUEST_TIMEOUT,
            max_bytes: MAX_BODY_BYTES,
            max_redirects: MAX_REDIRECTS,
            ..NetRequest::get(url.clone())
        };
        let (status, body) = self.send(ask).await?;
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(ToolError::unavailable(format!(
                "{} returned HTTP status {}.",
                display_url(url.as_str()),
                status.as_u16()
            ))
            .hint("Try again later."));
        }
        if status != StatusCode::OK {
            return Ok(None);
        }
        Ok(serde_json::from_slice(&body).ok())
    }

    pub(crate) async fn post_form(
        &self,
        url: &str,
        form: &[(&str, &str)],
        authorization: Option<HeaderValue>,
    ) -> Result<(StatusCode, Bytes), ToolError> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.post(url, FORM, body.into(), authorization).await
    }

    pub(crate) async fn post_json(&self, url: &str, body: &Json) -> Result<(StatusCode, Bytes), ToolError> {
        self.post(url, JSON, body.bytes().clone(), None).await
    }

    async fn post(
        &self,
        url: &str,
        kind: HeaderValue,
        body: Bytes,
        authorization: Option<HeaderValue>,
    ) -> Result<(StatusCode, Bytes), ToolError> {
        let mut headers: HeaderMap = [(ACCEPT, JSON), (CONTENT_TYPE, kind)].into_iter().collect();
        if let Some(authorization) = authorization {
            headers.insert(AUTHORIZATION, authorization);
        }
        let ask = NetRequest {
            method: Method::POST,
            headers,
            body: Some(body),
            timeout: REQUEST_TIMEOUT,
            max_bytes: MAX_BODY_BYTES,
            max_redirects: 0,
            ..NetRequest::get(self.checked_url(url)?)
        };
        self.send(ask).await
    }

    /// Returns the headers with which a server refuses an unauthenticated request.
    pub(crate) async fn probe(&self, url: &Url) -> Result<(StatusCode, HeaderMap), ToolError> {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        let ask = NetRequest {
            method: Method::POST,
            headers: [(ACCEPT, both), (CONTENT_TYPE, JSON)].into_iter().collect(),
            body: Some(Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#)),
            timeout: REQUEST_TIMEOUT,
            max_bytes: MAX_BODY_BYTES,
            max_redirects: 0,
            ..NetRequest::get(url.clone())
        };
        let answer = self.net_for(url)?.send(ask).await?;
        Ok((answer.status, answer.headers))
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

pub(crate) fn is_on_this_machine(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| is_loopback(&url))
}

fn invalid_url(text: &str) -> ToolError {
    ToolError::denied(format!("The login leads to {}, which is not a valid login URL.", display_url(text)))
        .hint("The server's metadata is wrong; its operator must fix it.")
}

/// URL for messages: never its query, which may contain secrets, nor characters that affect a terminal.
pub(crate) fn display_url(text: &str) -> String {
    let bare = text.split(['?', '#']).next().unwrap_or_default();
    let bare: String = bare.chars().filter(|c| c.is_ascii_graphic() && *c != '`').take(120).collect();
    format!("`{bare}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(url: &str, issuer: Option<&str>) -> LoginSpec {
        let mut spec = LoginSpec::oauth("s", url);
        if let Auth::OAuth(oauth) = &mut spec.auth {
            oauth.issuer = issuer.map(ToOwned::to_owned);
        }
        spec
    }

    #[test]
    fn secrets_go_to_encrypted_addresses_or_to_what_was_named() {
        let spec = spec("http://mcp.internal:8080/mcp", Some("http://login.internal"));
        let web = AuthHttp::new(&spec);
        for (url, allowed) in [
            ("https://auth.example/token", true),
            ("http://auth.example/token", false),
            ("http://127.0.0.1:9/token", false),
            ("http://127.0.0.1:9000/token", true),
            ("http://[::1]:9000/token", true),
            ("http://localhost:9000/token", true),
            ("http://localhost.evil.example/token", false),
            ("http://mcp.internal:8080/token", true),
            ("http://mcp.internal/token", false),
            ("http://login.internal/token", true),
            ("https://user:pw@auth.example/token", false),
            ("javascript:alert(1)", false),
            ("file:///etc/passwd", false),
            ("vscode://x", false),
            ("", false),
        ] {
            assert_eq!(web.checked_url(url).is_ok(), allowed, "{url}");
        }
    }

    #[tokio::test]
    async fn a_private_address_is_asked_only_when_the_operator_has_named_it() {
        let spec = spec("https://mcp.example/mcp", None);
        for url in [
            "http://127.0.0.1:9000/x",
            "https://10.0.0.1/x",
            "https://169.254.169.254/x",
            "http://localhost:9000/x",
        ] {
            let error =
                AuthHttp::new(&spec).get_json::<serde_json::Value>(&url.parse().unwrap()).await.unwrap_err();
            assert_eq!(error.kind, octo_model::Kind::Denied, "{url}: {error}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_query() {
        assert_eq!(display_url("https://x.example/a?code=secret#b"), "`https://x.example/a`");
        assert_eq!(display_url("https://x\u{1b}[2J`"), "`https://x[2J`");
    }
}
