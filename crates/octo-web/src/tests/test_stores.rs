//! Minimal implementations of the hub's ports.

use octo_hub::jq_eval::Jq;
use octo_model::{CallId, Caller, Json, ToolError};
use octo_ports::{AuditLog, CallEnded, CallStarted, Outcome, Port, ResultStore, StoreError, StoreResult};
use octo_toolkit::BoxFuture;
use std::sync::Mutex;

/// What the ledger recorded.
#[derive(Default)]
pub struct RecordingAuditLog(pub Mutex<Vec<CallStarted>>, pub Mutex<Vec<Outcome>>);

impl AuditLog for RecordingAuditLog {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        self.0.lock().unwrap().push(opening);
        Box::pin(async { Ok(()) })
    }

    fn close(&self, closing: CallEnded) {
        self.1.lock().unwrap().push(closing.outcome);
    }
}

/// Ledger that stores nothing, for measurements.
pub struct NullAuditLog;

impl AuditLog for NullAuditLog {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, StoreResult<()>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: CallEnded) {}
}

pub struct NullResultStore;

impl ResultStore for NullResultStore {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, StoreResult<String>> {
        Box::pin(async { Ok("handle-1".to_owned()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, StoreResult<Json>> {
        Box::pin(async { Err(StoreError::NotFound(Port::Results)) })
    }
}

pub struct NoJq;

impl Jq for NoJq {
    fn run<'a>(&'a self, _: &'a str, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(ToolError::unavailable("No jq here.")) })
    }
}
