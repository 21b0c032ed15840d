//! Environment variables of the hub.

use crate::settings::Environment;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_layers::Layers;
use crate::settings::model::toolbox_switches::Toolboxes;
use octo_model::nearest;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How the value of a variable is parsed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueFormat {
    Text,
    Boolean,
    Integer,
    /// Comma-separated values.
    List,
    /// Comma-separated `name=URL` pairs.
    Addresses,
    /// Bearer token of an administrator with this name. Only its hash is stored.
    Token(&'static str),
    /// A directory that is appended to a list.
    Folder,
}

/// Name, setting and format. If two variables set the same value, the later one wins, so our own names come last.
const VARIABLES: &[(&str, &str, ValueFormat)] = &[
    ("WORKSPACE_PATH", "workspace", ValueFormat::Text),
    ("OCTOPROX_WORKSPACE", "workspace", ValueFormat::Text),
    ("OCTOPROX_STATE_DIR", "state_dir", ValueFormat::Text),
    ("OCTOPROX_STORE_POSTGRES", "store.postgres", ValueFormat::Text),
    ("OCTOPROX_STORE_SCHEMA", "store.schema", ValueFormat::Text),
    ("OCTOPROX_STORE_NODE", "store.node", ValueFormat::Text),
    ("OCTOPROX_FLEET_NATS", "fleet.nats", ValueFormat::List),
    ("OCTOPROX_FLEET_CREDENTIALS", "fleet.credentials", ValueFormat::Text),
    ("OCTOPROX_FLEET_SECRET", "fleet.secret", ValueFormat::Text),
    ("OCTOPROX_FLEET_ALLOW_PLAIN_TEXT", "fleet.allow_plain_text", ValueFormat::Boolean),
    ("OCTOPROX_FLEET_ALLOW_OPEN_BUS", "fleet.allow_open_bus", ValueFormat::Boolean),
    ("OCTOPROX_FLEET_WORKSPACE", "fleet.workspace", ValueFormat::Text),
    ("OCTOPROX_FLEET_WORKSPACE_FILES", "fleet.workspace_files", ValueFormat::Text),
    ("MCP_BIND_HOST", "listen.host", ValueFormat::Text),
    ("OCTOPROX_HOST", "listen.host", ValueFormat::Text),
    ("MCP_PORT", "listen.port", ValueFormat::Integer),
    ("OCTOPROX_PORT", "listen.port", ValueFormat::Integer),
    ("OCTOPROX_ADMIN_HOST", "admin.host", ValueFormat::Text),
    ("OCTOPROX_ADMIN_PORT", "admin.port", ValueFormat::Integer),
    ("OCTOPROX_ALLOWED_HOSTS", "http.allowed_hosts", ValueFormat::List),
    ("OCTOPROX_SURFACE", "surface.tools", ValueFormat::Text),
    ("OCTOPROX_CALL_TIMEOUT", "calls.timeout_seconds", ValueFormat::Integer),
    ("OCTOPROX_NET_ALLOW", "net.allow", ValueFormat::List),
    ("OCTOPROX_NET_ONLY", "net.only", ValueFormat::List),
    ("OCTOPROX_NET_CONTACT", "net.contact", ValueFormat::Text),
    ("OCTOPROX_NET_RESPECT_ROBOTS", "net.respect_robots", ValueFormat::Boolean),
    ("OCTOPROX_SEARXNG_URL", "search.searxng_url", ValueFormat::Text),
    ("BRAVE_SEARCH_API", "search.brave_api_key", ValueFormat::Text),
    ("BRAVE_API_KEY", "search.brave_api_key", ValueFormat::Text),
    ("GITHUB_TOKEN", "github.token", ValueFormat::Text),
    ("OCTOPROX_GITHUB_TOKEN", "github.token", ValueFormat::Text),
    ("OCTOPROX_GITHUB_URL", "github.url", ValueFormat::Text),
    ("GITLAB_TOKEN", "gitlab.token", ValueFormat::Text),
    ("OCTOPROX_GITLAB_TOKEN", "gitlab.token", ValueFormat::Text),
    ("OCTOPROX_GITLAB_TOKEN_KIND", "gitlab.token_kind", ValueFormat::Text),
    ("OCTOPROX_GITLAB_URL", "gitlab.url", ValueFormat::Text),
    ("OCTOPROX_GITLAB_OPENAPI_URL", "gitlab.openapi_url", ValueFormat::Text),
    ("OCTOPROX_DATABASE_CONNECTIONS", "database.connections", ValueFormat::Addresses),
    ("OCTOPROX_DATABASE_READERS", "database.readers", ValueFormat::Addresses),
    ("OCTOPROX_DATABASE_SUPERUSERS", "database.superusers", ValueFormat::List),
    ("OCTOPROX_PROMPTS", "prompts.folders", ValueFormat::List),
    ("OCTOPROX_SKILLS", "skills.folders", ValueFormat::List),
    ("OCTOPROX_TOOLS", "tools.folders", ValueFormat::List),
    ("PLAYBOOKS_PATH", "prompts.folders", ValueFormat::Folder),
    ("PLAYBOOKS_PATH", "tools.folders", ValueFormat::Folder),
    ("OCTOPROX_LLM_URL", "llm.url", ValueFormat::Text),
    ("OCTOPROX_LLM_KEY", "llm.key", ValueFormat::Text),
    ("OCTOPROX_LLM_MODEL", "llm.model", ValueFormat::Text),
    ("OCTOPROX_DATABASE_READ_ONLY", "database.read_only", ValueFormat::Boolean),
    ("OCTOPROX_SHELL_ALLOWED_COMMANDS", "shell.allowed_commands", ValueFormat::List),
    ("OCTOPROX_SHELL_BLOCKED_COMMANDS", "shell.blocked_commands", ValueFormat::List),
    ("OCTOPROX_SHELL_MAX_TIMEOUT", "shell.max_timeout_seconds", ValueFormat::Integer),
    ("OCTOPROX_SHELL_SANDBOX", "shell.sandbox", ValueFormat::Text),
    ("OCTOPROX_SHELL_NETWORK", "shell.network", ValueFormat::Boolean),
    ("OCTOPROX_SHELL_LOCAL_SERVERS", "shell.local_servers", ValueFormat::Boolean),
    ("OCTOPROX_GIT_ALLOW_COMMIT", "git.allow_commit", ValueFormat::Boolean),
    ("OCTOPROX_GIT_ALLOW_PUSH", "git.allow_push", ValueFormat::Boolean),
    ("OCTOPROX_FILES_READ_ONLY", "files.read_only", ValueFormat::Boolean),
    ("REPOS_PATH", "roots.repos.host_path", ValueFormat::Text),
    ("BASE_REPOS_PATH", "roots.repos.path", ValueFormat::Text),
    ("DOWNLOADS_PATH", "roots.downloads.host_path", ValueFormat::Text),
    ("BASE_DOWNLOADS_PATH", "roots.downloads.path", ValueFormat::Text),
    ("PLAYBOOKS_PATH", "roots.playbooks.path", ValueFormat::Text),
    ("GATEWAY_AUTH_DIR", "logins.store", ValueFormat::Text),
    ("AUTH_STORE_PATH", "logins.store", ValueFormat::Text),
    ("TOOL_GATEWAY_SECRET", "logins.secret", ValueFormat::Text),
    ("OCTOPROX_SECRET", "logins.secret", ValueFormat::Text),
    ("OCTOPROX_SECRET_FILE", "logins.secret_file", ValueFormat::Text),
    ("TOOL_GATEWAY_CALLBACK_URL", "logins.callback_url", ValueFormat::Text),
    ("GATEWAY_TOKEN", "auth.tokens", ValueFormat::Token("gateway")),
    ("OCTOPROX_ADMIN_TOKEN", "auth.tokens", ValueFormat::Token("admin")),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.otlp_endpoint", ValueFormat::Text),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "telemetry.otlp_endpoint", ValueFormat::Text),
    ("OTEL_SERVICE_NAME", "telemetry.service_name", ValueFormat::Text),
    ("OCTOPROX_LOG_LEVEL", "telemetry.log_level", ValueFormat::Text),
    ("OCTOPROX_LOG_FILE", "telemetry.log_file", ValueFormat::Text),
];

/// Variables read elsewhere: the location of the file, and those of this repository's tests and scripts.
const IGNORED_VARIABLES: &[&str] =
    &["OCTOPROX_CONFIG", "OCTOPROX_STANDALONE", "OCTOPROX_BIN", "OCTOPROX_CACHE", "OCTOPROX_CI_LOCKED"];

const TOOLBOX_PREFIX: &str = "OCTOPROX_ENABLE_";

/// Merges the environment into the settings and returns the problems found.
pub fn merge_env(layers: &mut Layers, world: &Environment) -> Vec<SettingsProblem> {
    let mut problems = Vec::new();
    for (name, path, form) in all_variables() {
        let Some(text) = world.variable(&name) else {
            continue;
        };
        let origin = SettingOrigin::Variable(name.clone());
        match parse_value(form, text) {
            Ok(value) if form == ValueFormat::Folder && is_empty(layers.get(&path)) => {
                layers.set(&path, Value::Array(vec![value]), &origin);
            }
            Ok(value) if matches!(form, ValueFormat::Token(_) | ValueFormat::Folder) => {
                layers.push(&path, value, &origin);
            }
            Ok(value) => {
                if form == ValueFormat::Addresses {
                    layers.remove(&path);
                }
                layers.set(&path, value, &origin);
            }
            Err((what, remedy)) => problems.push(SettingsProblem::new(origin, path, what, remedy)),
        }
    }
    problems
}

fn all_variables() -> Vec<(String, String, ValueFormat)> {
    let listed = VARIABLES.iter().map(|(name, path, form)| ((*name).to_owned(), (*path).to_owned(), *form));
    let switches = Toolboxes::default().switches().into_iter().map(|(toolbox, _)| {
        (
            format!("{TOOLBOX_PREFIX}{}", toolbox.to_uppercase()),
            format!("toolboxes.{toolbox}"),
            ValueFormat::Boolean,
        )
    });
    listed.chain(switches).collect()
}

fn is_empty(list: Option<&Value>) -> bool {
    list.and_then(Value::as_array).is_none_or(Vec::is_empty)
}

/// Returns the variables of each setting, highest precedence first.
pub fn variables_by_setting() -> BTreeMap<String, Vec<String>> {
    let mut settings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, setting, _) in all_variables() {
        settings.entry(setting).or_default().insert(0, name);
    }
    settings
}

/// Returns the variable of a setting that takes precedence.
pub fn variable_of(setting: &str) -> Option<&'static str> {
    VARIABLES.iter().rfind(|(_, path, _)| *path == setting).map(|(name, ..)| *name)
}

/// Returns secrets that exist only in the environment: tokens of which only the hash is stored, the former secret that
/// a newer one replaces, and headers that the span exporter reads directly.
pub fn env_secrets(world: &Environment) -> Vec<String> {
    let single = ["GATEWAY_TOKEN", "OCTOPROX_ADMIN_TOKEN", "TOOL_GATEWAY_SECRET"]
        .into_iter()
        .filter_map(|name| world.variable(name));
    let headers = ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"];
    let headers = headers.into_iter().filter_map(|name| world.variable(name)).flat_map(|all| all.split(','));
    let values =
        headers.filter_map(|header| header.split_once('=')).map(|(_, value)| value.trim().to_owned());
    single.map(str::to_owned).chain(values).collect()
}

/// Returns notes about unknown variables with our prefix, which are probably typos.
pub fn unknown_variables(world: &Environment) -> Vec<String> {
    let known: Vec<String> = all_variables().into_iter().map(|(name, ..)| name).collect();
    let ours = world.variables.keys().filter(|name| name.starts_with("OCTOPROX_"));
    let strange = ours.filter(|name| !known.contains(name) && !IGNORED_VARIABLES.contains(&name.as_str()));
    strange
        .map(|name| match nearest(name, known.iter().map(String::as_str)) {
            Some(close) => format!("unknown variable {name}; did you mean {close}?"),
            None => format!("unknown variable {name}"),
        })
        .collect()
}

fn parse_value(form: ValueFormat, text: &str) -> Result<Value, (String, &'static str)> {
    match form {
        ValueFormat::Text | ValueFormat::Folder => Ok(Value::from(text)),
        ValueFormat::Boolean => parse_bool(text).map(Value::Bool),
        ValueFormat::Integer => text
            .trim()
            .parse::<u64>()
            .map(Value::from)
            .map_err(|_| (format!("`{text}` is not an integer."), "Write digits only.")),
        ValueFormat::List => {
            Ok(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::from).collect())
        }
        ValueFormat::Addresses => parse_addresses(text).map(Value::Object),
        ValueFormat::Token(_) if text.len() < 16 => Err((
            "a token must have at least 16 characters.".to_owned(),
            "Create one with `octoprox token new NAME`.",
        )),
        ValueFormat::Token(name) => Ok(serde_json::json!(
            {"name": name, "sha256": octo_web::token_fingerprint(text), "scopes": ["admin"]})),
    }
}

/// Parses the values that variables accept as true and false.
pub fn parse_bool(text: &str) -> Result<bool, (String, &'static str)> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err((
            format!("`{text}` is neither true nor false."),
            "Write true, false, 1, 0, yes, no, on or off.",
        )),
    }
}

/// A URL may contain commas, so a new pair starts only where `name=scheme://` follows a comma.
fn parse_addresses(text: &str) -> Result<Map<String, Value>, (String, &'static str)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in text.split(',') {
        match (parse_pair(part.trim()), pairs.last_mut()) {
            (Some(pair), _) => pairs.push(pair),
            (None, Some((_, address))) => {
                address.push(',');
                address.push_str(part);
            }
            (None, None) if part.contains("://") => {
                pairs.push(("default".to_owned(), part.trim().to_owned()))
            }
            (None, None) => {
                let what = "not a list of database URLs.".to_owned();
                return Err((
                    what,
                    "Write name=postgresql://user:password@host:5432/database, separated by commas.",
                ));
            }
        }
    }
    Ok(pairs.into_iter().map(|(name, address)| (name, Value::from(address))).collect())
}

fn parse_pair(part: &str) -> Option<(String, String)> {
    let (name, address) = part.split_once('=')?;
    let scheme = address.split_once("://")?.0;
    let plain = octo_model::is_valid_name(name)
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+');
    plain.then(|| (name.to_owned(), address.to_owned()))
}

#[cfg(test)]
mod tests;
