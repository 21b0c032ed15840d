//! The client's end of a call, as far as a source may use it.

use crate::{BoxFuture, JsonObject};
use octo_model::RpcError;
use std::sync::OnceLock;

/// Why a request to the client failed.
#[derive(Debug, Clone)]
pub enum AskError {
    /// The client has not declared the capability, or there is no client.
    Unable,
    /// The client returned an error.
    Refused(RpcError),
    /// The client disconnected before it answered.
    Gone,
}

/// The way from a call to its client: notifications and requests.
pub trait Peer: Send + Sync {
    /// The capabilities that the client declared.
    fn capabilities(&self) -> &JsonObject;

    /// Sends a notification that belongs to this call. It may be dropped if the client has disconnected.
    fn notify(&self, method: &str, params: JsonObject);

    /// Sends a request to the client (`elicitation/create`, `sampling/createMessage`, `roots/list`) and waits
    /// for the answer.
    fn ask<'a>(&'a self, method: &'a str, params: JsonObject) -> BoxFuture<'a, Result<JsonObject, AskError>>;

    /// The call goes on as a task of a server, so that it may take long.
    fn task_started(&self) {}

    /// Two calls with the same key belong to the same client.
    fn key(&self) -> u64 {
        0
    }
}

fn no_capabilities() -> &'static JsonObject {
    static NONE: OnceLock<JsonObject> = OnceLock::new();
    NONE.get_or_init(JsonObject::new)
}

/// No client: REST, the command line, the hub's own calls.
pub struct NoPeer;

impl Peer for NoPeer {
    fn capabilities(&self) -> &JsonObject {
        no_capabilities()
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

/// A client that can neither be notified nor asked, but differs from others.
pub struct SilentPeer {
    pub key: u64,
}

impl Peer for SilentPeer {
    fn capabilities(&self) -> &JsonObject {
        no_capabilities()
    }

    fn notify(&self, _method: &str, _params: JsonObject) {}

    fn ask<'a>(
        &'a self,
        _method: &'a str,
        _params: JsonObject,
    ) -> BoxFuture<'a, Result<JsonObject, AskError>> {
        Box::pin(async { Err(AskError::Unable) })
    }

    fn key(&self) -> u64 {
        self.key
    }
}
