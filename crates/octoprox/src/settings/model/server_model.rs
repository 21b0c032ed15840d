//! Settings of an upstream server.

use crate::settings::model::secret_masking::{serialize_masked, serialize_url};
use crate::settings::model::server_auth::ServerAuth;
use octo_hub::trust::{EffectsSetting, TrustSetting};
use octo_model::{Secret, ServerRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An upstream: a program (`command` or `package`), a URL (`url`), or an API described by an OpenAPI document
/// (`document`). Its tools are listed as `name__tool`.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Display name, such as `Google Drive`. Tool names use the key of the entry instead.
    pub name: Option<String>,
    /// Program to start. It must speak MCP over stdio.
    pub command: Option<String>,
    /// Installed package whose program is started: `npm:NAME@VERSION`, `pypi:NAME@VERSION` or `mcpb:NAME@VERSION`, as
    /// written by `octoprox add`. `command` is then the name of its program, if it differs from the package's.
    pub package: Option<String>,
    /// Digest of the package with all its dependencies. Default: the one in `servers.lock` beside this file.
    pub digest: Option<String>,
    /// Arguments of the program. They are passed unchanged, without a shell.
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to PATH, HOME, USER, LOGNAME, LANG, LC_ALL, TERM, TMPDIR and
    /// SHELL.
    #[serde(serialize_with = "serialize_masked")]
    pub env: BTreeMap<String, Secret>,
    /// Working directory of the program: a path, relative to this file, or `${workspace}` for the workspace of the session.
    /// Default: an empty directory of the hub, so that no file of a project decides what runs; in a sandbox, its first
    /// directory, or the home directory of the program if tools can write that.
    pub cwd: Option<PathBuf>,
    /// URL of an MCP server (streamable HTTP). With `document`: base URL of the API, if the document does not contain
    /// one.
    #[serde(serialize_with = "serialize_url")]
    pub url: Option<String>,
    /// HTTP headers added to every request.
    #[serde(serialize_with = "serialize_masked")]
    pub headers: BTreeMap<String, Secret>,
    /// URL or path of an OpenAPI document whose operations become tools. Use with `type: openapi`.
    #[serde(serialize_with = "serialize_url_or_path")]
    pub document: Option<String>,
    /// Connection type, as in the settings of other products. Optional: it follows from `command`, `url` or `document`.
    /// `sse`: the URL is that of an HTTP+SSE stream; without it, this is detected.
    #[serde(rename = "type")]
    pub kind: Option<Kind>,
    /// Authentication at the server.
    pub auth: Option<ServerAuth>,
    /// Enable the server.
    pub enabled: bool,
    /// When to connect. `on-demand`: on the first call. `always`: at startup, and stay connected.
    pub connect: Connect,
    /// Seconds without a call after which an on-demand connection is closed and its program is stopped.
    pub idle_timeout_seconds: u64,
    /// Maximum time to start and negotiate the protocol revision, in seconds.
    pub start_timeout_seconds: u64,
    /// Maximum duration of a call, in seconds.
    pub timeout_seconds: u64,
    /// Who shares a connection and its program. `one`: all callers share one. `pool`: all callers share up to `pool`
    /// connections. `per-caller` or `per-session`: one each. If callers log in individually, each has its own
    /// connection regardless.
    pub share: Share,
    /// Maximum number of connections with `share: pool`.
    pub pool: usize,
    /// Maximum number of calls that start per minute. Further calls wait in a fair queue. Default: no limit.
    pub per_minute: Option<usize>,
    /// Maximum number of concurrent calls. Further calls wait in a fair queue. Default: no limit.
    pub max_concurrent: Option<usize>,
    /// Run the program in a sandbox. Without it, the program has all permissions of the hub's user.
    pub sandbox: Option<ServerSandbox>,
    /// MCP era. `auto`: detect it. `legacy`: revisions up to 2025-11-25, with a handshake. `modern`: revision
    /// 2026-07-28.
    pub era: Era,
    /// What to do when the server changes the definition of a tool. `hold`: keep the pinned definition until you accept
    /// the change. `warn`: accept and report it. `follow`: accept it.
    pub trust: TrustSetting,
    /// What its tools do, for policy rules. `annotations`: what the server claims. Otherwise patterns of its own tool names
    /// under `reads`, `writes` and `destroys`. Default: every tool of an MCP server counts as `destroys`.
    pub effects: Option<EffectsSetting>,
    /// What the server may ask the client of a call: `elicitation` (questions to the person), `roots` (names of
    /// directories), and `sampling` (text of the client's model, which may know the conversation).
    pub questions: Vec<QuestionKind>,
    /// Hosts that the server may send a person to, beside its own site: `login.example.com`.
    pub question_hosts: Vec<String>,
}

/// A question of a server to the client of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuestionKind {
    Elicitation,
    Sampling,
    Roots,
}

impl From<QuestionKind> for ServerRequest {
    fn from(kind: QuestionKind) -> Self {
        match kind {
            QuestionKind::Elicitation => Self::Elicitation,
            QuestionKind::Sampling => Self::Sampling,
            QuestionKind::Roots => Self::Roots,
        }
    }
}

impl Default for Server {
    fn default() -> Self {
        Self {
            name: None,
            command: None,
            package: None,
            digest: None,
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
            effects: None,
            questions: vec![QuestionKind::Elicitation, QuestionKind::Roots],
            question_hosts: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

impl Server {
    /// Returns whether the upstream is a program.
    pub fn is_program(&self) -> bool {
        self.command.is_some() || self.package.is_some()
    }

    /// Returns whether the upstream speaks MCP. Otherwise an OpenAPI document describes it.
    pub fn is_mcp(&self) -> bool {
        self.document.is_none()
    }
}

/// Serializes a URL with its secrets masked, or a path unchanged.
fn serialize_url_or_path<S: serde::Serializer>(
    value: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(text) if text.contains("://") => serialize_url(value, serializer),
        _ => value.serialize(serializer),
    }
}

/// MCP era of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    #[default]
    Auto,
    Legacy,
    Modern,
}

/// When to connect to a server.
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

/// Permissions of a sandboxed program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, from = "SandboxText")]
pub struct ServerSandbox {
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// Access to the whole network.
    pub network: bool,
    pub hosts: Vec<String>,
}

/// Permissions of a sandboxed program.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct SandboxText {
    /// Directories that the program may read.
    read: Vec<PathBuf>,
    /// Directories that the program may read and write.
    write: Vec<PathBuf>,
    /// Network access: `true` for the whole network, or a list of hosts, as in `hosts`.
    network: NetworkText,
    /// Hosts that the program may reach over HTTP and HTTPS: `api.example.com`, `*.example.com`, an address or a network,
    /// each with an optional port. The program receives a proxy in `HTTPS_PROXY`. Requires bubblewrap.
    hosts: Vec<String>,
}

/// Everything or nothing, or these hosts.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum NetworkText {
    All(bool),
    Hosts(Vec<String>),
}

impl Default for NetworkText {
    fn default() -> Self {
        Self::All(false)
    }
}

impl From<SandboxText> for ServerSandbox {
    fn from(text: SandboxText) -> Self {
        let SandboxText { read, write, network, mut hosts } = text;
        let network = match network {
            NetworkText::All(network) => network,
            NetworkText::Hosts(more) => {
                hosts.extend(more);
                false
            }
        };
        Self { read, write, network, hosts }
    }
}

/// Connection type, with the aliases that other products use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("enum" = ["stdio", "stdio-mcp", "http", "streamable-http", "streamableHttp", "remote-mcp", "sse", "openapi"]))]
pub enum Kind {
    #[serde(rename = "stdio", alias = "stdio-mcp")]
    Stdio,
    #[serde(rename = "http", alias = "streamable-http", alias = "streamableHttp", alias = "remote-mcp")]
    Http,
    /// HTTP+SSE, the transport of revision 2024-11-05.
    #[serde(rename = "sse")]
    Sse,
    #[serde(rename = "openapi")]
    Openapi,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples from a gateway's documentation.
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
    fn the_network_of_a_sandbox_is_everything_or_a_list() {
        let read =
            |text: &str| serde_saphyr::from_str::<ServerSandbox>(text).ok().map(|it| (it.network, it.hosts));
        let hosts = |hosts: &[&str]| hosts.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
        assert_eq!(read("network: true"), Some((true, vec![])));
        assert_eq!(read("network: [api.github.com:443]"), Some((false, hosts(&["api.github.com:443"]))));
        assert_eq!(read("{hosts: [a.test], network: [b.test]}"), Some((false, hosts(&["a.test", "b.test"]))));
        assert_eq!(read("network: api.github.com"), None);
        assert_eq!(read("{}"), Some((false, vec![])));
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
