//! Request metadata that the hub replaces: client info, client capabilities, progress tokens.

use octo_model::extension;
use octo_model::{Json, JsonObject};
use octo_wire::{Era, Revision, meta};
use std::sync::OnceLock;

/// Client capabilities that a server may use.
const CLIENT_CAPABILITIES: [&str; 3] = ["elicitation", "sampling", "roots"];

pub(crate) fn client_info() -> Json {
    static INFO: OnceLock<Json> = OnceLock::new();
    INFO.get_or_init(|| {
        JsonObject::new().with("name", "octoprox").with("version", env!("CARGO_PKG_VERSION")).to_json()
    })
    .clone()
}

/// Capabilities declared to a legacy server. Fixed, because one connection serves all clients.
pub(crate) fn legacy_capabilities() -> Json {
    let elicitation = JsonObject::new().with("form", Json::empty_object()).with("url", Json::empty_object());
    JsonObject::new()
        .with("elicitation", elicitation)
        .with("sampling", Json::empty_object())
        .with("roots", Json::empty_object())
        .with("extensions", list_extensions())
        .to_json()
}

/// The extensions with which servers list apps and skills.
fn list_extensions() -> JsonObject {
    let types = Json::array([&Json::text(extension::APP_MIME_TYPE)]);
    JsonObject::new()
        .with(extension::APPS, JsonObject::new().with("mimeTypes", types))
        .with(extension::SKILLS, JsonObject::new())
}

/// Capabilities of the hub's own requests to a modern server. Lists must contain apps and skills; clients ignore those that
/// they do not support. Also returns the extensions in them, which are declared to every server.
pub(crate) fn own_capabilities() -> (&'static JsonObject, JsonObject) {
    static OWN: OnceLock<JsonObject> = OnceLock::new();
    (OWN.get_or_init(|| JsonObject::new().with("extensions", list_extensions())), list_extensions())
}

/// Capabilities declared to a modern server: exactly what this client has declared, with the extensions that the server
/// declares, too. Apps need no declaration of the server. The hub follows tasks itself, for every client.
pub(crate) fn modern_capabilities(client: &JsonObject, server_extensions: &JsonObject) -> Json {
    let declared = CLIENT_CAPABILITIES.iter().filter_map(|ability| {
        let value = client.get(ability).filter(|value| value.is_object())?;
        Some(((*ability).to_owned(), value.clone()))
    });
    let mut capabilities = declared.collect::<JsonObject>();
    let extensions = client.object("extensions");
    let common = extensions.iter().filter(|(name, settings)| {
        let is_common = *name == extension::APPS || server_extensions.get(name).is_some();
        is_common && *name != extension::TASKS && settings.is_object()
    });
    let mut common: JsonObject = common.map(|(name, settings)| (name.to_owned(), settings.clone())).collect();
    if server_extensions.get(extension::TASKS).is_some() {
        common.set(extension::TASKS, JsonObject::new());
    }
    if !common.is_empty() {
        capabilities.set("extensions", common);
    }
    capabilities.to_json()
}

/// Returns the outgoing parameters, and the progress token that was in them.
pub(crate) fn with_request_meta(
    mut params: JsonObject,
    id: u64,
    era: Era,
    client: &JsonObject,
    server_extensions: &JsonObject,
) -> (JsonObject, Option<Json>) {
    let mut inner = params.object("_meta");
    let token = inner.remove(meta::PROGRESS_TOKEN);
    let level = inner.remove(meta::LOG_LEVEL);
    for key in meta::HOP_BY_HOP_KEYS {
        inner.remove(key);
    }
    if era == Era::Modern {
        inner.set(meta::REVISION, Revision::MODERN.as_str());
        inner.set(meta::CLIENT, client_info());
        inner.set(meta::CAPABILITIES, modern_capabilities(client, server_extensions));
        if let Some(level) = level {
            inner.set(meta::LOG_LEVEL, level);
        }
    }
    if token.is_some() {
        inner.set(meta::PROGRESS_TOKEN, Json::of(&id));
    }
    if inner.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", inner);
    }
    (params, token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &'static str) -> JsonObject {
        JsonObject::parse(text).unwrap()
    }

    #[test]
    fn reserved_keys_are_issued_anew_and_the_rest_passes() {
        let params = parse(
            r#"{"_meta":{"progressToken":"mine","io.modelcontextprotocol/protocolVersion":"x",
            "io.modelcontextprotocol/logLevel":"debug","traceparent":"00-1","vendor/x":[1.50]},"arguments":{"a":1}}"#,
        );
        let client = parse(
            r#"{"elicitation":{"form":{}},"roots":true,"tools":{},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":[]},
            "io.modelcontextprotocol/tasks":{},"x.test/a":{"b":1},"x.test/b":{},"x.test/c":true}}"#,
        );
        let server = parse(r#"{"x.test/a":{},"x.test/c":{},"io.modelcontextprotocol/tasks":{}}"#);
        let (legacy, token) = with_request_meta(params.clone(), 7, Era::Legacy, &client, &JsonObject::new());
        assert_eq!(token.unwrap().as_str(), r#""mine""#);
        assert_eq!(
            legacy.get("_meta").unwrap().as_str(),
            r#"{"traceparent":"00-1","vendor/x":[1.50],"progressToken":7}"#
        );
        let (modern, _) = with_request_meta(params, 7, Era::Modern, &client, &server);
        let meta = modern.object("_meta");
        assert_eq!(meta.text(meta::REVISION).as_deref(), Some("2026-07-28"));
        assert_eq!(
            meta.get(meta::CAPABILITIES).unwrap().as_str(),
            r#"{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":[]},"x.test/a":{"b":1},"io.modelcontextprotocol/tasks":{}}}"#
        );
        assert_eq!(meta.text(meta::LOG_LEVEL).as_deref(), Some("debug"));
        assert_eq!(meta.get("vendor/x").unwrap().as_str(), "[1.50]");
        assert_eq!(modern.get("arguments").unwrap().as_str(), r#"{"a":1}"#);
    }

    #[test]
    fn nothing_is_added_for_a_legacy_server() {
        let (params, token) = with_request_meta(
            parse(r#"{"cursor":""}"#),
            1,
            Era::Legacy,
            &JsonObject::new(),
            &JsonObject::new(),
        );
        assert!(token.is_none());
        assert_eq!(params.to_json().as_str(), r#"{"cursor":""}"#);
    }
}
