//! Stores of a bridge, which store nothing: the remote hub records the calls.

use octo_model::{CallId, Caller, Json};
use octo_ports::{AuditLog, CallEnded, CallStarted, Port, ResultStore, StoreError, StoreResult};
use octo_toolkit::BoxFuture;

pub struct NullStores;

impl AuditLog for NullStores {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: CallEnded) {}
}

impl ResultStore for NullStores {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async { Err(StoreError::internal("a bridge does not truncate results")) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async { Err(StoreError::NotFound(Port::Results)) })
    }
}
