//! Who sent a request, and how they speak.

use crate::task::EXTENSION;
use octo_model::{Caller, Frontend, Json, JsonObject};
use octo_wire::Level;
use octo_wire::{Era, Revision};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of a client for the length of one request.
#[derive(Clone)]
pub struct Client {
    pub caller: Arc<Caller>,
    pub face: Frontend,
    pub profile: String,
    pub revision: Revision,
    /// As the client declared them.
    pub capabilities: Arc<JsonObject>,
    /// Log messages from here upwards are wanted.
    pub level: Option<Level>,
    /// Requests with the same key come from the same client.
    pub key: u64,
}

impl Client {
    /// Whether the client can be asked anything at all.
    pub fn can_be_asked(&self) -> bool {
        ["elicitation", "sampling", "roots"].iter().any(|ability| self.capabilities.get(ability).is_some())
    }

    /// Whether a call may be answered with a task.
    pub fn takes_tasks(&self) -> bool {
        let declared = || self.capabilities.inner("extensions", EXTENSION);
        self.revision.era() == Era::Modern && declared().as_ref().is_some_and(Json::is_object)
    }
}

/// A key that no other client of this process has.
pub fn fresh_key() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The client capability that a request of a server needs.
pub fn ability_for(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}
