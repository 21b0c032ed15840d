//! Capabilities, instructions and server info of the hub.

use crate::client_context::ClientContext;
use crate::mcp::Mcp;
use octo_model::extension;
use octo_model::{Json, JsonObject, RpcError};
use octo_wire::{Revision, code, meta};
use std::sync::OnceLock;

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
    fn capabilities(&self, client: &ClientContext) -> JsonObject {
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

    /// Extensions that this client and servers of its profile have in common, and those of the hub.
    fn extensions(&self, client: &ClientContext, own: &[&str]) -> JsonObject {
        let mut extensions: JsonObject =
            own.iter().map(|name| ((*name).to_owned(), Json::empty_object())).collect();
        let declared = client.capabilities.object("extensions");
        let Ok(view) = self.hub.view(&client.profile) else { return extensions };
        if view.has_skills() {
            extensions.set(extension::SKILLS, Json::empty_object());
        }
        // Servers with apps need not declare them.
        let apps = view.has_apps().then(|| (extension::APPS, Json::empty_object()));
        let offered = view.extensions.iter().map(|(name, settings)| (name, settings.clone()));
        for (name, settings) in offered.chain(apps) {
            let is_offered = declared.get(name).is_some() && name != extension::TASKS;
            if extensions.get(name).is_none() && is_offered {
                extensions.set(name, settings);
            }
        }
        extensions
    }

    async fn instructions(&self, client: &ClientContext) -> String {
        self.hub.instructions(&client.epoch, &client.profile, &client.caller, client.options).await
    }

    pub(crate) async fn discover_result(&self, client: &ClientContext) -> JsonObject {
        let instructions = self.instructions(client).await;
        let extensions = self.extensions(client, &[extension::TASKS]);
        JsonObject::new()
            .with("supportedVersions", Json::of(&[Revision::MODERN.as_str()]))
            .with("capabilities", self.capabilities(client).with("extensions", extensions))
            .with("instructions", instructions.as_str())
            .with("ttlMs", Json::of(&0))
            .with("cacheScope", self.cache_scope())
    }

    pub(crate) async fn initialize_result(&self, client: &ClientContext) -> JsonObject {
        let instructions = self.instructions(client).await;
        self.hub.watch_lists(&client.profile);
        let extensions = self.extensions(client, &[]);
        let mut capabilities = self.capabilities(client);
        if !extensions.is_empty() {
            capabilities.set("extensions", extensions);
        }
        JsonObject::new()
            .with("protocolVersion", client.revision.as_str())
            .with("capabilities", capabilities)
            .with("serverInfo", server_info())
            .with("instructions", instructions.as_str())
    }
}

/// Revision for a legacy handshake: the client's if supported, otherwise the nearest one.
pub fn negotiate_revision(asked: Option<&str>) -> Revision {
    match asked.and_then(Revision::parse) {
        Some(Revision::R20260728) => Revision::NEWEST_LEGACY,
        Some(known) => known,
        None if asked.is_some_and(|asked| asked < Revision::R20241105.as_str()) => Revision::R20241105,
        None => Revision::NEWEST_LEGACY,
    }
}

/// Adds the members that every modern result must have.
pub fn complete_result(mut result: JsonObject, cacheable: bool) -> JsonObject {
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

pub fn method_not_found(method: &str) -> RpcError {
    crate::rpc_errors::rpc_error(code::METHOD_NOT_FOUND, format!("Method not found: `{method}`."))
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
            assert_eq!(negotiate_revision(asked).as_str(), wanted, "{asked:?}");
        }
    }
}
