//! Who a tool is for: `_meta.ui` of its definition.

use octo_model::extension;
use octo_model::{Json, JsonObject};

/// What `_meta.ui` says about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppTool {
    /// It has a user interface, or is called by one.
    pub is_part_of_app: bool,
    /// Agents may see and call it.
    pub is_for_model: bool,
    /// The user interfaces of its server may call it.
    pub is_for_app: bool,
}

impl AppTool {
    pub fn of(definition: &JsonObject) -> Self {
        let meta = definition.object("_meta");
        let ui = meta.object("ui");
        let visibility = ui.get("visibility").and_then(|value| value.elements().ok());
        let includes = |who: &str| {
            let named = |value: &Json| value.to_text().as_deref() == Some(who);
            visibility.as_ref().is_none_or(|visibility| visibility.iter().any(named))
        };
        Self {
            is_part_of_app: ui.get("resourceUri").is_some()
                || meta.get("ui/resourceUri").is_some()
                || (visibility.is_some() && includes("app")),
            is_for_model: includes("model"),
            is_for_app: includes("app"),
        }
    }
}

/// The URI of a tool's app.
pub fn app_uri(definition: &JsonObject) -> Option<String> {
    let meta = definition.object("_meta");
    let uri = meta.inner_text("ui", "resourceUri").or_else(|| meta.text("ui/resourceUri"));
    uri.or_else(|| meta.text("openai/outputTemplate"))
}

/// Whether a client with these capabilities can show apps. It hides tools that are only for them.
pub fn supports_apps(capabilities: &JsonObject) -> bool {
    capabilities.inner("extensions", extension::APPS).as_ref().is_some_and(Json::is_object)
}

/// The definition of a tool that no app may call. Clients take all servers behind the hub for one server, and let an app
/// call every tool of its server that does not say otherwise.
pub fn without_apps(definition: &Json) -> Json {
    let Ok(members) = definition.members() else { return definition.clone() };
    let meta = members.object("_meta");
    let visibility = Json::array([&Json::text("model")]);
    let ui = meta.object("ui").with("visibility", visibility);
    members.with("_meta", meta.with("ui", ui)).to_json()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn members(value: Value) -> JsonObject {
        Json::from(value).members().unwrap()
    }

    #[test]
    fn visibility_has_defaults() {
        for (meta, is_part_of_app, is_for_model, is_for_app) in [
            (json!({}), false, true, true),
            (json!({"ui": {"resourceUri": "ui://x"}}), true, true, true),
            (json!({"ui/resourceUri": "ui://x"}), true, true, true),
            (json!({"ui": {"visibility": ["app"]}}), true, false, true),
            (json!({"ui": {"visibility": ["model"]}}), false, true, false),
            (json!({"ui": {"visibility": []}}), false, false, false),
            (json!({"ui": {"visibility": "app"}}), false, true, true),
            (json!({"ui": [1]}), false, true, true),
        ] {
            let tool = AppTool::of(&members(json!({"name": "x", "_meta": meta.clone()})));
            assert_eq!(tool, AppTool { is_part_of_app, is_for_model, is_for_app }, "{meta}");
        }
    }

    #[test]
    fn clients_declare_that_they_show_apps() {
        let ui =
            json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": [extension::APP_MIME_TYPE]}}});
        assert!(supports_apps(&members(ui)));
        for other in [
            json!({}),
            json!({"extensions": {"io.modelcontextprotocol/ui": true}}),
            json!({"extensions": []}),
        ] {
            assert!(!supports_apps(&members(other.clone())), "{other}");
        }
    }

    #[test]
    fn tools_without_an_app_are_for_the_model() {
        let shown = |definition: Value| -> Value { without_apps(&Json::from(definition)).to().unwrap() };
        assert_eq!(
            shown(json!({"name": "x", "_meta": {"a": 1}})),
            json!({"name": "x", "_meta": {"a": 1, "ui": {"visibility": ["model"]}}})
        );
        assert_eq!(
            shown(json!({"name": "x"})),
            json!({"name": "x", "_meta": {"ui": {"visibility": ["model"]}}})
        );
    }
}
