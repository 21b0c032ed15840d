//! The client at the other end of a call, as far as a target may speak to it.

use crate::{BoxFuture, Members};
use octo_model::RpcError;
use std::sync::OnceLock;

/// Why a question could not be answered.
#[derive(Debug, Clone)]
pub enum Ask {
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
    fn capabilities(&self) -> &Members;

    /// Sends a notification that belongs to this call. It may be dropped when the client is gone.
    fn notify(&self, method: &str, params: Members);

    /// Asks the client (`elicitation/create`, `sampling/createMessage`, `roots/list`) and waits for its answer.
    fn ask<'a>(&'a self, method: &'a str, params: Members) -> BoxFuture<'a, Result<Members, Ask>>;

    /// Two calls with the same key go to the same client.
    fn key(&self) -> u64 {
        0
    }
}

/// Nobody to talk to: REST, the command line, the hub's own calls.
pub struct Alone;

impl Peer for Alone {
    fn capabilities(&self) -> &Members {
        static NONE: OnceLock<Members> = OnceLock::new();
        NONE.get_or_init(Members::new)
    }

    fn notify(&self, _method: &str, _params: Members) {}

    fn ask<'a>(&'a self, _method: &'a str, _params: Members) -> BoxFuture<'a, Result<Members, Ask>> {
        Box::pin(async { Err(Ask::Unable) })
    }
}
