//! Audit records as they are read.

use jiff::Timestamp;
use serde::Serialize;

/// A record as `octoprox audit` shows it. A call has an `open` record, written before anything ran, and a
/// `close` record once it ended. A call that is still running, or whose process died, has only the first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct AuditRecord {
    /// The chain that it belongs to; empty in a log with one chain.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub chain: String,
    pub seq: u64,
    pub at: Timestamp,
    pub kind: RecordKind,
    pub call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frontend: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The requested name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// HMAC-SHA-256 of the arguments with the key of this hub, in hexadecimal; records of different hubs
    /// cannot be compared. A `close` record has one if the hub coerced the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// The arguments without secrets, if `audit.arguments` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millis: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_handle: Option<String>,
    /// Hash of the chain up to here, in hexadecimal.
    pub hash: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    #[default]
    Open,
    Close,
    /// Older records were removed; `target` is the last of them.
    Prune,
}
