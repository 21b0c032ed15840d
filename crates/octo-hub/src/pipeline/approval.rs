//! Calls that require approval before they run.

use crate::catalogue::item::Entry;
use octo_model::{CallId, Caller, Json, ToolError};
use octo_toolkit::{BoxFuture, Peer};
use std::sync::Arc;

/// A call that waits for approval.
pub struct ApprovalRequest<'a> {
    pub call: CallId,
    pub caller: &'a Caller,
    pub profile: &'a str,
    pub entry: &'a Entry,
    /// The policy rule that requires approval.
    pub rule: &'a str,
    pub arguments: Option<&'a Json>,
    /// The client that made the call.
    pub peer: &'a Arc<dyn Peer>,
}

/// Approves calls. Without an approver, a call that requires approval is denied.
pub trait Approver: Send + Sync {
    /// Returns once the call is approved, or an error if it is not. The approver sets its own timeout;
    /// cancelling the call drops the future.
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Result<(), ToolError>>;
}

pub(crate) fn no_approver_error(entry: &Entry, rule: &str) -> ToolError {
    let message = format!("The policy rule `{rule}` requires approval of {}.", entry.listed_name);
    ToolError::denied(message).hint("No approver is available; use another tool or ask the operator.")
}
