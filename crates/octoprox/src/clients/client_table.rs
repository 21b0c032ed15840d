//! The supported clients, one row each: where a client stores its MCP servers, and in which form.

use crate::settings::Environment;
use std::path::PathBuf;

/// A product that supports MCP servers.
#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    /// Name on the command line.
    pub id: &'static str,
    pub title: &'static str,
    base: BaseDir,
    /// Its settings files in the base directory: the first that exists is used, otherwise the first.
    files: &'static [&'static str],
    /// Directory that exists if the client is in use; otherwise that of its file.
    marker: Option<&'static str>,
    /// Keys that lead to its server list.
    pub list: &'static [&'static str],
    pub form: EntryForm,
    /// Whether `${…}` in its entries is literal text.
    pub is_literal: bool,
}

/// Directory that the paths of a client are relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BaseDir {
    Home,
    /// `XDG_CONFIG_HOME`, otherwise `~/.config`.
    Config,
    /// The configuration directory of desktop applications.
    Apps,
    /// The directory of VS Code.
    VsCode,
    /// A directory of the client: its variable, otherwise a directory in the home directory.
    Own(&'static str, &'static str),
}

/// How a client writes a server that is a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryForm {
    /// `command` and `args`.
    Plain,
    /// The same with `type: stdio`.
    Typed,
    /// The same with `type: stdio` and the permitted tools.
    TypedWithTools,
    /// The same with `transport: stdio`.
    Transport,
    /// The same with `disabled: false`.
    Switchable,
    /// The same with `source: custom`.
    Sourced,
    /// One list with the program and its arguments.
    CommandList,
    /// An extension of Goose.
    Goose,
}

const MCP_SERVERS: &[&str] = &["mcpServers"];

const fn client(
    id: &'static str,
    title: &'static str,
    base: BaseDir,
    files: &'static [&'static str],
    list: &'static [&'static str],
    form: EntryForm,
) -> Client {
    Client { id, title, base, files, marker: None, list, form, is_literal: false }
}

const fn with_marker(client: Client, marker: &'static str) -> Client {
    Client { marker: Some(marker), ..client }
}

const fn literal(client: Client) -> Client {
    Client { is_literal: true, ..client }
}

/// The supported clients, most common first.
pub static CLIENTS: &[Client] = {
    use BaseDir::{Apps, Config, Home, Own, VsCode};
    use EntryForm::{CommandList, Goose, Plain, Sourced, Switchable, Transport, Typed, TypedWithTools};
    const CLINE: &str = "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json";
    const ROO: &str = "globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json";
    const ZED: &str = if cfg!(target_os = "macos") { "Zed/settings.json" } else { "zed/settings.json" };
    &[
        with_marker(
            client(
                "claude-code",
                "Claude Code",
                Own("CLAUDE_CONFIG_DIR", ""),
                &[".claude.json"],
                MCP_SERVERS,
                Typed,
            ),
            ".claude",
        ),
        literal(client(
            "claude-desktop",
            "Claude Desktop",
            Apps,
            &["Claude/claude_desktop_config.json"],
            MCP_SERVERS,
            Plain,
        )),
        client("cursor", "Cursor", Home, &[".cursor/mcp.json"], MCP_SERVERS, Plain),
        client("vscode", "VS Code", VsCode, &["mcp.json"], &["servers"], Typed),
        client("codex", "Codex", Own("CODEX_HOME", ".codex"), &["config.toml"], &["mcp_servers"], Plain),
        client("gemini-cli", "Gemini CLI", Home, &[".gemini/settings.json"], MCP_SERVERS, Plain),
        client(
            "copilot-cli",
            "GitHub Copilot CLI",
            Home,
            &[".copilot/mcp-config.json"],
            MCP_SERVERS,
            TypedWithTools,
        ),
        client(
            "opencode",
            "OpenCode",
            Config,
            &["opencode/opencode.jsonc", "opencode/opencode.json"],
            &["mcp"],
            CommandList,
        ),
        client("windsurf", "Windsurf", Home, &[".codeium/windsurf/mcp_config.json"], MCP_SERVERS, Plain),
        client("zed", "Zed", Apps, &[ZED], &["context_servers"], Sourced),
        client("goose", "Goose", Config, &["goose/config.yaml"], &["extensions"], Goose),
        client("lm-studio", "LM Studio", Home, &[".lmstudio/mcp.json"], MCP_SERVERS, Plain),
        client("junie", "JetBrains Junie", Home, &[".junie/mcp/mcp.json"], MCP_SERVERS, Plain),
        client("cline", "Cline", VsCode, &[CLINE], MCP_SERVERS, Switchable),
        client(
            "cline-cli",
            "Cline CLI",
            Own("CLINE_DIR", ".cline"),
            &["data/settings/cline_mcp_settings.json"],
            MCP_SERVERS,
            Switchable,
        ),
        client("roo", "Roo Code", VsCode, &[ROO], MCP_SERVERS, Switchable),
        client("kilo", "Kilo Code", Config, &["kilo/kilo.jsonc", "kilo/kilo.json"], &["mcp"], CommandList),
        client("kiro", "Kiro", Home, &[".kiro/settings/mcp.json"], MCP_SERVERS, Plain),
        client(
            "kimi",
            "Kimi Code",
            Own("KIMI_CODE_HOME", ".kimi-code"),
            &["mcp.json"],
            MCP_SERVERS,
            Transport,
        ),
        client("antigravity", "Antigravity", Home, &[".gemini/config/mcp_config.json"], MCP_SERVERS, Plain),
        client("grok", "Grok Build", Own("GROK_HOME", ".grok"), &["config.toml"], &["mcp_servers"], Plain),
        client("mastra", "Mastra Code", Home, &[".mastracode/mcp.json"], MCP_SERVERS, Plain),
        client(
            "mcporter",
            "MCPorter",
            Home,
            &[".mcporter/mcporter.json", ".mcporter/mcporter.jsonc"],
            MCP_SERVERS,
            Plain,
        ),
        client("pi", "Pi", Own("PI_CODING_AGENT_DIR", ".pi/agent"), &["mcp.json"], MCP_SERVERS, Plain),
        client("fx", "fx", Home, &[".fx/mcp.json"], &["mcp"], CommandList),
    ]
};

impl Client {
    /// The client with this name on the command line.
    pub fn find(id: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.id == id)
    }

    /// Other files of the user with rules about tools.
    pub fn rule_files(&self, world: &Environment) -> Vec<PathBuf> {
        let Some(home) = world.variable("HOME").map(PathBuf::from) else { return Vec::new() };
        let config = world.variable("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), PathBuf::from);
        match self.id {
            "claude-code" => {
                let own =
                    world.variable("CLAUDE_CONFIG_DIR").map_or_else(|| home.join(".claude"), PathBuf::from);
                let managed = PathBuf::from("/etc/claude-code/managed-settings.json");
                vec![own.join("settings.json"), own.join("settings.local.json"), managed]
            }
            "cursor" => vec![home.join(".cursor/cli-config.json"), home.join(".cursor/permissions.json")],
            "goose" => vec![config.join("goose/permission.yaml")],
            _ => Vec::new(),
        }
    }

    /// Its settings file, and the directories that exist if it is in use. `None` without a home directory.
    pub fn paths(&self, world: &Environment) -> Option<(PathBuf, Vec<PathBuf>)> {
        let home = world.variable("HOME").map(PathBuf::from)?;
        let absolute = |name: &str| world.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let config = || absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let apps = || {
            if cfg!(target_os = "macos") { home.join("Library/Application Support") } else { config() }
        };
        let (base, own) = match self.base {
            BaseDir::Home => (home.clone(), None),
            BaseDir::Config => (config(), None),
            BaseDir::Apps => (apps(), None),
            BaseDir::VsCode => (apps().join("Code/User"), None),
            BaseDir::Own(variable, usual) => {
                let own = absolute(variable);
                (own.clone().unwrap_or_else(|| home.join(usual)), own)
            }
        };
        let mut files = self.files.iter().map(|file| base.join(file));
        let first = files.next()?;
        let file = if first.is_file() { first } else { files.find(|file| file.is_file()).unwrap_or(first) };
        let beside = file.parent().map(std::path::Path::to_owned);
        let markers = match (own, self.marker) {
            (Some(own), _) => vec![own],
            (None, Some(marker)) => vec![base.join(marker)],
            (None, None) => beside.into_iter().collect(),
        };
        Some((file, markers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn world(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Environment { variables: variables.collect(), current_dir: PathBuf::new() }
    }

    fn path(id: &str, world: &Environment) -> String {
        Client::find(id).unwrap().paths(world).unwrap().0.display().to_string()
    }

    #[test]
    fn each_client_has_one_file_and_one_name() {
        let world = world(&[("HOME", "/h")]);
        let paths: HashSet<String> = CLIENTS.iter().map(|client| path(client.id, &world)).collect();
        let names: HashSet<&str> = CLIENTS.iter().flat_map(|client| [client.id, client.title]).collect();
        assert_eq!((paths.len(), CLIENTS.len() >= 22), (CLIENTS.len(), true));
        assert!(names.len() >= CLIENTS.len() * 2 - 1);
    }

    #[test]
    fn the_guide_lists_every_client() {
        let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/compatibility.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        for client in CLIENTS {
            let row = format!("| {} | `{}` | ", client.title, client.id);
            let list = format!(" | `{}` |", client.list.join("."));
            let name = client.files[0].rsplit('/').next().unwrap();
            let found = guide.lines().find(|line| line.starts_with(&row));
            assert!(found.is_some_and(|line| line.ends_with(&list) && line.contains(name)), "{row}");
        }
    }

    #[test]
    fn files_are_where_each_client_looks_for_them() {
        let usual = world(&[("HOME", "/h")]);
        let moved = world(&[
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", "/x"),
            ("XDG_CONFIG_HOME", "/g"),
        ]);
        for (id, world, expected) in [
            ("claude-code", &usual, "/h/.claude.json"),
            ("claude-code", &moved, "/c/.claude.json"),
            ("cursor", &moved, "/h/.cursor/mcp.json"),
            ("codex", &usual, "/h/.codex/config.toml"),
            ("codex", &moved, "/x/config.toml"),
            ("goose", &moved, "/g/goose/config.yaml"),
            ("opencode", &usual, "/h/.config/opencode/opencode.jsonc"),
        ] {
            assert_eq!(path(id, world), expected);
        }
        assert_eq!(Client::find("claude-code").unwrap().paths(&moved).unwrap().1, [PathBuf::from("/c")]);
        assert_eq!(Client::find("cursor").unwrap().paths(&world(&[])), None);
    }
}
