//! Root type of the settings. Its doc comments are the source of the settings reference.

use crate::settings::load::env_variables;
use crate::settings::model::section_models::{
    Admin, Audit, Auth, Calls, Database, Fleet, Github, Gitlab, Http, Listen, Llm, Logins, Net, Prompts,
    Search, Skills, Store, Telemetry, Tools,
};
use crate::settings::model::server_model::Server;
use crate::settings::model::toolbox_switches::Toolboxes;
use crate::settings::model::workspace_models::{Files, Root};
use octo_hub::{CacheRule, LimitRule, PolicySettings, ProfileSettings, ResultLimits, SurfaceSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Octoprox reads one YAML file: the one given with `--config` or `OCTOPROX_CONFIG`; otherwise `octoprox.yaml` in the
/// current directory, if it was approved with `octoprox trust`; otherwise `octoprox/octoprox.yaml` in
/// `$XDG_CONFIG_HOME`. Every setting is optional and has a safe default. Strings may contain `${NAME}` or
/// `${NAME:-default}`, which is replaced by the environment variable. Environment variables override the file, and
/// command-line flags override both. If `OCTOPROX_STANDALONE` is true, commands run without
/// the background hub.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Directory that file, git and shell tools work in. Default: the current directory, unless it is the root of the
    /// file system, your home directory, or the directory of octoprox's own settings or data.
    pub workspace: Option<PathBuf>,
    /// State directory: audit log, stored results and other data of the hub. Default: `octoprox` in `$XDG_STATE_HOME`
    /// or `~/.local/state`.
    pub state_dir: Option<PathBuf>,
    /// Database of several hubs that share their state, instead of files in `state_dir`.
    pub store: Store,
    /// Nodes that share the work, connected by NATS.
    pub fleet: Fleet,
    /// Address and port of the HTTP server.
    pub listen: Listen,
    /// Admin API of `octoprox serve`.
    pub admin: Admin,
    /// Toolboxes to enable.
    pub toolboxes: Toolboxes,
    /// Upstream servers, by name. A name has letters, digits, `_` and `-`, at most 20 characters.
    pub servers: BTreeMap<String, Server>,
    /// URLs of registries that `octoprox add` searches after its own catalogue. They speak the registry API, version 0.1.
    pub registries: Vec<String>,
    /// Named views of the catalogue, each served at `/mcp/<name>`.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// What is listed to MCP clients.
    pub surface: SurfaceSettings,
    /// Access policy: rules that allow or deny calls.
    pub policy: PolicySettings,
    /// Rate limits per caller.
    pub limits: Vec<LimitRule>,
    /// Response cache rules.
    pub cache: Vec<CacheRule>,
    /// Result size limits.
    pub results: ResultLimits,
    /// Limits that apply to every call.
    pub calls: Calls,
    /// Audit log of all calls.
    pub audit: Audit,
    /// Client authentication.
    pub auth: Auth,
    /// HTTP server limits and allowed hosts and origins.
    pub http: Http,
    /// Logs and traces.
    pub telemetry: Telemetry,
    /// Network access of tools.
    pub net: Net,
    /// Browser toolbox.
    pub browser: tools_browser::BrowserSettings,
    /// Search toolbox: search engines.
    pub search: Search,
    /// Database toolbox: connections and permissions.
    pub database: Database,
    /// Language model for tools that need one.
    pub llm: Llm,
    /// Prompts: your own and the built-in ones.
    pub prompts: Prompts,
    /// Agent Skills.
    pub skills: Skills,
    /// Declared tools: tools that you define in YAML.
    pub tools: Tools,
    /// File access in the workspace and the roots.
    pub files: Files,
    /// Git toolbox.
    pub git: tools_git::GitSettings,
    /// Shell toolbox.
    pub shell: tools_shell::ShellSettings,
    /// GitHub toolbox.
    pub github: Github,
    /// GitLab toolbox.
    pub gitlab: Gitlab,
    /// Additional directories that tools may use, by name. `repos`, `downloads` and `playbooks` can also be set with
    /// environment variables.
    pub roots: BTreeMap<String, Root>,
    /// Logins at upstream servers.
    pub logins: Logins,
}

impl Settings {
    /// Directories that tools and sandboxed servers may write to.
    pub fn writable_folders(&self) -> Vec<PathBuf> {
        let sandboxes = self.servers.values().filter_map(|server| server.sandbox.as_ref());
        let written = sandboxes.flat_map(|sandbox| &sandbox.write).cloned();
        self.writable_roots().into_iter().chain(written).collect()
    }

    /// Directories that tools may write to.
    pub fn writable_roots(&self) -> Vec<PathBuf> {
        let workspace = self.workspace.iter().filter(|_| !self.files.read_only);
        let roots = self.roots.iter().filter(|(name, root)| root.is_writable(name));
        workspace.chain(roots.filter_map(|(_, root)| root.folder())).cloned().collect()
    }

    /// Files and directories named in these settings that determine which tools exist.
    pub fn named_files(&self) -> Vec<PathBuf> {
        let documents = self.servers.values().filter_map(|server| server.document.as_deref());
        let documents = documents.filter(|document| !document.contains("://")).map(PathBuf::from);
        let folders = [&self.prompts.folders, &self.tools.folders, &self.skills.folders];
        folders.into_iter().flatten().cloned().chain(documents).collect()
    }
}

/// JSON Schema of the settings file.
pub fn settings_schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Settings).to_value();
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), "octoprox settings".into());
    }
    for (setting, variables) in env_variables::variables_by_setting() {
        append_variables(&mut schema, &setting, &variables.join("`, `"));
    }
    schema
}

/// Appends the environment variables to the description of a setting, not of its type, which other settings may share.
fn append_variables(schema: &mut Value, setting: &str, variables: &str) {
    let mut entry = None;
    let place = setting.split('.').try_fold(String::new(), |place, key| {
        let target = schema.pointer(&place)?.get("$ref").and_then(Value::as_str);
        let place = target.map_or(place.as_str(), |target| target.trim_start_matches('#'));
        let mut field = format!("{place}/properties/{key}");
        if schema.pointer(&field).is_none() {
            field = format!("{place}/additionalProperties");
            entry = Some(key);
        }
        schema.pointer(&field).map(|_| field)
    });
    let said =
        place.and_then(|place| schema.pointer_mut(&place)).and_then(|field| field.get_mut("description"));
    if let Some(Value::String(said)) = said {
        let of = entry.map(|name| format!(" of `{name}`")).unwrap_or_default();
        said.push_str(&format!(" Variable{of}: `{variables}`."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_documented() {
        let schema = settings_schema();
        let defs = schema["$defs"].as_object().unwrap();
        for (name, section) in defs.iter().chain([(&"Settings".to_owned(), &schema)]) {
            for (field, about) in section["properties"].as_object().into_iter().flatten() {
                let said = about["description"].as_str().unwrap_or_default();
                assert!(said.len() > 10, "{name}.{field} is not documented");
            }
        }
    }

    #[test]
    fn settings_name_their_variables() {
        let schema = settings_schema();
        let sections = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        let fields = sections.filter_map(|section| section["properties"].as_object()).flatten();
        let said: String = fields.filter_map(|(_, field)| field["description"].as_str()).collect();
        for (_, variables) in env_variables::variables_by_setting() {
            for variable in variables {
                assert!(said.contains(&format!("`{variable}`")), "{variable} is nowhere");
            }
        }
    }

    #[test]
    fn the_defaults_fit_their_own_schema() {
        let defaults = serde_json::to_value(Settings::default()).unwrap();
        let validator = jsonschema::options().build(&settings_schema()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&defaults).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(defaults["listen"]["host"], Value::from("127.0.0.1"));
    }
}
