//! The search for tools: what is searched, and what is found.

use octo_model::{EffectClass, Json};

/// A search among the tools that a caller may use.
#[derive(Debug, Clone, Default)]
pub struct ToolSearch {
    pub query: String,
    /// Maximum number of tools.
    pub limit: usize,
    /// Only tools of this server or toolbox.
    pub server: Option<String>,
    /// Only tools that do no more than this.
    pub max_effect: Option<EffectClass>,
}

/// A tool by its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallableTool {
    /// The name to call.
    pub name: String,
    /// Its server; none for native tools, and for those that the profile names.
    pub server: Option<String>,
    /// Its name there.
    pub tool: String,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTool {
    /// The name to call.
    pub name: String,
    /// Its server or toolbox.
    pub server: String,
    /// Its name there.
    pub tool: String,
    /// Arguments and first sentence of the description, after the name.
    pub signature: String,
    /// The input schema, if the tool was searched by its name.
    pub schema: Option<Json>,
    /// Other servers with the same tool.
    pub same_on: Vec<String>,
}

/// A tool of which only the name is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingTool {
    /// Its name on its server.
    pub tool: String,
    /// The name to call, as models are shown it.
    pub call_name: String,
}

/// Names of further tools of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiblingTools {
    pub server: String,
    pub tools: Vec<SiblingTool>,
    /// Whether there are more.
    pub is_truncated: bool,
}

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundTools {
    /// Best first.
    pub tools: Vec<FoundTool>,
    /// Of the servers with the best tools, best first.
    pub siblings: Vec<SiblingTools>,
    /// If nothing was found: servers and toolboxes that have tools for the caller.
    pub servers: Vec<String>,
}
