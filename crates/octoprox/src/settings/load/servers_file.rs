//! Server lists in separate files: `servers.yaml` next to the settings, and `--servers FILE` in the formats of other
//! products.

use crate::clients::read_servers;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_layers::Layers;
use serde_json::{Map, Value};

/// Merges the servers of another product's file into the settings. A server with the same name is replaced entirely.
/// Returns notes about entries that octoprox does not use.
pub fn merge_foreign(layers: &mut Layers, file: &SettingsFile) -> Result<Vec<String>, SettingsProblem> {
    let path = file.path.as_path();
    let origin = SettingOrigin::File(path.to_owned());
    let tree = file.tree()?;
    let found = read_servers(&tree, path).ok_or_else(|| {
        let remedy = "List them under `mcpServers` or `servers`.";
        SettingsProblem::new(origin.clone(), "", "no servers found in the file.", remedy)
    })?;
    if let Some(name) = found.ignored.first() {
        let remedy = "Set `command` or `url`.";
        return Err(SettingsProblem::new(
            origin,
            format!("servers.{name}"),
            "not a server definition.",
            remedy,
        ));
    }
    let mut notes = Vec::new();
    for entry in found.entries {
        let said = |note: &String| format!("{}: servers.{}: {note}", path.display(), entry.name);
        notes.extend(entry.notes.iter().map(said));
        replace_server(layers, &entry.name, entry.server, &origin);
    }
    Ok(notes)
}

/// Merges our own server list into the settings, with the same strictness as the settings file.
pub fn merge_own(layers: &mut Layers, file: &SettingsFile) -> Result<Vec<String>, SettingsProblem> {
    let origin = SettingOrigin::File(file.path.clone());
    let tree = file.tree()?;
    if tree.contains_key("mcpServers") || tree.contains_key("mcp_servers") {
        return merge_foreign(layers, file);
    }
    for (key, value) in tree {
        if key != "servers" {
            let what = "only `servers` is allowed in this file.";
            return Err(SettingsProblem::new(origin, key, what, "Move it to octoprox.yaml."));
        }
        match value {
            Value::Null => {}
            Value::Object(servers) => {
                for (name, server) in servers {
                    let Value::Object(server) = server else { continue };
                    replace_server(layers, &name, server, &origin);
                }
            }
            _ => {
                let remedy = "Write `name:` with `command` or `url` below it.";
                return Err(SettingsProblem::new(origin, key, "expected a map of servers.", remedy));
            }
        }
    }
    Ok(Vec::new())
}

fn replace_server(layers: &mut Layers, name: &str, server: Map<String, Value>, origin: &SettingOrigin) {
    layers.remove(&format!("servers.{name}"));
    let one = Map::from_iter([(name.to_owned(), Value::Object(server))]);
    layers.merge(Map::from_iter([("servers".to_owned(), Value::Object(one))]), origin);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    fn lay(layers: &mut Layers, path: &Path) -> Result<Vec<String>, SettingsProblem> {
        super::merge_foreign(layers, &SettingsFile::open(path)?)
    }

    #[test]
    fn lists_of_other_products() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        for (text, notes) in [
            (r#"{"mcpServers": {"a": {"command": "x", "disabled": true, "autoApprove": []}}}"#, 1),
            ("servers:\n  a:\n    command: x\n    enabled: false\n", 0),
            ("// mine\n{\"servers\": {\"a\": {\"command\": \"x\", \"enabled\": false,},},}", 0),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut layers = Layers::default();
            layers.set("servers.a.url", json!("http://old"), &SettingOrigin::Default);
            assert_eq!(lay(&mut layers, &path).unwrap().len(), notes);
            assert_eq!(layers.tree(), json!({"servers": {"a": {"command": "x", "enabled": false}}}));
        }
        std::fs::write(&path, "[]").unwrap();
        assert!(lay(&mut Layers::default(), &path).is_err());
        std::fs::write(&path, "{}").unwrap();
        let error = lay(&mut Layers::default(), &path).unwrap_err().to_string();
        assert!(
            error.ends_with("no servers found in the file. List them under `mcpServers` or `servers`."),
            "{error}"
        );
    }

    #[test]
    fn a_list_of_codex() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "model = 'x'\n[mcp_servers.a]\nurl = 'https://x.test/mcp'\nbearer_token_env_var = 'KEY'\n";
        std::fs::write(&path, text).unwrap();
        let mut layers = Layers::default();
        assert_eq!(lay(&mut layers, &path).unwrap(), Vec::<String>::new());
        let server = json!({"url": "https://x.test/mcp", "headers": {"Authorization": "Bearer ${KEY}"}});
        assert_eq!(layers.get("servers.a"), Some(&server));
    }
}
