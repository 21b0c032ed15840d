//! The smaller sections of the settings.

use crate::settings::model::secret_masking::serialize_urls;
use octo_model::Secret;
use octo_store::Durability;
use octo_web::TokenSettings;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Where the hub listens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Listen {
    /// Address to listen on. Any other than loopback needs `auth.tokens`.
    pub host: String,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 7000 }
    }
}

/// Bounds of every call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Calls {
    /// Longest that any call may take, in seconds.
    pub timeout_seconds: u64,
}

impl Default for Calls {
    fn default() -> Self {
        Self { timeout_seconds: 600 }
    }
}

/// The record of every call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    /// When a record is durable: `flush` survives a crash of the process, `fsync` a power failure as well and is slower.
    pub durability: Durability,
    /// Whether records have the arguments of calls. Secrets are masked as far as they can be recognised. Without it a record has
    /// only a keyed hash of them.
    pub arguments: bool,
    /// How many records are kept; the oldest are taken out beyond that. A call makes two. Without it all are kept.
    pub max_records: Option<u64>,
    /// For how many days records are kept. Without it they are kept for ever.
    pub max_days: Option<u64>,
}

impl Audit {
    /// What is kept.
    pub fn retention(&self) -> octo_ports::Retention {
        let day = std::time::Duration::from_secs(24 * 60 * 60);
        let days = self.max_days.map(|days| u32::try_from(days).unwrap_or(u32::MAX));
        octo_ports::Retention { max_records: self.max_records, max_age: days.map(|days| day * days) }
    }
}

/// Who may come in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Auth {
    /// Bearer tokens that are accepted; `octoprox token new NAME` makes one. With none, everybody who reaches the port is
    /// let in.
    pub tokens: Vec<TokenSettings>,
}

/// The edge towards HTTP clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Http {
    /// Names under which the hub may be asked for, beside loopback and its own address; guards against rebinding of names.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may call, such as `https://app.example`. Empty: only pages from loopback.
    pub allowed_origins: Vec<String>,
    /// Longest body of a request in bytes.
    pub max_body_bytes: usize,
    /// Seconds after which a session of an older client is dropped when it is not used.
    pub session_idle_seconds: u64,
    /// Sessions of older clients that may be open at once. Where there are several tokens, one caller may have a quarter of them.
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

/// What operators see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// Where spans go: the address of an OTLP collector over HTTP, such as `http://127.0.0.1:4318`. Without it no spans are made.
    pub otlp_endpoint: Option<String>,
    /// How much is logged: `error`, `warn`, `info`, `debug` or `trace`, also by part: `info,octo_hub=debug`.
    pub log_level: String,
    /// File that log lines are added to, beside standard output.
    pub log_file: Option<PathBuf>,
    /// Whether the log line of a call has its arguments. Secrets are masked as far as they can be recognised.
    pub log_arguments: bool,
    /// Whether spans carry arguments and results. Secrets are masked as far as they can be recognised.
    pub trace_contents: bool,
    /// Name of this service in traces.
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

/// What may be reached.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Net {
    /// Hosts (`wiki.local`, `*.corp.example`), addresses and networks (`10.0.0.0/8`), each with an optional port, that tools may
    /// reach although they are private. Public addresses need no entry.
    pub allow: Vec<String>,
    /// Requests that tools may start per second to one host. Unset: no limit, but six at the same time.
    pub requests_per_second: Option<f64>,
    /// Whether `fetch_url`, `fetch_json` and `read_page` leave pages alone that the site's robots.txt disallows.
    pub respect_robots: bool,
    /// An address that site owners can turn to, such as `https://example.com/bot` or `mailto:ops@example.com`; it is added to the
    /// User-Agent.
    pub contact: Option<String>,
}

/// The browser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Browser {
    /// Whether `browser_execute_js` runs scripts in pages.
    pub allow_javascript: bool,
}

impl Default for Browser {
    fn default() -> Self {
        Self { allow_javascript: true }
    }
}

/// Web search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Search {
    /// Address of a SearxNG instance.
    pub searxng_url: Option<String>,
    /// Key for Brave Search.
    pub brave_api_key: Option<Secret>,
}

/// SQL databases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// Databases by name: `main: postgresql://user:password@host:5432/name`.
    #[serde(serialize_with = "serialize_urls")]
    pub connections: BTreeMap<String, Secret>,
    /// Other logins for reading, by the name of the connection: roles that the database itself keeps from writing.
    #[serde(serialize_with = "serialize_urls")]
    pub readers: BTreeMap<String, Secret>,
    /// Connections whose role may be a superuser, or may reach files and programs of the server: no transaction keeps such a
    /// role from doing so, not even within `db_query`.
    pub superusers: Vec<String>,
    /// Whether only reading is allowed; the database itself enforces it.
    pub read_only: bool,
}

/// A language model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Llm {
    /// Address of an endpoint that speaks OpenAI's chat completions, up to and with the version: `https://api.example.com/v1`.
    /// Without it no tool that needs a model is listed.
    pub url: Option<String>,
    /// Key that is sent to it.
    pub key: Option<Secret>,
    /// Name of the model to ask.
    pub model: String,
}

impl Default for Llm {
    fn default() -> Self {
        Self { url: None, key: None, model: "default".to_owned() }
    }
}

/// GitHub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Github {
    /// Address of GitHub's API, where it is not github.com: `https://github.example/api/v3`.
    pub url: Option<String>,
    /// Token for GitHub's API.
    pub token: Option<Secret>,
}

/// GitLab.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gitlab {
    /// Address of the instance; `https://gitlab.com` when it is not set.
    pub url: Option<String>,
    /// Token for GitLab's API; it goes to the instance alone.
    pub token: Option<Secret>,
    /// How the token is sent: `auto` tells by its looks, `private`, `bearer` or `job`.
    pub token_kind: tools_forge::TokenKind,
    /// Address of the instance's OpenAPI document, where it is not GitLab's own.
    pub openapi_url: Option<String>,
}

/// The admin API, and where browsers come back to after a login.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Admin {
    /// Whether `octoprox serve` has an admin API.
    pub enabled: bool,
    /// Address to listen on. Any other than loopback needs `auth.tokens`.
    pub host: String,
    /// Port to listen on; 0 takes a free one.
    pub port: u16,
}

impl Default for Admin {
    fn default() -> Self {
        Self { enabled: true, host: "127.0.0.1".to_owned(), port: 3100 }
    }
}

/// Logins at servers behind the hub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Logins {
    /// Secret that stored credentials are sealed with.
    pub secret: Option<Secret>,
    /// File with that secret, such as one that a container is given.
    pub secret_file: Option<PathBuf>,
    /// Folder of the stored credentials; within `state_dir` when it is not set.
    pub store: Option<PathBuf>,
    /// Address that a login returns to, where the browser is not on this machine. It must end in `/auth/callback` for the hub to
    /// offer its login page.
    pub callback_url: Option<String>,
}

/// Prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Prompts {
    /// Folders with playbooks: YAML or JSON files with prompts. Changes are picked up while the hub runs; later folders win.
    pub folders: Vec<PathBuf>,
    /// Whether the prompts that come with the product are listed.
    pub builtin: bool,
}

impl Default for Prompts {
    fn default() -> Self {
        Self { folders: Vec::new(), builtin: true }
    }
}

/// Tools that are declared in YAML.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tools {
    /// Folders with declared tools. They are followed as they change, and must lie where agents cannot write.
    pub folders: Vec<PathBuf>,
}
