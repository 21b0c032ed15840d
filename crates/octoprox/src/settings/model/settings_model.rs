//! All settings in one type. Its comments are the reference that people read.

use crate::settings::load::env_variables;
use crate::settings::model::section_models::{
    Admin, Audit, Auth, Browser, Calls, Database, Github, Gitlab, Http, Listen, Llm, Logins, Net, Prompts,
    Search, Telemetry, Tools,
};
use crate::settings::model::server_model::Server;
use crate::settings::model::toolbox_switches::Toolboxes;
use crate::settings::model::workspace_models::{Files, Git, Root, Shell};
use octo_hub::{CacheRule, LimitRule, PolicySettings, ProfileSettings, ResultLimits};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Settings of octoprox: one YAML file, given with `--config` or `OCTOPROX_CONFIG`, else `octoprox.yaml` in the current
/// folder if it was approved with `octoprox trust`, else `octoprox/octoprox.yaml` in `$XDG_CONFIG_HOME`. Everything is optional and has a safe default; texts may
/// hold `${NAME}` or `${NAME:-default}` for a variable. Variables of the environment go over the file, flags over both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Folder that tools work in. When it is not set: the current folder, unless that is the root of the file system, your
    /// home directory, or where octoprox keeps its own settings and data.
    pub workspace: Option<PathBuf>,
    /// Folder of the hub's own data (audit, kept results); `octoprox` in `$XDG_STATE_HOME` or `~/.local/state` when it is not set.
    pub state_dir: Option<PathBuf>,
    /// Where the hub listens.
    pub listen: Listen,
    /// The admin API.
    pub admin: Admin,
    /// Which toolboxes are on.
    pub toolboxes: Toolboxes,
    /// MCP servers behind the hub, by name: letters, digits, `_` and `-`, at most 20 characters.
    pub servers: BTreeMap<String, Server>,
    /// Named views of the catalogue, each served at `/mcp/` and its name.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// Who may call what.
    pub policy: PolicySettings,
    /// How often callers may call.
    pub limits: Vec<LimitRule>,
    /// Which answers are kept and given again.
    pub cache: Vec<CacheRule>,
    /// How large replies may be.
    pub results: ResultLimits,
    /// Bounds of every call.
    pub calls: Calls,
    /// The record of every call.
    pub audit: Audit,
    /// Who may come in.
    pub auth: Auth,
    /// The edge towards HTTP clients.
    pub http: Http,
    /// Logs and traces of the hub.
    pub telemetry: Telemetry,
    /// What tools may reach over the network.
    pub net: Net,
    /// What the browser toolbox may do.
    pub browser: Browser,
    /// Where the search toolbox looks.
    pub search: Search,
    /// Databases that the database toolbox may use.
    pub database: Database,
    /// The language model that tools may ask.
    pub llm: Llm,
    /// Prompts of your own and of the product.
    pub prompts: Prompts,
    /// Tools of your own.
    pub tools: Tools,
    /// Files of the workspace and the roots.
    pub files: Files,
    /// What the git toolbox may do.
    pub git: Git,
    /// What the shell toolbox may run.
    pub shell: Shell,
    /// What the GitHub toolbox needs.
    pub github: Github,
    /// What the GitLab toolbox needs.
    pub gitlab: Gitlab,
    /// Folders beside the workspace, by name. `repos`, `downloads` and `playbooks` have variables of their own.
    pub roots: BTreeMap<String, Root>,
    /// Logins at servers behind the hub.
    pub logins: Logins,
}

impl Settings {
    /// Folders that tools, and servers in a sandbox, may write.
    pub fn writable_folders(&self) -> Vec<PathBuf> {
        let workspace = self.workspace.iter().filter(|_| !self.files.read_only);
        let roots = self.roots.iter().filter(|(name, root)| root.is_writable(name));
        let roots = roots.filter_map(|(_, root)| root.folder());
        let sandboxes = self.servers.values().filter_map(|server| server.sandbox.as_ref());
        let written = sandboxes.flat_map(|sandbox| &sandbox.write);
        workspace.chain(roots).chain(written).cloned().collect()
    }

    /// Files and folders that these settings name and that decide what tools there are.
    pub fn named_files(&self) -> Vec<PathBuf> {
        let documents = self.servers.values().filter_map(|server| server.document.as_deref());
        let documents = documents.filter(|document| !document.contains("://")).map(PathBuf::from);
        self.prompts.folders.iter().chain(&self.tools.folders).cloned().chain(documents).collect()
    }
}

/// The JSON Schema of the settings file.
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

/// Adds the variables to what is said of a setting. The description of its type belongs to other settings, too.
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
