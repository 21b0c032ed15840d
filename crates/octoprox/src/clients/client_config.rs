//! Which clients there are, and where each keeps its servers.

use super::client_servers::{ClientServers, read_servers};
use super::variable_references::References;
use crate::settings::Environment;
use crate::settings::load::settings_format;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A product that knows MCP servers.
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

    /// The keys that lead to its list.
    pub const fn list(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor => &["mcpServers"],
            Self::VsCode => &["servers"],
            Self::Codex => &["mcp_servers"],
        }
    }
}

/// A file of a client, which need not be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientConfig {
    pub client: Client,
    pub path: PathBuf,
    /// What is there when the client is in use, with or without a list of servers.
    markers: Vec<PathBuf>,
}

/// What a file holds.
pub struct ClientFile {
    pub text: String,
    pub tree: Map<String, Value>,
    pub servers: ClientServers,
}

/// The files of this user, one for each client.
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
    /// A file that somebody has named.
    pub fn named(client: Client, path: PathBuf) -> Self {
        Self { client, path, markers: Vec::new() }
    }

    /// Whether the client is in use on this machine.
    pub fn is_in_use(&self) -> bool {
        self.path.is_file() || self.markers.iter().any(|sign| sign.is_dir())
    }

    /// What is in the file; nothing when there is none. `folder` is the one that the person stands in.
    pub fn read(&self, folder: &Path) -> Result<Option<ClientFile>, String> {
        let text = match settings_format::read_foreign(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| format!("it cannot be read: {error}"))?,
        };
        let tree = match settings_format::parse_as(&self.path, &text) {
            Ok(Value::Object(tree)) => tree,
            Ok(Value::Null) => Map::new(),
            Ok(_) => return Err("it holds no settings by name".to_owned()),
            Err(why) => return Err(format!("it cannot be read: {why}")),
        };
        let mut found = read_servers(&tree, &self.path).unwrap_or_default();
        if let Some(list) = project_servers(&tree, folder) {
            found.add_list(list, &References::default());
        }
        Ok(Some(ClientFile { text, tree, servers: found }))
    }
}

/// Claude Code keeps servers for one project in the same file as those for all.
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
