//! A client's settings file.

use super::client_rules::ClientRules;
use super::client_servers::{ClientServers, read_list, read_servers};
use super::client_table::{CLIENTS, Client};
use super::variable_references::References;
use crate::settings::Environment;
use crate::settings::load::settings_format;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A client's settings file, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    pub client: &'static Client,
    pub path: PathBuf,
    /// Paths that exist if the client is in use, even without a server list.
    markers: Vec<PathBuf>,
    /// Other files with rules about tools.
    rule_files: Vec<PathBuf>,
}

/// Contents of a file.
pub struct ClientFile {
    pub text: String,
    pub tree: Map<String, Value>,
    pub servers: ClientServers,
}

/// Returns the user's settings files, one per client.
pub fn client_configs(world: &Environment) -> Vec<ClientConfig> {
    let config = |client: &'static Client| {
        let (path, markers) = client.paths(world)?;
        Some(ClientConfig { client, path, markers, rule_files: client.rule_files(world) })
    };
    CLIENTS.iter().filter_map(config).collect()
}

impl ClientConfig {
    /// A file named explicitly.
    pub fn named(client: &'static Client, path: PathBuf) -> Self {
        Self { client, path, markers: Vec::new(), rule_files: Vec::new() }
    }

    /// Returns whether the client is in use on this machine.
    pub fn is_in_use(&self) -> bool {
        self.path.is_file() || self.markers.iter().any(|sign| sign.is_dir())
    }

    /// Reads the file; `None` if it does not exist. `folder` is the current directory.
    pub fn read(&self, folder: &Path) -> Result<Option<ClientFile>, String> {
        let text = match settings_format::read_foreign(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| format!("it cannot be read: {error}"))?,
        };
        let tree = match settings_format::parse_as(&self.path, &text) {
            Ok(Value::Object(tree)) => tree,
            Ok(Value::Null) => Map::new(),
            Ok(_) => return Err("it is not a map of settings".to_owned()),
            Err(why) => return Err(format!("it cannot be read: {why}")),
        };
        let mut found = read_list(&tree, &self.path, self.client.list)
            .or_else(|| read_servers(&tree, &self.path))
            .unwrap_or_default();
        if let Some((keys, list)) = project_servers(&tree, folder) {
            found.add_list(list, &keys, &References::default());
        }
        if self.client.is_literal {
            found.mark_references("${…}, which is literal there");
        }
        let rules = ClientRules::read(self.client.id, &tree, &self.rule_files, folder);
        for entry in &mut found.entries {
            entry.rules.extend(rules.about(&entry.original_name));
        }
        Ok(Some(ClientFile { text, tree, servers: found }))
    }
}

/// Claude Code stores project servers in the same file as user servers.
fn project_servers<'a>(
    tree: &'a Map<String, Value>,
    folder: &'a Path,
) -> Option<([&'a str; 3], &'a Map<String, Value>)> {
    let keys = ["projects", folder.to_str()?, "mcpServers"];
    let [projects, folder, servers] = keys;
    Some((keys, tree.get(projects)?.get(folder)?.get(servers)?.as_object()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_the_project_one_stands_in_are_found_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claude.json");
        let text = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"b": {"command": "y"}}}}}"#;
        std::fs::write(&path, text).unwrap();
        let place = ClientConfig::named(Client::find("claude-code").unwrap(), path);
        let names = |folder: &str| {
            let found = place.read(Path::new(folder)).unwrap().unwrap().servers;
            found.entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(names("/p"), ["a", "b"]);
        assert_eq!(names("/other"), ["a"]);
    }
}
