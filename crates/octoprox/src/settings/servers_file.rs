//! `--servers FILE`: the list of servers that other products keep.

use super::file;
use super::layers::Layers;
use super::problem::{Origin, Problem};
use super::server::Server;
use serde_json::{Map, Value};
use std::path::Path;

/// Names of the list in the files of other products and in ours.
const LISTS: [&str; 2] = ["mcpServers", "servers"];

/// Lays the servers of a file over the settings; one with the same name is replaced as a whole.
/// Gives notes about what the file says and we do not use.
pub fn lay(layers: &mut Layers, path: &Path) -> Result<Vec<String>, Problem> {
    let origin = Origin::File(path.to_owned());
    let tree = file::read(path)?;
    let list = LISTS.iter().find_map(|name| tree.get(*name)).and_then(Value::as_object).ok_or_else(|| {
        Problem::new(
            origin.clone(),
            "",
            "the file lists no servers.",
            "Write them under `mcpServers` or `servers`.",
        )
    })?;
    let mut notes = Vec::new();
    for (name, server) in list {
        let setting = format!("servers.{name}");
        let Value::Object(server) = server else {
            return Err(Problem::new(
                origin,
                setting,
                "this is no server.",
                "Give it a `command` or a `url`.",
            ));
        };
        let (server, unused) = known(server);
        if !unused.is_empty() {
            notes.push(format!("{}: {setting}: not used: {}", path.display(), unused.join(", ")));
        }
        layers.remove(&setting);
        layers.lay(Map::from_iter([("servers".to_owned(), Value::Object(one(name, server)))]), &origin);
    }
    Ok(notes)
}

fn one(name: &str, server: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), Value::Object(server))])
}

/// What we know of an entry, and the names of the rest: other products keep settings of their own there.
fn known(server: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let fields = serde_json::to_value(Server::default()).unwrap_or_default();
    let (mut kept, mut unused) = (Map::new(), Vec::new());
    for (key, value) in server {
        match key.as_str() {
            "disabled" => {
                kept.insert("enabled".to_owned(), Value::Bool(value != &Value::Bool(true)));
            }
            key if fields.get(key).is_some() => {
                kept.insert(key.to_owned(), value.clone());
            }
            _ => unused.push(key.clone()),
        }
    }
    (kept, unused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_of_other_products() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.json");
        for (text, notes) in [
            (r#"{"mcpServers": {"a": {"command": "x", "disabled": true, "autoApprove": []}}}"#, 1),
            ("servers:\n  a:\n    command: x\n    enabled: false\n", 0),
        ] {
            std::fs::write(&path, text).unwrap();
            let mut layers = Layers::default();
            layers.set("servers.a.url", json!("http://old"), &Origin::Default);
            assert_eq!(lay(&mut layers, &path).unwrap().len(), notes);
            assert_eq!(layers.tree(), json!({"servers": {"a": {"command": "x", "enabled": false}}}));
        }
        std::fs::write(&path, "[]").unwrap();
        assert!(lay(&mut Layers::default(), &path).is_err());
        std::fs::write(&path, "{}").unwrap();
        let error = lay(&mut Layers::default(), &path).unwrap_err().to_string();
        assert!(
            error.ends_with("the file lists no servers. Write them under `mcpServers` or `servers`."),
            "{error}"
        );
    }
}
