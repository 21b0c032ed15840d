//! The way to the other fronts.

use crate::client_peer::Outbox;
use octo_hub::ListOptions;
use octo_model::{BoxFuture, Caller, Json, JsonObject, RpcError};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// A message about a session, for the fronts that know it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FrontMessage {
    pub tenant: String,
    pub session: u128,
    pub body: FrontMessageBody,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FrontMessageBody {
    /// The client has set something, which is stored.
    Changed,
    /// A message of the client that belongs to a call elsewhere: an answer, or a cancellation.
    Client(Json),
}

/// A request of a client without a session that belongs to a call of another front.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RelayedRequest {
    pub caller: Caller,
    pub profile: String,
    #[serde(default)]
    pub options: ListOptions,
    pub capabilities: JsonObject,
    #[serde(default)]
    pub log_level: Option<String>,
    pub method: String,
    pub params: JsonObject,
}

pub trait FrontLink: Send + Sync {
    /// Name of this node.
    fn node(&self) -> &str;

    /// Sends a message to all other fronts; returns whether one of them has taken it.
    fn send(&self, message: FrontMessage) -> BoxFuture<'_, bool>;

    /// Has a request answered by the front with this name. Its notifications go to `out`.
    fn relay<'a>(
        &'a self,
        node: &'a str,
        request: RelayedRequest,
        out: Outbox,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, Result<JsonObject, RpcError>>;
}
