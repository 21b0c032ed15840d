//! One MCP server behind the hub.

use super::secret::{Secret, address, masked};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A server behind the hub: a program (`command`) or an address (`url`). Its tools are listed as `name__tool`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Program to start; it speaks MCP on its standard streams.
    pub command: Option<String>,
    /// Arguments of the program, each as it is; no shell reads them.
    pub args: Vec<String>,
    /// Variables of the program, beside PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TERM, TMPDIR and SHELL.
    #[serde(serialize_with = "masked")]
    pub env: BTreeMap<String, Secret>,
    /// Folder that the program starts in.
    pub cwd: Option<PathBuf>,
    /// Address of a server that speaks MCP over streamable HTTP.
    #[serde(serialize_with = "address")]
    pub url: Option<String>,
    /// Headers of every request to the address.
    #[serde(serialize_with = "masked")]
    pub headers: BTreeMap<String, Secret>,
    /// Kind of connection, as other products write it; it follows from `command` or `url` and may be left out.
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// Whether the server is used.
    pub enabled: bool,
    /// Longest that one call may take, in seconds.
    pub timeout_seconds: u64,
    /// How it is spoken to: `auto` asks first, `legacy` is the handshake of 2025, `modern` the revision 2026-07-28.
    pub era: Era,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            kind: None,
            enabled: true,
            timeout_seconds: 300,
            era: Era::Auto,
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    #[default]
    Auto,
    Legacy,
    Modern,
}

/// The word that other products' files use for the kind of connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Kind {
    #[serde(rename = "stdio", alias = "stdio-mcp")]
    Stdio,
    #[serde(rename = "http", alias = "streamable-http", alias = "streamableHttp", alias = "remote-mcp")]
    Http,
}
