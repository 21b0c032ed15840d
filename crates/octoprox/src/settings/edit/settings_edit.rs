//! Edits of handwritten files: only the lines of the entry change, and an edit that does not parse back to the expected
//! result is rejected.

mod json_edit;
mod json_spans;
mod token_edit;
mod toml_edit;
mod yaml_edit;

use crate::settings::load::settings_format::parse_as;
use serde_json::{Map, Value};
use std::path::Path;
pub use token_edit::remove_token;

/// Why a file cannot be edited.
pub type EditError = String;

/// An edit of a server list.
pub struct ServerEdit<'a> {
    /// The extension determines the format.
    pub path: &'a Path,
    /// Keys that lead to the server list.
    pub list: &'a [&'a str],
    pub name: &'a str,
}

impl ServerEdit<'_> {
    /// Returns the text with the entry added.
    pub fn add(&self, text: &str, server: &Map<String, Value>) -> Result<String, EditError> {
        let before = self.read(text)?;
        let mut expected = before.clone();
        let value = Value::Object(server.clone());
        let list = object_at(&mut expected, self.list).ok_or("the server list is not a map")?;
        if list.insert(self.name.to_owned(), value.clone()).is_some() {
            return Err(format!("{} already exists", self.name));
        }
        let changed = keep_line_endings(text, |text| match self.format(text) {
            FileFormat::Json => json_edit::insert(text, self.list, self.name, &value),
            FileFormat::Yaml => yaml_edit::insert(text, self.section()?, self.name, server),
            FileFormat::Toml => toml_edit::insert(text, self.list, self.name, server),
        });
        self.verify(changed, &expected)
    }

    /// Returns the text without the entry.
    pub fn remove(&self, text: &str) -> Result<String, EditError> {
        let mut expected = self.read(text)?;
        let list = object_at(&mut expected, self.list).ok_or("the server list is not a map")?;
        if list.shift_remove(self.name).is_none() {
            return Err(format!("{} not found in it", self.name));
        }
        let changed = keep_line_endings(text, |text| match self.format(text) {
            FileFormat::Json => json_edit::remove(text, self.list, self.name),
            FileFormat::Yaml => yaml_edit::remove(text, self.section()?, self.name),
            FileFormat::Toml => Some(toml_edit::remove(text, self.list, self.name)),
        });
        self.verify(changed, &expected)
    }

    /// The section of a YAML file.
    fn section(&self) -> Option<&str> {
        match self.list {
            [section] => Some(section),
            _ => None,
        }
    }

    fn read(&self, text: &str) -> Result<Map<String, Value>, EditError> {
        match parse_as(self.path, text) {
            Ok(Value::Object(tree)) => Ok(tree),
            Ok(Value::Null) => Ok(Map::new()),
            Ok(_) => Err("it is not a map of settings".to_owned()),
            Err(why) => Err(format!("it cannot be read: {why}")),
        }
    }

    /// Returns the text only if it parses to the expected tree.
    fn verify(&self, changed: Option<String>, expected: &Map<String, Value>) -> Result<String, EditError> {
        let unclear = || "it is written in a way that cannot be edited safely".to_owned();
        let changed = changed.ok_or_else(unclear)?;
        let mut read = self.read(&changed).map_err(|_| unclear())?;
        let mut expected = expected.clone();
        // An empty list may be written in several ways.
        for tree in [&mut read, &mut expected] {
            object_at(tree, self.list);
        }
        if Value::Object(read) == Value::Object(expected) { Ok(changed) } else { Err(unclear()) }
    }

    fn format(&self, text: &str) -> FileFormat {
        let ends = |with: &str| self.path.extension().is_some_and(|extension| extension == with);
        let opens = crate::clients::jsonc::strip_comments(text).text.trim_start().starts_with('{');
        match () {
            () if ends("toml") => FileFormat::Toml,
            () if opens || (ends("json") && text.trim().is_empty()) => FileFormat::Json,
            () => FileFormat::Yaml,
        }
    }
}

enum FileFormat {
    Json,
    Yaml,
    Toml,
}

/// Returns the map at a path, creating missing levels.
fn object_at<'a>(tree: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter().try_fold(tree, |tree, key| {
        let slot = tree.entry((*key).to_owned()).or_insert(Value::Null);
        if slot.is_null() {
            *slot = Value::Object(Map::new());
        }
        slot.as_object_mut()
    })
}

/// Preserves CRLF line endings.
fn keep_line_endings(text: &str, change: impl Fn(&str) -> Option<String>) -> Option<String> {
    if text.contains("\r\n") {
        return Some(change(&text.replace("\r\n", "\n"))?.replace('\n', "\r\n"));
    }
    change(text)
}

/// Returns an entry to paste into a file that cannot be edited.
pub fn yaml_snippet(name: &str, server: &Map<String, Value>) -> String {
    format!("servers:\n{}", yaml_edit::entry(name, server, 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn server() -> Map<String, Value> {
        Map::from_iter([("command".to_owned(), json!("x")), ("args".to_owned(), json!(["stdio", "a\"b"]))])
    }

    fn change<'a>(path: &'a str, list: &'a [&'a str]) -> ServerEdit<'a> {
        ServerEdit { path: Path::new(path), list, name: "o" }
    }

    #[test]
    fn what_is_added_can_be_removed_and_all_is_as_before() {
        for (path, list, text) in [
            ("a.yaml", &["servers"][..], "# top\nlisten: {port: 1}\nservers:\n  a: {command: y} # why\n"),
            ("a.yaml", &["servers"], "servers:\r\n  a: {command: y}\r\nlisten: {port: 1}\r\n"),
            ("a.json", &["mcpServers"], "{\n  // top\n  \"mcpServers\": {\n    \"a\": {} // why\n  }\n}\n"),
            ("a.json", &["mcpServers"], "{\"mcpServers\": {\"a\": {}}, \"z\": 1}"),
            ("a.json", &["servers"], "{\r\n\t\"servers\": {\r\n\t\t\"a\": {}\r\n\t}\r\n}\r\n"),
        ] {
            let change = change(path, list);
            let added = change.add(text, &server()).unwrap();
            assert_ne!(added, text);
            assert_eq!(change.add(&added, &server()), Err("o already exists".to_owned()));
            let removed = change.remove(&added).unwrap();
            assert_eq!(removed.replace(' ', ""), text.replace(' ', ""), "{added}");
        }
    }

    #[test]
    fn a_table_of_toml_comes_at_the_end() {
        let text = "# mine\nmodel = \"m\"\n\n[mcp_servers.a]\ncommand = \"y\" # why\n";
        let added = change("config.toml", &["mcp_servers"]).add(text, &server()).unwrap();
        assert_eq!(
            added,
            format!("{text}\n[mcp_servers.o]\ncommand = \"x\"\nargs = [\"stdio\", \"a\\\"b\"]\n")
        );
        let inline = "mcp_servers = {a = {command = \"y\"}}\n";
        assert!(change("config.toml", &["mcp_servers"]).add(inline, &server()).is_err());
    }

    #[test]
    fn what_cannot_be_changed_safely_is_refused() {
        for (path, list, text) in [
            ("a.yaml", &["servers"][..], "servers: {a: {command: y}}\n"),
            ("a.yaml", &["servers"], "servers:\n  a: [1\n"),
            ("a.yaml", &["servers"], "servers: 5\n"),
            ("a.yaml", &["servers"], "---\na: 1\n...\n---\nb: 2\n"),
            ("a.yaml", &["servers"], "text: |\n  servers:\nservers: &x\n  a: {command: y}\n"),
            ("a.json", &["mcpServers"], "{\"mcpServers\": []}"),
            ("a.json", &["mcpServers"], "{\"mcpServers\": {}, \"mcpServers\": {}}"),
            ("a.json", &["mcpServers"], "{\"mcpServers\": {"),
            ("a.json", &["mcpServers"], "{\"mcpServers\": {\"a\": 1 /* open\n here */ }}"),
        ] {
            let done = change(path, list).add(text, &server());
            let kept = done.as_ref().is_ok_and(|changed| changed.contains("/* open\n here */"));
            assert!(done.is_err() || kept, "{text}: {done:?}");
        }
        let linked = "servers:\n  o: &x {command: y}\n  b: *x\n";
        assert!(change("a.yaml", &["servers"]).remove(linked).is_err());
        assert!(change("a.yaml", &["servers"]).remove("servers:\n").is_err());
    }
}
