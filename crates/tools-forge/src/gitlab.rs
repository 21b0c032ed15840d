//! GitLab: instance, authentication, and its errors.

mod gitlab_help;
mod openapi_document;
mod openapi_operation;
mod openapi_paths;
mod openapi_spec;
mod operation_index;
mod request_url;
mod rest_request;

use crate::forge_http;
use crate::forge_token::token_header;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use octo_toolkit::net::{NetRequest, NetResponse, retry_after};
use octo_toolkit::{CallContext, Kind, Net, Remedy, Secret, ToolError, Toolbox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// GitLab's own instance.
const GITLAB_COM_URL: &str = "https://gitlab.com";
const TOKEN_SETTING: &[&str] = &["gitlab.token"];
const PRIVATE_TOKEN: HeaderName = HeaderName::from_static("private-token");
const JOB_TOKEN: HeaderName = HeaderName::from_static("job-token");
/// Maximum bytes of a response that are read.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// How a token is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TokenKind {
    /// Determined by the token's format.
    #[default]
    Auto,
    /// A personal, project or group access token, as `PRIVATE-TOKEN`.
    Private,
    /// An OAuth access token, as `Authorization: Bearer`.
    Bearer,
    /// A job token, as `JOB-TOKEN`.
    Job,
}

#[derive(Clone, Default)]
pub struct GitlabSettings {
    /// The instance, such as `https://gitlab.example.com`, with a path if it is installed under one; default
    /// gitlab.com.
    pub url: Option<Url>,
    /// Sent to the instance's origin only.
    pub token: Option<Secret>,
    pub token_kind: TokenKind,
    /// URL of the OpenAPI document, instead of GitLab's own repository.
    pub openapi_url: Option<Url>,
}

pub struct Instance {
    settings: GitlabSettings,
    documents: openapi_document::DocumentCache,
}

pub fn tools(instance: Arc<Instance>) -> Toolbox {
    Toolbox::new("gitlab", "Sends requests to GitLab's REST API and describes its operations.")
        .with(rest_request::Request(instance.clone()))
        .with(openapi_spec::Spec(instance.clone()))
        .with(openapi_paths::Paths(instance.clone()))
        .with(openapi_operation::ExplainOperation(instance.clone()))
        .with(gitlab_help::Help(instance))
}

/// One request to the instance.
struct GitlabRequest {
    method: Method,
    url: Url,
    body: Option<Bytes>,
    timeout: Duration,
}

impl Instance {
    pub fn new(settings: GitlabSettings) -> Self {
        Self { settings, documents: openapi_document::DocumentCache::new() }
    }

    /// Uses another location for GitLab's own repository.
    #[cfg(test)]
    pub fn with_repository(settings: GitlabSettings, repository: String) -> Self {
        Self { settings, documents: openapi_document::DocumentCache::with_repository(repository) }
    }

    /// Root of the REST API, without a trailing slash.
    fn api(&self) -> Result<Url, ToolError> {
        let unfit = || {
            ToolError::unavailable("The address of the GitLab instance is not an HTTP URL.")
                .hint("Ask the operator to check gitlab.url.")
                .remedy(Remedy::settings(&["gitlab.url"]))
        };
        let mut api = match &self.settings.url {
            Some(url) => url.clone(),
            None => Url::parse(GITLAB_COM_URL).map_err(ToolError::internal)?,
        };
        api.set_query(None);
        api.set_fragment(None);
        let given = api.path().trim_end_matches('/').trim_end_matches("/api/v4").to_owned();
        api.set_path(&given);
        api.path_segments_mut().map_err(|()| unfit())?.pop_if_empty().extend(["api", "v4"]);
        Ok(api)
    }

    fn credential(&self) -> Result<Option<(HeaderName, HeaderValue)>, ToolError> {
        let Some(token) = &self.settings.token else { return Ok(None) };
        let sent = match kind(token, self.settings.token_kind) {
            TokenKind::Bearer => (AUTHORIZATION, token_header("Bearer ", token, TOKEN_SETTING)?),
            TokenKind::Job => (JOB_TOKEN, token_header("", token, TOKEN_SETTING)?),
            TokenKind::Private | TokenKind::Auto => (PRIVATE_TOKEN, token_header("", token, TOKEN_SETTING)?),
        };
        Ok(Some(sent))
    }

    /// Sends a request, with the token if it goes to the instance; a request with side effects follows no redirects.
    async fn send(
        &self,
        errand: GitlabRequest,
        net: &Net,
        cx: &CallContext,
    ) -> Result<NetResponse, ToolError> {
        let reads = matches!(errand.method, Method::GET | Method::HEAD);
        let mut ask = NetRequest::get(errand.url);
        if let Some((name, value)) = self.credential()?
            && ask.url.origin() == self.api()?.origin()
        {
            ask.headers.insert(name, value);
        }
        if errand.body.is_some() {
            ask.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        ask.method = errand.method;
        ask.body = errand.body;
        ask.timeout = errand.timeout;
        ask.max_bytes = MAX_RESPONSE_BYTES;
        ask.max_redirects = if reads { 5 } else { 0 };
        forge_http::send(net, ask, cx).await
    }

    /// Errors that a caller can only wait for or log in for.
    fn refusal(&self, answer: &NetResponse, now: Timestamp) -> Option<ToolError> {
        let words = forge_http::error_message(&answer.body);
        match answer.status {
            StatusCode::UNAUTHORIZED if self.settings.token.is_some() => Some(
                ToolError::new(Kind::Unauthorized, format!("GitLab rejected the configured token{words}"))
                    .hint(
                        "Ask the operator to check gitlab.token: it may be expired, revoked or of another instance, or \
                         need gitlab.token_kind.",
                    )
                    .remedy(Remedy::settings(&["gitlab.token", "gitlab.token_kind"])),
            ),
            StatusCode::UNAUTHORIZED => Some(
                ToolError::new(Kind::Unauthorized, format!("GitLab requires authentication{words}"))
                    .hint("Ask the operator to set gitlab.token; without one only public data can be read.")
                    .remedy(Remedy::settings(TOKEN_SETTING)),
            ),
            StatusCode::TOO_MANY_REQUESTS => {
                let reset = forge_http::epoch_header(&answer.headers, "ratelimit-reset");
                let reset = reset.and_then(|reset| reset.duration_since(now).try_into().ok());
                let wait = retry_after(&answer.headers, now).filter(|wait| !wait.is_zero()).or(reset).unwrap_or(Duration::from_secs(60));
                Some(
                    ToolError::rate_limited("GitLab's rate limit is exceeded.", wait)
                        .hint(format!("Try again in {} s, and request more at once with per_page=100.", wait.as_secs())),
                )
            }
            _ => None,
        }
    }
}

/// Type of a token: prefixes are GitLab's; 64 hexadecimal digits or a signed token come from its OAuth.
fn kind(token: &Secret, set: TokenKind) -> TokenKind {
    if set != TokenKind::Auto {
        return set;
    }
    let text = token.expose().trim();
    let is_oauth = (text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        || (text.starts_with("eyJ") && text.split('.').count() == 3);
    if text.starts_with("glcbt-") {
        TokenKind::Job
    } else if is_oauth {
        TokenKind::Bearer
    } else {
        TokenKind::Private
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_by_its_looks_how_it_is_sent() {
        let hex = "0123456789abcdef".repeat(4);
        for (text, set, expected) in [
            ("glpat-abc", TokenKind::Auto, TokenKind::Private),
            ("our-own-prefix-abc", TokenKind::Auto, TokenKind::Private),
            ("glcbt-64_abc", TokenKind::Auto, TokenKind::Job),
            (hex.as_str(), TokenKind::Auto, TokenKind::Bearer),
            ("eyJhbGciOi.eyJzdWIi.sig", TokenKind::Auto, TokenKind::Bearer),
            ("glpat-abc", TokenKind::Bearer, TokenKind::Bearer),
            (hex.as_str(), TokenKind::Private, TokenKind::Private),
        ] {
            assert_eq!(kind(&Secret::new(text), set), expected, "{text}");
        }
    }

    #[test]
    fn the_api_is_beneath_the_instance() {
        for (url, expected) in [
            (None, "https://gitlab.com/api/v4"),
            (Some("https://git.example"), "https://git.example/api/v4"),
            (Some("https://git.example/"), "https://git.example/api/v4"),
            (Some("https://git.example/api/v4/"), "https://git.example/api/v4"),
            (Some("https://x.example:8443/gitlab?a#b"), "https://x.example:8443/gitlab/api/v4"),
        ] {
            let url = url.map(|url| url.parse().unwrap());
            let instance = Instance::new(GitlabSettings { url, ..GitlabSettings::default() });
            assert_eq!(instance.api().unwrap().as_str(), expected);
        }
        let url = Some("mailto:a@b".parse().unwrap());
        assert!(Instance::new(GitlabSettings { url, ..GitlabSettings::default() }).api().is_err());
    }
}
