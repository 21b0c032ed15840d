//! Which toolboxes are on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Switches for the toolboxes; each can also be set with `OCTOPROX_ENABLE_` and its name. A toolbox that this build
/// does not have yet is accepted here, so that one file serves several versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Toolboxes {
    /// Reads and changes files of the workspace.
    pub filesystem: bool,
    /// Works with git repositories of the workspace.
    pub git: bool,
    /// Runs commands. Off until asked for: a command can do whatever its user can.
    pub shell: bool,
    /// Fetches addresses over HTTP.
    pub fetch: bool,
    /// Reads web pages as plain text.
    pub readability: bool,
    /// Searches the web.
    pub search: bool,
    /// Tells the weather.
    pub weather: bool,
    /// Drives a browser. Off until asked for: it runs other people's code.
    pub browser: bool,
    /// Queries SQL databases. Off until asked for: it needs a connection.
    pub database: bool,
    /// Remembers entities and relations.
    pub memory: bool,
    /// Tells, converts and parses times.
    pub time: bool,
    /// Calls services by their OpenAPI documents.
    pub openapi: bool,
    /// Talks to GitLab.
    pub gitlab: bool,
    /// Talks to GitHub.
    pub github: bool,
    /// Gives the public key of the workspace.
    pub ssh: bool,
    /// Counts and summarises text.
    pub text: bool,
    /// Runs workflows of tools.
    pub workflow: bool,
    /// Tells of the servers behind the hub, and logs in there. Listed once there is a server.
    pub servers: bool,
    /// Runs the tools that you declare in `tools.folders`.
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
    /// Every toolbox by name, and whether it is on.
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
