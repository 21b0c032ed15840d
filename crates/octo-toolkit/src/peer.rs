//! The client at the other end of a call, as far as a target may speak to it.

use crate::{BoxFuture, JsonObject};
use octo_model::RpcError;
use std::sync::OnceLock;

/// Why a question could not be answered.
#[derive(Debug, Clone)]
pub enum AskError {
    /// The client has declared no such ability, or there is nobody to ask.
    Unable,
    /// The client answered with an error.
    Refused(RpcError),
    /// The client went away before it answered.
    Gone,
}

/// One call's way back to its client: notices and questions.
pub trait Peer: Send + Sync {
    /// The client's capabilities as it declared them.
    fn capabilities(&self) -> &JsonObject;

    /// Sends a notification that belongs to this call. It may be dropped when the client is gone.
    fn notify(&self, method: &str, params: JsonObject);

    /// Asks the client (`elicitation/create`, `sampling/createMessage`, `roots/list`) and waits for its answer.
    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>>;

    /// Two calls with the same key go to the same client.
    fn key(&self) -> u64 {
        0
    }
}

/// Nobody to talk to: REST, the command line, the hub's own calls.
pub struct NoPeer;

impl Peer for NoPeer {
    fn capabilities(&self) -> &JsonObject {
        static NONE: OnceLock<JsonObject> = OnceLock::new();
        NONE.get_or_init(JsonObject::new)
    }

    fn notify(&self, _method: &str, _params: JsonObject) {}

    fn ask<'a>(
        &'a self,
        _method: &'a str,
        _params: JsonObject,
    ) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async { Err(AskError::Unable) })
    }
}
