//! Errors of calls, with a hint of what to do next.

use crate::{Json, Remedy, RemedyText};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// Each frontend maps a kind once: MCP `isError`, HTTP status, exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub data: Option<Json>,
}

/// When to try again after an error that passes, if nobody knows better.
pub const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Message and hint are for the caller; detail is only logged. It is part of the JSON form, because the process that
/// logs a call may not be the one that ran it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolError {
    pub kind: Kind,
    pub message: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Cow<'static, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(
        rename = "retry_after_ms",
        default,
        with = "milliseconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub retry_after: Option<Duration>,
    /// The call may have taken effect, so nobody repeats it without a check.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_outcome_unknown: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc: Option<Box<RpcError>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<Box<Remedy>>,
}

/// Keeps `null` apart from an absent member.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

mod milliseconds {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::time::Duration;

    pub fn serialize<S: Serializer>(wait: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
    }
}

impl ToolError {
    pub fn new(kind: Kind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            detail: None,
            retry_after: None,
            is_outcome_unknown: false,
            rpc: None,
            remedy: None,
        }
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

    /// The same after the call was sent to whoever runs it.
    #[must_use]
    pub fn with_unknown_outcome(mut self) -> Self {
        self.is_outcome_unknown = true;
        self
    }

    /// When to try again: as stated, or after a second for errors that pass. Never if the call may have taken effect.
    pub fn retry_delay(&self) -> Option<Duration> {
        if self.is_outcome_unknown {
            return None;
        }
        let is_passing = matches!(self.kind, Kind::Unavailable | Kind::RateLimited);
        self.retry_after.or_else(|| is_passing.then_some(DEFAULT_RETRY_AFTER))
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

    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(Box::new(remedy));
        self
    }

    /// Moves the remedy to the hint, as the sentence that `text` writes.
    #[must_use]
    pub fn with_remedy_text(mut self, text: RemedyText) -> Self {
        if let Some(remedy) = self.remedy.take() {
            let sentence = text(&remedy);
            self.hint = Some(match self.hint {
                Some(hint) => format!("{hint} {sentence}").into(),
                None => sentence.into(),
            });
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_test::assert_wire_form;

    #[test]
    fn kinds_have_their_names_on_the_wire() {
        for kind in Kind::ALL {
            assert_wire_form(&kind, &format!("{:?}", kind.as_str()));
        }
    }

    #[test]
    fn rpc_errors_keep_their_data_on_the_wire() {
        let rows = [
            (None, r#"{"code":-32603,"message":"Broken."}"#),
            (Some(Json::null()), r#"{"code":-32603,"message":"Broken.","data":null}"#),
            (Some(Json::text("why")), r#"{"code":-32603,"message":"Broken.","data":"why"}"#),
        ];
        for (data, text) in rows {
            let error = RpcError { code: -32603, message: "Broken.".to_owned(), data };
            assert_wire_form(&error, text);
            assert_eq!(serde_json::from_str::<RpcError>(text).unwrap(), error);
        }
    }

    #[test]
    fn tool_errors_lose_nothing_on_the_wire() {
        let rpc = RpcError { code: 1, message: "no".to_owned(), data: None };
        let rows = [
            (ToolError::invalid("Wrong."), r#"{"kind":"invalid","message":"Wrong."}"#),
            (
                ToolError::rate_limited("Slow down.", Duration::from_millis(1_500)).hint("Wait."),
                r#"{"kind":"rate_limited","message":"Slow down.","hint":"Wait.","retry_after_ms":1500}"#,
            ),
            (
                ToolError::unavailable("Down.").detail("refused").rpc(rpc),
                r#"{"kind":"unavailable","message":"Down.","detail":"refused","rpc":{"code":1,"message":"no"}}"#,
            ),
        ];
        for (error, text) in rows {
            assert_wire_form(&error, text);
            assert_eq!(serde_json::from_str::<ToolError>(text).unwrap(), error);
        }
    }
}
