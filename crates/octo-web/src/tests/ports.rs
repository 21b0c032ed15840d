//! The hub's ports, as small as they can be.

use octo_hub::jq::Jq;
use octo_hub::{Closing, Ledger, Opening, Outcome, Spills};
use octo_model::{CallId, Caller, Json, ToolError};
use octo_toolkit::BoxFuture;
use std::sync::Mutex;

/// What the ledger saw.
#[derive(Default)]
pub struct Book(pub Mutex<Vec<Opening>>, pub Mutex<Vec<Outcome>>);

impl Ledger for Book {
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<(), ToolError>> {
        self.0.lock().unwrap().push(opening);
        Box::pin(async { Ok(()) })
    }

    fn close(&self, closing: Closing) {
        self.1.lock().unwrap().push(closing.outcome);
    }
}

/// A ledger that keeps nothing, for measuring.
pub struct Blank;

impl Ledger for Blank {
    fn open(&self, _: Opening) -> BoxFuture<'_, Result<(), ToolError>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&self, _: Closing) {}
}

pub struct Shelf;

impl Spills for Shelf {
    fn keep<'a>(&'a self, _: &'a Caller, _: CallId, _: Json) -> BoxFuture<'a, Result<String, ToolError>> {
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
