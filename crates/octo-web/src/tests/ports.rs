//! The hub's ports, as small as they can be.

use octo_hub::jq_eval::Jq;
use octo_hub::{AuditLog, CallEnded, CallStarted, Outcome, ResultStore};
use octo_model::{CallId, Caller, Json, ToolError};
use octo_toolkit::BoxFuture;
use std::sync::Mutex;

/// What the ledger saw.
#[derive(Default)]
pub struct Book(pub Mutex<Vec<CallStarted>>, pub Mutex<Vec<Outcome>>);

impl AuditLog for Book {
    fn open(&self, opening: CallStarted) -> BoxFuture<'_, Result<(), ToolError>> {
        self.0.lock().unwrap().push(opening);
        Box::pin(async { Ok(()) })
    }

    fn close(&self, closing: CallEnded) {
        self.1.lock().unwrap().push(closing.outcome);
    }
}

/// A ledger that keeps nothing, for measuring.
pub struct Blank;

impl AuditLog for Blank {
    fn open(&self, _: CallStarted) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: CallEnded) {}
}

pub struct Shelf;

impl ResultStore for Shelf {
    fn store<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Ok("handle-1".to_owned()) })
    }

    fn load<'a>(&'a self, _: &'a Caller, _: &'a str) -> BoxFuture<'a, Result<Json, ToolError>> {
        Box::pin(async { Err(ToolError::not_found("There is no such result.")) })
    }
}

pub struct NoJq;

impl Jq for NoJq {
    fn run<'a>(&'a self, _: &'a str, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async { Err(ToolError::unavailable("No jq here.")) })
    }
}
