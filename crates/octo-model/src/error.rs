//! Errors of calls, with a hint of what to do next.

use crate::Json;
use std::borrow::Cow;
use std::time::Duration;

/// Each frontend maps a kind once: MCP `isError`, HTTP status, exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Invalid,
    NotFound,
    Denied,
    Conflict,
    TooLarge,
    Timeout,
    Cancelled,
    Unavailable,
    Unauthorized,
    Internal,
    /// A rate limit of the hub or of an upstream is exceeded.
    RateLimited,
}

impl Kind {
    pub const ALL: [Kind; 11] = [
        Self::Invalid,
        Self::NotFound,
        Self::Denied,
        Self::Conflict,
        Self::TooLarge,
        Self::Timeout,
        Self::Cancelled,
        Self::Unavailable,
        Self::Unauthorized,
        Self::Internal,
        Self::RateLimited,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Unauthorized => "unauthorized",
            Self::Internal => "internal",
            Self::RateLimited => "rate_limited",
        }
    }
}

/// A JSON-RPC error of an upstream, passed on unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Json>,
}

/// Message and hint are for the caller; detail is only logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolError {
    pub kind: Kind,
    pub message: Cow<'static, str>,
    pub hint: Option<Cow<'static, str>>,
    pub detail: Option<String>,
    pub retry_after: Option<Duration>,
    pub rpc: Option<Box<RpcError>>,
}

impl ToolError {
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind, message: message.into(), hint: None, detail: None, retry_after: None, rpc: None }
    }

    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    pub fn denied(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Denied, message)
    }

    pub fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Kind::Unavailable, message)
    }

    pub fn rate_limited(message: impl Into<Cow<'static, str>>, wait: Duration) -> Self {
        Self::new(Kind::RateLimited, message).retry_after(wait)
    }

    pub fn cancelled() -> Self {
        Self::new(Kind::Cancelled, "The call was cancelled.")
    }

    pub fn internal(detail: impl std::fmt::Display) -> Self {
        Self::new(Kind::Internal, "Internal error.")
            .hint("Try again; if it persists, search the log for this call id.")
            .detail(detail)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, detail: impl std::fmt::Display) -> Self {
        self.detail = Some(detail.to_string());
        self
    }

    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    #[must_use]
    pub fn rpc(mut self, error: RpcError) -> Self {
        self.rpc = Some(Box::new(error));
        self
    }

    /// Message and hint in one text.
    pub fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} {hint}", self.message),
            None => self.message.to_string(),
        }
    }
}

impl std::fmt::Display for ToolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.text())
    }
}

impl std::error::Error for ToolError {}
