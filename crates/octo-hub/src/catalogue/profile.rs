//! Profiles: named views of the catalogue.

use crate::catalogue::item::Item;
use crate::catalogue::tool_override::OverrideSettings;
use globset::{Glob, GlobSet, GlobSetBuilder};
use octo_toolkit::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// Patterns as in `files.protected` that this profile does not write either; `@generated` is the set of
    /// files that builds and editors generate.
    pub protect: Vec<String>,
    /// Renamed tools: for each new name, the tool and the names of its parameters. Such a tool is not listed
    /// under its own name.
    #[serde(rename = "as")]
    pub overrides: BTreeMap<String, OverrideSettings>,
}

/// Profile settings with compiled patterns.
#[derive(Debug, Clone)]
pub struct Profile {
    pub name: String,
    pub servers: Vec<String>,
    pub prefix: bool,
    tools: Option<GlobSet>,
    overrides: BTreeMap<String, OverrideSettings>,
    passthrough: Option<PassthroughSource>,
}

#[derive(Clone)]
struct PassthroughSource(Arc<dyn Source>);

impl std::fmt::Debug for PassthroughSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name())
    }
}

impl Profile {
    /// The profile at `/mcp`: everything.
    pub fn everything() -> Self {
        Self {
            name: String::new(),
            servers: Vec::new(),
            prefix: true,
            tools: None,
            overrides: BTreeMap::new(),
            passthrough: None,
        }
    }

    /// A single server, unchanged: names are kept, and requests for unlisted items are forwarded to it.
    pub fn passthrough(name: &str, source: &Arc<dyn Source>) -> Self {
        Self {
            name: name.to_owned(),
            servers: vec![source.name().to_owned()],
            prefix: false,
            passthrough: Some(PassthroughSource(Arc::clone(source))),
            ..Self::everything()
        }
    }

    /// The server that this profile passes everything through to.
    pub fn passthrough_source(&self) -> Option<&Arc<dyn Source>> {
        self.passthrough.as_ref().map(|through| &through.0)
    }

    pub fn new(name: &str, settings: &ProfileSettings) -> Result<Self, globset::Error> {
        let all =
            settings.tools.is_empty() && (settings.overrides.is_empty() || !settings.servers.is_empty());
        let tools = if all { None } else { Some(glob_set(&settings.tools)?) };
        Ok(Self {
            name: name.to_owned(),
            servers: settings.servers.clone(),
            prefix: !settings.without_prefix,
            tools,
            overrides: settings.overrides.clone(),
            passthrough: None,
        })
    }

    pub fn shows_source(&self, source: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|name| name == source)
    }

    pub fn shows(&self, listed: &str) -> bool {
        self.tools.as_ref().is_none_or(|globs| globs.is_match(listed))
    }

    /// All overrides of a tool in this profile.
    pub fn overrides_of<'a>(
        &'a self,
        item: &'a Item,
    ) -> impl Iterator<Item = (&'a String, &'a OverrideSettings)> {
        let is = |tool: &str| tool == item.canonical_name || tool == item.target();
        self.overrides.iter().filter(move |(_, settings)| is(&settings.tool))
    }

    pub fn override_names(&self) -> impl Iterator<Item = &String> {
        self.overrides.keys()
    }
}

/// Compiles several patterns into one set.
pub fn glob_set(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern)?);
    }
    set.build()
}
