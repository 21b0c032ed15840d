//! Smaller sections of the settings.

use crate::settings::model::secret_masking::serialize_urls;
use octo_model::Secret;
use octo_store::Durability;
use octo_web::TokenSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Address and port of the HTTP server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Address to listen on. Any address other than loopback requires `auth.tokens`.
    pub host: String,
    /// Port to listen on. `0` picks a free port.
    pub port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 7000 }
    }
}

/// Limits that apply to every call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Calls {
    /// Maximum duration of a call, in seconds.
    pub timeout_seconds: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self { timeout_seconds: 600 }
    }
}

/// Audit log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// When a record counts as durable. `flush`: it survives a crash of the process. `fsync`: it also survives a power
    /// failure; slower.
    pub durability: Durability,
    /// Record the arguments of calls. Secrets are masked where they can be recognized. If disabled, only a keyed hash
    /// of the arguments is recorded.
    pub arguments: bool,
    /// Maximum number of records; the oldest are deleted first. Each call writes two. Default: no limit.
    pub max_records: Option<u64>,
    /// Days after which records are deleted. Default: never.
    pub max_days: Option<u64>,
}

impl Audit {
    /// Retention of records.
    pub fn retention(&self) -> octo_ports::Retention {
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        let days = self.max_days.map(|days| u32::try_from(days).unwrap_or(u32::MAX));
        octo_ports::Retention { max_records: self.max_records, max_age: days.map(|days| day * days) }
    }
}

/// Client authentication.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// Accepted bearer tokens. Create one with `octoprox token new NAME`. If empty, requests are not authenticated.
    pub tokens: Vec<TokenSettings>,
}

/// HTTP server limits and allowed hosts and origins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Accepted values of the `Host` header, in addition to loopback and the listen address. Protects against DNS
    /// rebinding.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, such as `https://app.example`. If empty, only pages from loopback
    /// may.
    pub allowed_origins: Vec<String>,
    /// Maximum size of a request body, in bytes.
    pub max_body_bytes: usize,
    /// Seconds after which an unused session of a legacy client (protocol revisions up to 2025-11-25) is closed.
    pub session_idle_seconds: u64,
    /// Maximum number of open sessions of legacy clients. With more than one token, each caller may have a quarter of
    /// them.
    pub max_sessions: usize,
}

impl Default for Http {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 << 20,
            session_idle_seconds: 1_800,
            max_sessions: 200_000,
        }
    }
}

/// Logs and traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// URL of an OTLP/HTTP collector for traces, such as `http://127.0.0.1:4318`. If not set, no spans are created.
    pub otlp_endpoint: Option<String>,
    /// Log level: `error`, `warn`, `info`, `debug` or `trace`, optionally per module: `info,octo_hub=debug`.
    pub log_level: String,
    /// File to which log lines are appended, in addition to standard output.
    pub log_file: Option<PathBuf>,
    /// Log the arguments of calls. Secrets are masked where they can be recognized.
    pub log_arguments: bool,
    /// Include arguments and results in spans. Secrets are masked where they can be recognized.
    pub trace_contents: bool,
    /// Service name in traces.
    pub service_name: String,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            log_level: "info".to_owned(),
            log_file: None,
            log_arguments: false,
            trace_contents: false,
            service_name: "octoprox".to_owned(),
        }
    }
}

/// Network access of tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Net {
    /// Private hosts (`wiki.local`, `*.corp.example`), IP addresses and networks (`10.0.0.0/8`) that tools may connect
    /// to, each with an optional port. Public addresses need no entry.
    pub allow: Vec<String>,
    /// The only public hosts (`docs.example.com`, `*.example.org`) that tools, the browser and git may connect to, beside
    /// those in `allow`; an empty list leaves none. Servers and services that the settings name are not affected. Default:
    /// every public host.
    pub only: Option<Vec<String>>,
    /// Maximum number of requests per second that tools send to one host. Default: no limit. At most six run at the
    /// same time.
    pub requests_per_second: Option<f64>,
    /// Obey robots.txt: `fetch_url`, `fetch_json` and `read_page` refuse pages that the site disallows.
    pub respect_robots: bool,
    /// Contact for site owners, such as `https://example.com/bot` or `mailto:ops@example.com`. Added to the User-Agent.
    pub contact: Option<String>,
}

/// Search toolbox: search engines.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Search {
    /// URL of a SearxNG instance.
    pub searxng_url: Option<String>,
    /// API key for Brave Search.
    pub brave_api_key: Option<Secret>,
}

/// Database toolbox: connections and permissions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// Connection URLs by name: `main: postgresql://user:password@host:5432/name`.
    #[serde(serialize_with = "serialize_urls")]
    pub connections: BTreeMap<String, Secret>,
    /// Connection URLs used for read-only queries, by connection name. Their roles should have no write privileges in
    /// the database.
    #[serde(serialize_with = "serialize_urls")]
    pub readers: BTreeMap<String, Secret>,
    /// Connections whose role may be a superuser or may access files and programs of the database server. A transaction
    /// does not stop such a role, not even a read-only one in `db_query`.
    pub superusers: Vec<String>,
    /// Allow only read-only queries, enforced by the database.
    pub read_only: bool,
}

/// Language model for tools that need one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Llm {
    /// Base URL of an OpenAI-compatible chat completions API, including the version: `https://api.example.com/v1`. If
    /// not set, tools that need a model are not listed.
    pub url: Option<String>,
    /// API key for `llm.url`.
    pub key: Option<Secret>,
    /// Name of the model.
    pub model: String,
}

impl Default for Llm {
    fn default() -> Self {
        Self { url: None, key: None, model: "default".to_owned() }
    }
}

/// GitHub toolbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Github {
    /// URL of the GitHub API, if not github.com: `https://github.example/api/v3`.
    pub url: Option<String>,
    /// Token for the GitHub API.
    pub token: Option<Secret>,
}

/// GitLab toolbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gitlab {
    /// URL of the GitLab instance. Default: `https://gitlab.com`.
    pub url: Option<String>,
    /// Token for the GitLab API. Sent only to `gitlab.url`.
    pub token: Option<Secret>,
    /// How the token is sent: `private`, `bearer`, `job`, or `auto` to detect it from the token's format.
    pub token_kind: tools_forge::TokenKind,
    /// URL of the instance's OpenAPI document, if it differs from GitLab's default.
    pub openapi_url: Option<String>,
}

/// Admin API. It also receives the OAuth callback after a login.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// Start the admin API with `octoprox serve`.
    pub enabled: bool,
    /// Address to listen on. Any address other than loopback requires `auth.tokens`.
    pub host: String,
    /// Port to listen on. `0` picks a free port.
    pub port: u16,
}

impl Default for Admin {
    fn default() -> Self {
        Self { enabled: true, host: "127.0.0.1".to_owned(), port: 3100 }
    }
}

/// Logins at upstream servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Logins {
    /// Secret from which the encryption key of the credential store is derived.
    pub secret: Option<Secret>,
    /// File that contains the secret, such as a container secret.
    pub secret_file: Option<PathBuf>,
    /// Directory of the credential store. Default: a directory in `state_dir`.
    pub store: Option<PathBuf>,
    /// OAuth redirect URL, if the browser runs on another machine. It must end in `/auth/callback` for the hub to offer
    /// its login page.
    pub callback_url: Option<String>,
}

/// Database of several hubs that share their state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Store {
    /// PostgreSQL connection string, such as `postgres://user:password@host/database?sslmode=verify-full`. Of several
    /// hosts, separated by commas, the primary is used. Requires `logins.secret`, the same for all hubs. Create the tables
    /// with `octoprox migrate`. Default: SQLite in `state_dir`.
    pub postgres: Option<Secret>,
    /// Schema of the tables.
    pub schema: String,
    /// Name of this hub among those that share the database. Default: the host name.
    pub node: Option<String>,
    /// Maximum number of connections to the database.
    pub max_connections: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self { postgres: None, schema: "octoprox".to_owned(), node: None, max_connections: 16 }
    }
}

/// Nodes that share the work: fronts take calls, workers run what cannot move.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fleet {
    /// NATS servers that connect the nodes, such as `nats://10.0.0.5:4222` or `tls://nats.example:4222`. Default: none, a
    /// single node.
    pub nats: Vec<String>,
    /// Credentials for NATS: the seed of an nkey, or the content of a `.creds` file.
    pub credentials: Option<Secret>,
    /// Secret with which nodes encrypt their messages and prove who they are: the same at all fronts, at least 32
    /// characters. For a worker, use the output of `octoprox fleet key`.
    pub secret: Option<Secret>,
    /// File with the certificates that TLS trusts. Default: those of the system.
    pub ca_file: Option<PathBuf>,
    /// Connect to servers that are not on this machine without TLS. Messages are encrypted with `fleet.secret`.
    pub allow_plain_text: bool,
    /// Use a bus without credentials, `fleet.secret` or TLS. Whoever reaches it can call every tool as anybody: use it only
    /// where nobody else does.
    pub allow_open_bus: bool,
    /// Name of the workspace: a worker serves its own under this name, and fronts run the tools on files, git, shell and
    /// browser there.
    pub workspace: String,
    /// Name of the files of the workspace, the same at all workers that share them. Workers with the same files stand by
    /// for each other; a worker with other files is refused. Default: the directory, wherever its file system is mounted.
    pub workspace_files: Option<String>,
}

impl Default for Fleet {
    fn default() -> Self {
        Self {
            nats: Vec::new(),
            credentials: None,
            secret: None,
            ca_file: None,
            allow_plain_text: false,
            allow_open_bus: false,
            workspace: "default".to_owned(),
            workspace_files: None,
        }
    }
}

/// Prompts: your own and the built-in ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Prompts {
    /// Directories of playbooks: YAML or JSON files that define prompts. Changes are picked up while the hub runs. On
    /// conflicts, later directories take precedence.
    pub folders: Vec<PathBuf>,
    /// List the built-in prompts.
    pub builtin: bool,
}

impl Default for Prompts {
    fn default() -> Self {
        Self { folders: Vec::new(), builtin: true }
    }
}

/// Agent Skills.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Skills {
    /// Directories of skills: folders with a `SKILL.md`. Changes are picked up while the hub runs.
    pub folders: Vec<PathBuf>,
}

/// Declared tools: tools that you define in YAML.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Directories of declared tools. Changes are picked up while the hub runs. Agents must not be able to write to
    /// these directories.
    pub folders: Vec<PathBuf>,
}
