//! Calls that somebody must agree to before they run.

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
    /// The policy rule that asks for approval.
    pub rule: &'a str,
    pub arguments: Option<&'a Json>,
    /// The client that made the call.
    pub peer: &'a Arc<dyn Peer>,
}

/// Whoever can approve calls. Without one, a call that needs approval is denied.
pub trait Approver: Send + Sync {
    /// Returns once somebody has agreed; an error when nobody did. It decides itself how long it waits; a call that is
    /// cancelled drops it.
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Result<(), ToolError>>;
}

pub(crate) fn no_approver_error(entry: &Entry, rule: &str) -> ToolError {
    let message = format!("The policy rule `{rule}` asks for approval of {}.", entry.listed_name);
    ToolError::denied(message).hint("Nobody can approve calls here; use another tool, or ask the operator.")
}
