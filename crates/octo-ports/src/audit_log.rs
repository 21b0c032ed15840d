//! The audit log and its records.

pub(crate) mod audit_record;
pub mod retention_clock;

use crate::{ArgumentKey, StoreResult};
use octo_model::{BoxFuture, CallId, Frontend, Kind, Principal, RecordedMethod};
use std::time::Duration;

/// The record of a call, or of a question of a server, before anything runs.
#[derive(Debug, Clone)]
pub struct CallStarted {
    pub id: CallId,
    pub principal: Principal,
    pub frontend: Frontend,
    pub profile: String,
    pub method: RecordedMethod,
    /// The requested name; of a question the server and its kind: `notion/elicitation`.
    pub name: String,
    /// HMAC-SHA-256 of the arguments with the log's own key, in hexadecimal: a holder of the key can verify
    /// them, and no one else can guess short ones.
    pub arguments: String,
    /// The arguments without secrets, if enabled in the settings.
    pub shown: Option<String>,
    pub trace: Option<String>,
}

/// Outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The source returned a failure.
    Failed,
    /// The hub or the source ended it with an error of this kind.
    Error(Kind),
    /// Further input was requested from the caller.
    InputRequired,
    /// The record was dropped before the call ended.
    Dropped,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Error(kind) => kind.as_str(),
            Self::InputRequired => "input_required",
            Self::Dropped => "dropped",
        }
    }
}

/// The record of a call after it ended.
#[derive(Debug, Clone)]
pub struct CallEnded {
    pub id: CallId,
    /// Source and the source's own name of the item, once resolved: `time/time_now`.
    pub target: Option<String>,
    /// The policy rule that decided, if any.
    pub rule: Option<String>,
    pub outcome: Outcome,
    pub micros: u64,
    pub bytes: u64,
    pub result_handle: Option<String>,
    /// Fingerprint of the arguments that ran, if the hub coerced them.
    pub arguments: Option<String>,
}

/// Records that are not written yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AuditBacklog {
    pub records: usize,
    /// Age of the oldest one.
    pub age: Duration,
}

/// The audit log. Records are chained; `open` returns once the record would survive the end of this process.
pub trait AuditLog: Send + Sync {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>>;

    /// Never blocks: it is called on drop.
    fn close(&self, closing: CallEnded);

    /// Returns once everything queued before is written.
    fn flush(&self) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn backlog(&self) -> AuditBacklog {
        AuditBacklog::default()
    }

    /// Checks whether calls can be recorded; fails with the reason.
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Fingerprint of arguments. A log that does not outlive the process needs no persistent key.
    fn fingerprint(&self, arguments: &[u8]) -> String {
        ArgumentKey::process_key().fingerprint(arguments)
    }
}
