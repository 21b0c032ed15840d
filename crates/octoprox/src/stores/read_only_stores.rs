//! Stores for read-only commands: nothing is written, so nothing can be called.

use octo_model::{CallId, Caller, Json};
use octo_ports::{AuditLog, CallEnded, CallStarted, Port, ResultStore, StoreError, StoreResult};
use octo_toolkit::BoxFuture;

pub struct ReadOnlyStores;

fn calls_not_allowed() -> StoreError {
    StoreError::unavailable(Port::Audit, "this command is read-only and cannot call tools")
}

impl AuditLog for ReadOnlyStores {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async { Err(calls_not_allowed()) })
    }

    fn close(&self, _: CallEnded) {}
}

impl ResultStore for ReadOnlyStores {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async { Err(calls_not_allowed()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async { Err(calls_not_allowed()) })
    }
}
