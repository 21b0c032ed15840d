//! Context of a client's request.

use octo_hub::{ClientEpoch, ListOptions};
use octo_model::extension;
use octo_model::{Caller, Frontend, Json, JsonObject};
use octo_wire::Level;
use octo_wire::{Era, Revision};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known about a client during one request.
#[derive(Clone)]
pub struct ClientContext {
    pub caller: Arc<Caller>,
    pub frontend: Frontend,
    pub profile: String,
    /// What it asks for in its address.
    pub options: ListOptions,
    pub revision: Revision,
    /// As declared by the client.
    pub capabilities: Arc<JsonObject>,
    /// Minimum level of log messages for the client.
    pub level: Option<Level>,
    /// Requests with the same key come from the same client.
    pub key: u64,
    /// Lists that do not change under the client.
    pub epoch: ClientEpoch,
}

impl ClientContext {
    /// Whether the client supports any server requests.
    pub fn accepts_requests(&self) -> bool {
        ["elicitation", "sampling", "roots"].iter().any(|ability| self.capabilities.get(ability).is_some())
    }

    /// Whether a call may be answered with a task.
    pub fn supports_tasks(&self) -> bool {
        let declared = || self.capabilities.inner("extensions", extension::TASKS);
        self.revision.era() == Era::Modern && declared().as_ref().is_some_and(Json::is_object)
    }
}

/// Returns a key that is unique in this process.
pub fn next_client_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Client capability that a server request needs.
pub fn required_capability(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}
