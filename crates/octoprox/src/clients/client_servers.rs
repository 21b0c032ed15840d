//! Servers listed in another product's file.

use super::client_entry::{TranslatedEntry, is_tool_list, translate_entry};
use super::server_name::valid_name;
use super::variable_references::References;
use serde_json::{Map, Value};
use std::path::Path;

/// A server in our format.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    pub name: String,
    /// Where it is in the file: the keys of its list, and its name there.
    pub list: Vec<String>,
    pub original_name: String,
    pub server: Map<String, Value>,
    /// Notes on the translation.
    pub notes: Vec<String>,
    /// What octoprox does not support, although the server depends on it.
    pub unsupported: Vec<String>,
    /// What its client does not let it do: rules about its tools, and lists of them.
    pub rules: Vec<String>,
}

/// Contents of a server list.
#[derive(Debug, Default, PartialEq)]
pub struct ClientServers {
    pub entries: Vec<ServerEntry>,
    /// Names of entries that are not servers.
    pub ignored: Vec<String>,
}

/// Keys of server lists: Claude, Cursor and many others; Codex; VS Code; older VS Code settings; Zed; Goose; OpenCode.
const LIST_KEYS: [&[&str]; 7] = [
    &["mcpServers"],
    &["mcp_servers"],
    &["servers"],
    &["mcp", "servers"],
    &["context_servers"],
    &["extensions"],
    &["mcp"],
];
/// Extensions of Goose that are no MCP servers.
const BUILT_IN_TYPES: [&str; 4] = ["builtin", "platform", "frontend", "inline_python"];

/// Returns the servers of a file, or `None` if it has no server list.
pub fn read_servers(tree: &Map<String, Value>, path: &Path) -> Option<ClientServers> {
    LIST_KEYS.iter().find_map(|keys| read_list(tree, path, keys))
}

/// Returns the servers of the list that these keys lead to.
pub fn read_list(tree: &Map<String, Value>, path: &Path, keys: &[&str]) -> Option<ClientServers> {
    let (first, rest) = keys.split_first()?;
    let holder = if rest.is_empty() { Some(tree) } else { tree.get(*first)?.as_object() };
    let list = rest.iter().try_fold(tree.get(*first)?, |value, key| value.get(key))?;
    let (holder, list) = (holder?, list.as_object()?);
    let mut all = ClientServers::default();
    all.add_list(list, keys, &References::from_file(holder, path));
    Some(all)
}

impl ClientServers {
    /// Adds the servers of a list within a file.
    pub fn add_list(&mut self, list: &Map<String, Value>, keys: &[&str], references: &References) {
        for (name, entry) in list {
            let Value::Object(entry) = entry else {
                self.ignored.push(name.clone());
                continue;
            };
            let kind = entry.get("type").and_then(Value::as_str).unwrap_or_default();
            if is_octoprox(entry) || BUILT_IN_TYPES.contains(&kind) {
                continue;
            }
            let TranslatedEntry { server, mut notes, unsupported } = translate_entry(entry, references);
            let fits = valid_name(name, self.entries.iter().map(|entry| entry.name.as_str()));
            if fits != *name {
                notes.insert(0, format!("renamed from `{name}`"));
            }
            let list = keys.iter().map(|key| (*key).to_owned()).collect();
            let original_name = name.clone();
            let rules = unsupported.iter().filter(|field| is_tool_list(field)).cloned().collect();
            self.entries.push(ServerEntry {
                name: fits,
                list,
                original_name,
                server,
                notes,
                unsupported,
                rules,
            });
        }
    }
}

impl ClientServers {
    /// Marks entries with references as unsupported.
    pub fn mark_references(&mut self, what: &str) {
        for entry in &mut self.entries {
            if Value::Object(entry.server.clone()).to_string().contains("${") {
                entry.unsupported.push(what.to_owned());
            }
        }
    }
}

/// Returns whether an entry starts octoprox itself, which would create a loop.
pub fn is_octoprox(entry: &Map<String, Value>) -> bool {
    let command = entry.get("command").or_else(|| entry.get("cmd"));
    let listed = command.and_then(Value::as_array).into_iter().flatten();
    let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
    let mut words = command.into_iter().filter(|command| command.is_string()).chain(listed).chain(args);
    let program = words.next().and_then(Value::as_str).unwrap_or_default();
    let named = Path::new(program).file_stem().is_some_and(|stem| stem == "octoprox");
    named && words.filter_map(Value::as_str).any(|arg| arg == "stdio" || arg == "bridge")
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
            let found = read_servers(&tree, Path::new("x.json")).unwrap();
            let names: Vec<&str> = found.entries.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names, ["a", "git-mcp"], "{tree:?}");
            assert_eq!(found.entries[1].notes, ["renamed from `git`"]);
            assert_eq!(found.ignored, ["bad"]);
        }
        for tree in [json!({}), json!({"mcpServers": []}), json!({"mcp": 5})] {
            let Value::Object(tree) = tree else { continue };
            assert_eq!(read_servers(&tree, Path::new("x.json")), None);
        }
    }

    #[test]
    fn only_a_hub_is_left_out() {
        for (entry, own) in [
            (json!({"command": "octoprox", "args": ["stdio", "--profile", "x"]}), true),
            (json!({"command": "/opt/octoprox", "args": ["bridge", "https://x"]}), true),
            (json!({"type": "local", "command": ["/opt/octoprox", "stdio"], "enabled": true}), true),
            (json!({"cmd": "octoprox", "args": ["stdio"], "type": "stdio"}), true),
            (json!({"command": "octoprox", "args": []}), false),
            (json!({"command": []}), false),
            (json!({"command": "octoproxy", "args": ["stdio"]}), false),
        ] {
            let Value::Object(entry) = entry else { continue };
            assert_eq!(is_octoprox(&entry), own, "{entry:?}");
        }
    }
}
