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
    /// New content of the file.
    NewText(String),
}

/// Adds octoprox to a client's servers. `reading` is the client's file, if it exists.
pub fn register(
    place: &ClientConfig,
    reading: Option<&ClientFile>,
    command: &str,
    args: &[String],
) -> Result<Registration, String> {
    if let Some(name) = reading.and_then(|reading| registered_name(place.client, &reading.tree)) {
        return Ok(Registration::AlreadyRegistered(name));
    }
    let text = reading.map(|reading| reading.text.as_str()).unwrap_or_default();
    let change = ServerEdit { path: &place.path, list: place.client.list, name: SERVER_NAME };
    change.add(text, &entry(place.client.form, command, args)).map(Registration::NewText)
}

/// Returns the name under which a client starts octoprox.
fn registered_name(client: &Client, tree: &Map<String, Value>) -> Option<String> {
    let first = tree.get(*client.list.first()?)?.as_object()?;
    let mut own = first.iter().filter(|(_, entry)| entry.as_object().is_some_and(is_octoprox));
    own.next().map(|(name, _)| name.clone())
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
        register(&place, reading.as_ref(), "/bin/octoprox", &["stdio".to_owned()])
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
        for text in [
            r#"{"mcpServers": {"octoprox": {"command": "octoprox", "args": ["stdio", "--profile", "x"]}}}"#,
            r#"{"mcpServers": {"octoprox": {"type": "stdio", "command": "/old/octoprox", "args": ["stdio"]}}}"#,
        ] {
            let done = registered("claude-code", ".claude.json", Some(text));
            assert_eq!(done, Ok(Registration::AlreadyRegistered("octoprox".to_owned())));
        }
        let other = r#"{"mcpServers": {"octoprox": {"command": "something"}}}"#;
        let done = registered("claude-code", ".claude.json", Some(other));
        assert_eq!(done, Err("octoprox already exists".to_owned()));
    }
}
