//! Registration of octoprox as a server of a client.

use super::client_config::{ClientConfig, ClientFile};
use super::client_servers::is_octoprox;
use super::client_table::{Client, EntryForm};
use crate::settings::edit::settings_edit::ServerEdit;
use serde_json::{Map, Value, json};

/// Name of octoprox in clients.
pub const SERVER_NAME: &str = "octoprox";

/// Result of a registration.
#[derive(Debug, PartialEq, Eq)]
pub enum Registration {
    /// Already registered under this name.
    AlreadyRegistered(String),
    /// The entry of this name starts octoprox with other settings, or is disabled.
    OtherHub(String),
    /// New content of the file.
    NewText(String),
}

/// Adds octoprox to a client's servers. `reading` is the client's file, if it exists. `is_default` tells whether octoprox
/// uses the settings of these arguments without `--config`, too.
pub fn register(
    place: &ClientConfig,
    reading: Option<&ClientFile>,
    command: &str,
    (args, is_default): (&[String], bool),
) -> Result<Registration, String> {
    if let Some((name, entry)) = reading.and_then(|reading| registered_entry(place.client, &reading.tree)) {
        let is_same = is_enabled(entry) && starts_with_settings(entry, args, is_default);
        let name = name.clone();
        return Ok(if is_same {
            Registration::AlreadyRegistered(name)
        } else {
            Registration::OtherHub(name)
        });
    }
    let text = reading.map(|reading| reading.text.as_str()).unwrap_or_default();
    let change = ServerEdit { path: &place.path, list: place.client.list, name: SERVER_NAME };
    change.add(text, &entry(place.client.form, command, args)).map(Registration::NewText)
}

/// Returns the entry with which a client starts octoprox.
fn registered_entry<'a>(
    client: &Client,
    tree: &'a Map<String, Value>,
) -> Option<(&'a String, &'a Map<String, Value>)> {
    let list = tree.get(*client.list.first()?)?.as_object()?;
    let entries = list.iter().filter_map(|(name, entry)| Some((name, entry.as_object()?)));
    let own: Vec<_> = entries.filter(|(_, entry)| is_octoprox(entry)).collect();
    let preferred = own.iter().find(|(name, _)| *name == SERVER_NAME);
    preferred.or(own.first()).copied()
}

fn is_enabled(entry: &Map<String, Value>) -> bool {
    entry.get("disabled") != Some(&Value::Bool(true)) && entry.get("enabled") != Some(&Value::Bool(false))
}

/// Whether an entry starts a hub with the settings of these arguments, `stdio --config FILE`.
fn starts_with_settings(entry: &Map<String, Value>, args: &[String], is_default: bool) -> bool {
    let words = |key: &str| entry.get(key).and_then(Value::as_array).into_iter().flatten();
    let words: Vec<&str> = words("command").chain(words("args")).filter_map(Value::as_str).collect();
    let config = words.iter().position(|word| *word == "--config").and_then(|at| words.get(at + 1));
    let wanted = args.iter().position(|word| word == "--config").and_then(|at| args.get(at + 1));
    words.contains(&"stdio")
        && (config.copied() == wanted.map(String::as_str) || (config.is_none() && is_default))
}

/// Returns the entry in the client's format.
fn entry(form: EntryForm, command: &str, args: &[String]) -> Map<String, Value> {
    let plain = json!({"command": command, "args": args});
    let words: Vec<&str> = [command].into_iter().chain(args.iter().map(String::as_str)).collect();
    let (before, after) = match form {
        EntryForm::Plain => (json!({}), json!({})),
        EntryForm::Typed => (json!({"type": "stdio"}), json!({})),
        EntryForm::TypedWithTools => (json!({"type": "stdio"}), json!({"tools": ["*"]})),
        EntryForm::Transport => (json!({"transport": "stdio"}), json!({})),
        EntryForm::Switchable => (json!({}), json!({"disabled": false})),
        EntryForm::Sourced => (json!({"source": "custom"}), json!({"env": {}})),
        EntryForm::CommandList => {
            return members(json!({"type": "local", "command": words, "enabled": true})).collect();
        }
        EntryForm::Goose => {
            let goose = json!({"name": SERVER_NAME, "description": "", "type": "stdio", "cmd": command, "args": args,
                "envs": {}, "enabled": true, "timeout": 300});
            return members(goose).collect();
        }
    };
    members(before).chain(members(plain)).chain(members(after)).collect()
}

fn members(value: Value) -> impl Iterator<Item = (String, Value)> {
    let Value::Object(members) = value else { return Map::new().into_iter() };
    members.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn registered(client: &str, name: &str, text: Option<&str>) -> Result<Registration, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        if let Some(text) = text {
            std::fs::write(&path, text).unwrap();
        }
        let place = ClientConfig::named(Client::find(client).unwrap(), path);
        let reading = place.read(Path::new("/")).unwrap();
        register(&place, reading.as_ref(), "/bin/octoprox", (&["stdio".to_owned()], false))
    }

    #[test]
    fn every_client_gets_its_own_form() {
        let args = "[\n        \"stdio\"\n      ]";
        for (client, name, before, after) in [
            (
                "cursor",
                "mcp.json",
                None,
                format!(
                    "{{\n  \"mcpServers\": {{\n    \"octoprox\": {{\n      \"command\": \"/bin/octoprox\",\n      \"args\": {args}\n    }}\n  }}\n}}\n"
                ),
            ),
            (
                "vscode",
                "mcp.json",
                Some("{\n  // mine\n  \"servers\": {},\n  \"inputs\": []\n}\n"),
                format!(
                    "{{\n  // mine\n  \"servers\": {{\n    \"octoprox\": {{\n      \"type\": \"stdio\",\n      \"command\": \"/bin/octoprox\",\n      \"args\": {args}\n    }}\n  }},\n  \"inputs\": []\n}}\n"
                ),
            ),
            (
                "codex",
                "config.toml",
                Some("model = \"m\"\n"),
                "model = \"m\"\n\n[mcp_servers.octoprox]\ncommand = \"/bin/octoprox\"\nargs = [\"stdio\"]\n"
                    .to_owned(),
            ),
        ] {
            assert_eq!(registered(client, name, before), Ok(Registration::NewText(after)));
        }
    }

    #[test]
    fn who_is_registered_stays_so() {
        for (text, expected) in [
            (
                r#"{"octoprox": {"command": "octoprox", "args": ["stdio"]}}"#,
                Ok(Registration::AlreadyRegistered("octoprox".to_owned())),
            ),
            (
                r#"{"octoprox": {"type": "stdio", "command": "/old/octoprox", "args": ["stdio"]}}"#,
                Ok(Registration::AlreadyRegistered("octoprox".to_owned())),
            ),
            (
                r#"{"hub": {"command": "octoprox", "args": ["bridge", "https://x"]}}"#,
                Ok(Registration::OtherHub("hub".to_owned())),
            ),
            (
                r#"{"o": {"command": "octoprox", "args": ["stdio", "--config", "/x"]}}"#,
                Ok(Registration::OtherHub("o".to_owned())),
            ),
            (
                r#"{"o": {"command": "octoprox", "args": ["stdio"], "disabled": true}}"#,
                Ok(Registration::OtherHub("o".to_owned())),
            ),
            (r#"{"octoprox": {"command": "something"}}"#, Err("octoprox already exists".to_owned())),
        ] {
            let text = format!(r#"{{"mcpServers": {text}}}"#);
            assert_eq!(registered("claude-code", ".claude.json", Some(&text)), expected, "{text}");
        }
    }
}
