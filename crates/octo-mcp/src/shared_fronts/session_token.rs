//! Ids of sessions that any front can open: they contain what the handshake has set, sealed.

use crate::client_context::{ClientContext, next_client_key};
use crate::request_state::{StateSealer, now};
use octo_hub::{ClientEpoch, ListOptions};
use octo_model::{Caller, Frontend, JsonObject};
use octo_ports::sessions::SessionKey;
use octo_wire::Revision;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What the sealed text is bound to.
const PURPOSE: &str = "session";
/// A session ends after a week, as what is stored about it.
const MAX_SESSION_SECONDS: i64 = 7 * 24 * 3_600;
/// Proxies limit the size of headers. What a client declares beyond that is left out.
const MAX_CAPABILITIES_BYTES: usize = 2_048;
/// What the hub itself reads.
const KNOWN_CAPABILITIES: [&str; 4] = ["elicitation", "sampling", "roots", "extensions"];

#[derive(Serialize, Deserialize)]
pub struct SessionToken {
    pub id: u128,
    caller: Caller,
    profile: String,
    #[serde(default)]
    options: ListOptions,
    revision: String,
    capabilities: JsonObject,
    started: i64,
}

impl SessionToken {
    pub fn new(client: &ClientContext) -> Self {
        Self {
            id: uuid::Uuid::new_v4().as_u128(),
            caller: (*client.caller).clone(),
            profile: client.profile.clone(),
            options: client.options,
            revision: client.revision.as_str().to_owned(),
            capabilities: short_capabilities(&client.capabilities),
            started: now(),
        }
    }

    pub fn key(&self) -> SessionKey {
        SessionKey { tenant: self.caller.principal.tenant.clone(), id: self.id }
    }

    pub fn seal(&self, sealer: &StateSealer) -> Option<String> {
        sealer.seal_text(&serde_json::to_string(self).ok()?, PURPOSE)
    }

    /// `None` if it was modified, or is too old.
    pub fn open(text: &str, sealer: &StateSealer) -> Option<Self> {
        let token: Self = serde_json::from_str(sealer.open_text(text, PURPOSE)?.expose()).ok()?;
        (token.started + MAX_SESSION_SECONDS >= now()).then_some(token)
    }

    /// The client of the session, if `caller` may use it there.
    pub fn client(&self, caller: &Caller, profile: &str) -> Option<ClientContext> {
        if !caller.covers(&self.caller) || profile != self.profile {
            return None;
        }
        Some(ClientContext {
            caller: Arc::new(self.caller.clone()),
            frontend: Frontend::Http,
            profile: self.profile.clone(),
            options: self.options,
            revision: Revision::parse(&self.revision)?,
            capabilities: Arc::new(self.capabilities.clone()),
            level: None,
            key: next_client_key(),
            epoch: ClientEpoch::default(),
        })
    }
}

fn short_capabilities(declared: &JsonObject) -> JsonObject {
    if declared.size() <= MAX_CAPABILITIES_BYTES {
        return declared.clone();
    }
    let mut short = JsonObject::new();
    for key in KNOWN_CAPABILITIES {
        if let Some(value) = declared.get(key)
            && short.size() + value.as_str().len() <= MAX_CAPABILITIES_BYTES
        {
            short.set(key, value.clone());
        }
    }
    short
}
