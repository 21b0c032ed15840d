//! The servers that a file of another product lists.

use super::entry::translated;
use super::name::fitting;
use super::references::References;
use serde_json::{Map, Value};
use std::path::Path;

/// One server in our words.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub name: String,
    pub server: Map<String, Value>,
    /// What is to be known about how it was read.
    pub notes: Vec<String>,
}

/// What a file lists.
#[derive(Debug, Default, PartialEq)]
pub struct Found {
    pub entries: Vec<Entry>,
    /// Names of what is no server.
    pub strange: Vec<String>,
}

/// Where lists stand: Claude, Cursor and many others; Codex; VS Code; VS Code's older settings.
const LISTS: [&[&str]; 4] = [&["mcpServers"], &["mcp_servers"], &["servers"], &["mcp", "servers"]];

/// The servers of a file; nothing when it has no list at all.
pub fn listed(tree: &Map<String, Value>, path: &Path) -> Option<Found> {
    let found = LISTS.iter().find_map(|keys| {
        let (first, rest) = keys.split_first()?;
        let holder = if rest.is_empty() { Some(tree) } else { tree.get(*first)?.as_object() };
        let list = rest.iter().try_fold(tree.get(*first)?, |value, key| value.get(key))?;
        Some((holder?, list.as_object()?))
    });
    let (holder, list) = found?;
    let mut all = Found::default();
    all.take(list, &References::of(holder, path));
    Some(all)
}

impl Found {
    /// The servers of a list within a file.
    pub fn take(&mut self, list: &Map<String, Value>, references: &References) {
        for (name, entry) in list {
            let Value::Object(entry) = entry else {
                self.strange.push(name.clone());
                continue;
            };
            if is_octoprox(entry) {
                continue;
            }
            let (server, mut notes) = translated(entry, references);
            let fits = fitting(name, self.entries.iter().map(|entry| entry.name.as_str()));
            if fits != *name {
                notes.insert(0, format!("it is called `{name}` there"));
            }
            self.entries.push(Entry { name: fits, server, notes });
        }
    }
}

/// Whether an entry starts octoprox itself, which behind octoprox would go round in circles.
pub fn is_octoprox(entry: &Map<String, Value>) -> bool {
    let command = entry.get("command").and_then(Value::as_str).unwrap_or_default();
    let named = Path::new(command).file_stem().is_some_and(|stem| stem == "octoprox");
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    named && args.filter_map(Value::as_str).any(|arg| arg == "stdio" || arg == "bridge")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lists_are_found_where_each_product_keeps_them() {
        let server = json!({"a": {"command": "x"}, "git": {"url": "https://y"}, "bad": 5,
                            "me": {"command": "/usr/bin/octoprox", "args": ["stdio"]}});
        for tree in [
            json!({"mcpServers": server, "other": 1}),
            json!({"mcp_servers": server}),
            json!({"servers": server, "inputs": []}),
            json!({"mcp": {"servers": server}}),
        ] {
            let Value::Object(tree) = tree else { continue };
            let found = listed(&tree, Path::new("x.json")).unwrap();
            let names: Vec<&str> = found.entries.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, ["a", "git-mcp"], "{tree:?}");
            assert_eq!(found.entries[1].notes, ["it is called `git` there"]);
            assert_eq!(found.strange, ["bad"]);
        }
        for tree in [json!({}), json!({"mcpServers": []}), json!({"mcp": 5})] {
            let Value::Object(tree) = tree else { continue };
            assert_eq!(listed(&tree, Path::new("x.json")), None);
        }
    }

    #[test]
    fn only_a_hub_is_left_out() {
        for (entry, own) in [
            (json!({"command": "octoprox", "args": ["stdio", "--profile", "x"]}), true),
            (json!({"command": "/opt/octoprox", "args": ["bridge", "https://x"]}), true),
            (json!({"command": "octoprox", "args": []}), false),
            (json!({"command": "octoproxy", "args": ["stdio"]}), false),
        ] {
            let Value::Object(entry) = entry else { continue };
            assert_eq!(is_octoprox(&entry), own, "{entry:?}");
        }
    }
}
