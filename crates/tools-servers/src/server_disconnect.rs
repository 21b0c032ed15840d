//! `server_disconnect`.

use crate::server_registry::{Servers, require_admin};
use crate::server_views::ServerView;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Ends a server's connection or program for all callers; its tools stay listed, and the next call connects again.
/// Active calls fail. For administrators. Prefer server_logout to give up a login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the server in the settings.
    server: String,
}

pub struct Disconnect;

impl Tool for Disconnect {
    const NAME: &'static str = "server_disconnect";
    const TITLE: &'static str = "Disconnect a server";
    const KEYWORDS: &'static str = "stop kill restart shut down";
    const REQUESTS: &'static [&'static str] = &[
        "cut the connection to the notion backend",
        "restart a hanging integration by ending its program",
        "stop the upstream server for everybody",
        "take the service behind the hub offline for now",
        "kill the stuck mcp process but stay signed in",
        "drop the link to an integration",
    ];
    const EFFECT: Effect = Effect::writes().idempotent();
    type Input = Input;
    type Output = ServerView;
    type Grants = Servers;

    fn examples() -> Vec<Example> {
        vec![Example::new("End a program that hangs", json!({"server": "notion"}))]
    }

    async fn run(&self, input: Input, servers: Servers, cx: &CallContext) -> Result<ServerView, ToolError> {
        require_admin(&cx.caller, "disconnect servers")?;
        servers.upstream(&input.server)?.disconnect().await;
        let known = servers.get(&input.server)?;
        Ok(ServerView::of(&servers, &input.server, &known, &cx.caller).await)
    }
}
