//! Calls through a bridge are recorded by the hub at its other end, so nothing is kept here.

use octo_hub::{AuditLog, CallEnded, CallStarted, ResultStore};
use octo_model::{CallId, Caller, Json, ToolError};
use octo_toolkit::BoxFuture;

pub struct Unkept;

impl AuditLog for Unkept {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: CallEnded) {}
}

impl ResultStore for Unkept {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(ToolError::internal("a bridge cuts nothing")) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, Result<Json, ToolError>> {
        Box::pin(async { Err(ToolError::not_found("A bridge keeps no results.")) })
    }
}
