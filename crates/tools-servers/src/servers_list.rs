//! `servers_list`.

use crate::server_registry::Servers;
use crate::server_views::ServerView;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Lists the servers behind the hub: the state of each, how many tools it has, and whether a login is missing or lost.
/// Prefer server_login_status to watch one login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only this server; all servers if omitted.
    #[serde(default)]
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The servers, by name.
    servers: Vec<ServerView>,
}

pub struct List;

impl Tool for List {
    const NAME: &'static str = "servers_list";
    const TITLE: &'static str = "List servers";
    const KEYWORDS: &'static str = "MCP integrations connected status available";
    const REQUESTS: &'static [&'static str] = &[
        "which integrations are connected right now",
        "is the notion server down",
        "what backends does the hub have and how are they doing",
        "how many tools does each connected service offer",
        "why does an upstream server not respond",
        "any integrations where i still need to sign in",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Servers;

    fn examples() -> Vec<Example> {
        vec![Example::new("How every server is doing", json!({}))]
    }

    async fn run(&self, input: Input, servers: Servers, cx: &CallContext) -> Result<Output, ToolError> {
        let all = match &input.server {
            Some(name) => vec![(name.clone(), servers.get(name)?)],
            None => servers.all().into_iter().collect(),
        };
        let mut told = Vec::with_capacity(all.len());
        for (name, known) in all {
            told.push(ServerView::of(&servers, &name, &known, &cx.caller).await);
        }
        Ok(Output { servers: told })
    }
}
