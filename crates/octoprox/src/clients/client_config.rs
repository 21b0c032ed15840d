//! Supported clients and the locations of their settings.

use super::client_servers::{ClientServers, read_servers};
use super::variable_references::References;
use crate::settings::Environment;
use crate::settings::load::settings_format;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A product that supports MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    VsCode,
    Codex,
}

impl Client {
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Codex => "Codex",
        }
    }

    /// Keys that lead to its server list.
    pub const fn list(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => &["mcpServers"],
            Self::VsCode => &["servers"],
            Self::Codex => &["mcp_servers"],
        }
    }
}

/// A client's settings file, which may not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    pub client: Client,
    pub path: PathBuf,
    /// Paths that exist if the client is in use, even without a server list.
    markers: Vec<PathBuf>,
}

/// Contents of a file.
pub struct ClientFile {
    pub text: String,
    pub tree: Map<String, Value>,
    pub servers: ClientServers,
}

/// Returns the user's settings files, one per client.
pub fn client_configs(world: &Environment) -> Vec<ClientConfig> {
    let Some(home) = world.variable("HOME").map(PathBuf::from) else {
        return Vec::new();
    };
    let whole = |name: &str| world.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let apps = if cfg!(target_os = "macos") {
        home.join("Library/Application Support")
    } else {
        whole("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
    };
    let claude = whole("CLAUDE_CONFIG_DIR");
    let codex = whole("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
    let beside = |client, path: PathBuf| {
        let signs = path.parent().map(Path::to_owned).into_iter().collect();
        ClientConfig { client, path, markers: signs }
    };
    let code = ClientConfig {
        client: Client::ClaudeCode,
        path: claude.clone().unwrap_or_else(|| home.clone()).join(".claude.json"),
        markers: vec![claude.unwrap_or_else(|| home.join(".claude"))],
    };
    vec![
        code,
        beside(Client::ClaudeDesktop, apps.join("Claude/claude_desktop_config.json")),
        beside(Client::Cursor, home.join(".cursor/mcp.json")),
        beside(Client::VsCode, apps.join("Code/User/mcp.json")),
        beside(Client::Codex, codex.join("config.toml")),
    ]
}

impl ClientConfig {
    /// A file named explicitly.
    pub fn named(client: Client, path: PathBuf) -> Self {
        Self { client, path, markers: Vec::new() }
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
        let mut found = read_servers(&tree, &self.path).unwrap_or_default();
        if let Some(list) = project_servers(&tree, folder) {
            found.add_list(list, &References::default());
        }
        Ok(Some(ClientFile { text, tree, servers: found }))
    }
}

/// Claude Code stores project servers in the same file as user servers.
fn project_servers<'a>(tree: &'a Map<String, Value>, folder: &Path) -> Option<&'a Map<String, Value>> {
    let project = tree.get("projects")?.get(folder.to_str()?)?;
    project.get("mcpServers")?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment { variables: variables.collect(), current_dir: PathBuf::new() }
    }

    #[test]
    fn each_client_has_one_file() {
        let paths = |world: &Environment| {
            let places = client_configs(world);
            places.into_iter().map(|place| place.path.display().to_string()).collect::<Vec<_>>()
        };
        let usual = paths(&world(&[("HOME", "/h")]));
        assert_eq!((usual[0].as_str(), usual[2].as_str()), ("/h/.claude.json", "/h/.cursor/mcp.json"));
        assert_eq!(usual[4], "/h/.codex/config.toml");
        let moved = world(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c"), ("CODEX_HOME", "/x")]);
        assert_eq!(paths(&moved)[0], "/c/.claude.json");
        assert_eq!(paths(&moved)[4], "/x/config.toml");
        assert!(paths(&world(&[])).is_empty());
    }

    #[test]
    fn servers_of_the_project_one_stands_in_are_found_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claude.json");
        let text = r#"{"mcpServers": {"a": {"command": "x"}}, "projects": {"/p": {"mcpServers": {"b": {"command": "y"}}}}}"#;
        std::fs::write(&path, text).unwrap();
        let place = ClientConfig::named(Client::ClaudeCode, path);
        let names = |folder: &str| {
            let found = place.read(Path::new(folder)).unwrap().unwrap().servers;
            found.entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(names("/p"), ["a", "b"]);
        assert_eq!(names("/other"), ["a"]);
    }
}
