//! A ledger for commands that only look: nothing is written, so nothing can be called either.

use octo_hub::{AuditLog, CallEnded, CallStarted, ResultStore};
use octo_model::{CallId, Caller, Json, ToolError};
use octo_toolkit::BoxFuture;

pub struct Unrecorded;

fn refused() -> ToolError {
    ToolError::unavailable("This command only looks; it calls nothing.")
}

impl AuditLog for Unrecorded {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Err(refused()) })
    }

    fn close(&self, _: CallEnded) {}
}

impl ResultStore for Unrecorded {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(refused()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, Result<Json, ToolError>> {
        Box::pin(async { Err(refused()) })
    }
}
