//! Failures of engines, and the error if all of them failed.

use super::SearchSettings;
use http::{HeaderMap, StatusCode};
use octo_toolkit::net::retry_after;
use octo_toolkit::{Clock, Kind, Remedy, ToolError};
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::time::Duration;

/// Settings of engines that do not ask for CAPTCHAs.
pub const OTHER_ENGINES: &[&str] = &["search.searxng_url", "search.brave_api_key"];

/// Failure of one engine.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EngineFailure {
    /// searxng, brave or duckduckgo, or an engine behind SearXNG such as searxng/google.
    pub engine: String,
    /// Reason of the failure.
    pub reason: String,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Cow<'static, str>>,
    #[serde(skip)]
    pub remedy: Option<Remedy>,
    #[serde(skip)]
    pub retry_after: Option<Duration>,
}

impl EngineFailure {
    pub fn new(engine: &str, reason: impl Into<String>) -> Self {
        Self { engine: engine.to_owned(), reason: reason.into(), hint: None, remedy: None, retry_after: None }
    }

    pub fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(Cow::Borrowed(hint));
        self
    }

    /// A hint that concerns these settings.
    pub fn settings_hint(mut self, hint: &'static str, settings: &'static [&'static str]) -> Self {
        self.remedy = Some(Remedy::settings(settings));
        self.hint(hint)
    }

    /// Failure of the request.
    pub fn from_net_error(engine: &str, error: &ToolError) -> Self {
        let mut failure = Self::new(engine, error.message.trim_end_matches('.'));
        failure.retry_after = error.retry_after;
        // Only a denial can be fixed locally.
        if error.kind == Kind::Denied {
            failure.hint.clone_from(&error.hint);
            failure.remedy = error.remedy.as_deref().cloned();
        }
        failure
    }

    /// Failure by status of the response.
    pub fn from_status(engine: &str, status: StatusCode, headers: &HeaderMap) -> Self {
        let reason = match status.as_u16() {
            429 => "it is rate limiting requests".to_owned(),
            300..400 => "it redirects, and redirects are not followed".to_owned(),
            code => format!("it returned status {code}"),
        };
        let retry_after = retry_after(headers, Clock::system().now());
        Self { retry_after, ..Self::new(engine, reason) }
    }
}

/// Error if no engine responded: the reason of each, and the hints without duplicates.
pub fn all_failed_error(failed: &[EngineFailure], settings: &SearchSettings) -> ToolError {
    let reasons: Vec<String> =
        failed.iter().map(|failure| format!("{}: {}", failure.engine, failure.reason)).collect();
    let mut hints: Vec<&str> = Vec::new();
    for hint in failed.iter().filter_map(|failure| failure.hint.as_deref()) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    let mut remedy = failed.iter().find_map(|failure| failure.remedy.clone());
    if settings.searxng_url.is_none() && settings.brave_api_key.is_none() {
        hints.push(
            "The operator can set search.searxng_url or search.brave_api_key for engines without CAPTCHAs.",
        );
        remedy = remedy.or(Some(Remedy::settings(OTHER_ENGINES)));
    }
    if hints.is_empty() {
        hints.push("Try again later, or use fewer words.");
    }
    let error = ToolError::unavailable(format!("No search engine responded. {}.", reasons.join("; ")));
    let mut error = error.hint(hints.join(" "));
    error.remedy = remedy.map(Box::new);
    match failed.iter().filter_map(|failure| failure.retry_after).min() {
        Some(wait) => error.retry_after(wait),
        None => error,
    }
}
