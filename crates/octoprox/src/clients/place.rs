//! Which clients there are, and where each keeps its servers.

use super::list::{Found, listed};
use super::references::References;
use crate::settings::{World, file};
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
pub struct Place {
    pub client: Client,
    pub path: PathBuf,
    /// What is there when the client is in use, with or without a list of servers.
    signs: Vec<PathBuf>,
}

/// What a file holds.
pub struct Reading {
    pub text: String,
    pub tree: Map<String, Value>,
    pub found: Found,
}

/// The files of this user, one for each client.
pub fn places(world: &World) -> Vec<Place> {
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
        Place { client, path, signs }
    };
    let code = Place {
        client: Client::ClaudeCode,
        path: claude.clone().unwrap_or_else(|| home.clone()).join(".claude.json"),
        signs: vec![claude.unwrap_or_else(|| home.join(".claude"))],
    };
    vec![
        code,
        beside(Client::ClaudeDesktop, apps.join("Claude/claude_desktop_config.json")),
        beside(Client::Cursor, home.join(".cursor/mcp.json")),
        beside(Client::VsCode, apps.join("Code/User/mcp.json")),
        beside(Client::Codex, codex.join("config.toml")),
    ]
}

impl Place {
    /// A file that somebody has named.
    pub fn named(client: Client, path: PathBuf) -> Self {
        Self { client, path, signs: Vec::new() }
    }

    /// Whether the client is in use on this machine.
    pub fn is_in_use(&self) -> bool {
        self.path.is_file() || self.signs.iter().any(|sign| sign.is_dir())
    }

    /// What is in the file; nothing when there is none. `folder` is the one that the person stands in.
    pub fn read(&self, folder: &Path) -> Result<Option<Reading>, String> {
        let text = match file::foreign(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| format!("it cannot be read: {error}"))?,
        };
        let tree = match file::parse_as(&self.path, &text) {
            Ok(Value::Object(tree)) => tree,
            Ok(Value::Null) => Map::new(),
            Ok(_) => return Err("it holds no settings by name".to_owned()),
            Err(why) => return Err(format!("it cannot be read: {why}")),
        };
        let mut found = listed(&tree, &self.path).unwrap_or_default();
        if let Some(list) = of_project(&tree, folder) {
            found.take(list, &References::default());
        }
        Ok(Some(Reading { text, tree, found }))
    }
}

/// Claude Code keeps servers for one project in the same file as those for all.
fn of_project<'a>(tree: &'a Map<String, Value>, folder: &Path) -> Option<&'a Map<String, Value>> {
    let project = tree.get("projects")?.get(folder.to_str()?)?;
    project.get("mcpServers")?.as_object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(variables: &[(&str, &str)]) -> World {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        World { variables: variables.collect(), folder: PathBuf::new() }
    }

    #[test]
    fn each_client_has_one_file() {
        let paths = |world: &World| {
            let places = places(world);
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
        let place = Place::named(Client::ClaudeCode, path);
        let names = |folder: &str| {
            let found = place.read(Path::new(folder)).unwrap().unwrap().found;
            found.entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(names("/p"), ["a", "b"]);
        assert_eq!(names("/other"), ["a"]);
    }
}
