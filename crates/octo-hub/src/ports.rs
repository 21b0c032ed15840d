//! What the hub needs of a store, so that one file or a fleet's database can give it.

mod argument_key;
mod pins;
mod runs;

use crate::results::reply_text::StoredText;
use octo_model::{CallId, Caller, Frontend, Json, Kind, Method, Principal, ToolError};
use octo_toolkit::BoxFuture;

pub use argument_key::ArgumentKey;
pub use pins::{ItemKind, PendingPin, Pin, PinDelta, PinSet, PinWrite, Pins, ServerIdentity};
pub use runs::{LeasedRun, NewRun, RunLease, RunStatus, Runs, StoredRun, StoredStep};

/// The record of a call before anything runs.
#[derive(Debug, Clone)]
pub struct CallStarted {
    pub id: CallId,
    pub principal: Principal,
    pub face: Frontend,
    pub profile: String,
    pub method: Method,
    /// The name as it was asked for.
    pub name: String,
    /// HMAC-SHA-256 of the arguments with the ledger's own key, in hexadecimal: whoever has the key can prove them, and nobody
    /// can guess short ones.
    pub arguments: String,
    /// The arguments without secrets, where the settings ask for them.
    pub shown: Option<String>,
    pub trace: Option<String>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    /// The target answered that it failed.
    Failed,
    /// The hub or the target ended it with an error of this kind.
    Error(Kind),
    /// The caller was asked for more.
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
    /// Source and the source's own name of the item, once found: `time/time_now`.
    pub target: Option<String>,
    /// The policy rule that decided, once it did.
    pub rule: Option<String>,
    pub outcome: Outcome,
    pub micros: u64,
    pub bytes: u64,
    pub spill: Option<String>,
    /// What stands for the arguments that ran, when the hub has coerced those that came.
    pub arguments: Option<String>,
}

/// The audit. Records are chained; `open` returns when the record survives the end of this process.
pub trait AuditLog: Send + Sync {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, Result<(), ToolError>>;

    /// Never waits: it is called on drop.
    fn close(&self, closing: CallEnded);

    /// What stands for arguments in the record. A ledger that does not outlive the process needs no key that does.
    fn fingerprint(&self, arguments: &[u8]) -> String {
        ArgumentKey::process_key().fingerprint(arguments)
    }
}

/// Large results, kept whole for whoever caused them.
pub trait ResultStore: Send + Sync {
    /// Keeps a result and gives its handle.
    fn store<'a>(
        &'a self,
        caller: &'a Caller,
        call: CallId,
        whole: Json,
    ) -> BoxFuture<'a, Result<String, ToolError>>;

    /// The whole result again. Someone else's handle is answered like one that does not exist.
    fn load<'a>(&'a self, caller: &'a Caller, handle: &'a str) -> BoxFuture<'a, Result<Json, ToolError>>;

    /// The result as text, to be read in parts. A store that keeps results elsewhere than in memory does not load them for it.
    fn open_text<'a>(
        &'a self,
        caller: &'a Caller,
        handle: &'a str,
    ) -> BoxFuture<'a, Result<StoredText, ToolError>> {
        Box::pin(async move { StoredText::render(&self.load(caller, handle).await?) })
    }
}
