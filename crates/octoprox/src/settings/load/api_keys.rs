//! API keys from environment variables (`auth: {type: api-key, env: NAME}`), inserted into the server settings.

use crate::settings::Environment;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::unset_variables::UnsetVariables;
use serde_json::{Map, Value};
use url::Url;

/// Inserts the API key of every server and returns the keys, which must be redacted. Unset variables are recorded only
/// for documents; for programs and URLs the key can be provided later (`octoprox login`).
pub fn apply_api_keys(layers: &mut Layers, world: &Environment, missing: &mut UnsetVariables) -> Vec<String> {
    let mut keys = Vec::new();
    for (server, wanted) in api_key_targets(layers) {
        let Some(key) = world.variable(&wanted.variable) else {
            if wanted.is_document {
                missing.add(&server, &wanted.variable);
            }
            continue;
        };
        let (setting, value) = wanted.setting_and_value(key);
        let setting = format!("servers.{server}.{setting}");
        // Values set explicitly take precedence.
        if wanted.is_query_parameter() || layers.get(&setting).is_none() {
            let origin = layers.origin(&setting);
            layers.set(&setting, Value::from(value), &origin);
        }
        keys.push(key.to_owned());
    }
    keys
}

/// An API key and where it is sent.
struct ApiKeyTarget {
    variable: String,
    header: Option<String>,
    query: Option<String>,
    is_document: bool,
    /// URL; `None` for a program.
    url: Option<String>,
}

fn api_key_targets(layers: &Layers) -> Vec<(String, ApiKeyTarget)> {
    let servers = layers.get("servers").and_then(Value::as_object).into_iter().flatten();
    let on = servers.filter(|(_, server)| server.get("enabled") != Some(&Value::Bool(false)));
    on.filter_map(|(name, server)| Some((name.clone(), ApiKeyTarget::from_server(server.as_object()?)?)))
        .collect()
}

impl ApiKeyTarget {
    fn from_server(server: &Map<String, Value>) -> Option<Self> {
        let auth = server.get("auth")?.as_object()?;
        let text = |key: &str| auth.get(key).and_then(Value::as_str).map(str::to_owned);
        if text("type").as_deref() != Some("api-key") {
            return None;
        }
        let url = server.get("url").or_else(|| server.get("document")).and_then(Value::as_str);
        Some(Self {
            variable: text("env")?,
            header: text("header"),
            query: text("query"),
            is_document: server.contains_key("document"),
            url: url.map(str::to_owned),
        })
    }

    fn is_query_parameter(&self) -> bool {
        self.url.is_some() && self.query.is_some() && !self.is_document
    }

    /// Returns the setting, relative to the server, and its value.
    fn setting_and_value(&self, key: &str) -> (String, String) {
        match (&self.url, &self.query, &self.header) {
            (None, ..) => (format!("env.{}", self.variable), key.to_owned()),
            // Sent with every request, to whichever base URL the document specifies.
            (Some(_), Some(_), _) if self.is_document => (format!("env.{}", self.variable), key.to_owned()),
            (Some(url), Some(query), _) => ("url".to_owned(), with_parameter(url, query, key)),
            (Some(_), None, Some(header)) => (format!("headers.{header}"), key.to_owned()),
            (Some(_), None, None) => ("headers.Authorization".to_owned(), format!("Bearer {key}")),
        }
    }
}

/// Appends a query parameter. Invalid URLs are reported elsewhere.
fn with_parameter(url: &str, name: &str, value: &str) -> String {
    let Ok(mut whole) = Url::parse(url) else { return url.to_owned() };
    whole.query_pairs_mut().append_pair(name, value);
    whole.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::check::settings_problem::SettingOrigin;
    use serde_json::json;

    #[test]
    fn a_key_goes_where_the_server_looks() {
        let world = Environment {
            variables: [("KEY".to_owned(), "a b".to_owned())].into(),
            current_dir: std::path::PathBuf::new(),
        };
        let address = "https://x.test/mcp";
        for (server, path, value) in [
            (json!({"command": "x"}), "env.KEY", json!("a b")),
            (json!({"url": address}), "headers.Authorization", json!("Bearer a b")),
            (json!({"url": address, "header": "X-Key"}), "headers.X-Key", json!("a b")),
            (json!({"url": address, "query": "k"}), "url", json!("https://x.test/mcp?k=a+b")),
            (
                json!({"url": address, "headers": {"Authorization": "mine"}}),
                "headers.Authorization",
                json!("mine"),
            ),
            (json!({"document": address, "query": "k"}), "env.KEY", json!("a b")),
            (json!({"document": address, "header": "X-Key"}), "headers.X-Key", json!("a b")),
        ] {
            let mut server = server;
            let auth = json!({"type": "api-key", "env": "KEY", "header": server["header"], "query": server["query"]});
            server["auth"] = auth;
            let mut layers = Layers::default();
            layers.set("servers.a", server.clone(), &SettingOrigin::Default);
            let mut missing = UnsetVariables::default();
            assert_eq!(apply_api_keys(&mut layers, &world, &mut missing), ["a b"]);
            assert_eq!(layers.get(&format!("servers.a.{path}")), Some(&value), "{server}");
        }
    }

    #[test]
    fn a_key_that_is_not_there_is_missed_only_by_a_document_that_is_on() {
        for (what, enabled, count) in [("document", true, 1), ("document", false, 0), ("command", true, 0)] {
            let mut layers = Layers::default();
            let server = json!({what: "x", "enabled": enabled, "auth": {"type": "api-key", "env": "KEY"}});
            layers.set("servers.a", server, &SettingOrigin::Default);
            let mut missing = UnsetVariables::default();
            assert!(apply_api_keys(&mut layers, &Environment::default(), &mut missing).is_empty());
            assert_eq!(missing.disable_servers(&mut layers).len(), count);
        }
    }
}
