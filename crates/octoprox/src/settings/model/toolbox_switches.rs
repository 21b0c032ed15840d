//! Toolbox switches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Toolboxes to enable, also with the variable `OCTOPROX_ENABLE_<NAME>`. Toolboxes that this build does not have are
/// accepted, so that one file works with several versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Toolboxes {
    /// Read, search and edit files in the workspace.
    pub filesystem: bool,
    /// Work with git repositories in the workspace.
    pub git: bool,
    /// Run shell commands. Off by default: a command has the permissions of its user.
    pub shell: bool,
    /// Fetch URLs over HTTP.
    pub fetch: bool,
    /// Read web pages as plain text.
    pub readability: bool,
    /// Search the web.
    pub search: bool,
    /// Weather reports and forecasts.
    pub weather: bool,
    /// Control a browser. Off by default: it runs code of third parties.
    pub browser: bool,
    /// Query SQL databases. Off by default: it needs a connection.
    pub database: bool,
    /// Memory: store and search entities and relations.
    pub memory: bool,
    /// Current time, time zone conversion and parsing of dates.
    pub time: bool,
    /// Call APIs described by OpenAPI documents.
    pub openapi: bool,
    /// Work with GitLab.
    pub gitlab: bool,
    /// Work with GitHub.
    pub github: bool,
    /// SSH public key of the workspace.
    pub ssh: bool,
    /// Count and summarize text.
    pub text: bool,
    /// Validate, run and resume workflows.
    pub workflow: bool,
    /// Show upstream servers and log in to them. Listed if at least one server is configured.
    pub servers: bool,
    /// Declared tools from `tools.folders`.
    pub declared: bool,
}

impl Default for Toolboxes {
    fn default() -> Self {
        Self {
            filesystem: true,
            git: true,
            shell: false,
            fetch: true,
            readability: true,
            search: true,
            weather: true,
            browser: false,
            database: false,
            memory: true,
            time: true,
            openapi: true,
            gitlab: true,
            github: true,
            ssh: true,
            text: true,
            workflow: true,
            servers: true,
            declared: true,
        }
    }
}

impl Toolboxes {
    /// Returns each toolbox name and whether it is enabled.
    pub fn switches(&self) -> Vec<(String, bool)> {
        let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(self) else {
            return Vec::new();
        };
        fields.into_iter().map(|(name, on)| (name, on == true)).collect()
    }

    pub fn is_on(&self, toolbox: &str) -> bool {
        self.switches().iter().any(|(name, on)| name == toolbox && *on)
    }
}
