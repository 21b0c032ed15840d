//! `server_connect`.

use crate::server_registry::{Servers, require_admin};
use crate::server_views::{ServerView, visible};
use octo_model::Kind;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Connects a server now and returns its state, or why it cannot be connected. For administrators. Prefer to call its
/// tools: the first call connects automatically.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the server in the settings.
    server: String,
}

pub struct Connect;

impl Tool for Connect {
    const NAME: &'static str = "server_connect";
    const TITLE: &'static str = "Connect a server";
    const KEYWORDS: &'static str = "start restart activate reconnect";
    const REQUESTS: &'static [&'static str] = &[
        "bring the notion integration online now",
        "start the upstream server that is asleep",
        "reconnect a backend after it went down",
        "try again to reach the linear service behind the hub",
        "wake up a configured integration ahead of use",
        "test whether a configured server can be reached",
    ];
    const EFFECT: Effect = Effect::writes().idempotent().open_world();
    type Input = Input;
    type Output = ServerView;
    type Grants = Servers;

    fn examples() -> Vec<Example> {
        vec![Example::new("Connect one server", json!({"server": "notion"}))]
    }

    async fn run(&self, input: Input, servers: Servers, cx: &CallContext) -> Result<ServerView, ToolError> {
        require_admin(&cx.caller, "connect servers")?;
        let upstream = servers.upstream(&input.server)?;
        upstream.connect(cx).await.map_err(|error| with_reason(error, &input.server))?;
        let known = servers.get(&input.server)?;
        Ok(ServerView::of(&servers, &input.server, &known, &cx.caller).await)
    }
}

/// Administrators see the exact reason.
fn with_reason(mut error: ToolError, name: &str) -> ToolError {
    if let (Kind::Unavailable | Kind::Internal, Some(reason)) = (error.kind, &error.detail) {
        error.message = visible(format!("`{name}` cannot be connected: {reason}.")).into();
    }
    error
}
