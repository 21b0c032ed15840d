//! Profiles: named views of the catalogue.

use crate::catalogue::item::Item;
use crate::catalogue::name_patterns::glob_set;
use crate::catalogue::surface::{ListedTools, Structure, Surface, SurfaceSettings};
use crate::catalogue::tool_override::OverrideSettings;
use globset::GlobSet;
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
    /// Which tools are listed to MCP clients; the others can be found. Default: `surface.tools`.
    pub surface: Option<Surface>,
    /// Patterns of the tools that the surface `profile` lists. Default: `surface.listed`.
    pub listed: Vec<String>,
    /// Whether MCP clients get structured results. Default: `surface.structure`.
    pub structure: Option<Structure>,
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
    pub(crate) surface: Surface,
    pub(crate) listed: ListedTools,
    pub(crate) structure: Structure,
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
            surface: Surface::default(),
            listed: ListedTools::default(),
            structure: Structure::default(),
        }
    }

    /// The profile at `/mcp` with these settings.
    pub fn everything_with(surface: &SurfaceSettings) -> Result<Self, globset::Error> {
        Self::everything().with_surface(&ProfileSettings::default(), surface)
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
            ..Self::everything()
        })
    }

    /// The same profile with its surface; what it does not set is as set for all.
    pub fn with_surface(
        mut self,
        own: &ProfileSettings,
        surface: &SurfaceSettings,
    ) -> Result<Self, globset::Error> {
        let listed = if own.listed.is_empty() { &surface.listed } else { &own.listed };
        self.listed = ListedTools::new(listed)?;
        self.surface = own.surface.unwrap_or(surface.tools);
        self.structure = own.structure.unwrap_or(surface.structure);
        Ok(self)
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
