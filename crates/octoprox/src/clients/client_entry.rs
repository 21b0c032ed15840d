//! Translation of another product's server entry.

use super::shell_command::is_shell;
use super::variable_references::{
    References, env_name, is_variable, replace_references, required_variables, rewrite_shell_variable,
};
use crate::settings::is_secret_name;
use serde_json::{Map, Value, json};

/// Fields without which a server would lack credentials or offer more tools than the user permits.
const ESSENTIAL_FIELDS: [&str; 10] = [
    "envFile",
    "headersHelper",
    "authProviderType",
    "includeTools",
    "enabled_tools",
    "enabledTools",
    "allowedTools",
    "tools",
    "toolFilter",
    "tool_filter",
];
/// The same, unless they are empty.
const TOOL_LISTS: [&str; 5] =
    ["excludeTools", "disabled_tools", "disabledTools", "blockedTools", "available_tools"];

/// Whether a field limits the tools of a server.
pub fn is_tool_list(field: &str) -> bool {
    let names_tools = field.to_ascii_lowercase().contains("tool");
    names_tools && (ESSENTIAL_FIELDS.contains(&field) || TOOL_LISTS.contains(&field))
}

/// An entry in our format.
pub struct TranslatedEntry {
    pub server: Map<String, Value>,
    pub notes: Vec<String>,
    /// What octoprox does not support, although the server depends on it.
    pub unsupported: Vec<String>,
}

/// Translates an entry, with notes on unsupported fields.
pub fn translate_entry(entry: &Map<String, Value>, references: &References) -> TranslatedEntry {
    let mut server = Translation { references, server: Map::new(), unused: Vec::new(), notes: Vec::new() };
    entry.iter().filter(|(_, value)| !value.is_null()).for_each(|(key, value)| server.add_field(key, value));
    let Translation { mut server, unused, mut notes, .. } = server;
    // Stored secrets are the user's; another product's file cannot name them, in whatever way it is written.
    for value in server.values_mut() {
        replace_references(value, &mut |name| name.starts_with("secret:").then(|| env_name(name)));
    }
    let is_empty = |key: &str| entry.get(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
    let is_essential = |key: &&String| {
        ESSENTIAL_FIELDS.contains(&key.as_str()) || (TOOL_LISTS.contains(&key.as_str()) && !is_empty(key))
    };
    let mut unsupported: Vec<String> = unused.iter().filter(is_essential).cloned().collect();
    unsupported.extend(unsupported_texts(&server));
    if !unused.is_empty() {
        notes.push(format!("not used: {}", unused.join(", ")));
    }
    TranslatedEntry { server, notes, unsupported }
}

/// References that octoprox would resolve in another way than the client or a shell.
fn unsupported_texts(server: &Map<String, Value>) -> Vec<String> {
    let mut found = Vec::new();
    if Value::Object(server.clone()).to_string().contains("{file:") {
        found.push("{file:…}".to_owned());
    }
    let args = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if is_shell(server) && args.into_iter().any(|word| word.contains("${")) {
        found.push("${…} in a shell command".to_owned());
    }
    let names = required_variables(server);
    found.extend(names.iter().filter(|name| !is_variable(name)).map(|name| format!("${{{name}}}")));
    found
}

struct Translation<'a> {
    references: &'a References,
    server: Map<String, Value>,
    unused: Vec<String>,
    notes: Vec<String>,
}

impl Translation<'_> {
    fn add_field(&mut self, key: &str, value: &Value) {
        match key {
            "command" | "cmd" => self.set_command(value),
            "cwd" | "url" | "document" => self.set(key, self.text(value)),
            "args" => self.set(key, value.as_array().map_or(value.clone(), |args| self.texts(args))),
            // How clients write that it is an MCP server, or what they show.
            "source" | "transport" | "description" => {}
            "name" | "enabled" | "connect" | "era" | "timeout_seconds" => self.set(key, value.clone()),
            "env" | "envs" | "environment" => self.extend_map("env", value),
            "headers" | "http_headers" => self.extend_map("headers", value),
            "serverUrl" | "httpUrl" | "uri" => self.set("url", self.text(value)),
            "disabled" => self.set("enabled", Value::Bool(value != &Value::Bool(true))),
            "type" => self.set_transport(value),
            "auth" | "oauth" => self.set_auth(key, value),
            "bearer_token_env_var" => {
                let bearer = format!("Bearer ${{{}}}", value.as_str().unwrap_or_default());
                self.extend_map("headers", &json!({"Authorization": bearer}));
            }
            // Our own settings, in a file named with `--servers`. Other products have fields of the same names.
            "package"
            | "digest"
            | "share"
            | "pool"
            | "per_minute"
            | "max_concurrent"
            | "start_timeout_seconds"
            | "idle_timeout_seconds"
            | "effects" => self.set(key, value.clone()),
            "trust" if value.is_object() => self.set(key, value.clone()),
            "sandbox" if is_own_sandbox(value) => self.set(key, value.clone()),
            "env_vars" | "env_keys" => self.add_env_vars(value),
            // All tools.
            "tools" if value.as_array().is_some_and(|tools| tools.iter().any(|tool| tool == "*")) => {}
            "env_http_headers" => {
                let named = value.as_object().into_iter().flatten();
                let headers = named.map(|(header, name)| {
                    (header.clone(), Value::from(format!("${{{}}}", name.as_str().unwrap_or_default())))
                });
                let headers = Value::Object(headers.collect());
                self.extend_map("headers", &headers);
            }
            "tool_timeout_sec" => {
                let seconds = value.as_f64().map(|seconds| seconds.ceil().max(1.0) as u64);
                self.set("timeout_seconds", seconds.map_or(Value::Null, Value::from));
            }
            _ => self.unused.push(key.to_owned()),
        }
    }

    fn set(&mut self, key: &str, value: Value) {
        if !value.is_null() {
            self.server.insert(key.to_owned(), value);
        }
    }

    /// A program: its name, a list of its name and arguments, or an object with `path`, `args` and `env`.
    fn set_command(&mut self, value: &Value) {
        match value {
            Value::Array(words) => {
                let Value::Array(words) = self.texts(words) else { return };
                let mut words = words.into_iter();
                self.set("command", words.next().unwrap_or_default());
                self.set("args", words.collect());
            }
            Value::Object(command) => {
                for (from, to) in [("path", "command"), ("args", "args"), ("env", "env")] {
                    command.get(from).into_iter().for_each(|value| self.add_field(to, value));
                }
            }
            other => self.set("command", self.text(other)),
        }
    }

    /// Adds to a map of strings.
    fn extend_map(&mut self, key: &str, more: &Value) {
        let Value::Object(more) = more else {
            return self.set(key, more.clone());
        };
        let more: Vec<(String, Value)> =
            more.iter().map(|(name, value)| (name.clone(), self.variable_text(value))).collect();
        let slot = self.server.entry(key.to_owned()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(there) = slot {
            there.extend(more);
        }
    }

    /// The type follows from the URL or the program. HTTP+SSE is detected: many servers offer streamable HTTP at the same
    /// URL by now.
    fn set_transport(&mut self, value: &Value) {
        if value.as_str() == Some("openapi") {
            self.set("type", value.clone());
        }
    }

    /// Our own format, or a client registered manually.
    fn set_auth(&mut self, key: &str, value: &Value) {
        let text = |names: [&str; 2]| names.iter().find_map(|name| value.get(name)?.as_str());
        let id = text(["CLIENT_ID", "clientId"]).map(|id| self.references.rewrite(id));
        match id {
            _ if value.get("type").is_some() => self.set("auth", value.clone()),
            Some(id) => {
                let mut auth = Map::from_iter([
                    ("type".to_owned(), Value::from("oauth2-pkce")),
                    ("client_id".to_owned(), Value::from(id)),
                ]);
                if let Some(secret) = text(["CLIENT_SECRET", "clientSecret"]) {
                    auth.insert("client_secret".to_owned(), Value::from(self.references.rewrite(secret)));
                }
                if let Some(scopes) = value.get("scopes").filter(|scopes| scopes.is_array()) {
                    auth.insert("scopes".to_owned(), scopes.clone());
                }
                self.set("auth", Value::Object(auth));
            }
            None => self.unused.push(key.to_owned()),
        }
    }

    /// Variables inherited from the parent process, by name or as `{name, …}`. Only a secret is required.
    fn add_env_vars(&mut self, value: &Value) {
        let names = value.as_array().into_iter().flatten();
        let names = names.filter_map(|it| it.as_str().or_else(|| it.get("name")?.as_str()));
        let reference = |name: &str| {
            let default = if is_secret_name(name) { "" } else { ":-" };
            (name.to_owned(), Value::from(format!("${{{name}{default}}}")))
        };
        self.extend_map("env", &Value::Object(names.map(reference).collect()));
    }

    fn texts(&self, items: &[Value]) -> Value {
        items.iter().map(|item| self.text(item)).collect()
    }

    /// The value of a variable or header.
    fn variable_text(&self, value: &Value) -> Value {
        match self.text(value) {
            Value::String(text) => Value::from(rewrite_shell_variable(text)),
            other => other,
        }
    }

    /// Numbers and booleans are strings to a program.
    fn text(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::from(self.references.rewrite(text)),
            Value::Number(_) | Value::Bool(_) => Value::from(value.to_string()),
            other => other.clone(),
        }
    }
}

/// Whether it is a sandbox of this product.
fn is_own_sandbox(value: &Value) -> bool {
    let known = |key: &String| ["hosts", "network", "read", "write"].contains(&key.as_str());
    value.as_object().is_some_and(|sandbox| sandbox.keys().all(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_field_can_name_a_stored_secret() {
        let entry = json!({"command": "x", "effects": {"reads": ["${secret:A}"]}, "name": "${secret:A}", "args": ["${secret:A}"]});
        let Value::Object(entry) = entry else { return };
        let server = Value::Object(translate_entry(&entry, &References::default()).server).to_string();
        assert!(!server.contains("secret:") && server.contains("${SECRET_A}"), "{server}");
    }

    #[test]
    fn what_a_server_depends_on_is_not_dropped() {
        for (entry, unsupported) in [
            (json!({"command": "x", "envFile": ".env"}), &["envFile"][..]),
            (json!({"command": "x", "excludeTools": ["delete"]}), &["excludeTools"]),
            (json!({"command": "x", "env": {"T": "{file:~/t}"}}), &["{file:…}"]),
            (json!({"command": "x", "tools": ["*"], "alwaysAllow": ["y"]}), &[]),
            (json!({"command": "x", "tools": ["read"]}), &["tools"]),
            (json!({"command": "x", "disabledTools": [], "available_tools": []}), &[]),
            (json!({"command": "sh", "args": ["-c", "x ${PORT:-1}"]}), &["${…} in a shell command"]),
            (json!({"command": "x", "args": ["${#X}"]}), &["${#X}"]),
        ] {
            let Value::Object(entry) = entry else { continue };
            assert_eq!(translate_entry(&entry, &References::default()).unsupported, unsupported);
        }
    }

    #[test]
    fn every_product_s_words_become_ours() {
        for (entry, server, notes) in [
            (
                json!({"type": "stdio", "command": "npx", "args": ["-y", 5], "env": {"P": 1, "Q": "${env:X}"}}),
                json!({"command": "npx", "args": ["-y", "5"], "env": {"P": "1", "Q": "${X}"}}),
                &[][..],
            ),
            (
                json!({"url": "https://x", "bearer_token_env_var": "T", "http_headers": {"A": "b"},
                       "env_http_headers": {"C": "D"}, "tool_timeout_sec": 2.5, "startup_timeout_sec": 9}),
                json!({"url": "https://x", "headers": {"Authorization": "Bearer ${T}", "A": "b", "C": "${D}"},
                       "timeout_seconds": 3}),
                &["not used: startup_timeout_sec"],
            ),
            (
                json!({"command": "x", "env_vars": ["A", {"name": "B_KEY", "source": "local"}], "disabled": true}),
                json!({"command": "x", "env": {"A": "${A:-}", "B_KEY": "${B_KEY}"}, "enabled": false}),
                &[],
            ),
            (
                json!({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "b"}, "enabled": true}),
                json!({"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}, "enabled": true}),
                &[],
            ),
            (
                json!({"cmd": "x", "args": [], "envs": {"A": "b"}, "type": "stdio", "enabled": true, "description": ""}),
                json!({"command": "x", "args": [], "env": {"A": "b"}, "enabled": true}),
                &[],
            ),
            (
                json!({"source": "custom", "command": {"path": "x", "args": ["y"], "env": {"A": "b"}}}),
                json!({"command": "x", "args": ["y"], "env": {"A": "b"}}),
                &[],
            ),
            (json!({"transport": "http", "uri": "https://x"}), json!({"url": "https://x"}), &[]),
            (
                json!({"command": "x", "args": ["$A"], "env": {"A": "$B", "C": "$D/e"}, "env_keys": ["F_TOKEN"]}),
                json!({"command": "x", "args": ["$A"], "env": {"A": "${B}", "C": "$D/e", "F_TOKEN": "${F_TOKEN}"}}),
                &[],
            ),
            (
                json!({"type": "sse", "serverUrl": "https://x/sse", "alwaysAllow": [], "cwd": null}),
                json!({"url": "https://x/sse"}),
                &["not used: alwaysAllow"],
            ),
            (
                json!({"url": "https://x", "auth": {"CLIENT_ID": "me", "CLIENT_SECRET": "${env:S}", "scopes": ["r"]}}),
                json!({"url": "https://x", "auth":
                    {"type": "oauth2-pkce", "client_id": "me", "client_secret": "${S}", "scopes": ["r"]}}),
                &[],
            ),
            (
                json!({"url": "https://x", "oauth": {"callbackPort": 1}, "auth": {"type": "device-code"}}),
                json!({"url": "https://x", "auth": {"type": "device-code"}}),
                &["not used: oauth"],
            ),
            (
                json!({"package": "npm:a@1.0.0", "sandbox": {"hosts": ["x.example"]}, "trust": {"changes": "hold"}}),
                json!({"package": "npm:a@1.0.0", "sandbox": {"hosts": ["x.example"]}, "trust": {"changes": "hold"}}),
                &[],
            ),
            (
                json!({"command": "x", "trust": true, "sandbox": {"filesystem": {}}}),
                json!({"command": "x"}),
                &["not used: trust, sandbox"],
            ),
        ] {
            let Value::Object(entry) = entry else { continue };
            let translated = translate_entry(&entry, &References::default());
            assert_eq!(Value::Object(translated.server), server);
            assert_eq!(translated.notes, notes);
        }
    }
}
