//! `servers_search`.

use octo_catalogue::{Catalogue, CatalogueEntry, LoginKind};
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Searches the catalogue for MCP servers that could be added, for example for a service that no tool reaches. Prefer
/// servers_list for servers that exist already.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Words about the service or the task.
    query: String,
    /// Maximum number of servers.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 20))]
    limit: usize,
}

const fn default_limit() -> usize {
    5
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The servers, best first.
    servers: Vec<FoundServer>,
}

/// A server of the catalogue.
#[derive(Serialize, JsonSchema)]
pub struct FoundServer {
    /// Name for servers_add.
    name: String,
    /// What it offers.
    description: String,
    /// Who publishes it.
    publisher: String,
    /// What it needs: `login`, `key`, `settings` or `nothing`.
    needs: &'static str,
    /// Number of tools, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<usize>,
}

impl FoundServer {
    fn new(name: &str, entry: &CatalogueEntry) -> Self {
        let has_key = entry.variables.iter().any(|variable| variable.required && variable.secret);
        let needs = match entry.remote.as_ref().map(|remote| remote.login) {
            Some(LoginKind::Oauth) => "login",
            Some(LoginKind::Token) => "key",
            None if has_key => "key",
            None if entry.variables.iter().any(|variable| variable.required) => "settings",
            Some(LoginKind::None) | None => "nothing",
        };
        Self {
            name: name.to_owned(),
            description: entry.description.clone(),
            publisher: entry.publisher.name.clone(),
            needs,
            tools: Some(entry.tools.len()).filter(|count| *count > 0),
        }
    }
}

pub struct Search;

impl Tool for Search {
    const NAME: &'static str = "servers_search";
    const TITLE: &'static str = "Search for servers";
    const KEYWORDS: &'static str = "marketplace registry integration plugin connector discover service";
    const REQUESTS: &'static [&'static str] = &[
        "is there an integration for jira that we could install",
        "find a connector for error tracking that we do not have yet",
        "what could we plug in to reach our crm",
        "look for an mcp server for slack",
        "no tool reaches trello, see whether one is available to add",
        "browse available extensions for calendar access",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = ();

    fn examples() -> Vec<Example> {
        vec![Example::new("A server for a task", json!({"query": "error tracking"}))]
    }

    async fn run(&self, input: Input, (): (), _: &CallContext) -> Result<Output, ToolError> {
        let catalogue = Catalogue::shipped().map_err(ToolError::internal)?;
        let found = catalogue.search(&input.query, input.limit);
        Ok(Output { servers: found.into_iter().map(|(name, entry)| FoundServer::new(name, entry)).collect() })
    }
}
