//! Named views of the catalogue.

use globset::{Glob, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which tools a profile shows, and under which names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileSettings {
    /// Toolboxes and servers to show, by name. Empty: all.
    pub servers: Vec<String>,
    /// Patterns of listed names to show, such as `time_*`. Empty: all.
    pub tools: Vec<String>,
    /// List upstream tools under their own names, without the server's in front.
    pub without_prefix: bool,
}

/// Settings with their patterns compiled.
#[derive(Debug, Clone)]
pub struct Profile {
    pub name: String,
    pub servers: Vec<String>,
    pub prefix: bool,
    tools: Option<GlobSet>,
}

impl Profile {
    /// What is served at `/mcp`: everything.
    pub fn everything() -> Self {
        Self { name: String::new(), servers: Vec::new(), prefix: true, tools: None }
    }

    pub fn new(name: &str, settings: &ProfileSettings) -> Result<Self, globset::Error> {
        let tools = if settings.tools.is_empty() { None } else { Some(globs(&settings.tools)?) };
        Ok(Self {
            name: name.to_owned(),
            servers: settings.servers.clone(),
            prefix: !settings.without_prefix,
            tools,
        })
    }

    pub fn shows_source(&self, source: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|name| name == source)
    }

    pub fn shows(&self, listed: &str) -> bool {
        self.tools.as_ref().is_none_or(|globs| globs.is_match(listed))
    }
}

/// Several patterns as one.
pub fn globs(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern)?);
    }
    set.build()
}
