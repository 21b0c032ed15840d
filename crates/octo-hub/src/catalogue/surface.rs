//! Surfaces: which tools of a profile are listed to MCP clients. The others can be found and called.

use crate::catalogue::item::Entry;
use crate::catalogue::name_patterns::glob_set;
use crate::code::run_code::RUN_CODE_TOOL;
use crate::declared::DECLARED_SOURCE;
use crate::find::tools_call::is_find_or_call_tool;
use crate::find::tools_find::FIND_TOOL;
use crate::results::result_read::RESULT_READ_TOOL;
use globset::GlobSet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which tools are listed to MCP clients. Tools that are not listed are found with `tools_find` and called with
/// `tools_call`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// Chooses by size: the first of the others that is small enough.
    #[default]
    Auto,
    /// All tools.
    Full,
    /// The tools of servers, declared tools, and what `profile` lists.
    Servers,
    /// The selected tools, `tools_find`, `tools_call` and `result_read`.
    Profile,
    /// `tools_find`, `tools_call` and `result_read` only.
    Find,
    /// `tools_find`, `run_code` and `result_read` only.
    Code,
}

impl Surface {
    pub const ALL: [Self; 6] = [Self::Auto, Self::Full, Self::Servers, Self::Profile, Self::Find, Self::Code];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Full => "full",
            Self::Servers => "servers",
            Self::Profile => "profile",
            Self::Find => "find",
            Self::Code => "code",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|surface| surface.as_str() == text)
    }
}

/// Whether MCP clients get structured results beside the text, and the schemas of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Structure {
    #[default]
    On,
    /// Text only, for clients that would show a model both.
    Off,
}

impl Structure {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "on" => Some(Self::On),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

/// What is listed to MCP clients, unless a profile or a client's address says otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SurfaceSettings {
    /// Which tools are listed: `auto`, `full`, `servers`, `profile`, `find` or `code`.
    pub tools: Surface,
    /// Patterns of names of the tools that `servers` and `profile` list at `/mcp`.
    pub listed: Vec<String>,
    /// Whether results have structured content, too: `on` or `off`.
    pub structure: Structure,
}

impl Default for SurfaceSettings {
    fn default() -> Self {
        Self {
            tools: Surface::default(),
            listed: EVERYDAY_TOOLS.iter().map(|name| (*name).to_owned()).collect(),
            structure: Structure::default(),
        }
    }
}

/// Tools of most tasks.
const EVERYDAY_TOOLS: [&str; 10] = [
    "fs_edit",
    "fs_list",
    "fs_read_text",
    "fs_search",
    "fs_write_text",
    "git_diff",
    "git_status",
    "read_page",
    "shell_exec",
    "web_search",
];

/// What a client asks for in its address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListOptions {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<Surface>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structure: Option<Structure>,
}

/// The patterns of the tools that `profile` lists.
#[derive(Debug, Clone, Default)]
pub struct ListedTools(GlobSet);

impl ListedTools {
    pub fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        Ok(Self(glob_set(patterns)?))
    }

    pub fn includes(&self, entry: &Entry) -> bool {
        self.0.is_match(&*entry.listed_name)
    }
}

/// Whether a tool is one of those that somebody has added to the hub.
pub fn is_of_user(entry: &Entry) -> bool {
    let source = &entry.item.source;
    !source.is_native() || source.name() == DECLARED_SOURCE
}

impl Surface {
    /// Whether a tool is listed.
    pub fn lists(self, listed: &ListedTools, entry: &Entry) -> bool {
        let is_native = |name: &str| entry.item.source.is_native() && entry.item.key == name;
        let is_needed = || is_find_or_call_tool(entry) || is_native(RESULT_READ_TOOL);
        match self {
            Self::Auto | Self::Full => !is_find_or_call_tool(entry),
            Self::Servers => is_needed() || listed.includes(entry) || is_of_user(entry),
            Self::Profile => is_needed() || listed.includes(entry),
            Self::Find => is_needed(),
            Self::Code => [FIND_TOOL, RUN_CODE_TOOL, RESULT_READ_TOOL].into_iter().any(is_native),
        }
    }
}
