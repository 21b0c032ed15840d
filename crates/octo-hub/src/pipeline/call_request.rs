//! A request for one call.

use crate::apps::app_tool::supports_apps;
use crate::catalogue::item::Entry;
use octo_model::{Caller, Frontend, Kind, Operation, ToolError};
use octo_toolkit::{NoPeer, Peer};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A call with its context.
#[derive(Clone)]
pub struct Request {
    pub op: Operation,
    pub caller: Arc<Caller>,
    pub frontend: Frontend,
    /// Name of the profile; empty for everything.
    pub profile: String,
    pub peer: Arc<dyn Peer>,
    pub cancel: CancellationToken,
    /// Timeout requested by the caller, if less than the settings allow.
    pub timeout: Option<Duration>,
    /// The `traceparent` of the request.
    pub trace: Option<String>,
    /// The number of calls around this one; 0 for the call of a client.
    pub depth: u8,
    /// Whether it comes from inside an app.
    pub from_app: bool,
}

impl Request {
    /// A call of a client that nobody can ask or interrupt.
    pub fn new(op: Operation, caller: Arc<Caller>, frontend: Frontend) -> Self {
        Self {
            op,
            caller,
            frontend,
            profile: String::new(),
            peer: Arc::new(NoPeer),
            cancel: CancellationToken::new(),
            timeout: None,
            trace: None,
            depth: 0,
            from_app: false,
        }
    }

    /// Whether the client may see this entry. Some tools are only for apps.
    pub(crate) fn may_see(&self, entry: &Entry) -> bool {
        entry.item.app.is_for_model || self.from_app || supports_apps(self.peer.capabilities())
    }
}

pub(crate) fn timeout_error(allowed: Duration) -> ToolError {
    ToolError::new(Kind::Timeout, format!("The call timed out after {} s.", allowed.as_secs_f64()))
        .hint("Ask for less at once, or raise `calls.timeout_seconds` in the settings.")
}
