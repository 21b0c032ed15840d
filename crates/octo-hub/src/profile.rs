//! Named views of the catalogue.

use crate::item::Item;
use crate::recast::RecastSettings;
use globset::{Glob, GlobSet, GlobSetBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which tools a profile shows, and under which names.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileSettings {
    /// Toolboxes and servers to show, by name. Empty: all.
    pub servers: Vec<String>,
    /// Patterns of listed names to show, such as `time_*`. Empty: all, or only those of `as` where it has any.
    pub tools: Vec<String>,
    /// List upstream tools under their own names, without the server's in front.
    pub without_prefix: bool,
    /// Tools in other words: for each name, which tool it is and what its parameters are called. Such a tool is not listed
    /// under its own name.
    #[serde(rename = "as")]
    pub recasts: BTreeMap<String, RecastSettings>,
}

/// Settings with their patterns compiled.
#[derive(Debug, Clone)]
pub struct Profile {
    pub name: String,
    pub servers: Vec<String>,
    pub prefix: bool,
    tools: Option<GlobSet>,
    recasts: BTreeMap<String, RecastSettings>,
}

impl Profile {
    /// What is served at `/mcp`: everything.
    pub fn everything() -> Self {
        Self { name: String::new(), servers: Vec::new(), prefix: true, tools: None, recasts: BTreeMap::new() }
    }

    pub fn new(name: &str, settings: &ProfileSettings) -> Result<Self, globset::Error> {
        let all = settings.tools.is_empty() && (settings.recasts.is_empty() || !settings.servers.is_empty());
        let tools = if all { None } else { Some(globs(&settings.tools)?) };
        Ok(Self {
            name: name.to_owned(),
            servers: settings.servers.clone(),
            prefix: !settings.without_prefix,
            tools,
            recasts: settings.recasts.clone(),
        })
    }

    pub fn shows_source(&self, source: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|name| name == source)
    }

    pub fn shows(&self, listed: &str) -> bool {
        self.tools.as_ref().is_none_or(|globs| globs.is_match(listed))
    }

    /// Every other form in which this profile shows a tool.
    pub fn recasts_of<'a>(
        &'a self,
        item: &'a Item,
    ) -> impl Iterator<Item = (&'a String, &'a RecastSettings)> {
        let is = |tool: &str| tool == item.canonical || tool == item.target();
        self.recasts.iter().filter(move |(_, settings)| is(&settings.tool))
    }

    pub fn recast_names(&self) -> impl Iterator<Item = &String> {
        self.recasts.keys()
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
