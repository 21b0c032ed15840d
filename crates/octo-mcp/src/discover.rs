//! What the hub says of itself.

use crate::client::Client;
use crate::mcp::Mcp;
use crate::task::EXTENSION;
use octo_model::{Json, JsonObject, RpcError};
use octo_wire::{Revision, code, meta};
use std::sync::OnceLock;

const INSTRUCTIONS: &str = "Tools of this hub and of the servers behind it. A server's tools begin with its name and two \
underscores. A reply that was cut names a handle: read the rest with result_read.";

pub fn server_info() -> Json {
    static INFO: OnceLock<Json> = OnceLock::new();
    let info = || {
        JsonObject::new()
            .with("name", "octoprox")
            .with("title", "Octoprox")
            .with("version", env!("CARGO_PKG_VERSION"))
    };
    INFO.get_or_init(|| info().to_json()).clone()
}

impl Mcp {
    fn capabilities(&self, client: &Client) -> JsonObject {
        let changing = || JsonObject::new().with("listChanged", true);
        let view = self.hub.view(&client.profile).ok();
        let mut resources = changing();
        if view.as_ref().is_some_and(|view| view.subscribes) {
            resources.set("subscribe", true);
        }
        JsonObject::new()
            .with("tools", changing())
            .with("prompts", changing())
            .with("resources", resources)
            .with("completions", JsonObject::new())
            .with("logging", JsonObject::new())
    }

    fn instructions(&self, client: &Client) -> String {
        let view = self.hub.view(&client.profile).ok();
        view.and_then(|view| view.instructions.clone()).unwrap_or_else(|| INSTRUCTIONS.to_owned())
    }

    pub(crate) async fn discover(&self, client: &Client) -> JsonObject {
        self.hub.wait_for_startup_listing(&client.profile).await;
        let extensions = JsonObject::new().with(EXTENSION, JsonObject::new());
        JsonObject::new()
            .with("supportedVersions", Json::of(&[Revision::MODERN.as_str()]))
            .with("capabilities", self.capabilities(client).with("extensions", extensions))
            .with("instructions", self.instructions(client).as_str())
            .with("ttlMs", Json::of(&0))
            .with("cacheScope", self.scope())
    }

    pub(crate) async fn initialized(&self, client: &Client) -> JsonObject {
        self.hub.wait_for_startup_listing(&client.profile).await;
        JsonObject::new()
            .with("protocolVersion", client.revision.as_str())
            .with("capabilities", self.capabilities(client))
            .with("serverInfo", server_info())
            .with("instructions", self.instructions(client).as_str())
    }
}

/// The revision of a legacy handshake: the client's when we know it, else the nearest we have.
pub fn negotiated(asked: Option<&str>) -> Revision {
    match asked.and_then(Revision::parse) {
        Some(Revision::R20260728) => Revision::NEWEST_LEGACY,
        Some(known) => known,
        None if asked.is_some_and(|asked| asked < Revision::R20241105.as_str()) => Revision::R20241105,
        None => Revision::NEWEST_LEGACY,
    }
}

/// Everything that a modern result must carry beside its own content.
pub fn completed(mut result: JsonObject, cacheable: bool) -> JsonObject {
    if result.get("resultType").is_none() {
        result.set("resultType", "complete");
    }
    let complete = result.text("resultType").as_deref() == Some("complete");
    if cacheable && complete {
        if result.get("ttlMs").is_none() {
            result.set("ttlMs", Json::of(&0));
        }
        if result.get("cacheScope").is_none() {
            result.set("cacheScope", "private");
        }
    }
    let about = result.object("_meta").with(meta::SERVER, server_info());
    result.set("_meta", about);
    result
}

pub fn no_method(method: &str) -> RpcError {
    crate::reply::rpc(code::METHOD_NOT_FOUND, format!("There is no method `{method}` here."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_answered_with_the_clients_own_revision() {
        for (asked, wanted) in [
            (Some("2024-11-05"), "2024-11-05"),
            (Some("2025-03-26"), "2025-03-26"),
            (Some("2025-11-25"), "2025-11-25"),
            (Some("2026-07-28"), "2025-11-25"),
            (Some("2024-10-07"), "2024-11-05"),
            (Some("2099-01-01"), "2025-11-25"),
            (None, "2025-11-25"),
        ] {
            assert_eq!(negotiated(asked).as_str(), wanted, "{asked:?}");
        }
    }
}
