//! `server_login_status`.

use crate::server_registry::Servers;
use crate::server_views::LoginView;
use octo_toolkit::{CallContext, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// Returns the state of a login: none, waiting for the person, connected, or lost and why. Prefer servers_list for all
/// servers at once, and server_login to start one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name of the server in the settings.
    server: String,
}

pub struct ServerLoginStatus;

impl Tool for ServerLoginStatus {
    const NAME: &'static str = "server_login_status";
    const TITLE: &'static str = "Look at a login";
    const KEYWORDS: &'static str = "signed in authenticated authorized waiting";
    const REQUESTS: &'static [&'static str] = &[
        "has the user finished signing in to notion yet",
        "am i still logged in at the integration",
        "is the authorisation pending or done",
        "when does the oauth token expire",
        "why was my sign-in lost",
        "which scopes does my access to linear have",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = LoginView;
    type Grants = Servers;

    fn examples() -> Vec<Example> {
        vec![Example::new("Whether the person is done", json!({"server": "notion"}))]
    }

    async fn run(&self, input: Input, servers: Servers, cx: &CallContext) -> Result<LoginView, ToolError> {
        servers.get(&input.server)?;
        LoginView::of(&servers, &input.server, &cx.caller).await
    }
}
