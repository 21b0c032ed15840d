//! Requests to GitHub's API: counted, cached, with its errors converted.

use super::pull_url::{PullRef, url_remedy};
use crate::forge_http;
use crate::forge_token::token_header;
use bytes::Bytes;
use futures_util::future::try_join_all;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use moka::future::Cache;
use octo_toolkit::net::{NetRequest, NetResponse, retry_after};
use octo_toolkit::{CallContext, Kind, Net, Remedy, Secret, ToolError};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use url::Url;

pub const ACCEPT_JSON: &str = "application/vnd.github+json";
pub const ACCEPT_DIFF: &str = "application/vnd.github.diff";
const API_VERSION_HEADER: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-github-api-version"), HeaderValue::from_static("2022-11-28"));
const TOKEN_SETTING: &[&str] = &["github.token"];
/// Page size, GitHub's maximum.
pub const PER_PAGE: u64 = 100;
/// Maximum pages of a list of unknown length.
const MAX_PAGES: u64 = 10;
/// Cache lifetime, so that continuing a long diff costs no further request.
const CACHE_TTL: Duration = Duration::from_secs(300);
const MAX_CACHE_BYTES: u64 = 64 << 20;
const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// Wait that GitHub documents for a refusal without a time.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(60);

/// State that outlives a call.
pub struct GithubApi {
    token: Option<Secret>,
    cache: Cache<String, CachedResponse>,
    /// End of the rate limit, by origin.
    blocked_until: Mutex<HashMap<String, Instant>>,
}

/// A cached response.
#[derive(Clone)]
pub struct CachedResponse {
    pub body: Bytes,
    has_next: bool,
}

impl GithubApi {
    pub fn new(token: Option<Secret>) -> Self {
        let weigh = |url: &String, kept: &CachedResponse| {
            u32::try_from(url.len() + kept.body.len()).unwrap_or(u32::MAX)
        };
        let kept =
            Cache::builder().weigher(weigh).max_capacity(MAX_CACHE_BYTES).time_to_live(CACHE_TTL).build();
        Self { token, cache: kept, blocked_until: Mutex::default() }
    }
}

/// Requests of one call for one pull request.
pub struct PullRequestFetch<'a> {
    pub api: &'a GithubApi,
    pub net: &'a Net,
    pub cx: &'a CallContext,
    pub pull: &'a PullRef,
    pub now: Timestamp,
    /// Whether to ignore cached responses.
    pub bypass_cache: bool,
    pub request_count: AtomicU64,
    /// Remaining requests of this hour; the maximum value means unknown.
    pub requests_left: AtomicU64,
}

impl PullRequestFetch<'_> {
    pub fn has_token(&self) -> bool {
        self.pull.gets_token && self.api.token.is_some()
    }

    /// Returns one response, cached if this call continues an earlier one.
    pub async fn get(
        &self,
        parts: &[&str],
        page: Option<u64>,
        accept: &'static str,
    ) -> Result<CachedResponse, ToolError> {
        let mut url = self.pull.api_url(parts)?;
        if let Some(page) = page {
            let (size, page) = (PER_PAGE.to_string(), page.to_string());
            url.query_pairs_mut().append_pair("per_page", &size).append_pair("page", &page);
        }
        let key = format!("{accept} {url}");
        if !self.bypass_cache
            && let Some(kept) = self.api.cache.get(&key).await
        {
            return Ok(kept);
        }
        let answer = self.ask(url, accept).await?;
        if answer.truncated {
            return Err(ToolError::new(Kind::TooLarge, "GitHub's response is larger than 16 MB.")
                .hint("Request one file with `file`."));
        }
        let kept =
            CachedResponse { has_next: forge_http::next_link(&answer.headers).is_some(), body: answer.body };
        self.api.cache.insert(key, kept.clone()).await;
        Ok(kept)
    }

    pub async fn json<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        page: Option<u64>,
    ) -> Result<(T, bool), ToolError> {
        let kept = self.get(parts, page, ACCEPT_JSON).await?;
        let value = serde_json::from_slice(&kept.body).map_err(|error| {
            ToolError::unavailable("GitHub's response does not match its API.")
                .hint("Try again; the operator can check github.url.")
                .remedy(url_remedy())
                .detail(error)
        })?;
        Ok((value, kept.has_next))
    }

    /// Reads a list of known length; concurrent page requests are limited by the grant's limit per host.
    pub async fn fetch_counted<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        count: u64,
    ) -> Result<Vec<T>, ToolError> {
        let pages = (1..=count.div_ceil(PER_PAGE)).map(|page| self.json::<Vec<T>>(parts, Some(page)));
        let pages = try_join_all(pages).await?;
        Ok(pages.into_iter().flat_map(|(items, _)| items).collect())
    }

    /// Reads the pages of a list one after the other; returns whether there are more than were read.
    pub async fn pages<T: DeserializeOwned>(&self, parts: &[&str]) -> Result<(Vec<T>, bool), ToolError> {
        let mut pages = Vec::new();
        for page in 1..=MAX_PAGES {
            let (items, has_next) = self.json(parts, Some(page)).await?;
            pages.push(items);
            if !has_next {
                return Ok((pages, false));
            }
        }
        Ok((pages, true))
    }

    async fn ask(&self, url: Url, accept: &'static str) -> Result<NetResponse, ToolError> {
        let origin = url.origin().ascii_serialization();
        if let Some(wait) = self.api.retry_delay(&origin) {
            return Err(self.rate_limit_error(wait));
        }
        let mut ask = NetRequest::get(url);
        ask.headers.insert(ACCEPT, HeaderValue::from_static(accept));
        ask.headers.insert(API_VERSION_HEADER.0, API_VERSION_HEADER.1);
        if let Some(token) = self.api.token.as_ref().filter(|_| self.pull.gets_token) {
            ask.headers.insert(AUTHORIZATION, token_header("Bearer ", token, TOKEN_SETTING)?);
        }
        ask.timeout = self.cx.time_left().min(Duration::from_secs(60));
        ask.max_bytes = MAX_RESPONSE_BYTES;
        ask.max_redirects = 3;
        self.request_count.fetch_add(1, Ordering::Relaxed);
        let answer = forge_http::send(self.net, ask, self.cx).await?;
        let left =
            forge_http::text(&answer.headers, "x-ratelimit-remaining").and_then(|left| left.parse().ok());
        if let Some(left) = left {
            self.requests_left.fetch_min(left, Ordering::Relaxed);
        }
        if answer.status.is_success() {
            return Ok(answer);
        }
        Err(self.refusal(&answer, left, origin))
    }

    fn refusal(&self, answer: &NetResponse, left: Option<u64>, origin: String) -> ToolError {
        let words = forge_http::error_message(&answer.body);
        let limits = matches!(answer.status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS);
        let asked_to_wait = retry_after(&answer.headers, self.now).filter(|wait| !wait.is_zero());
        let is_limit =
            left == Some(0) || asked_to_wait.is_some() || words.to_lowercase().contains("rate limit");
        if limits && (is_limit || answer.status == StatusCode::TOO_MANY_REQUESTS) {
            let reset =
                forge_http::epoch_header(&answer.headers, "x-ratelimit-reset").filter(|_| left == Some(0));
            let reset = reset.and_then(|reset| reset.duration_since(self.now).try_into().ok());
            let wait = asked_to_wait.or(reset).unwrap_or(DEFAULT_RETRY_AFTER);
            self.api.block_until(origin, wait);
            return self.rate_limit_error(wait);
        }
        match answer.status {
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN => self.hidden(answer, &words),
            StatusCode::UNAUTHORIZED if self.has_token() => ToolError::new(
                Kind::Unauthorized,
                format!("GitHub rejected the token that is configured{words}"),
            )
            .hint("Ask the operator to check github.token: it may be expired or revoked.")
            .remedy(Remedy::settings(TOKEN_SETTING)),
            StatusCode::UNAUTHORIZED => {
                ToolError::new(Kind::Unauthorized, format!("GitHub requires a token for this{words}"))
                    .hint("Ask the operator to set github.token.")
                    .remedy(Remedy::settings(TOKEN_SETTING))
            }
            StatusCode::NOT_ACCEPTABLE | StatusCode::UNPROCESSABLE_ENTITY => {
                ToolError::new(Kind::TooLarge, format!("GitHub does not return this as a whole{words}"))
                    .hint("Request one file with `file`.")
            }
            status => {
                ToolError::unavailable(format!("GitHub returned {status}{words}")).hint("Try again later.")
            }
        }
    }

    fn hidden(&self, answer: &NetResponse, words: &str) -> ToolError {
        let PullRef { owner, repository, number, .. } = self.pull;
        if answer.headers.contains_key("x-github-sso") {
            return ToolError::new(
                Kind::Unauthorized,
                format!("The organisation {owner} requires a token with single sign-on."),
            )
            .hint("Ask the operator to authorise github.token for that organisation.")
            .remedy(Remedy::settings(TOKEN_SETTING));
        }
        if answer.status == StatusCode::FORBIDDEN {
            return ToolError::denied(format!("GitHub denied access{words}"))
                .hint("Ask the operator whether github.token may read pull requests, checks and statuses there.")
                .remedy(Remedy::settings(TOKEN_SETTING));
        }
        let message = format!("Pull request {number} of {owner}/{repository} not found");
        let error = if self.has_token() {
            ToolError::not_found(format!("{message}: it does not exist, or the token has no access."))
                .hint("Check the address; ask the operator whether github.token may read that repository.")
        } else {
            ToolError::not_found(format!(
                "{message}: it does not exist, or the repository is private and no token is set."
            ))
            .hint("Check the address; for a private repository ask the operator to set github.token.")
        };
        error.remedy(Remedy::settings(TOKEN_SETTING))
    }

    fn rate_limit_error(&self, wait: Duration) -> ToolError {
        let at = jiff::SignedDuration::try_from(wait).ok().and_then(|wait| self.now.checked_add(wait).ok());
        let at = at.map(|at| format!(", until {}", at.strftime("%Y-%m-%dT%H:%M:%SZ"))).unwrap_or_default();
        let error = ToolError::rate_limited(format!("GitHub's rate limit is exceeded{at}."), wait);
        let seconds = wait.as_secs();
        if self.has_token() {
            return error.hint(format!("Try again in {seconds} s."));
        }
        error
            .hint(format!(
                "Try again in {seconds} s, or ask the operator to set github.token: without a token GitHub allows 60 \
                 requests per hour, with one 5,000."
            ))
            .remedy(Remedy::settings(TOKEN_SETTING))
    }
}

impl GithubApi {
    fn retry_delay(&self, origin: &str) -> Option<Duration> {
        let spent = self.blocked_until.lock().unwrap_or_else(PoisonError::into_inner);
        spent
            .get(origin)
            .map(|until| until.saturating_duration_since(Instant::now()))
            .filter(|wait| !wait.is_zero())
    }

    /// At most one hour, whatever the response says, because it affects every caller.
    fn block_until(&self, origin: String, wait: Duration) {
        let until = Instant::now() + wait.min(Duration::from_secs(3600));
        self.blocked_until.lock().unwrap_or_else(PoisonError::into_inner).insert(origin, until);
    }
}
