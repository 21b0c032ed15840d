//! One server behind the hub.

use crate::settings::model::secret_masking::{serialize_masked, serialize_url};
use crate::settings::model::server_auth::ServerAuth;
use octo_hub::trust::TrustSetting;
use octo_model::Secret;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A server behind the hub: a program (`command`), an address (`url`), or an API that a document describes (`document`).
/// Its tools are listed as `name__tool`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// What people call it, such as `Google Drive`; tools are named after the entry's own key.
    pub name: Option<String>,
    /// Program to start; it speaks MCP on its standard streams.
    pub command: Option<String>,
    /// Arguments of the program, each as it is; no shell reads them.
    pub args: Vec<String>,
    /// Variables of the program, beside PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TERM, TMPDIR and SHELL.
    #[serde(serialize_with = "serialize_masked")]
    pub env: BTreeMap<String, Secret>,
    /// Folder that the program starts in.
    pub cwd: Option<PathBuf>,
    /// Address of a server that speaks MCP over streamable HTTP. Beside a `document`: where the API is, when the document does
    /// not say.
    #[serde(serialize_with = "serialize_url")]
    pub url: Option<String>,
    /// Headers of every request to the address.
    #[serde(serialize_with = "serialize_masked")]
    pub headers: BTreeMap<String, Secret>,
    /// OpenAPI document whose operations become tools: its address, or a file. It goes with `type: openapi`.
    #[serde(serialize_with = "serialize_url_or_path")]
    pub document: Option<String>,
    /// Kind of connection, as other products write it; it follows from `command`, `url` or `document` and may be left out.
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// How the hub proves who it is at the server.
    pub auth: Option<ServerAuth>,
    /// Whether the server is used.
    pub enabled: bool,
    /// When the connection is made: `on-demand` waits for the first call, `always` connects at the start and stays.
    pub connect: Connect,
    /// Seconds without a call after which a connection that was made on demand ends, and its program with it.
    pub idle_timeout_seconds: u64,
    /// Longest that starting and agreeing on a revision may take, in seconds.
    pub start_timeout_seconds: u64,
    /// Longest that one call may take, in seconds.
    pub timeout_seconds: u64,
    /// Who shares a connection, and with it a program: `one` for everybody, `pool` for up to `pool` of them, `per-caller` or
    /// `per-session`. Where people log in for themselves, each caller has one in any case.
    pub share: Share,
    /// How many connections a pool has at most.
    pub pool: usize,
    /// Calls that may begin within a minute; who comes later waits, each caller in turn. Without it as many as come.
    pub per_minute: Option<usize>,
    /// Calls that may be under way at the same time; who comes later waits, each caller in turn. Without it as many as come.
    pub max_concurrent: Option<usize>,
    /// Shuts the program in. Without it the program may do what the hub's own user may.
    pub sandbox: Option<ServerSandbox>,
    /// How it is spoken to: `auto` asks first, `legacy` is the handshake of 2025, `modern` the revision 2026-07-28.
    pub era: Era,
    /// What happens when the server changes what it says about its tools: `hold` keeps what was pinned until you accept the
    /// change, `warn` takes it on and reports it, `follow` takes it on.
    pub trust: TrustSetting,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            name: None,
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            document: None,
            kind: None,
            auth: None,
            enabled: true,
            connect: Connect::OnDemand,
            idle_timeout_seconds: 600,
            start_timeout_seconds: 30,
            timeout_seconds: 300,
            share: Share::One,
            pool: 4,
            per_minute: None,
            max_concurrent: None,
            sandbox: None,
            era: Era::Auto,
            trust: TrustSetting::default(),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

impl Server {
    /// Whether it speaks MCP; otherwise a document stands for it.
    pub fn is_mcp(&self) -> bool {
        self.document.is_none()
    }
}

/// An address without what is secret in it; a file's name as it is.
fn serialize_url_or_path<S: serde::Serializer>(
    value: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(text) if text.contains("://") => serialize_url(value, serializer),
        _ => value.serialize(serializer),
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

/// When a server is connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Connect {
    #[default]
    OnDemand,
    Always,
}

/// Who shares a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Share {
    #[default]
    One,
    Pool,
    PerCaller,
    PerSession,
}

/// What a program may touch that is shut in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSandbox {
    /// Folders that it may read.
    pub read: Vec<PathBuf>,
    /// Folders that it may read and write.
    pub write: Vec<PathBuf>,
    /// Whether it may use the network.
    pub network: bool,
}

/// The word that other products' files use for the kind of connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("enum" = ["stdio", "stdio-mcp", "http", "streamable-http", "streamableHttp", "remote-mcp", "openapi"]))]
pub enum Kind {
    #[serde(rename = "stdio", alias = "stdio-mcp")]
    Stdio,
    #[serde(rename = "http", alias = "streamable-http", alias = "streamableHttp", alias = "remote-mcp")]
    Http,
    #[serde(rename = "openapi")]
    Openapi,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of a gateway's own file, as its documentation has them.
    #[test]
    fn the_words_of_a_gateway() {
        let text = "
notion:
  name: Notion
  type: remote-mcp
  url: https://mcp.notion.com/mcp
  auth:
    type: oauth2-pkce
  enabled: true
  connect: on-demand
notion-local:
  name: Notion (self-hosted)
  type: stdio-mcp
  command: npx
  args: ['-y', '@notionhq/notion-mcp-server']
  auth:
    type: api-key
    env: NOTION_API_KEY
  enabled: false
gdrive:
  type: remote-mcp
  url: https://some-gdrive-mcp-server/mcp
  auth: {type: oauth2}
  connect: always
shop:
  type: openapi
  document: ./shop.yaml
  auth: {type: api-key, env: SHOP_KEY, header: X-Api-Key}
";
        let servers: BTreeMap<String, Server> = serde_saphyr::from_str(text).unwrap();
        assert_eq!(servers["notion"].kind, Some(Kind::Http));
        assert_eq!(servers["gdrive"].connect, Connect::Always);
        let auth = |name: &str| servers[name].auth.clone().unwrap();
        assert_eq!(auth("notion").kind, auth("gdrive").kind);
        assert_eq!(auth("notion-local").env.as_deref(), Some("NOTION_API_KEY"));
        assert!(!servers["shop"].is_mcp() && servers["notion"].is_mcp());
    }

    #[test]
    fn what_is_shown_of_a_document_has_no_password() {
        for (document, shown) in [
            ("https://ada:hush@x.test/api.json", "https://ada:***@x.test/api.json"),
            ("./api.yaml", "./api.yaml"),
        ] {
            let server = Server { document: Some(document.to_owned()), ..Server::default() };
            assert_eq!(serde_json::to_value(&server).unwrap()["document"], shown);
        }
    }
}
